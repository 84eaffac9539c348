# SPDX-License-Identifier: Apache-2.0
"""The door of reporters as a server opens it, and its figures by name."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sized
from typing import Protocol, runtime_checkable

from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.listener import ROOM, Ingest
from muster.interfaces.ingest.meters import Meters, Spread
from muster.spi.access import Gate, Intake
from muster.wiring.server import running_version
from muster.wiring.settings import ServerSettings


@runtime_checkable
class Knows(Protocol):
    """A gate that knows who has joined."""

    def members(self) -> Sized:
        """All who ever joined."""


class Reporters(Ingest):
    """The door, with what it counts."""

    def figures(self) -> Mapping[str, float]:
        """What it counts, by name; names that end in ``_total`` only grow."""
        return figures(self.meters)


def reporters(gate: Gate, intake: Intake, clock: Callable[[], float], context: ssl.SSLContext | None, settings: ServerSettings) -> Reporters:
    """The door on these, within the bounds of the settings."""
    limits = Limits(connections=settings.ingest_connections)
    return Reporters(gate, intake, clock, context, limits, version=running_version(), likely=_likely(gate, settings))


def _likely(gate: Gate, settings: ServerSettings) -> int:
    """Connections that may well come: as many as the settings name; else one of each who joined, as many again when all come back, and some who join yet."""
    if "ingest_connections" in settings.model_fields_set:
        return settings.ingest_connections
    return 2 * (len(gate.members()) if isinstance(gate, Knows) else 0) + ROOM


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
        "ingest_held_back_total": meters.held_back,
        "ingest_refused_total": sum(count for (_, status), count in list(meters.answers.items()) if status >= 400) + meters.held_back,
        **_spread("ingest_commit", meters.commits),
        **_spread("ingest_acknowledge", meters.acknowledged),
    }
    return {name: float(value) for name, value in taken.items()}


def _spread(name: str, spread: Spread) -> dict[str, float]:
    return {f"{name}_seconds_total": spread.total, f"{name}_count_total": spread.count, f"{name}_longest_seconds": spread.longest}
