# SPDX-License-Identifier: Apache-2.0
"""One life of a reporter, as its numbers tell it, and what is left of lives that are no longer remembered: up to when their reports were made."""

from __future__ import annotations

from math import inf

import msgspec

RECENT = 64
"""So many last numbers of a life are held against what they said."""
RANGES, FEW_RANGES = 32, 8
"""Ranges of numbers that are kept of a life; what came before is one range, as if all of it had been taken, and what was said in its gaps is not known."""
BOOTS = 8
"""Boots of the reporter's machine whose forgotten lives are held against its monotonic clock; those before only against its wall clock."""
SIZE = 8
"""Bytes of a digest."""
UNKNOWN = bytes(SIZE)
"""The digest of what is not remembered."""
A_MOMENT = 1.0
"""Seconds by which a time that was reckoned back may be wrong."""


class Made(msgspec.Struct, frozen=True):
    """When the rounds of a report were made, by its reporter's own clocks: no part of it changes when the report is sent again.

    ``boot`` is empty, and ``mono`` says nothing, where they were not of one boot. ``right``: the wall clock was right when the report was judged.
    """

    wall: float
    boot: bytes = b""
    mono: float = inf
    right: bool = True


class Times(msgspec.Struct, array_like=True):
    """Up to when the reports of one boot were made, and from when to when those of them that were made under a right clock."""

    mono: float = -inf
    wall: float = -inf
    low: float = inf
    high: float = -inf

    def add(self, made: Made) -> None:
        """Takes a report in."""
        self.mono, self.wall = max(self.mono, made.mono), max(self.wall, made.wall)
        if made.right:
            self.low, self.high = min(self.low, made.wall), max(self.high, made.wall)

    def widen(self, other: Times) -> None:
        """Takes others in."""
        self.mono, self.wall = max(self.mono, other.mono), max(self.wall, other.wall)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)


class Past(msgspec.Struct, array_like=True):
    """What is left of forgotten lives. A report that was taken in one of them was made in these times, whenever it comes again.

    Within one boot both clocks must say so, so that a clock that was set back silences nobody. Of boots before those that are remembered only times count
    at which the wall clock was right: one that begins anew in 1970 with each boot would say so of everything.
    """

    boots: list[tuple[bytes, Times]] = []
    low: float = inf
    high: float = -inf

    def __bool__(self) -> bool:
        return bool(self.boots) or self.low <= self.high

    def holds(self, made: Made) -> bool:
        """True when a report that was made then may have been taken in a life that is forgotten."""
        within = any(boot == made.boot and made.mono <= times.mono and made.wall <= times.wall for boot, times in self.boots)
        return within or self.low <= made.wall <= self.high

    def take(self, life: Life) -> None:
        """Forgets a life, or its boot before this one."""
        if life.boot:
            before = next((times for boot, times in self.boots if boot == life.boot), Times())
            before.widen(life.times)
            self.boots = [each for each in self.boots if each[0] != life.boot] + [(life.boot, before)]
        else:
            self._spread(life.times)
        while len(self.boots) > BOOTS:
            self._spread(self.boots.pop(0)[1])

    def _spread(self, times: Times) -> None:
        self.low, self.high = min(self.low, times.low), max(self.high, times.high)


class Life(msgspec.Struct, array_like=True):
    """One incarnation: ranges of numbers taken, both ends in them, in order; and digests of the last ones by number modulo `RECENT`."""

    ranges: list[list[int]] = []
    digests: bytearray = msgspec.field(default_factory=lambda: bytearray(RECENT * SIZE))
    whole: bool = True
    """Nothing of it was ever forgotten."""
    boot: bytes = b""
    times: Times = msgspec.field(default_factory=Times)

    @property
    def high(self) -> int:
        """The greatest number taken; -1 before the first."""
        return self.ranges[-1][1] if self.ranges else -1

    def has(self, sequence: int) -> bool:
        """True when it was taken."""
        return sequence <= self.high and any(low <= sequence <= high for low, high in reversed(self.ranges))

    def digest(self, sequence: int) -> bytes:
        """What it said; `UNKNOWN` when that is not remembered."""
        if sequence <= self.high - RECENT or not self.digests:
            return UNKNOWN
        at = sequence % RECENT * SIZE
        return bytes(self.digests[at : at + SIZE])

    def add(self, sequence: int, digest: bytes) -> None:
        """Takes a number in."""
        before = self.high
        if sequence > before:
            for passed in range(max(before + 1, sequence - RECENT + 1), sequence):
                self.digests[passed % RECENT * SIZE : passed % RECENT * SIZE + SIZE] = UNKNOWN
        if sequence > self.high - RECENT:
            at = sequence % RECENT * SIZE
            self.digests[at : at + SIZE] = digest
        self._range(sequence)
        self._bound(RANGES)

    def reach(self, sequence: int, wall: float) -> None:
        """Takes every number up to ``sequence`` as taken: they came one after the other, and what they said is not remembered."""
        while self.high < sequence:
            self.add(self.high + 1 if self.ranges else sequence, UNKNOWN)
        wall += A_MOMENT
        mono = self.times.mono + max(0.0, wall - self.times.wall)
        right = self.times.low <= self.times.high and wall >= self.times.low
        self.times.add(Made(wall, self.boot, mono, right))

    def spoke(self, made: Made, past: Past) -> None:
        """Notes when it spoke. Of a life that goes on in another boot the times in the boot before are the past's."""
        if made.boot != self.boot:
            if self.times.wall > -inf:
                past.take(self)
            self.boot, self.times = made.boot, Times()
        self.times.add(made)

    def shortened(self) -> Life:
        """The same by its numbers alone."""
        self.digests = bytearray()
        self._bound(FEW_RANGES)
        return self

    def full(self) -> Life:
        """The same with room for digests."""
        if not self.digests:
            self.digests = bytearray(RECENT * SIZE)
        return self

    def _range(self, sequence: int) -> None:
        if self.ranges and sequence == self.ranges[-1][1] + 1:
            self.ranges[-1][1] = sequence
            return
        for place, (low, high) in reversed(list(enumerate(self.ranges))):
            if low <= sequence <= high:
                return
            if sequence == high + 1:
                self.ranges[place][1] = sequence
                self._close_gap(place)
                return
            if sequence > high:
                self.ranges.insert(place + 1, [sequence, sequence])
                self._close_gap(place + 1)
                return
        self.ranges.insert(0, [sequence, sequence])
        self._close_gap(0)

    def _close_gap(self, place: int) -> None:
        if place + 1 < len(self.ranges) and self.ranges[place][1] + 1 == self.ranges[place + 1][0]:
            self.ranges[place][1] = self.ranges.pop(place + 1)[1]

    def _bound(self, most: int) -> None:
        while len(self.ranges) > most:
            low, _ = self.ranges.pop(0)
            self.ranges[0][0] = low
