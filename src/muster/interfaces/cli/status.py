# SPDX-License-Identifier: Apache-2.0
"""`muster status`: the roll in one screen: how many cards of what, what needs a person, which sources are late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from muster.interfaces.cli import sections
from muster.interfaces.cli.calls import at_time, connect, server_options
from muster.interfaces.cli.cells import counted, quantity, rfc3339, safe, word
from muster.interfaces.cli.client import Client
from muster.interfaces.cli.documents import as_of, field
from muster.interfaces.cli.nouns import FINDINGS
from muster.interfaces.cli.output import Column, note, render

WORST = 10
"""Findings shown; the rest are counted."""

_MODELS = (field("VENDOR", "vendor"), field("MODEL", "model"), field("CARDS", "cards", right=True), field("PRESENT", "present", right=True))


@click.command()
@click.option("-o", "--output", default="text", show_default=True, metavar="FORM", help="text, json, yaml, or jsonpath={PATH}.")
@click.option("--at", metavar="TIME", help="As it was believed at TIME (RFC 3339), or so long ago (2h).")
@server_options
def status(output: str, at: str | None, **options: Any) -> int:
    """The roll in one screen: counts, sums, open findings, sources."""
    client = connect(options["server"], options["timeout"], options["verbose"])
    moment = at_time(at)
    told = client.get("/summary", at=moment)
    as_of(told)
    if output == "text":
        _page(client, told, moment)
        for check, what in client.checks().items():
            note(f"muster: {safe(check)}: {safe(what)}")
    else:
        render([told], _MODELS, output, no_headers=False, document=told)
    return 0


def _page(client: Client, told: Mapping[str, Any], at: str | None) -> None:
    sections.heading(f"{counted(told['cards'], 'card')} on {counted(told['nodes'], 'node')}, {rfc3339(told['at'])}")
    presence = [(word(key), count) for key, count in told["by_presence"].items() if count]
    beside = [("displays, not counted", told.get("displays") or None), ("views kept aside", told.get("aside") or None)]
    sections.pairs("PRESENCE", presence + beside)
    sections.rows("MODELS", told["models"], _MODELS)
    sections.rows("SUMS", [{"key": key, **each} for key, each in told["totals"].items()], _SUMS)
    sources = told["sources"]
    sections.pairs(f"SOURCES ({sources['total']})", [(word(key), count) for key, count in sources["by_state"].items() if count])
    _findings(client, told["findings"], at)


def _findings(client: Client, counts: Mapping[str, int], at: str | None) -> None:
    total = sum(counts.values())
    if not total:
        return
    sections.pairs(f"FINDINGS ({total})", [(word(key), count) for key, count in counts.items() if count])
    newest = client.all(FINDINGS.path, WORST, at=at)["items"]
    sections.rows("" if total <= WORST else f"THE NEWEST {WORST}", newest, [c for c in FINDINGS.columns if c.key in ("id", "opened_at", "about")])


_SUMS = (
    Column(title="OF", key="key", value=lambda row: row["key"]),
    Column(title="SUM", key="value", value=lambda row: quantity(row["value"], row["unit"]) if row["cards"] else None, show=str, right=True),
    field("CARDS", "cards", right=True),
    Column(title="WITHOUT A VALUE", key="lacking", value=lambda row: row["lacking"], right=True),
)
