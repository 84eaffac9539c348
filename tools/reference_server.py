# SPDX-License-Identifier: Apache-2.0
"""docs/reference/server-metrics.md: the series of its own /metrics. Each name that the code counts under has its sentence here, or the build fails."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from reference_api import table

from muster.domain.model.policy import Policy
from muster.interfaces.api.metrics import Figures
from muster.interfaces.ingest.meters import Meters
from muster.interfaces.ingest.opened import figures
from muster.services.inventory import Inventory
from muster.services.windows import Copy
from muster.store import open_store

SRC = Path(__file__).resolve().parent.parent / "src" / "muster"
NOTE = "<!-- Written by tools/gen_reference.py from the code: change the code or tools/reference_server.py, then run `make docs`. -->"
CERTIFICATE = "muster_certificate_ends_timestamp_seconds"

API: dict[str, str] = {
    "muster_http_requests_total": "Requests answered. Labels `method`, `route` (as the route is declared; `none` for what is no route), `code`.",
    "muster_http_request_seconds": "Seconds of a request, to the last byte of its answer, by `route` (`_bucket`, `_sum`, `_count`), streams until they end.",
    "muster_streams_open": "Streams of changes that are read now.",
    "muster_columns_cards": "Cards that stand in the columns from which lists are chosen.",
    "muster_columns_refresh_seconds": "How long the last look for what is new took.",
    "muster_columns_version": "The last commit of the store that stands in the columns. One that stands still while reports come means that lists are old.",
}
INGEST: dict[str, str] = {
    "muster_ingest_connections": "Connections of reporters that are open now.",
    "muster_ingest_connections_total": "Connections that were taken.",
    "muster_ingest_connections_turned_away_total": "Connections over the bound `ingest_connections`, or over the limit of open files: answered 503 and closed.",
    "muster_ingest_handshakes_failed_total": "TLS that failed: scanners, or nodes that pinned another authority.",
    "muster_ingest_cut_off_total": "Connections that were closed because they were too slow.",
    "muster_ingest_malformed_total": "Connections that were closed for what is no HTTP.",
    "muster_ingest_received_bytes_total": "Bytes of bodies that were received, as they came (packed).",
    "muster_ingest_flight_bytes": "Bytes of bodies that are held in memory now.",
    "muster_ingest_queue_reports": "Reports that wait for the writer now, with those it works on.",
    "muster_ingest_queue_bytes": "Their bytes.",
    "muster_ingest_batches_total": "Batches that the writer was given: one commit each.",
    "muster_ingest_reports_total": "Reports that the writer answered, duplicates and refusals with them.",
    "muster_ingest_refused_total": "Requests that were answered 400 or more, 429 and 503 with them.",
    "muster_ingest_held_back_total": "Reports whose reporter had its share of the writer, or that were large and waited behind others: answered 429.",
    "muster_ingest_commit_seconds_total": "Seconds that batches took, from the writer's beginning to durable.",
    "muster_ingest_commit_count_total": "Batches counted in it.",
    "muster_ingest_commit_longest_seconds": "The longest of them since the server began.",
    "muster_ingest_acknowledge_seconds_total": "Seconds from when a report was read to its answer.",
    "muster_ingest_acknowledge_count_total": "Reports counted in it.",
    "muster_ingest_acknowledge_longest_seconds": "The longest of them since the server began.",
}
WRITER: dict[str, str] = {
    "muster_reporters": "Reporters that ever reported.",
    "muster_reporters_spool_bytes": "Bytes that wait on all nodes, as they told it last.",
    "muster_roll_parts": "Parts of the site: nodes, and groups of nodes that share a card.",
    "muster_roll_parts_held": "Parts that are in memory now.",
    "muster_roll_parts_damaged": "Parts whose rows cannot be read; `muster server check` names them.",
    "muster_reports_new_total": "Reports that were taken in.",
    "muster_reports_same_total": "Reports that came again, answered `duplicate`.",
    "muster_reports_other_total": "Reports with other words under a used number: refused.",
    "muster_reports_untold_total": "Reports under a used number whose words are not remembered: refused.",
    "muster_reports_forgotten_total": "Reports of a run of their reporter that is not remembered, made in the time of such runs: refused.",
    "muster_rounds_again_total": "Rounds of sources that said the same facts again: only numbers moved.",
    "muster_rounds_full_total": "Rounds with other facts, which went through merge.",
    CERTIFICATE: "When the server's certificate ends, in seconds since 1970. Not there where the server speaks no TLS.",
}
SPENT: dict[str, str] = {
    "take": "reports from the listener",
    "report": "reports to the API, of programs on its machine",
    "act": "acts of operators",
    "acknowledge": "acknowledgements",
    "tick": "time that passes",
    "hold": "holding nobody's silence against them",
}
WORK = {f"muster_writer_{name}_cpu_seconds_total": f"Seconds of processor time of the writer for {about}." for name, about in SPENT.items()}
TABLES = {"The API": API, "The listener for reporters": INGEST, "The writer": {**WRITER, **WORK}}
ABOUT = """\
What the server tells of itself at `/metrics` of the API's port, in Prometheus' text form.
[Monitor Muster](../how-to/monitor-muster.md) says how it is scraped, and what to look at first.
What `muster export` tells of cards is another list: [metrics](metrics.md).

