# SPDX-License-Identifier: Apache-2.0
"""What the writer has in memory of every source: newest numbers, and the roll-up of the minute that is open. Numbers of a slot stand side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.store.gauges_map import NONE, Arrays, blank, publish, withdraw
from muster.store.gauges_rows import Flags
from muster.store.pack import Floats, Ints

SLOTS, NUMBERS = 1024, 65536
"""How many there is room for at first."""
SHUT = -(2**62)
"""Minute of a source that has none open."""


@dataclass(slots=True)
class Meta:
    """What a source said last, numbers aside."""

    slot: int
    node: str
    source: str
    reporter: str
    region: str = ""
    at: float = NONE
    since: float = NONE
    again_at: float | None = None
    received_at: float = NONE
    incarnation: str = ""
    sequence: int = -1
    facts: bytes = b""
    capture: str = ""
    promise: float = 0.0
    bounds: bytes = b""
    node_names: tuple[str, str, str] = ("", "", "")

    def copy(self) -> Meta:
        """The same, to be changed."""
        return Meta(*_ALL(self))


_ALL = attrgetter(*(each.name for each in fields(Meta)))


@dataclass(slots=True)
class Seat:
    """A source under one layout: which, and where its numbers stand."""

    meta: Meta
    layout: int
    width: int
    exact: Flags
    minute: int = SHUT
    offset: int = -1
    """-1 until it is committed."""

    def copy(self) -> Seat:
        """The same, to be changed."""
        return Seat(self.meta.copy(), self.layout, self.width, self.exact, self.minute, self.offset)


@dataclass(slots=True)
class Scratch:
    """Numbers of some seats side by side, as they will be when a batch is committed."""

    starts: Ints
    """Where the numbers of each begin; one more for the end."""
    newest: Floats
    told: Floats
    low: Floats
    high: Floats
    total: Floats
    count: Ints


NAMES = ("newest", "told", "low", "high", "total", "count")
_EMPTY = {"newest": np.nan, "told": NONE, "low": np.inf, "high": -np.inf, "total": 0.0, "count": 0}


def spans(starts: Ints, widths: Ints) -> Ints:
    """Every index of ranges that begin at ``starts``."""
    ends = np.cumsum(widths)
    shifts = np.repeat(starts - (ends - widths), widths)
    found: Ints = shifts + np.arange(ends[-1] if len(ends) else 0)
    return found


@dataclass(slots=True)
class Pool:
    """Room for the numbers of all slots. ``home``: the file in which others find them from `share` on."""

    home: Path | None = None
    path: Path | None = None
    """The file they are in; None: in memory."""
    seats: dict[int, Seat] = field(default_factory=dict)
    arrays: Arrays = field(init=False)
    low: Floats = field(init=False)
    high: Floats = field(init=False)
    total: Floats = field(init=False)
    count: NDArray[np.int64] = field(init=False)
    _end: int = 0
    _free: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._room(SLOTS, NUMBERS)

    def open(self, seats: Sequence[Seat], slots: int) -> None:
        """Makes room, in memory, for all that a starting writer finds, and gives each seat its place."""
        self.seats, self._end, self.path = {}, 0, None
        self._free.clear()
        self._room(_grown(SLOTS, slots), _grown(NUMBERS, sum(seat.width for seat in seats)))
        for seat in seats:
            self.place(seat)
            self._say(seat.meta.slot, seat.meta)

    def share(self) -> None:
        """Puts the newest numbers into the file, when they are not there yet: this is the process that writes."""
        if self.home is not None and self.path is None:
            self.path = self.home
            self.arrays = self._arrays(self.arrays.slots, self.arrays.numbers, self.arrays)

    def place(self, seat: Seat) -> None:
        """Gives a new seat room, in the place of what its slot had."""
        self.arrays.places += 1
        before = self.seats.get(seat.meta.slot)
        if before is not None:
            self.arrays.layout[seat.meta.slot] = 0
            self._free[before.width].append(before.offset)
        free = self._free[seat.width]
        seat.offset = free.pop() if free else self._end
        if seat.offset == self._end:
            self._end += seat.width
        if self._end > self.arrays.numbers or seat.meta.slot >= self.arrays.slots:
            self._grow(max(self._end, self.arrays.numbers), max(seat.meta.slot + 1, self.arrays.slots))
        self.seats[seat.meta.slot] = seat
        self._clear(seat)
        self.arrays.offset[seat.meta.slot] = seat.offset
        self.arrays.layout[seat.meta.slot] = seat.layout
        self.arrays.layouts = max(self.arrays.layouts, seat.layout)
        self.arrays.places += 1

    def _clear(self, seat: Seat) -> None:
        mine = slice(seat.offset, seat.offset + seat.width)
        for name in NAMES:
            self._array(name)[mine] = _EMPTY[name]

    def _array(self, name: str) -> NDArray[np.generic]:
        found: NDArray[np.generic] = getattr(self.arrays if name in ("newest", "told") else self, name)
        return found

    def copy(self, seats: Sequence[Seat]) -> Scratch:
        """Numbers of seats as they are; those of new ones are not told."""
        widths = np.fromiter((seat.width for seat in seats), np.int64, len(seats))
        starts = np.concatenate(([0], np.cumsum(widths)))
        mine = spans(np.fromiter((max(seat.offset, 0) for seat in seats), np.int64, len(seats)), widths)
        mine[mine >= self.arrays.numbers] = 0  # of new ones, which are cleared below
        made: dict[str, Any] = {name: self._array(name)[mine] for name in NAMES}
        for index, seat in enumerate(seats):
            if seat.offset < 0:
                for name in NAMES:
                    made[name][starts[index] : starts[index + 1]] = _EMPTY[name]
        return Scratch(starts, **made)

    def settle(self, seats: Sequence[Seat], scratch: Scratch) -> None:
        """Takes over what was committed: of each slot the last of its seats."""
        last = {seat.meta.slot: index for index, seat in enumerate(seats)}
        for index in last.values():
            if seats[index].offset < 0:
                self.place(seats[index])
            self.seats[seats[index].meta.slot] = seats[index]
        widths, kept = np.diff(scratch.starts), np.fromiter(last.values(), np.int64, len(last))
        offsets = np.fromiter((seats[index].offset for index in kept), np.int64, len(kept))
        to, of = spans(offsets, widths[kept]), spans(scratch.starts[kept], widths[kept])
        for name in NAMES:
            self._array(name)[to] = getattr(scratch, name)[of]
        for slot, index in last.items():
            self._say(slot, seats[index].meta)

    def _say(self, slot: int, meta: Meta) -> None:
        self.arrays.at[slot] = np.nan if meta.at == NONE else meta.at
        self.arrays.since[slot] = np.nan if meta.since == NONE else meta.since
        self.arrays.again_at[slot] = np.nan if meta.again_at is None else meta.again_at

    def _grow(self, numbers: int, slots: int) -> None:
        before = {name: self._array(name) for name in NAMES}
        old = self.arrays
        self._room(_grown(old.slots, slots), _grown(old.numbers, numbers), old)
        self.arrays.places = old.places
        for name in ("low", "high", "total", "count"):
            self._array(name)[: old.numbers] = before[name]

    def _room(self, slots: int, numbers: int, old: Arrays | None = None) -> None:
        self.arrays = self._arrays(slots, numbers, old)
        self.low, self.high = np.full(numbers, np.inf), np.full(numbers, -np.inf)
        self.total, self.count = np.zeros(numbers), np.zeros(numbers, dtype=np.int64)

    def _arrays(self, slots: int, numbers: int, old: Arrays | None) -> Arrays:
        """In the file; in memory when the disk has no room for it."""
        if self.path is not None:
            try:
                made = blank(self.path, slots, numbers)
                if old is not None:
                    made.take(old)
                publish(self.path)
            except OSError:
                withdraw(self.path)
                self.path = self.home = None
            else:
                return made
        made = blank(None, slots, numbers)
        if old is not None:
            made.take(old)
        return made


def _grown(size: int, wanted: int) -> int:
    while size < wanted:
        size = size * 3 // 2
    return size
