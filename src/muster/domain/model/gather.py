# SPDX-License-Identifier: Apache-2.0
"""How an adapter collects what several parts of one round say about the same card, before it is said as observations.

The order of calls does not matter for values: a value is never wiped out by a later absence, and an impossible value becomes an absence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from muster.domain.model.attributes import ATTRIBUTES, Level
from muster.domain.model.names import Name, names
from muster.domain.model.observation import Observation, Role, Subject
from muster.domain.model.reading import Absent, Known, Reading, Why, better


class Thing:
    """One card, device or partition being collected."""

    def __init__(self, level: Level, key: object, parent: Thing | None = None) -> None:
        self.level = level
        self.key = key
        self.parent = parent
        self.names: set[Name] = set()
        self.readings: dict[str, Reading] = {}
        self.vendor: dict[str, Any] = {}
        self.role: Role | None = None
        self._parts: dict[tuple[Level, object], Thing] = {}

    def named(self, **values: str | int | None) -> Thing:
        """Adds names; a kind already named keeps its first name, and a placeholder names nothing."""
        have = {n.kind for n in self.names}
        self.names.update(n for n in names(**values) if n.kind not in have)
        return self

    def put(self, key: str, reading: Reading | None) -> Thing:
        """Adds a reading; None (the source does not speak of it) adds nothing. Out of the dictionary's range it becomes ``implausible``."""
        if reading is not None:
            self.readings[key] = better(self.readings.get(key), plausible(key, reading))
        return self

    def value(self, key: str, value: Any) -> Thing:
        """Adds a known value; None adds nothing."""
        return self if value is None else self.put(key, Known(value))

    def absent(self, key: str, why: Why, detail: str = "") -> Thing:
        """Adds an absence, unless a value is known."""
        return self.put(key, Absent(why, detail))

    def tell(self, name: str, text: Any) -> Thing:
        """Keeps the vendor's own name and text beside the readings."""
        self.vendor[name] = text
        return self

    def device(self, key: object) -> Thing:
        """The device ``key`` of this card, made when first asked for."""
        return self._part(Level.DEVICE, key)

    def partition(self, key: object) -> Thing:
        """The partition ``key`` of this card or device, made when first asked for."""
        return self._part(Level.PARTITION, key)

    def parts(self, level: Level) -> Iterator[Thing]:
        """Its devices or its partitions, in order of appearance."""
        return (part for part in self._parts.values() if part.level is level)

    def _part(self, level: Level, key: object) -> Thing:
        return self._parts.setdefault((level, key), Thing(level, key, self))

    def observations(self, ordinal: int) -> Iterator[Observation]:
        """This thing and its parts, each under its parent's names."""
        parent = frozenset(self.parent.names) if self.parent else frozenset[Name]()
        subject = Subject(level=self.level, names=frozenset(self.names), parent=parent, ordinal=ordinal)
        vendor = {name: _printable(text) for name, text in self.vendor.items()}
        yield Observation(subject=subject, readings=dict(self.readings), vendor=vendor, role=self.role)
        for level in (Level.DEVICE, Level.PARTITION):
            for place, part in enumerate(self.parts(level)):
                yield from part.observations(place)


class Gather:
    """The cards and the node of one round, collected by the adapter's own keys (an index, an address)."""

    def __init__(self) -> None:
        self.node = Thing(Level.NODE, "")
        self._cards: dict[object, Thing] = {}

    def card(self, key: object) -> Thing:
        """The card ``key``, made when first asked for."""
        return self._cards.setdefault(key, Thing(Level.CARD, key))

    @property
    def cards(self) -> list[Thing]:
        """Cards in order of appearance."""
        return list(self._cards.values())

    def observations(self) -> tuple[Observation, ...]:
        """Everything collected. A card without any name is named by its place in the listing, so that its parts find it."""
        told: list[Observation] = []
        if self.node.readings or self.node.names:
            told.extend(self.node.observations(0))
        for ordinal, card in enumerate(self._cards.values()):
            if not card.names and any(card.parts(level) for level in (Level.DEVICE, Level.PARTITION)):
                card.named(index=ordinal)
            told.extend(card.observations(ordinal))
        return tuple(told)


def plausible(key: str, reading: Reading) -> Reading:
    """The reading, or ``implausible`` with the raw value when it lies outside the dictionary's range or is not of its kind."""
    entry = ATTRIBUTES.get(key)
    if isinstance(reading, Absent):
        return reading
    value = reading.value
    if not finite(value):
        return Absent(Why.UNREADABLE, repr(value)[:80])
    if entry is None:
        return reading
    if value is None:
        return Absent(Why.UNREADABLE, "no value")
    if entry.numeric:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return Absent(Why.UNREADABLE, repr(value)[:80])
        if (entry.low is not None and value < entry.low) or (entry.high is not None and value > entry.high):
            return Absent(Why.IMPLAUSIBLE, f"{value:g} {entry.unit}")
    return reading


def finite(value: Any) -> bool:
    """False when a number that is none (NaN, infinity) stands anywhere in the value: no document could hold it."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(finite(each) for each in value.values())
    return all(finite(each) for each in value) if isinstance(value, list | tuple) else True


def _printable(value: Any) -> Any:
    """The vendor's value with numbers that are none as their text."""
    if finite(value):
        return value
    if isinstance(value, Mapping):
        return {key: _printable(each) for key, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list | tuple) else str(value)


def check_power(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    """Readings with a power draw above twice the known limit marked implausible: one of the two is in another unit."""
    limit = readings.get("power.limit") or readings.get("power.limit.max")
    checked = dict(readings)
    if isinstance(limit, Known) and limit.value > 0:
        for key in ("power.draw", "power.draw.average"):
            draw = checked.get(key)
            if isinstance(draw, Known) and draw.value > 2 * limit.value:
                checked[key] = Absent(Why.IMPLAUSIBLE, f"{draw.value:g} watt with a limit of {limit.value:g} watt")
    return checked


def check_memory(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    """Readings with more memory in use than there is marked implausible: the total is printed once and for all, what is used is counted."""
    used, total = readings.get("memory.used"), readings.get("memory.total")
    checked = dict(readings)
    if isinstance(used, Known) and isinstance(total, Known) and used.value > total.value:
        checked["memory.used"] = Absent(Why.IMPLAUSIBLE, f"{used.value} bytes of {total.value}")
    return checked
