# SPDX-License-Identifier: Apache-2.0
"""The part of kubectl's jsonpath that scripts use: paths in braces, ``[*]``, ``[0]``, ``['a.key']``, quoted text, ``range`` and ``end``.

Anything else is refused with the part that was not understood; a path that leads nowhere gives nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from muster.domain.model.errors import InputError

Token: TypeAlias = tuple[str, str]
_LIKE = """like jsonpath='{range .items[*]}{.id}{"\\n"}{end}'"""
_STEP = re.compile(r"""\.?\[(?:(?P<index>-?\d+)|(?P<all>\*)|'(?P<single>[^']*)'|"(?P<double>[^"]*)")\]|\.(?P<key>[A-Za-z0-9_\-/]+|\*)""")


def jsonpath(template: str, body: Any) -> str:
    """The text that ``template`` makes of ``body``; values found by one path stand apart by a blank. Raises InputError naming the part that is wrong."""
    text = template if "{" in template else "{" + template + "}"
    told, rest = _run(list(_tokens(text)), 0, body)
    if rest is not None:
        raise InputError("jsonpath: {end} without {range}", hint=_LIKE)
    return told


def _tokens(text: str) -> Iterator[Token]:
    for match in re.finditer(r"\{([^{}]*)\}|([^{}]+)|[{}]", text):
        if match.group(1) is not None:
            yield "do", match.group(1).strip()
        elif match.group(2) is not None:
            yield "text", match.group(2)
        else:
            raise InputError(f"jsonpath: a brace without its other half in {text!r}", hint=_LIKE)


def _run(tokens: Sequence[Token], start: int, body: Any) -> tuple[str, int | None]:
    """The text from ``start`` to the end, or to the ``end`` of this range, and the place after that ``end``."""
    told: list[str] = []
    place = start
    while place < len(tokens):
        kind, text = tokens[place]
        place += 1
        if kind == "text":
            told.append(text)
        elif text == "end":
            return "".join(told), place
        elif text.startswith("range "):
            part, place = _range(tokens, place, text.removeprefix("range ").strip(), body)
            told.append(part)
        elif text[:1] in "\"'":
            told.append(_quoted(text))
        else:
            told.append(" ".join(_text(each) for each in find(text, body)))
    return "".join(told), None


def _range(tokens: Sequence[Token], place: int, path: str, body: Any) -> tuple[str, int]:
    told: list[str] = []
    after: int | None = None
    for each in [*find(path, body), None]:
        part, after = _run(tokens, place, each)
        if after is None:
            raise InputError("jsonpath: {range} without {end}", hint=_LIKE)
        told.append(part)
    return "".join(told[:-1]), after or place


def _quoted(text: str) -> str:
    if len(text) < 2 or text[-1] != text[0]:
        raise InputError(f"jsonpath: text without its closing quote: {text}", hint=_LIKE)
    return text[1:-1].replace("\\n", "\n").replace("\\t", "\t")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def find(path: str, body: Any) -> list[Any]:
    """Everything that ``path`` leads to in ``body``."""
    rest = path.removeprefix("$").removeprefix("@")
    found = [body]
    if rest in ("", "."):
        return found
    rest = rest if rest[0] in ".[" else "." + rest
    while rest:
        match = _STEP.match(rest)
        if match is None:
            raise InputError(f"jsonpath: cannot read {rest!r} in {path!r}", hint="paths are like .items[*].readings['memory.total'].value")
        found = [each for value in found for each in _step(match, value)]
        rest = rest[match.end() :]
    return found


def _step(match: re.Match[str], value: Any) -> list[Any]:
    if match["index"] is not None:
        place = int(match["index"])
        return [value[place]] if isinstance(value, list) and -len(value) <= place < len(value) else []
    if match["all"] or match["key"] == "*":
        return list(value) if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    key = next(text for text in (match["key"], match["single"], match["double"]) if text is not None)
    return [value[key]] if isinstance(value, dict) and key in value else []
