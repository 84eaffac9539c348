# SPDX-License-Identifier: Apache-2.0
"""`muster scan`: the cards of this machine without a server, and why a source found nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from muster.interfaces.cli.calls import form_options
from muster.interfaces.cli.documents import card_place, field
from muster.interfaces.cli.nouns import CARDS
from muster.interfaces.cli.output import Column, Row, check_form, note, render, write

if TYPE_CHECKING:
    from muster.wiring.survey import Seen

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
    Column(title="WHAT TO DO", key="help", value=lambda row: row["help"] or None),
    field("SAID", "detail", wide=True),
)
_KEYS = ("source", "adapter", "state", "outcome", "cards", "why", "detail", "help")


def _best_name(card: Row) -> str:
    """What the card is known by anywhere: its UUID or serial, else its place on the node."""
    named = [value for kind in ("vendor_uuid", "serial") for value in card["ids"].get(kind, ())]
    return named[0] if named else f"{card['node']}/{card_place(card)}"


NAME = Column(title="KNOWN BY", key="known_by", value=_best_name, name=True)
"""Instead of our id, which a scan makes anew each time."""


def rows_of(seen: Sequence[Seen]) -> list[dict[str, Any]]:
    """What each source found, as rows."""
    return [{key: getattr(each, key) for key in _KEYS} for each in seen]


def gathered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows for a narrow table: a vendor that is not here is one row, with nothing to do."""
    here = [row for row in rows if row["state"] != "not_here"]
    gone: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["state"] == "not_here":
            gone.setdefault(row["adapter"], {**row, "source": f"{row['adapter']}.*", "help": ""})
    return [*here, *gone.values()]


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
    sources = rows_of(found.seen)
    shown = [card for card in cards if card["role"] == "accelerator"]
    displays = [card for card in cards if card["role"] != "accelerator"]
    document = {"items": shown, "displays": displays, "node": msgspec.to_builtins(found.node), "sources": sources}
    columns = [NAME if column.key == "id" else column for column in CARDS.columns]
    render(shown, columns, output, no_headers=no_headers, document=document, empty="no cards found")
    if output in _PEOPLE and not quiet and not _why(sources, output, no_headers, gap=bool(shown)) and not shown:
        note("none of the sources that were read lists cards" + (f"; what was read: {', '.join(row['source'] for row in sources)}" if sources else ""))
    return 0


def _why(sources: list[dict[str, Any]], output: str, no_headers: bool, *, gap: bool) -> bool:
    """The sources that have no card to show, and why; ``wide`` tells all. False when there is none of these."""
    rows = sources if output == "wide" else [row for row in gathered(sources) if not row["cards"] and row["state"] not in ("ok", "limited")]
    if not rows:
        return False
    if gap:
        write("\n")
    render(rows, SOURCES, output, no_headers=no_headers)
    return True
