# SPDX-License-Identifier: Apache-2.0
"""`muster audit`: who did what, and whether the log of it is whole."""

from __future__ import annotations

from typing import Any

import click

from muster.interfaces.cli.calls import connect, form_options, server_options
from muster.interfaces.cli.cells import plain
from muster.interfaces.cli.documents import field, when
from muster.interfaces.cli.exits import FAILED, OK
from muster.interfaces.cli.output import check_form, note, render

_COLUMNS = (
    when("AT", "at"),
    field("BY", "by"),
    field("WHAT", "what", name=True),
    field("ABOUT", "detail"),
    field("REASON", "reason"),
    field("KNOWN BY", "asked_by", wide=True),
)


@click.group(invoke_without_command=True)
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, metavar="N", help="Entries at most.")
@form_options
@server_options
@click.pass_context
def audit(context: click.Context, /, limit: int, output: str, no_headers: bool, **options: Any) -> int:
    """Everything that changed the state of the site, newest first: acts, acknowledgements, tokens, sign-ins, reporters."""
    if context.invoked_subcommand is None:
        check_form(output)
        document = connect(options["server"], options["timeout"], options["verbose"]).get("/audit", limit=limit)
        render(document["items"], _COLUMNS, output, no_headers=no_headers, document=document, empty="muster: nothing was done yet")
    return OK


@audit.command()
@server_options
def verify(**options: Any) -> int:
    """Go over the whole log: each entry is chained to the one before by a digest. Exit code 1 when one is not as it was written."""
    found = connect(options["server"], options["timeout"], options["verbose"]).get("/audit/verify")
    if found["whole"]:
        if not options["quiet"]:
            note(f"muster: the audit log is whole: {found['entries']} entries")
        return OK
    note(f"muster: the audit log is not whole: entry {found['broken']} {plain(found['why'])}; {found['entries']} entries before it are")
    note("  stop the server, keep a copy of its store, and compare it with a backup: muster server check")
    return FAILED
