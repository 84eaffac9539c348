# SPDX-License-Identifier: Apache-2.0
"""How often each source is read: at its own cadence, more often for a while when a fault is near, not at all while handles are let go. Pure.

What a report promises stays the source's own cadence: what is read more often is never late by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.source import Outcome, ReaderKind, Source, SourceId

IDLE_FACTOR = 10
"""So much slower are sources read whose adapter has nothing on this node."""

IDLE_S = 600.0
"""Nor are they read more often than this."""

CLOSE_FACTOR = 4
"""So much more often are an adapter's sources read while a fault is near."""

CLOSEST_S = 5.0
"""No source is read more often than this because of a fault."""

CLOSE_S = 300.0
"""Seconds that an adapter is watched closely after the last sign of a fault."""

LONGEST_S = 1800.0
"""The longest that an adapter is watched closely on end; then it rests as long."""

PATIENCE = 3
"""So many times on end a source must not have been there, and never before, to be looked for less often."""

_NOT_THERE = frozenset({Outcome.TOOL_MISSING, Outcome.UNREACHABLE})
_HOLD_HANDLES = frozenset({ReaderKind.LIBRARY, ReaderKind.TOOL})


@dataclass(slots=True)
class _Watch:
    began: float
    until: float


class Pace:
    """The pace of one reporter. All times are monotonic."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watch] = {}
        self._held_until = float("-inf")
        self._missing: dict[SourceId, int] = {}

    def hear(self, source: SourceId, outcome: Outcome) -> None:
        """Takes note of a source that is not there at all, and of one that is."""
        if outcome not in _NOT_THERE:
            self._missing[source] = 0
        elif self._missing.get(source) != 0:
            self._missing[source] = self._missing.get(source, 0) + 1

    def never(self, source: SourceId) -> bool:
        """True for a source that was asked, and that was not there even once."""
        return self._missing.get(source, 0) > 0

    def promised(self, source: Source) -> Source:
        """The source with the cadence that it keeps: one that was never there is looked for less often, and says so."""
        if self._missing.get(source.id, 0) < PATIENCE:
            return source
        return replace(source, cadence=timedelta(seconds=seldom(source)))

    def alert(self, adapter: str, now: float) -> bool:
        """A fault is near on this adapter's cards. True when it is watched closely from now on and was not before."""
        watch = self._watched.get(adapter)
        if watch is None or now >= watch.began + 2 * LONGEST_S or (now >= watch.until and watch.until < watch.began + LONGEST_S):
            self._watched[adapter] = _Watch(now, now + CLOSE_S)
            return True
        watch.until = max(watch.until, min(now + CLOSE_S, watch.began + LONGEST_S))
        return False

    def close(self, adapter: str, now: float) -> bool:
        """True while the adapter's sources are read more often."""
        watch = self._watched.get(adapter)
        return watch is not None and now < watch.until

    def hold(self, until: float) -> None:
        """Reads nothing that takes a handle of a driver until then."""
        self._held_until = until

    def next_at(self, source: Source, started: float | None, now: float, idle: bool) -> float:
        """When the source is to be read, having last been read at ``started``."""
        at = float("-inf") if started is None else started + self.seconds(source, now, idle)
        return max(at, self._held_until) if source.reader in _HOLD_HANDLES else at

    def seconds(self, source: Source, now: float, idle: bool) -> float:
        """Seconds from one read of the source to the next."""
        own = source.cadence.total_seconds()
        if idle or self._missing.get(source.id, 0) >= PATIENCE:
            return seldom(source)
        if not self.close(source.adapter, now) or tells_who(source):
            return own
        return min(own, max(own / CLOSE_FACTOR, CLOSEST_S))


def seldom(source: Source) -> float:
    """Seconds from one look for something that is not here to the next; a look can cost the start of a process."""
    return max(source.cadence.total_seconds() * IDLE_FACTOR, IDLE_S)


def tells_who(source: Source) -> bool:
    """True for a source that only says what is there: nothing that it provides moves."""
    return bool(source.provides) and all((entry := ATTRIBUTES.get(key)) is not None and entry.kind is Kind.FACT for key in source.provides)
