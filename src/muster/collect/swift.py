# SPDX-License-Identifier: Apache-2.0
"""The short way of a round in which only plain numbers moved: nothing is interpreted again, the numbers alone are told. Pure.

An adapter may offer it for a format: from a payload it gives what stands still and, card by card, the numbers that move. It gives nothing where a number is
not plain (refused, out of range, a sentinel): then the round goes the long way. The first round of the short way is held against the long one, and every
`EVERY`-th goes the long way again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from muster.collect.route import Routed
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture, SourceId

_log = logging.getLogger("muster.collect")

EVERY = 60
"""Of so many rounds one goes the long way, whatever moved."""

Numbers: TypeAlias = Sequence[Mapping[str, float]]
"""For each card of the listing, in its order, attributes and their numbers."""


class Moving(Protocol):
    """What an adapter offers for a format."""

    def __call__(self, payload: bytes) -> tuple[object, Numbers] | None:
        """What stands still in the payload, to be compared with ``==``, and the numbers that move; None for the long way."""


@dataclass(slots=True)
class _Last:
    still: object
    keys: list[frozenset[str]]
    routed: Sequence[Routed]
    rounds: int = 0


class Swift:
    """Remembers the last long round of each source. ``offers`` gives the short way by format."""

    def __init__(self, offers: Mapping[str, Moving]) -> None:
        self._offers = dict(offers)
        self._last: dict[SourceId, _Last] = {}

    def moved(self, source: SourceId, captures: Sequence[Capture]) -> tuple[Numbers, Sequence[Routed]] | None:
        """The numbers that moved since the last long round, and what that round said; None when this one goes the long way."""
        last = self._last.get(source)
        if last is None or last.rounds >= EVERY:
            return None
        told = self._told(captures)
        if told is None or told[0] != last.still or [frozenset(each) for each in told[1]] != last.keys:
            return None
        last.rounds += 1
        return told[1], last.routed

    def heard(self, source: SourceId, captures: Sequence[Capture], routed: Sequence[Routed]) -> None:
        """Takes note of a round that went the long way."""
        self._last.pop(source, None)
        told = self._told(captures) if len(routed) == 1 else None
        if told is None:
            return
        if not _agree(routed[0].told, told[1]):
            _log.warning("%s: the short way says other numbers than the long one; it is not used", source)
            self._offers.pop(captures[0].format, None)
            return
        self._last[source] = _Last(told[0], [frozenset(each) for each in told[1]], routed)

    def forget(self) -> None:
        """Sends every source the long way once."""
        self._last.clear()

    def _told(self, captures: Sequence[Capture]) -> tuple[object, Numbers] | None:
        offer = self._offers.get(captures[0].format) if len(captures) == 1 and captures[0].failure is None and not captures[0].cut else None
        if offer is None:
            return None
        try:
            return offer(captures[0].payload)
        except Exception as error:  # noqa: BLE001 - the edge to an adapter: one that raises has no short way, and the long one stays
            _log.warning("%s: the short way raised %s; it is not used", captures[0].format, type(error).__name__)
            self._offers.pop(captures[0].format, None)
            return None


def _agree(told: Interpretation, numbers: Numbers) -> bool:
    """True when the interpretation has these numbers, and no others, for these attributes of its cards."""
    cards = [each for each in told.observations if each.subject.level is Level.CARD]
    if len(cards) != len(numbers):
        return False
    return all(_is(card.readings.get(key), value) for card, some in zip(cards, numbers, strict=True) for key, value in some.items())


def _is(reading: object, value: float) -> bool:
    return isinstance(reading, Known) and reading.value == value
