# SPDX-License-Identifier: Apache-2.0
"""`muster adapter`: which adapters there are, whether one keeps its promises, and a folder to begin a new one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from muster.interfaces.cli.calls import form_options
from muster.interfaces.cli.documents import field
from muster.interfaces.cli.exits import FAILED, OK
from muster.interfaces.cli.output import Column, check_form, note, render, write
from muster.services.conformance import Result
from muster.wiring.adapters import FolderAdapter, folders
from muster.wiring.conformance import check as check_promises
from muster.wiring.conformance import find, machine_folders, outside
from muster.wiring.template import create

_RESULTS = (
    field("PROMISE", "promise"),
    field("SUBJECT", "subject"),
    Column(title="RESULT", key="result", value=lambda row: row["result"], style=lambda value: "green" if value == "kept" else "bold red"),
    field("DETAIL", "detail"),
)
_ADAPTERS = (
    field("NAME", "id", name=True),
    field("TITLE", "title"),
    field("TIER", "tier"),
    Column(title="FORMATS", key="formats", value=lambda row: len(row["formats"]), right=True),
    Column(title="SOURCES", key="sources", value=lambda row: row["sources"] or None),
    Column(title="MACHINES", key="machines", value=lambda row: len(row["machines"]), right=True),
    field("ORIGIN", "origin"),
    Column(title="FORMAT NAMES", key="format_names", value=lambda row: sorted(row["formats"]), wide=True),
    Column(title="RECORDED", key="recorded", value=lambda row: row["machines"] or None, wide=True),
    Column(title="NOT YET", key="later", value=lambda row: row["later"] or None, wide=True),
)


@click.group()
def adapter() -> None:
    """List, check and begin adapters; none of it needs a server."""


@adapter.command(name="list")
@form_options
def list_(output: str, no_headers: bool) -> int:
    """Adapters of this installation, and those from outside that the configuration names; what is only installed is told, not loaded."""
    check_form(output)
    named = os.environ.get("MUSTER_ADAPTERS", "").split()
    rows = [_row(find(name)) for name in dict.fromkeys((*folders(), *named))]
    render(rows, _ADAPTERS, output, no_headers=no_headers, empty="no adapters")
    idle = [name for name in outside() if name not in named]
    if idle:
        note(f"muster: installed and not named, so not loaded: {', '.join(idle)}; name them with MUSTER_ADAPTERS")
    return OK


def _row(found: FolderAdapter) -> dict[str, Any]:
    told = found.manifest
    return {
        "id": told.name,
        "title": told.title,
        "tier": told.tier,
        "owners": list(told.owners),
        "formats": dict(told.formats),
        "sources": [str(source.id) for source in found.sources],
        "machines": [folder.name for folder in machine_folders(found)],
        "later": list(told.later),
        "origin": "built in" if told.name in folders() else str(found.folder),
    }


@adapter.command()
@click.argument("name", metavar="NAME|PATH")
@form_options
@click.option("-q", "--quiet", is_flag=True, help="Only what is broken.")
def check(name: str, output: str, no_headers: bool, quiet: bool) -> int:
    """Whether an adapter keeps its promises: tables, recorded machines, damage, tier. Exit code 1 when one is broken.

    Needs no test tool. PATH is the adapter's folder or the project around it; it need not be installed.
    """
    check_form(output)
    found, results = check_promises(name)
    broken = [each for each in results if not each.passed]
    rows = [_told(each) for each in (broken if quiet else results)]
    render(rows, _RESULTS, output, no_headers=no_headers)
    if not quiet:
        kept = f"{len(results) - len(broken)} of {len(results)} promises kept"
        note(f"muster: {found.manifest.name}, tier {found.manifest.tier}: {kept}")
    return FAILED if broken else OK


def _told(result: Result) -> dict[str, Any]:
    return {"promise": result.promise, "subject": result.subject, "result": "kept" if result.passed else "broken", "detail": result.detail or None}


@adapter.command()
@click.argument("name")
@click.option("--tree", is_flag=True, help="Inside the source tree, next to the adapters that ship with muster.")
@click.option("--in", "into", default=".", metavar="FOLDER", type=click.Path(path_type=Path), help="Where the folder NAME is made.")
def new(name: str, tree: bool, into: Path) -> int:
    """Begin an adapter: the folder NAME, complete and passing `muster adapter check NAME` at the lowest tier.

    It is a package of its own that muster loads when the configuration names it; with --tree it ships with muster.
    """
    made = create(name, into, tree=tree)
    for file in made.files:
        write(f"{file}\n")
    note(f"muster: {made.about}")
    return OK
