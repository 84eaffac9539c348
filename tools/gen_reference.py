#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference from the code, so that no command, setting, attribute, finding kind, error, route or series is there without being documented.

It also gathers what is not released yet from changes/ into CHANGELOG.md.

usage: python tools/gen_reference.py [--check]
--check writes nothing, and fails when a page is not what the code says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import reference_api
import reference_changes
import reference_server
from reference_errors import sources, spoken
from reference_words import ERRORS, FINDINGS, HISTORY, PRESENCE, RUNGS, VARIABLES, WHYS, unmarked, unsaid

from muster.domain.model.attributes import ATTRIBUTES, Attribute
from muster.domain.model.errors import MusterError
from muster.interfaces.api import spec
from muster.interfaces.api.problems import CODES, OWN, STATUS
from muster.interfaces.cli.exits import EXITS, exit_code
from muster.interfaces.cli.main import muster
from muster.interfaces.cli.preferences import FILE, PREFERENCES
from muster.interfaces.ingest.answers import CODES as SLOW
from muster.interfaces.ingest.answers import TooLargeError
from muster.wiring.adapters import adapter, folders
from muster.wiring.settings import ServerSettings, runtime_folder, setting_files, state_folder

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Written by tools/gen_reference.py from the code: change the code, then run `make docs`. -->"
LEFT_OUT = "One server keeps one roll, so there is no `--context` and no `-A`: `--server` names another."
PLACES = {"state": state_folder.__doc__, "runtime": runtime_folder.__doc__}
"""Defaults that depend on who starts the server."""


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table in Markdown."""
    lines = [tuple(head), *([tuple("---" for _ in head)]), *(tuple(row) for row in rows)]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines)


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join([f"# {title}", NOTE, *parts]) + "\n"


def commands() -> str:
    """Every command with its arguments and options."""
    parts = [_command(path, command) for path, command in _tree(("muster",), muster)]
    return page("Commands", LEFT_OUT, *parts, "## Exit codes", table(("code", "meaning"), EXITS.items()))


def _tree(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path[-1])
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _tree((*path, name), found)


def _command(path: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(path))
    usage = " ".join([" ".join(path), *command.collect_usage_pieces(context)])
    parts = [f"## {' '.join(path)}", " ".join((command.help or command.short_help or "").split("\b")[0].split()), f"```\n{usage}\n```"]
    rows = [(f"`{record[0]}`", " ".join(record[1].split())) for each in command.params if (record := each.get_help_record(context))]
    return "\n\n".join([*parts, *([table(("option", "what it does"), rows)] if rows else [])])


def settings() -> str:
    """Settings of the server and of the command line."""
    server = [(f"`{name}`", f"`MUSTER_{name.upper()}`", _default(name), field.description) for name, field in ServerSettings.model_fields.items()]
    line = [(f"`{each.name}`", f"`{each.variable}`", f"`{each.default}`" if each.default else "", each.about) for each in PREFERENCES]
    head = ("setting", "variable", "default", "what it is")
    other = table(("variable", "what it is"), [(f"`{name}`", about) for name, about in VARIABLES.items()])
    about = (ServerSettings.__doc__ or "").strip()
    return page("Settings", "## Server", about, table(head, server), "## Command line", table(head, line), "## Agent, and other variables", other, *_files())


def _files() -> tuple[str, ...]:
    """Where settings stand in files, and what wins."""
    home = {"HOME": "~"}
    server = [str(place).replace(str(Path("~").expanduser()), "~") for place in setting_files({**home, "MUSTER_CONFIG": "$MUSTER_CONFIG"})]
    rows = [
        ("`server.toml`", "the server", ", ".join(f"`{place}`" for place in server), "the first that is there, whole"),
        ("`config.toml`", "the command line", f"`~/.config/muster/{FILE}`, `/etc/muster/{FILE}`", "each setting from the first that says it"),
    ]
    return (
        "## Files",
        table(("file", "of", "looked for in", "what is read"), rows),
        "Where `XDG_CONFIG_HOME` is set it stands for `~/.config`. Both are TOML, a setting a line: `port = 7460`. A setting that is not known is refused.",
        "Options of a command win over the environment, the environment over files, files over defaults. The agent has no file, only options and variables.",
        "`muster config` prints each setting with its value and where that comes from, `muster config path` the files.",
    )


def _default(name: str) -> str:
    field = ServerSettings.model_fields[name]
    return (PLACES[name] or "").strip() if field.default_factory else f"`{field.default}`"


def attributes() -> str:
    """The dictionary."""
    head = ("key", "unit", "kind", "of", "compared", "range", "about")
    return page("Attributes", "Everything that can be said of a server, node, card, device or partition.", table(head, map(_attribute, ATTRIBUTES.values())))


def _attribute(each: Attribute) -> tuple[str, ...]:
    low, high = ("" if bound is None else f"{bound:g}" for bound in (each.low, each.high))
    bounds = f"{low} to {high}".strip() if low or high else ""
    return f"`{each.key}`", each.unit.value, each.kind.value, each.of.value, str(each.compare), bounds, each.about


def findings() -> str:
    """Kinds of findings, of history, and the other closed words of the roll."""
    whys = [
        (f"`{why}`", "passing: an older value stays, with its age" if why.passing else "for good: it replaces an older value", text)
        for why, text in WHYS.items()
    ]
    return page(
        "Words of the roll",
        "## Findings",
        table(("kind", "about", "what is so", "what to do"), [(f"`{kind}`", *said) for kind, said in FINDINGS.items()]),
        *_closed("History", HISTORY),
        *_closed("Presence", PRESENCE),
        *_closed("Rungs: by what a card is known, best first", RUNGS),
        "## Absences: why a value is not known",
        table(("why", "kind", "meaning"), whys),
    )


def _closed(title: str, words: dict[Any, str]) -> tuple[str, str]:
    return f"## {title}", table(("word", "meaning"), [(f"`{word}`", text) for word, text in words.items()])


def errors() -> str:
    """Errors with their codes, as both doors and the command line say them."""
    kinds = {kind.code: kind for kind in _kinds(MusterError) if "code" in vars(kind)}
    statuses = {code: {_status(kind)} if _told_by_server(kind) else set() for code, kind in kinds.items()} | {TooLargeError.code: {413}}
    for code, found in (*((code, {status}) for status, code in CODES.items()), *((code, {status}) for code, status in (*OWN.items(), *SLOW.items()))):
        statuses[code] = statuses.get(code, set()) | found
    for code, found in spoken(sources()).items():
        statuses[code] = statuses.get(code, set()) | found
    rows = [(f"`{code}`", ", ".join(map(str, sorted(statuses[code]))), _exit(kinds.get(code)), _meaning(code, kinds)) for code in sorted(statuses)]
    intro = "Every error of the API and of the listener for reporters is a problem document (RFC 9457) with a stable `code`."
    intro += " The command line ends with the exit code."
    return page("Errors", intro, table(("code", "HTTP", "exit", "meaning"), rows))


def _told_by_server(kind: type[MusterError]) -> bool:
    return not kind.__module__.startswith("muster.interfaces.cli")


def _exit(kind: type[MusterError] | None) -> str:
    return str(exit_code(kind(""))) if kind is not None and kind.code not in ERRORS else ""


def _meaning(code: str, kinds: dict[str, type[MusterError]]) -> str:
    """Its sentence. Raises KeyError for a code of HTTP that has none in tools/reference_words.py."""
    return ERRORS[code] if code in ERRORS else unmarked((kinds[code].__doc__ or "").split("\n")[0]) if code in kinds else ERRORS[code]


def _kinds(root: type[MusterError]) -> Iterator[type[MusterError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)


def _status(kind: type[MusterError]) -> int:
    return next((status for base, status in STATUS if issubclass(kind, base)), 500)


def adapters() -> str:
    """The support matrix: adapters, what they read, and what they do not read yet."""
    parts = []
    for name in folders():
        each = adapter(name)
        manifest = each.manifest
        formats = table(("format", "what it is"), [(f"`{form}`", about) for form, about in manifest.formats.items()])
        sources = [(f"`{s.id}`", s.reader.value, f"{s.cadence.total_seconds():g} s", f"`{s.after}`" if s.after else "") for s in each.sources]
        parts += [f"## {manifest.title}", f"`{name}`, tier *{manifest.tier}*.", formats]
        parts += [table(("source", "reader", "cadence", "only when this is absent"), sources)] if sources else []
        parts += ["Not read yet: " + "; ".join(manifest.later) + "."] if manifest.later else []
    return page("Adapters", *parts)


PAGES = {
    "commands.md": commands,
    "settings.md": settings,
    "attributes.md": attributes,
    "words.md": findings,
    "errors.md": errors,
    "adapters.md": adapters,
    "openapi.json": spec.text,
    "api.md": reference_api.page,
    "server-metrics.md": reference_server.page,
}


def main(arguments: list[str]) -> int:
    """Writes or checks every page; returns the exit code."""
    left = unsaid()
    if left:
        print("no sentence in tools/reference_words.py for " + ", ".join(left), file=sys.stderr)
        return 1
    try:
        pages = {REFERENCE / name: make() for name, make in PAGES.items()} | {reference_changes.PAGE: reference_changes.page()}
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what the code says: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.write_text(pages[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
