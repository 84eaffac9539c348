# SPDX-License-Identifier: Apache-2.0
"""docs/reference/api.md: what is written by hand, up to a mark, and below it every route as the application declares it, with who may ask it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from reference_words import LISTENER, unmarked

from muster.interfaces.api import spec
from muster.interfaces.api.guard import NEEDS, Need
from muster.interfaces.ingest.answers import MSGPACK
from muster.interfaces.ingest.routes import ROUTES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "api.md"
MARK = "<!-- routes: from here on written by tools/gen_reference.py from the code: change the code, then run `make docs`. -->"
FORMS = {"application/json": "json", "application/x-ndjson": "ndjson", "text/csv": "csv", "text/event-stream": "events", "text/plain": "text"}
ALWAYS = frozenset({"400", "401", "403", "421", "429", "500", "503"})
"""Errors that every route can answer."""
LARGE = 2**32
"""Bounds from here on are no matter to a reader."""
TAGGED = frozenset({"text/csv", "application/x-ndjson"})
DOCUMENTS = frozenset({"Card", "Device", "Partition", "Node", "Source", "Adapter", "Finding", "Change", "CaptureInfo", "Series", "Summary"})
"""What is told with an ETag, beside pages of lists."""
HELD = frozenset({"/api/v1/acts", "/api/v1/findings/{finding}/acknowledge"})
"""What may be held to what was read, and done once under a key."""
WHO = """\
A role may what a lesser one may: viewer < operator < admin. A token held to reading parts (`--scope read=`)
needs the part that stands here besides, and changes nothing.
`HEAD` is answered where `GET` is."""
REPORTERS = f"""\
Port 7461, TLS, HTTP/1.1. Bodies are msgpack (`{MSGPACK}`); a report may be packed by gzip.
Agents speak it; it is no interface for others, and users' tokens do not count here."""
FOLLOWED = "/api/v1/changes/stream"
_CONVERTER = re.compile(r":path}")

Operation = Mapping[str, Any]
Document = Mapping[str, Any]


def page() -> str:
    """The page: the part above the mark stays as it is. Raises ValueError when the mark is not there."""
    above, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ValueError(f"{PAGE.name} lacks the line {MARK}")
    document = cast(Document, json.loads(spec.text()))
    routes = sorted(_routes(document), key=lambda each: (each[1], each[0]))
    shared = _shared(routes)
    rows = [
        (f"[`{method} {path}`](#{_anchor(method, path)})", told["summary"], *who(method, path), ", ".join(forms(told)) or "json")
        for method, path, told in routes
    ]
    parts = [
        "## Routes",
        WHO,
        table(("route", "what it does", "who may", "part", "forms"), rows),
        "## Parameters of every list",
        table(("parameter", "type", "default", "what it is"), [_parameter(each) for each in shared]),
        "## Each route",
        "Errors that every route can answer are left out: " + ", ".join(sorted(ALWAYS)) + ".",
        *(_route(document, method, path, told, shared) for method, path, told in routes),
        *_listener(),
    ]
    return f"{above}{MARK}\n\n" + "\n\n".join(parts) + "\n"


