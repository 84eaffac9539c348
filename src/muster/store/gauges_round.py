# SPDX-License-Identifier: Apache-2.0
"""What a batch of rounds makes of the numbers: worked out beside what is in memory, so that a batch that is not committed changes nothing.

Rounds go in waves: in each a source comes at most once, and the whole wave is applied at once, whatever the widths. A number takes the value of a round
that is not older than its own time. A round counts in the minute of its own time: the open one, a new one (which shuts the open one), or one that is past.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from muster.domain.model.errors import InputError
from muster.spi.store import Batch, Heard, Layout
from muster.store import gauges_rows
from muster.store.gauges_pool import SHUT, Meta, Pool, Scratch, Seat, spans
from muster.store.gauges_rows import Rolled, merged
from muster.store.pack import MINUTE, Floats, Ints


@dataclass(frozen=True, slots=True)
class Shut:
    """A minute that goes to the roll-ups, of one layout. ``number``: of the row that it replaces; 0 for a new one."""

    layout: int
    minute: int
    at: float
    rolled: Rolled
    exact: gauges_rows.Flags
    number: int = 0


@dataclass(slots=True)
class Plan:
    """What a batch does to the gauges."""

    seats: list[Seat] = field(default_factory=list)
    """Sources that it touches as they will be; of a slot with several layouts each, the last one last."""
    scratch: Scratch | None = None
    layouts: list[tuple[Layout, Seat]] = field(default_factory=list)
    shut: list[Shut] = field(default_factory=list)
    late: dict[tuple[int, int], Shut] = field(default_factory=dict)
    """Minutes of the past, by layout and minute."""


@dataclass(slots=True)
class _Walk:
    """Sorts the rounds of a batch into waves, by the layout that holds for each."""

    pool: Pool
    number: Callable[[], int]
    plan: Plan = field(default_factory=Plan)
    at: dict[int, int] = field(default_factory=dict)
    """Index of the seat that holds for a slot."""
    waves: list[list[tuple[int, Heard]]] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    """How many rounds each seat had so far."""

    def go(self, batch: Batch) -> None:
        """All of a batch, in its order."""
        layouts = sorted(batch.layouts, key=lambda layout: layout.before)
        coming = 0
        for index, heard in enumerate(batch.heard):
            while coming < len(layouts) and layouts[coming].before <= index:
                self._lay(layouts[coming])
                coming += 1
            self._hear(heard)
        for layout in layouts[coming:]:
            self._lay(layout)

    def _sit(self, seat: Seat) -> int:
        self.plan.seats.append(seat)
        self.turns.append(0)
        self.at[seat.meta.slot] = len(self.turns) - 1
        return len(self.turns) - 1

    def _lay(self, layout: Layout) -> None:
        before = self._seat(layout.slot)
        said = Meta(layout.slot, layout.node, layout.source, layout.reporter)
        if before is not None:
            old = self.plan.seats[before].meta
            said = replace(old, node=layout.node, source=layout.source, reporter=layout.reporter)
        exact, counters = gauges_rows.exact(layout.columns, layout.width), gauges_rows.counters(layout.columns, layout.width)
        seat = Seat(said, self.number(), layout.width, exact, counters)
        self._sit(seat)
        self.plan.layouts.append((layout, seat))

    def _seat(self, slot: int) -> int | None:
        index = self.at.get(slot)
        if index is None and (held := self.pool.seats.get(slot)) is not None:
            return self._sit(replace(held, meta=replace(held.meta)))
        return index

    def _hear(self, heard: Heard) -> None:
        index = self._seat(heard.slot)
        if index is None:
            raise InputError(f"numbers of slot {heard.slot}, which has no layout", hint="a layout comes in the same batch as the first numbers, or before it")
        seat = self.plan.seats[index]
        if len(heard.numbers) != 8 * seat.width:
            raise InputError(f"{len(heard.numbers)} bytes of slot {heard.slot}, whose layout has {seat.width} numbers", hint="give a new layout first")
        _say(seat.meta, heard)
        turn = self.turns[index]
        self.turns[index] += 1
        if turn == len(self.waves):
            self.waves.append([])
        self.waves[turn].append((index, heard))


def _say(meta: Meta, heard: Heard) -> None:
    """What comes with the numbers: the newest round has the word, whenever it arrived."""
    meta.received_at = max(meta.received_at, heard.received_at)
    if heard.again:
        if heard.at > meta.since:
            meta.again_at = heard.at if meta.again_at is None else max(meta.again_at, heard.at)
    elif heard.at >= meta.since:
        meta.since = heard.at
        if meta.again_at is not None and meta.again_at <= heard.at:
            meta.again_at = None
    if heard.at < meta.at:
        return
    meta.at, meta.incarnation, meta.sequence = heard.at, heard.incarnation, heard.sequence
    meta.facts, meta.capture = heard.facts or meta.facts, heard.capture or meta.capture


def plan(batch: Batch, pool: Pool, number: Callable[[], int], late: dict[tuple[int, int], Shut]) -> Plan:
    """What ``batch`` does. ``number`` gives numbers to new layouts; ``late`` are minutes of the past that more can still be added to.

    Raises InputError for numbers that fit no layout.
    """
    walk = _Walk(pool, number)
    walk.go(batch)
    made = walk.plan
    made.scratch = pool.copy(made.seats)
    for wave in walk.waves:
        _apply(made, made.scratch, wave, late)
    last = set(walk.at.values())
    _shut(made, made.scratch, [index for index in range(len(made.seats)) if index not in last])
    return made


def _apply(made: Plan, scratch: Scratch, wave: Sequence[tuple[int, Heard]], late: dict[tuple[int, int], Shut]) -> None:
    seats = np.fromiter((index for index, _ in wave), np.int64, len(wave))
    at = np.fromiter((heard.at for _, heard in wave), np.float64, len(wave))
    minutes = (at // MINUTE).astype(np.int64) * MINUTE
    open_ = np.fromiter((made.seats[index].minute for index, _ in wave), np.int64, len(wave))
    _shut(made, scratch, [int(index) for index in seats[minutes > open_]])
    for index, minute in zip(seats[minutes > open_], minutes[minutes > open_], strict=True):
        made.seats[index].minute = int(minute)
    widths = np.diff(scratch.starts)[seats]
    mine = spans(scratch.starts[seats], widths)
    values = np.frombuffer(b"".join(heard.numbers for _, heard in wave), "<f8")
    _count(scratch, mine, values, np.repeat(minutes >= open_, widths))
    _renew(scratch, mine, values, np.repeat(at, widths))
    for turn in np.flatnonzero(minutes < open_).tolist():
        _behind(made, made.seats[seats[turn]], wave[turn][1], int(minutes[turn]), late)


def _renew(scratch: Scratch, mine: Ints, values: Floats, at: Floats) -> None:
    newer = ~np.isnan(values) & (at >= scratch.told[mine])
    to = mine[newer]
    scratch.newest[to] = values[newer]
    scratch.told[to] = at[newer]


def _count(scratch: Scratch, mine: Ints, values: Floats, now: gauges_rows.Flags) -> None:
    """Adds to the open minutes."""
    told = now & ~np.isnan(values)
    if not told.all():
        mine, values = mine[told], values[told]
    scratch.low[mine] = np.minimum(scratch.low[mine], values)
    scratch.high[mine] = np.maximum(scratch.high[mine], values)
    scratch.total[mine] += values
    scratch.count[mine] += 1


def _shut(made: Plan, scratch: Scratch, seats: Sequence[int]) -> None:
    """Ends the open minute of seats: what was counted in it goes to the roll-ups."""
    for index in seats:
        seat = made.seats[index]
        mine = slice(scratch.starts[index], scratch.starts[index + 1])
        if seat.minute != SHUT and scratch.count[mine].any():
            rolled = Rolled(*(getattr(scratch, name)[mine].copy() for name in ("count", "low", "high", "total", "newest")))
            made.shut.append(Shut(seat.layout, seat.minute, float(scratch.told[mine].max()), rolled, seat.exact))
        seat.minute = SHUT
        scratch.low[mine], scratch.high[mine], scratch.total[mine], scratch.count[mine] = np.inf, -np.inf, 0.0, 0


def _behind(made: Plan, seat: Seat, heard: Heard, minute: int, late: dict[tuple[int, int], Shut]) -> None:
    """A round of a minute that is past."""
    values = np.frombuffer(heard.numbers, "<f8").astype(np.float64)
    rolled = Rolled((~np.isnan(values)).astype(np.int64), values, values, values, values)
    if not rolled.count.any():
        return
    key = (seat.layout, minute)
    there = made.late.get(key) or late.get(key)
    if there is None:
        made.late[key] = Shut(seat.layout, minute, heard.at, rolled, seat.exact)
    elif heard.at >= there.at:
        made.late[key] = replace(there, at=heard.at, rolled=merged(there.rolled, rolled))
    else:
        made.late[key] = replace(there, rolled=merged(rolled, there.rolled))
