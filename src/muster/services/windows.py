# SPDX-License-Identifier: Apache-2.0
"""Which reports of a reporter were taken: by ranges of its numbers, and for the last of them by what they said, so that a second copy is known."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum

import msgspec

RECENT = 64
"""So many last numbers are held against what they said; older ones are known by their number alone."""
INCARNATIONS = 8
"""So many lives of a reporter are remembered."""
SIZE = 8
"""Bytes of a digest."""
_NOTHING = bytes(SIZE)


class Copy(Enum):
    """What a number is: new, taken before with the same words, or taken before with other words."""

    NEW = "new"
    SAME = "same"
    OTHER = "other"


@dataclass(slots=True)
class Life:
    """One incarnation: ranges of numbers taken, both ends in them, in order; and digests of the last ones by number modulo RECENT."""

    ranges: list[list[int]] = field(default_factory=list)
    digests: bytearray = field(default_factory=lambda: bytearray(RECENT * SIZE))

    @property
    def high(self) -> int:
        """The greatest number taken; -1 before the first."""
        return self.ranges[-1][1] if self.ranges else -1

    def has(self, sequence: int) -> bool:
        """True when it was taken."""
        return any(low <= sequence <= high for low, high in reversed(self.ranges))

    def digest(self, sequence: int) -> bytes:
        """What it said; zeros when that is not remembered."""
        if sequence <= self.high - RECENT:
            return _NOTHING
        at = sequence % RECENT * SIZE
        return bytes(self.digests[at : at + SIZE])

    def add(self, sequence: int, digest: bytes) -> None:
        """Takes a number in."""
        before = self.high
        if sequence > before:
            for passed in range(max(before + 1, sequence - RECENT + 1), sequence):
                self.digests[passed % RECENT * SIZE : passed % RECENT * SIZE + SIZE] = _NOTHING
        if sequence > self.high - RECENT:
            at = sequence % RECENT * SIZE
            self.digests[at : at + SIZE] = digest
        self._range(sequence)

    def reach(self, sequence: int) -> None:
        """Takes every number up to ``sequence`` as taken: they came one after the other, and what they said is not remembered."""
        while self.high < sequence:
            self.add(self.high + 1 if self.ranges else sequence, _NOTHING)

    def _range(self, sequence: int) -> None:
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


class Window:
    """The reports of one reporter. ``told`` is its packed form as the store keeps it; empty for a reporter that never spoke."""

    __slots__ = ("lives",)

    def __init__(self, told: bytes = b"") -> None:
        self.lives: OrderedDict[str, Life] = OrderedDict()
        if told:
            for name, ranges, digests in msgspec.msgpack.decode(told, type=list[tuple[str, list[list[int]], bytes]]):
                self.lives[name] = Life(ranges=ranges, digests=bytearray(digests))

    @property
    def incarnation(self) -> str:
        """The life that spoke last; empty before the first."""
        return next(reversed(self.lives), "")

    @property
    def high(self) -> int:
        """The greatest number of the life that spoke last; -1 before the first."""
        return self.lives[self.incarnation].high if self.lives else -1

    def judge(self, incarnation: str, sequence: int, digest: bytes) -> Copy:
        """What a report of this number is."""
        life = self.lives.get(incarnation)
        if life is None or not life.has(sequence):
            return Copy.NEW
        known = life.digest(sequence)
        return Copy.SAME if known in (digest, _NOTHING) else Copy.OTHER

    def follows(self, incarnation: str, sequence: int) -> bool:
        """True when it is the next number of the life that spoke last: then the number alone says how far the reporter has come."""
        return incarnation == self.incarnation and sequence == self.high + 1 and len(self.lives[incarnation].ranges) == 1

    def add(self, incarnation: str, sequence: int, digest: bytes) -> None:
        """Takes a report in."""
        life = self.lives.setdefault(incarnation, Life())
        life.add(sequence, digest)
        while len(self.lives) > INCARNATIONS:
            self.lives.popitem(last=False)

    def reach(self, incarnation: str, sequence: int) -> None:
        """Brings the window up to a number that a source's row tells."""
        life = self.lives.get(incarnation)
        if life is not None:
            life.reach(sequence)

    def packed(self) -> bytes:
        """As the store keeps it."""
        return msgspec.msgpack.encode([(name, life.ranges, bytes(life.digests)) for name, life in self.lives.items()])
