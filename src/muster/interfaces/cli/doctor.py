# SPDX-License-Identifier: Apache-2.0
"""`muster doctor`: which rights and tools each source lacks on this machine, and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import click

from muster.interfaces.cli.calls import form_options
from muster.interfaces.cli.output import check_form, note, render
from muster.interfaces.cli.scan import SOURCES, gathered, rows_of

_BAD = frozenset({"failed", "limited"})


@click.command()
@click.option("--machine", metavar="DIR", type=click.Path(path_type=Path), help="A recorded machine instead of this one.")
@form_options
def doctor(machine: Path | None, output: str, no_headers: bool) -> int:
    """What this machine needs so that its cards are seen, and so that what is seen reaches the server.

    Every source is tried once, also those that their chain does not need now. Then come the agent's own needs: device files, server, access token,
    clock, and the spool. Exit code 1 when a source of a vendor that is here fails or may not read all of it, or when one of the agent's needs is not met.
    """
    from muster.wiring.agent import Settings
    from muster.wiring.checkup import checkup
    from muster.wiring.survey import survey

    check_form(output)
    told = Settings.of(os.environ, machine=machine)
    found = survey(machine, told.outside, root=told.root, search=told.search, every=True, streams=True)
    rows = rows_of([*found.seen(), *([] if machine else checkup(told, os.environ))])
    render(gathered(rows) if output == "table" else rows, SOURCES, output, no_headers=no_headers)
    bad = [row for row in rows if row["state"] in _BAD]
    if bad and output in ("table", "wide"):
        sources = [row for row in rows if row["adapter"] != "agent"]
        lacking = [row for row in bad if row["adapter"] != "agent"]
        if lacking:
            note(f"{len(lacking)} of {len(sources)} sources need something" + ("" if os.geteuid() == 0 else "; you are not root, which some of them need"))
        if len(bad) > len(lacking):
            note(f"the agent itself needs something: {', '.join(row['source'] for row in bad if row['adapter'] == 'agent')}")
    return 1 if bad else 0
