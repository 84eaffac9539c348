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
    """What this machine needs so that its cards are seen.

    Every source is tried once, also those that their chain does not need now.
    Exit code 1 when a source fails, or may not read all of it, though its vendor is here.
    """
    from muster.wiring.survey import survey

    check_form(output)
    found = survey(machine, os.environ.get("MUSTER_ADAPTERS", "").split(), root=os.environ.get("MUSTER_ROOT", "/"), every=True, streams=True)
    rows = rows_of(found.seen())
    render(gathered(rows) if output == "table" else rows, SOURCES, output, no_headers=no_headers)
    bad = [row for row in rows if row["state"] in _BAD]
    if bad and output in ("table", "wide"):
        note(f"{len(bad)} of {len(rows)} sources need something" + ("" if os.geteuid() == 0 else "; you are not root, which some of them need"))
    return 1 if bad else 0
