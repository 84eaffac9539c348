# SPDX-License-Identifier: Apache-2.0
"""`muster scan`: the cards of this machine without a server, and why a source found nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import msgspec

from muster.interfaces.cli.calls import form_options
from muster.interfaces.cli.documents import field
from muster.interfaces.cli.nouns import CARDS
from muster.interfaces.cli.output import Column, check_form, note, render, write

_PEOPLE = frozenset({"table", "wide"})
_STYLES = {"ok": "green", "failed": "bold red", "limited": "yellow"}

STATE = Column(
    title="STATE", key="state", value=lambda row: row["state"], show=lambda value: str(value).replace("_", " "), style=lambda value: _STYLES.get(str(value), "")
)
SOURCES = (
    field("SOURCE", "source", name=True),
    STATE,
    Column(title="CARDS", key="cards", value=lambda row: row["cards"], right=True),
    field("WHY", "why"),
    field("WHAT TO DO", "help"),
)


@click.command()
@click.option("--machine", metavar="DIR", type=click.Path(path_type=Path), help="A recorded machine instead of this one.")
@click.option("-q", "--quiet", is_flag=True, help="Only the cards, not why a source found nothing.")
@form_options
def scan(machine: Path | None, quiet: bool, output: str, no_headers: bool) -> int:
    """The cards of this machine, without a server.

    Every source is read once, and what they say of one card is one row, merged as the server does it. Below stands each source that found nothing, and why.
    """
    from muster.wiring.scan import scan as look

    check_form(output)
    found = look(machine, os.environ.get("MUSTER_ADAPTERS", "").split(), root=os.environ.get("MUSTER_ROOT", "/"))
    cards: list[dict[str, Any]] = msgspec.to_builtins(found.cards)
    sources: list[dict[str, Any]] = [
        {key: getattr(each, key) for key in ("source", "adapter", "state", "outcome", "cards", "why", "help")} for each in found.seen
    ]
    document = {"items": cards, "node": msgspec.to_builtins(found.node), "sources": sources}
    shown = [card for card in cards if card["role"] == "accelerator"] if output in _PEOPLE else cards
    render(shown, CARDS.columns, output, no_headers=no_headers, document=document, empty="no cards found")
    if output in _PEOPLE and not quiet:
        _why(sources, output, no_headers, gap=bool(shown))
    return 0


def _why(sources: list[dict[str, Any]], output: str, no_headers: bool, *, gap: bool) -> None:
    """The sources that have no card to show; vendors that are not here in one line."""
    rows = [row for row in sources if row["state"] != "not_here" and (output == "wide" or not row["cards"])]
    if rows:
        if gap:
            write("\n")
        render(rows, SOURCES, output, no_headers=no_headers)
    elsewhere = sorted({row["adapter"] for row in sources if row["state"] == "not_here"} - {row["adapter"] for row in rows})
    if elsewhere:
        note(f"nothing on this machine of: {', '.join(elsewhere)} (`muster doctor` says how each was looked for)")
