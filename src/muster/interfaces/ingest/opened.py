# SPDX-License-Identifier: Apache-2.0
"""The door of reporters as a server opens it, and its figures by name."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping

from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.listener import Ingest
from muster.interfaces.ingest.meters import Meters, Spread
from muster.spi.access import Gate, Intake
from muster.wiring.server import running_version
from muster.wiring.settings import ServerSettings


class Reporters(Ingest):
    """The door, with what it counts."""

    def figures(self) -> Mapping[str, float]:
        """What it counts, by name; names that end in ``_total`` only grow."""
        return figures(self.meters)


def reporters(gate: Gate, intake: Intake, clock: Callable[[], float], context: ssl.SSLContext | None, settings: ServerSettings) -> Reporters:
    """The door on these, within the bounds of the settings."""
    return Reporters(gate, intake, clock, context, Limits(connections=settings.ingest_connections), version=running_version())


def figures(meters: Meters) -> dict[str, float]:
    """The counts, by name."""
    taken = {
        "ingest_connections": meters.connections,
        "ingest_connections_total": meters.opened,
        "ingest_connections_turned_away_total": meters.turned_away,
        "ingest_handshakes_failed_total": meters.handshakes_failed,
        "ingest_cut_off_total": meters.cut_off,
        "ingest_malformed_total": meters.malformed,
        "ingest_received_bytes_total": meters.received,
        "ingest_flight_bytes": meters.flight,
        "ingest_queue_reports": meters.queue,
        "ingest_queue_bytes": meters.queue_bytes,
        "ingest_batches_total": meters.batches,
        "ingest_reports_total": meters.taken,
        "ingest_refused_total": sum(count for (_, status), count in list(meters.answers.items()) if status >= 400),
        **_spread("ingest_commit", meters.commits),
        **_spread("ingest_acknowledge", meters.acknowledged),
    }
    return {name: float(value) for name, value in taken.items()}


def _spread(name: str, spread: Spread) -> dict[str, float]:
    return {f"{name}_seconds_total": spread.total, f"{name}_count_total": spread.count, f"{name}_longest_seconds": spread.longest}