- Counters (`_total`) begin at 0 with the process. A series of the writer that counts something is there once it counted.
- Names of routes are the declared ones, so that a name from outside makes no series.
- Agents tell nothing of themselves by HTTP: the server tells of them, and `muster agent status` on the node."""


def said() -> dict[str, str]:
    """Every series with its sentence."""
    return {name: about for told in TABLES.values() for name, about in told.items()}


def counted() -> set[str]:
    """Every series that the code can tell, by the names it counts under."""
    inventory = Inventory(open_store(None).writer, Policy(), 0.0).figures()
    counts = {f"reports_{copy.value}_total" for copy in Copy} | {f"{name}_total" for name in _literal("services/inventory.py", r'_counted\["(\w+)"\]')}
    spent = {f"writer_{name}_cpu_seconds_total" for name in _literal("wiring/keeping.py", r'_do\("(\w+)"')}
    own = {name for metric in Figures(dict).registry.collect() for name in (metric.name + ("_total" if metric.type == "counter" else ""),)}
    return {f"muster_{name}" for name in (*figures(Meters()), *inventory, *counts, *spent)} | own | _watched() | {CERTIFICATE}


def _literal(file: str, pattern: str) -> Iterator[str]:
    yield from re.findall(pattern, (SRC / file).read_text(encoding="utf-8"))


def _watched() -> set[str]:
    """Gauges that the rooms of the API show."""
    calls = (node for node in ast.walk(ast.parse((SRC / "interfaces/api/rooms.py").read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return {str(call.args[0].value) for call in calls if getattr(call.func, "attr", "") == "watch" and isinstance(call.args[0], ast.Constant)}


def wrong(told: Iterable[str]) -> list[str]:
    """Series without a sentence, and sentences without a series."""
    known, there = set(said()), set(told)
    return [f"no sentence for {name}" for name in sorted(there - known)] + [f"nothing tells {name}" for name in sorted(known - there)]


def kind(name: str) -> str:
    """Its type."""
    return "histogram" if name == "muster_http_request_seconds" else "counter" if name.endswith("_total") else "gauge"


def page() -> str:
    """The whole page. Raises ValueError where it and the code differ."""
    if found := wrong(counted()):
        raise ValueError("tools/reference_server.py: " + "; ".join(found))
    parts = ["# Metrics of the server", NOTE, ABOUT]
    for title, told in TABLES.items():
        parts += [f"## {title}", table(("series", "kind", "what it is"), [(f"`{name}`", kind(name), about) for name, about in told.items()])]
    return "\n\n".join(parts) + "\n"
