# SPDX-License-Identifier: Apache-2.0
"""`muster audit`: who did what, and whether the log of it is whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from muster.interfaces.cli.calls import connect, form_options, server_options
from muster.interfaces.cli.cells import missing, plain, rfc3339, safe
from muster.interfaces.cli.client import Client
from muster.interfaces.cli.documents import at_path, field, when
from muster.interfaces.cli.exits import FAILED, OK
from muster.interfaces.cli.output import Column, check_form, note, render

BRIEF, WORD = 48, 26
"""Letters of what an entry is about, and of one word of it, in a table that is not wide."""
PART = 10_000
"""Entries that a server gives at once."""
_ENDS, _TIMES = "\u2026", ("_at", "until")


def whole(detail: Any) -> str:
    """All that an entry tells, with its times as people read them."""
    return ", ".join(f"{name}={text}" for name, text in _told(detail))


def brief(detail: Any) -> str:
    """What an entry is about in few letters: whom first, nothing that goes without saying, long names cut; an ellipsis where something is left out."""
    told = [(name, _name(text)) for name, text in _told(detail) if text and (name, text) != ("result", "done")]
    return _cut(", ".join(text if name in ("target", "result") else f"{name}={text}" for name, text in told), BRIEF) or "-"


def _told(detail: Any) -> Iterator[tuple[str, str]]:
    """Names and texts of what is told, those of maps within it too."""
    for name, value in sorted(detail.items(), key=lambda each: each[0] != "target") if isinstance(detail, Mapping) else (("", detail),):
        for each in value if _several(value) else [value]:
            if isinstance(each, Mapping):
                yield from _told(each)
            else:
                yield safe(str(name)), _text(str(name), each)


def _several(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(each, Mapping) for each in value)


def _text(name: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and name.endswith(_TIMES):
        return rfc3339(value)
    return "" if missing(value) or value == [] or value == {} else plain(value)


def _name(text: str) -> str:
    """A text without blanks is an id or a digest, known by its beginning; a sentence is not."""
    return text if " " in text else _cut(text, WORD)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + _ENDS


_ABOUT = Column(title="ABOUT", key="detail", value=lambda row: at_path(row, "detail"), show=whole, brief=brief, needs=("detail",))
_COLUMNS = (
    when("AT", "at"),
    field("BY", "by"),
    field("WHAT", "what", name=True),
    _ABOUT,
    field("REASON", "reason"),
    field("KNOWN BY", "asked_by", wide=True),
)


@click.group(invoke_without_command=True)
@click.option("--limit", type=click.IntRange(1, 10_000_000), default=100, show_default=True, metavar="N", help="Entries at most.")
@form_options
@server_options
@click.pass_context
def audit(context: click.Context, /, limit: int, output: str, no_headers: bool, **options: Any) -> int:
    """Everything that changed the state of the site, newest first: acts, acknowledgements, tokens, sign-ins, reporters."""
    if context.invoked_subcommand is None:
        check_form(output)
        document = _entries(connect(options["server"], options["timeout"], options["verbose"]), limit)
        render(document["items"], _COLUMNS, output, no_headers=no_headers, document=document, empty="muster: nothing was done yet")
    return OK


def _entries(client: Client, limit: int) -> Any:
    """So many entries, asked for part by part."""
    document = client.get("/audit", limit=min(limit, PART))
    items = document["items"]
    while len(items) < limit and document.get("next"):
        document = client.get("/audit", limit=min(limit - len(items), PART), cursor=document["next"])
        items += document["items"]
    return {**document, "items": items}


@audit.command()
@server_options
def verify(**options: Any) -> int:
    """Go over the whole log: each entry is chained to the one before by a digest. Exit code 1 when one is not as it was written.

    It tells how many there are and the digest of the last: kept elsewhere, they show whether entries were cut off the end since.
    """
    found = connect(options["server"], options["timeout"], options["verbose"]).get("/audit/verify")
    if found["whole"]:
        if not options["quiet"]:
            note(f"muster: the audit log is whole: {found['entries']} entries, the last is sha256:{plain(found.get('head', ''))}")
        return OK
    note(f"muster: the audit log is not whole: entry {found['broken']} {plain(found['why'])}; {found['entries']} entries before it are")
    note("  stop the server, keep a copy of its store, and compare it with a backup: muster server check")
    return FAILED
