# SPDX-License-Identifier: Apache-2.0
"""Signs in a round that a fault is near. They set the pace of reading and judge nothing; what they mean is said elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from muster.domain.model.attributes import Level
from muster.domain.model.observation import Interpretation, Observation
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.source import Outcome

DEGREES = 5.0
"""So close to its limit a temperature is a sign."""

_GROWING = ("errors.memory.uncorrected", "memory.remap.failed", "memory.remap.pending", "fault.last_code", "recovery.action", "pci.replays")
_FAILING = frozenset({Outcome.DEVICE_LOST, Outcome.PARTIAL, Outcome.TIMED_OUT, Outcome.DRIVER_UNUSABLE, Outcome.UNREACHABLE})
_HEAT = "temperature.core"
_LIMITS = ("temperature.limit.slowdown", "temperature.limit.shutdown")


class Signs:
    """Remembers what each source said of its faults, so that a change is seen."""

    def __init__(self) -> None:
        self._before: dict[str, dict[tuple[object, str], object]] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._limits: dict[str, list[float]] = {}
        self._events: dict[str, frozenset[str]] = {}

    def hear(self, source: str, told: Interpretation) -> str:
        """Why a fault is near by this round; an empty text when nothing says so. A source that never spoke and fails is no sign."""
        before, self._outcomes[source] = self._outcomes.get(source), told.outcome
        happened = frozenset(each.text for each in told.events)
        known_events = self._events.get(source, frozenset())
        if happened or known_events:
            self._events[source] = happened
        if happened - known_events:
            return "an event"
        if told.outcome in _FAILING:
            return told.outcome.value if before is not None and before not in _FAILING else ""
        rows = [(each.subject, each.readings) for each in told.observations]
        said: dict[tuple[object, str], object] = {(subject, key): _value(had[key]) for subject, had in rows for key in _GROWING if key in had}
        known, self._before[source] = self._before.get(source), said
        self._limits[source] = [_limit(each.readings) for each in told.observations if each.subject.level is Level.CARD]
        grown = next((key for (subject, key), value in said.items() if known is not None and known.get((subject, key), value) != value), "")
        return grown or _hot(told.observations)

    def moved(self, source: str, numbers: Sequence[Mapping[str, float]]) -> str:
        """The same, of a round in which only numbers moved; they stand in the order of its cards."""
        limits = self._limits.get(source, [])
        hot = any(each.get(_HEAT, float("-inf")) >= limit - DEGREES for each, limit in zip(numbers, limits, strict=False))
        return _HEAT if hot else ""


def _value(reading: Reading) -> object:
    return reading.value if isinstance(reading, Known) else reading.why


def _hot(rows: Iterable[Observation]) -> str:
    return next((found for each in rows if (found := _near_limit(each.readings))), "")


def _near_limit(readings: Mapping[str, Reading]) -> str:
    heat = readings.get(_HEAT)
    if isinstance(heat, Absent):
        return "device_lost" if heat.why is Why.DEVICE_LOST else ""
    if heat is None or not isinstance(heat.value, int | float):
        return ""
    return _HEAT if heat.value >= _limit(readings) - DEGREES else ""


def _limit(readings: Mapping[str, Reading]) -> float:
    return min((float(limit.value) for key in _LIMITS if isinstance(limit := readings.get(key), Known)), default=float("inf"))
