# SPDX-License-Identifier: Apache-2.0
"""`muster top`: the gauges of all cards, drawn anew at an interval on a terminal, once where it is none."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

import click

from muster.domain.model.errors import Unavailable
from muster.interfaces.cli.calls import Seconds, connect, form_options, server_options
from muster.interfaces.cli.cells import Missing, rfc3339
from muster.interfaces.cli.client import PAGE, Client
from muster.interfaces.cli.documents import field, measured, now, of_card, on_card
from muster.interfaces.cli.labels import narrowed
from muster.interfaces.cli.nouns import CARDS
from muster.interfaces.cli.output import Column, Row, aligned, cell, check_form, render, write

_BAR = 10


def bar(row: Row) -> Any:
    """A bar for a ratio, next to its figure: ``████░░░░░░``."""
    value = of_card(row, "utilization.core")
    if isinstance(value, Missing) or not isinstance(value, int | float):
        return value if isinstance(value, Missing) else None
    full = round(max(0.0, min(1.0, value)) * _BAR)
    return "█" * full + "░" * (_BAR - full)


GAUGES = ("utilization.core", "memory.used", "temperature.core", "power.draw", "clock.core", "fan.speed")


def stale(row: Row) -> Any:
    """Gauges that are older than their source promised."""
    old = [key for key in GAUGES if (row.get("readings") or {}).get(key, {}).get("stale")]
    return ", ".join(key.split(".")[0] for key in old) or " "


COLUMNS = (
    field("CARD", "name"),
    on_card("BUSY", "utilization.core", "ratio"),
    Column(title="", key="bar", value=bar, show=str),
    on_card("USED", "memory.used", "bytes"),
    on_card("MEMORY", "memory.total", "bytes"),
    on_card("TEMP", "temperature.core", "celsius"),
    on_card("POWER", "power.draw", "watt"),
    measured("LIMIT", "power.limit", "watt"),
    measured("CLOCK", "clock.core", "hertz"),
    measured("FAN", "fan.speed", "ratio"),
    Column(title="STALE", key="stale", value=stale),
)


@click.command()
@form_options
@click.option("--once", is_flag=True, help="One round, then end.")
@click.option("--interval", type=Seconds(min=0.2), default=2.0, show_default=True, metavar="SECONDS", help="Time between rounds.")
@click.option("--filter", "filter_", metavar="EXPRESSION", help="Only cards for which it holds.")
@click.option("-l", "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only cards in which the field or reading KEY is VALUE; may be repeated.")
@click.option("--sort-by", metavar="KEY", help="Order by a key of the document; with - in front from high to low.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many cards; a terminal shows no more than it has lines for.")
@server_options
def top(output: str, no_headers: bool, once: bool, interval: float, **options: Any) -> int:
    """Live gauges of all cards. Ctrl-C ends it; where stdout is no terminal one round is printed."""
    check_form(output)
    client = connect(options["server"], options["timeout"], options["verbose"])
    if once or not sys.stdout.isatty() or output not in ("table", "wide"):
        body = _round(client, options, options["limit"])
        columns = [column for column in COLUMNS if column.key != "bar" or sys.stdout.isatty()]
        render(body["items"], columns, output, no_headers=no_headers, document=body, empty="" if options["quiet"] else CARDS.empty)
        return 0
    while True:
        _draw(client, options, interval)
        time.sleep(interval)


def _round(client: Client, options: dict[str, Any], limit: int | None) -> dict[str, Any]:
    wanted = ",".join(dict.fromkeys(("name", *GAUGES, "memory.total", "power.limit", "together")))
    return client.all(CARDS.path, limit, filter=narrowed(CARDS, options["filter_"], options["labels"]), sort=options["sort_by"], fields=wanted)


def _draw(client: Client, options: dict[str, Any], interval: float) -> None:
    """One screen; a server that does not answer is told in the head line and asked again."""
    size = shutil.get_terminal_size()
    room = min(max(1, size.lines - 3), options["limit"] or PAGE)
    try:
        rows, trouble = _round(client, options, room)["items"], ""
    except Unavailable as error:
        rows, trouble = [], f"  {error.message}"
        client.close()
    grid = [[cell(column, row, wide=False) for column in COLUMNS] for row in rows]
    lines = [f"muster top  {rfc3339(now())}  every {interval:g} s{trouble}", "", *aligned(grid, COLUMNS, no_headers=False)]
    write("\x1b[H" + "".join(f"{line[: size.columns]}\x1b[K\n" for line in lines[: size.lines - 1]) + "\x1b[J")
    sys.stdout.flush()
