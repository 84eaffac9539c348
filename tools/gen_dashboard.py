#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes deploy/dashboards/muster-fleet.json, a dashboard for Grafana: the fleet in one screen, with what is not known always in sight.

usage: python tools/gen_dashboard.py [--check]
--check writes nothing, and fails when the file is another one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "deploy" / "dashboards" / "muster-fleet.json"
SOURCE = {"type": "prometheus", "uid": "${source}"}
GREEN, YELLOW, RED, PURPLE, GREY = "green", "yellow", "red", "purple", "#808080"
COLOURS = {"present": GREEN, "unknown": PURPLE, "missing": RED, "removed": GREY, "stored": "blue", "known": GREEN, "stale": YELLOW, "absent": PURPLE}
WIDTH = 24
INFO = "* on (card) group_left (vendor, model, node, name) muster_card_info"


def of_card(name: str) -> str:
    """A series by card: the card's own value, or those of its devices where it has none."""
    own = f'{name}{{device="", partition=""}}'
    return f'({own} or ({name}{{device!="", partition=""}} unless on (card) {own}))'


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel: what it asks, and how it is drawn. ``colour`` is that of a number; ``bad`` turns it red from this value on."""

    title: str
    asks: Sequence[tuple[str, str]]
    kind: str = "timeseries"
    unit: str = "short"
    about: str = ""
    width: int = 8
    height: int = 8
    colour: str = GREEN
    bad: float | None = None
    stacked: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def number(title: str, ask: str, about: str, **more: Any) -> Panel:
    """A panel with one number."""
    return Panel(title=title, asks=[(ask, "")], kind="stat", about=about, width=3, height=4, **more)


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Fleet",
        (
            number("Cards", "sum(muster_cards)", "Cards on the roll; retired ones have left it."),
            number("Present", 'sum(muster_cards{presence="present"})', "Seen now by those who should see them."),
            number("Unknown", 'sum(muster_cards{presence="unknown"})', "Nobody looks: neither fine nor broken.", colour=PURPLE),
            number("Missing", 'sum(muster_cards{presence="missing"})', "Looked for, and not found.", bad=1),
            number("Open findings", "sum(muster_findings_open)", "`muster get findings` lists them.", bad=1),
            number("Sources late", 'count(muster_source_state{state=~"silent|failed|hung"} == 1) or vector(0)', "Silent, failed or hung.", bad=1),
            number(
                "Exports that are fresh",
                "sum(muster_export_fresh) / count(muster_export_fresh)",
                "Less than all: a part of the fleet has no series.",
                unit="percentunit",
            ),
            number("Server ready", "min(muster_server_ready)", "0: it is up, but cannot do its work."),
            Panel(title="Cards by presence", asks=[("sum by (presence) (muster_cards)", "{{presence}}")], stacked=True, width=12),
            Panel(title="Cards by model", asks=[('sum by (vendor, model) (muster_cards{presence="present"})', "{{vendor}} {{model}}")], stacked=True, width=12),
        ),
    ),
    (
        "What is not known",
        (
            Panel(
                title="Readings that have no value now",
                asks=[('sum by (attribute) (muster_readings{state!="known"})', "{{attribute}}")],
                about="Absent or stale. The panels below are of what is known, and of nothing else.",
                width=12,
            ),
            Panel(title="Readings, all attributes", asks=[("sum by (state) (muster_readings)", "{{state}}")], stacked=True, width=12),
        ),
    ),
    (
        "Use, power, heat",
        (
            Panel(
                title="Utilisation by model", asks=[(f"avg by (model) ({of_card('muster_utilization_core_ratio')} {INFO})", "{{model}}")], unit="percentunit"
            ),
            Panel(
                title="Memory",
                asks=[(f"sum({of_card('muster_memory_used_bytes')})", "used"), (f"sum({of_card('muster_memory_size_bytes')})", "size")],
                unit="bytes",
            ),
            Panel(
                title="Cards that tell no utilisation", asks=[('sum by (state) (muster_readings{attribute="utilization.core", state!="known"})', "{{state}}")]
            ),
            Panel(title="Power by model", asks=[(f"sum by (model) ({of_card('muster_power_draw_watts')} {INFO})", "{{model}}")], unit="watt", stacked=True),
            Panel(
                title="Temperature of the chip",
                asks=[
                    ("max(muster_temperature_core_celsius)", "hottest"),
                    ("quantile(0.95, muster_temperature_core_celsius)", "95 of 100 are below"),
                    ("quantile(0.5, muster_temperature_core_celsius)", "half are below"),
                ],
                unit="celsius",
            ),
            Panel(
                title="The ten hottest",
                asks=[(f"topk(10, max by (card) (muster_temperature_core_celsius) {INFO})", "{{name}}")],
                kind="bargauge",
                unit="celsius",
            ),
        ),
    ),
    (
        "Sources and findings",
        (
            Panel(title="Sources late", asks=[('count by (source, state) (muster_source_state{state=~"silent|failed|hung"} == 1)', "{{source}} {{state}}")]),
            Panel(
                title="Longest silence",
                asks=[("topk(10, time() - muster_source_last_seen_timestamp_seconds)", "{{source}} on {{node}}")],
                kind="bargauge",
                unit="s",
            ),
            Panel(title="Open findings", asks=[("sum by (kind) (muster_findings_open) > 0", "{{kind}}")], stacked=True),
            Panel(title="Health as the maker reports it", asks=[("sum by (state) (muster_health_reported)", "{{state}}")], stacked=True),
        ),
    ),
    (
        "Server",
        (
            Panel(title="Reports taken in", asks=[("sum(rate(muster_ingest_reports_total[5m]))", "reports")], unit="reqps", stacked=True),
            Panel(
                title="How long reports wait",
                asks=[("sum(rate(muster_ingest_acknowledge_seconds_total[5m])) / sum(rate(muster_ingest_acknowledge_count_total[5m]))", "mean")],
                unit="s",
            ),
            Panel(title="Reports that wait on nodes", asks=[("sum(muster_reporters_spool_bytes)", "bytes")], unit="bytes"),
            Panel(
                title="Export",
                asks=[
                    ("max by (shard) (muster_export_read_duration_seconds)", "reading shard {{shard}}"),
                    ("sum by (reason) (rate(muster_export_dropped_total[5m]))", "given up a second: {{reason}}"),
                ],
                unit="s",
            ),
        ),
    ),
)


def expressions() -> list[str]:
    """Every expression of the dashboard."""
    return [ask for _, panels in ROWS for panel in panels for ask, _ in panel.asks]


def _panel(panel: Panel, id_: int, x: int, y: int) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": panel.colour, "value": None}]
    if panel.bad is not None:
        steps.append({"color": RED, "value": panel.bad})
    lines = {"fillOpacity": 30 if panel.stacked else 5, "showPoints": "never", "spanNulls": False, "stacking": {"mode": "normal" if panel.stacked else "none"}}
    defaults = {
        "unit": panel.unit,
        "noValue": "not known",
        "thresholds": {"mode": "absolute", "steps": steps},
        "custom": lines if panel.kind == "timeseries" else {},
    }
    painted = [
        {"matcher": {"id": "byName", "options": name}, "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}]}
        for name, colour in COLOURS.items()
    ]
    calculation = {"reduceOptions": {"calcs": ["lastNotNull"], "values": False}}
    options = {"stat": {**calculation, "colorMode": "value"}, "bargauge": {**calculation, "orientation": "horizontal"}}.get(panel.kind, {})
    return {
        "id": id_,
        "title": panel.title,
        "description": panel.about,
        "type": panel.kind,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": defaults, "overrides": painted if panel.kind == "timeseries" else []},
        "options": options,
        "targets": [_target(ask, legend, panel.kind, letter) for letter, (ask, legend) in zip("ABCDEF", panel.asks, strict=False)],
    }


def _target(ask: str, legend: str, kind: str, letter: str) -> dict[str, Any]:
    now = kind in ("stat", "bargauge")
    return {"refId": letter, "datasource": SOURCE, "expr": ask, "legendFormat": legend or "__auto", "instant": now, "range": not now}


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana reads it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        panels.append({"id": len(panels) + 1, "title": title, "type": "row", "collapsed": False, "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}, "panels": []})
        x, y, tall = 0, y + 1, 0
        for panel in row:
            if x + panel.width > WIDTH:
                x, y, tall = 0, y + tall, 0
            panels.append(_panel(panel, len(panels) + 1, x, y))
            x, tall = x + panel.width, max(tall, panel.height)
        y += tall
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0, "refresh": 1, "current": {}, "options": []}
    return {
        "title": "Muster: the fleet",
        "uid": "muster-fleet",
        "description": "Every accelerator, whoever made it. What is not known is shown as such, and never as 0.",
        "tags": ["muster"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "graphTooltip": 1,
        "templating": {"list": [source]},
        "annotations": {"list": []},
        "panels": panels,
    }


def main(arguments: list[str]) -> int:
    """Writes or checks the file; returns the exit code."""
    old = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    new = json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"
    if old == new:
        return 0
    if "--check" in arguments:
        print(f"{FILE.name} is not what tools/gen_dashboard.py makes: run `make docs`", file=sys.stderr)
        return 1
    FILE.write_text(new, encoding="utf-8")
    print(f"wrote {FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
