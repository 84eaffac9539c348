# SPDX-License-Identifier: Apache-2.0
"""`muster record`: this machine as a folder of captures, for replays and for reports of what is not understood."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muster.interfaces.cli.cells import quantity, safe
from muster.interfaces.cli.output import note

if TYPE_CHECKING:
    from muster.collect.collector import Round


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--about", default="", metavar="TEXT", help="What machine it is, for those who read the recording.")
@click.option("--keep-names", is_flag=True, help="Keep serials, UUIDs, host and process names; without it they are replaced by invented ones.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
def record(folder: Path, about: str, keep_names: bool, quiet: bool) -> int:
    """Records this machine as a folder of captures.

    Every source is read once. DIR then works wherever a recorded machine does:
    `muster scan --machine DIR`, `muster interpret DIR`, `muster agent --machine DIR`.
    Look through it before you give it away.
    """
    from muster.wiring.recording import record as take

    count = take(
        folder,
        about,
        os.environ.get("MUSTER_ADAPTERS", "").split(),
        root=os.environ.get("MUSTER_ROOT", "/"),
        keep_names=keep_names,
        heard=(lambda _: None) if quiet else _progress,
    )
    if not quiet:
        kept = "names are kept" if keep_names else "serials, UUIDs, host and process names are replaced"
        note(f"{folder}: {count} captures; {kept}")
    return 0


def _progress(each: Round) -> None:
    size = sum(len(capture.payload) for capture in each.captures)
    note(safe(f"{each.source.id}: {each.told.outcome.value.replace('_', ' ')}, {quantity(size, 'bytes')}"))