def table(head: tuple[str, ...], rows: Any) -> str:
    """A table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines)


def _routes(document: Document) -> Iterator[tuple[str, str, Operation]]:
    for path, operations in document["paths"].items():
        for method, told in operations.items():
            yield method.upper(), path, told


def need(method: str, path: str) -> Need:
    """What the guard asks for a route, whose path it knows with its converters."""
    return next(found for (verb, told), found in NEEDS.items() if verb == method and _CONVERTER.sub("}", told) == path)


def who(method: str, path: str) -> tuple[str, str]:
    """The least who may ask, and the part that a token held to reading parts must have; none where it may not at all, or is not asked for."""
    found = need(method, path)
    if found.public:
        return "everybody, without a token", ""
    if found.here:
        return "programs of the server's machine", ""
    return str(found.grade), "" if found.changes else f"`{found.part}`"


def forms(told: Operation) -> list[str]:
    """The forms of its answer."""
    return [FORMS.get(media, media) for media, what in told["responses"]["200"]["content"].items() if what["schema"]]


def tagged(method: str, told: Operation) -> bool:
    """True for a route whose JSON has an ETag."""
    media = told["responses"]["200"]["content"]
    name = str(media.get("application/json", {}).get("schema", {}).get("$ref", "")).rpartition("/")[2]
    return method == "GET" and (bool(TAGGED & set(media)) or name in DOCUMENTS)


def headers(method: str, path: str, told: Operation) -> list[str]:
    """Headers beyond the usual ones."""
    found = ["`ETag`, `If-None-Match` (304)"] if tagged(method, told) else []
    found += ["`If-Match` (412)", "`Idempotency-Key` (422)"] if path in HELD and method == "POST" else []
    return [*found, *(["`Last-Event-ID`"] if path == FOLLOWED else [])]


def _shared(routes: list[tuple[str, str, Operation]]) -> list[Mapping[str, Any]]:
    """Parameters that every list has, told once."""
    lists = [told for _, _, told in routes if "text/csv" in told["responses"]["200"]["content"]]
    first: list[Mapping[str, Any]] = lists[0]["parameters"]
    return [each for each in first if all(each in told["parameters"] for told in lists)]


def _route(document: Document, method: str, path: str, told: Operation, shared: list[Mapping[str, Any]]) -> str:
    own = [each for each in told.get("parameters", []) if each not in shared]
    role, part = who(method, path)
    facts = [f"Who may: {role}{f', part {part}' if part else ''}."]
    facts += ["Takes the parameters of every list."] if len(own) < len(told.get("parameters", [])) and shared[0] in told["parameters"] else []
    facts += [f"Answer: {_answer(told)}."]
    facts += [f"Headers: {', '.join(found)}."] if (found := headers(method, path, told)) else []
    errors = sorted(set(told["responses"]) - ALWAYS - {"200"})
    facts += [f"Errors: {', '.join(errors)}."] if errors else []
    parts = [f"### {method} {path}", unmarked(told.get("description") or told["summary"]), "\n".join(f"- {fact}" for fact in facts)]
    parts += [table(("parameter", "type", "default", "what it is"), [_parameter(each) for each in own])] if own else []
    return "\n\n".join([*parts, *_body(document, told)])


def _answer(told: Operation) -> str:
    content = told["responses"]["200"].get("content", {})
    name = str(content.get("application/json", {}).get("schema", {}).get("$ref", "")).rpartition("/")[2]
    about = str(told["responses"]["200"]["description"])
    return f"{about[:1].lower()}{about[1:]} ({', '.join(([f'`{name}`'] if name else []) + forms(told))})"


def _parameter(each: Mapping[str, Any]) -> tuple[str, str, str, str]:
    schema = each["schema"]
    default = schema.get("default")
    shown = "needed" if each.get("required") else "" if default in ("", None) else f"`{json.dumps(default) if not isinstance(default, str) else default}`"
    where = " (in the path)" if each["in"] == "path" else ""
    return f"`{each['name']}`{where}", _type(schema), shown, unmarked(str(each.get("description", "")))


def _body(document: Document, told: Operation) -> list[str]:
    """The body that it takes, field by field; of a large one its name."""
    content = told.get("requestBody", {}).get("content", {})
    if not content:
        return []
    name = next(iter(content.values()))["schema"]["$ref"].rpartition("/")[2]
    schema = document["components"]["schemas"][name]
    media = ", ".join(f"`{each}`" for each in content)
    about = f"Body: `{name}`, as {media}. {unmarked(schema.get('description', ''))}"
    if len(schema["properties"]) > 12:
        return [f"{about} Its fields stand in `openapi.json`."]
    rows = [(f"`{field}`", _type(what), _field(field, what, schema)) for field, what in schema["properties"].items()]
    return [about, table(("field", "type", "default"), rows)]


def _field(name: str, what: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if name in schema.get("required", ()):
        return "needed"
    default = what.get("default")
    return "" if default in ("", None, [], {}) else f"`{json.dumps(default)}`"


def _type(schema: Mapping[str, Any]) -> str:
    """Its type with its bounds, in a few words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(word for each in schema["anyOf"] if (word := _type(each)) != "null"))
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    kind = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "map", "array": "list"}.get(schema.get("type", ""), "")
    kind = kind or str(schema.get("type", "any"))
    pattern = re.fullmatch(r"\^\(([a-z|]+)\)\??\$", str(schema.get("pattern", "")))
    if pattern:
        return " or ".join(f"`{word}`" for word in pattern[1].split("|") if word)
    low, high = schema.get("minimum"), schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is not None and high is not None:
        return f"{kind}, {low:g} to {high:.15g}" if high < LARGE else f"{kind}, from {low:g}"
    longest = f", at most {schema['maxLength']} letters" if schema.get("maxLength") else ""
    return kind + longest


def _anchor(method: str, path: str) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", f"{method} {path}".lower()).replace(" ", "-")


def _listener() -> list[str]:
    """The routes of reporters."""
    rows = [(f"`{route.method.decode()} {path}`", *LISTENER[path]) for path, route in sorted(ROUTES.items())]
    return ["## The listener for reporters", REPORTERS, table(("route", "who may", "what it does"), rows)]
