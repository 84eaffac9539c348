#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/metrics.md from the tables of the exports, so that no series is told without standing there.

usage: python tools/gen_metrics.py [--check]
--check writes nothing, and fails when the page is not what the tables say.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from muster.export import families as f
from muster.export.conventions import HEALTH, MAPPING, SCHEMA_URL, STATES, STATUS, UNKNOWN
from muster.export.families import Family

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "metrics.md"
NOTE = "<!-- Written by tools/gen_metrics.py from the tables of the exports: change these, then run `make docs`. -->"
RULES = """\
What `muster export` tells, for Prometheus and by remote write under the names of the first two tables, by OTLP under those of the last.
[Connect Prometheus](../how-to/connect-prometheus.md) says how.

- What is not known has no series. A value that is absent, or that its source no longer stands by, is never drawn as 0; a 0 was read as 0.
- Units are base units: bytes, seconds, watts, celsius, hertz, ratios from 0 to 1.
- Series of readings have the labels `card`, and `device` or `partition` where these tell it. What a card is stands in `muster_card_info`: join to it on `card`.
- States are one series for each state, 1 for the one that holds.
- Names of processes and users, and texts of errors, are in no label. Other texts of devices are cut at 200 characters; what cannot be printed is replaced.
- Displays, retired cards, and views that another witness names better have no series."""
OTLP = f"""\
The hardware conventions of OpenTelemetry are in development; this is their version `{SCHEMA_URL}`. A host is a resource (`host.name`, `host.id`).
`hw.type` is `gpu` for every accelerator, whatever it is called by its maker. A sensor is a component of its own, with the card or device as its parent.
Of an unknown component `{STATUS.name}` is 0 for all four states, and `{UNKNOWN.name}` is 1."""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines)


def _row(family: Family) -> tuple[str, ...]:
    labels = ", ".join(f"`{each}`" for each in family.labels)
    states = f" States: {', '.join(f'`{each}`' for each in family.states)}." if family.states else ""
    return f"`{family.name}`", family.form, labels, f"`{family.key}`" if family.key else "", f"{family.about}{states}"


def conventions() -> str:
    """The table of OTLP."""
    rows = [
        (f"`{row.metric.name}`", row.metric.instrument.replace("_", "-"), f"`{row.metric.unit}`", f"`{row.key}`", ", ".join(_told(row.attributes, row.sensor)))
        for row in MAPPING
    ]
    states = ", ".join(f"`{state}` = {word or 'never'}" for state, word in STATES.items())
    mine = [(f"`{each.name}`", each.instrument.replace("_", "-"), f"`{each.unit}`", f"`{HEALTH}`", "") for each in (STATUS, UNKNOWN)]
    return table(("metric", "instrument", "unit", "attribute", "with"), [*rows, *mine]) + f"\n\nStates by the words of `{HEALTH}`: {states}."


def _told(attributes: Mapping[str, str], sensor: str) -> list[str]:
    return [f"`{name}={value}`" for name, value in {**attributes, **({"hw.sensor_location": sensor} if sensor else {})}.items()]


def page() -> str:
    """The whole page."""
    head = ("series", "kind", "labels", "attribute", "what it is")
    parts = [
        "# Metrics",
        NOTE,
        RULES,
        "## The fleet",
        table(head, map(_row, f.FLEET)),
        "## Readings",
        "Of each card, device or partition that tells them.",
        table(head, map(_row, f.READINGS.values())),
        "## The export itself",
        table(head, map(_row, f.OWN)),
        "## OTLP",
        OTLP,
        conventions(),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    """Writes or checks the page; returns the exit code."""
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    new = page()
    if old == new:
        return 0
    if "--check" in arguments:
        print(f"{PAGE.name} is not what the tables say: run `make docs`", file=sys.stderr)
        return 1
    PAGE.write_text(new, encoding="utf-8")
    print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
