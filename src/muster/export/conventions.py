# SPDX-License-Identifier: Apache-2.0
"""The one table from our attributes to the hardware conventions of OpenTelemetry.

They are in development, so their version is pinned; another version changes this file and no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
SCOPE = "muster.export"


class Instrument(StrEnum):
    """What a metric is."""

    GAUGE = "gauge"
    """The value of now: it cannot be added up."""
    COUNTER = "counter"
    """A sum that only grows."""
    UP_DOWN = "up_down"
    """A sum that goes both ways: parts of it may be added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of the conventions, or of ours where they have none."""

    name: str
    instrument: Instrument
    unit: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Where the values of one attribute go. ``sensor`` names a sensor of the card, which then is a component of its own."""

    key: str
    metric: Metric
    attributes: Mapping[str, str] = field(default_factory=dict)
    sensor: str = ""


_BUSY = Metric(name="hw.gpu.utilization", instrument=Instrument.GAUGE, unit="1", about="How much of the time it was busy.")
_LIMIT = Metric(name="hw.gpu.memory.limit", instrument=Instrument.UP_DOWN, unit="By", about="Size of its memory.")
_USAGE = Metric(name="hw.gpu.memory.usage", instrument=Instrument.UP_DOWN, unit="By", about="Memory in use.")
_FULL = Metric(name="hw.gpu.memory.utilization", instrument=Instrument.GAUGE, unit="1", about="How full its memory is.")
_IO = Metric(name="hw.gpu.io", instrument=Instrument.COUNTER, unit="By", about="Bytes over its fast links.")
_ERRORS = Metric(name="hw.errors", instrument=Instrument.COUNTER, unit="{error}", about="Errors of the component.")
_POWER = Metric(name="hw.power", instrument=Instrument.GAUGE, unit="W", about="Power that it draws.")
_ENERGY = Metric(name="hw.energy", instrument=Instrument.COUNTER, unit="J", about="Energy that it used.")
_WARMTH = Metric(name="hw.temperature", instrument=Instrument.GAUGE, unit="Cel", about="Temperature at the sensor.")
_TOO_WARM = Metric(name="hw.temperature.limit", instrument=Instrument.GAUGE, unit="Cel", about="Temperature from which something happens.")

STATUS = Metric(
    name="hw.status", instrument=Instrument.UP_DOWN, unit="1", about="1 for the state that holds, 0 for the others; 0 for all when it is not known."
)
UNKNOWN = Metric(name="muster.card.unknown", instrument=Instrument.GAUGE, unit="1", about="1 when no source says now how the component is, else 0.")
STATES: Mapping[str, str | None] = {"ok": "ok", "degraded": "warning", "failed": "critical", "predicted_failure": None}
"""Each state of the conventions, and the word of `health.reported` that it stands for; none of ours foretells a failure."""
HEALTH = "health.reported"

MAPPING = (
    Row(key="utilization.core", metric=_BUSY, attributes={"hw.gpu.task": "general"}),
    Row(key="utilization.encoder", metric=_BUSY, attributes={"hw.gpu.task": "encoder"}),
    Row(key="utilization.decoder", metric=_BUSY, attributes={"hw.gpu.task": "decoder"}),
    Row(key="memory.total", metric=_LIMIT),
    Row(key="memory.used", metric=_USAGE),
    Row(key="memory.used.ratio", metric=_FULL),
    Row(key="link.bytes.received", metric=_IO, attributes={"network.io.direction": "receive"}),
    Row(key="link.bytes.transmitted", metric=_IO, attributes={"network.io.direction": "transmit"}),
    Row(key="errors.memory.corrected", metric=_ERRORS, attributes={"error.type": "corrected"}),
    Row(key="errors.memory.uncorrected", metric=_ERRORS, attributes={"error.type": "uncorrected"}),
    Row(key="pci.replays", metric=_ERRORS, attributes={"error.type": "pcie_replay"}),
    Row(key="power.draw", metric=_POWER),
    Row(key="energy.total", metric=_ENERGY),
    Row(key="temperature.core", metric=_WARMTH, sensor="core"),
    Row(key="temperature.hotspot", metric=_WARMTH, sensor="hotspot"),
    Row(key="temperature.memory", metric=_WARMTH, sensor="memory"),
    Row(key="temperature.board", metric=_WARMTH, sensor="board"),
    Row(key="temperature.limit.slowdown", metric=_TOO_WARM, attributes={"hw.limit_type": "high.degraded"}, sensor="core"),
    Row(key="temperature.limit.shutdown", metric=_TOO_WARM, attributes={"hw.limit_type": "high.critical"}, sensor="core"),
    Row(key="temperature.memory.limit.slowdown", metric=_TOO_WARM, attributes={"hw.limit_type": "high.degraded"}, sensor="memory"),
    Row(key="temperature.memory.limit.shutdown", metric=_TOO_WARM, attributes={"hw.limit_type": "high.critical"}, sensor="memory"),
)
KEYS = frozenset(row.key for row in MAPPING) | {HEALTH}
TYPE = "gpu"
"""The type of every accelerator: the conventions have no other whose metrics fit. What it is by our own words stands in `muster.role`."""
