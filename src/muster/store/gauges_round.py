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
from muster.store.gauges_map import NONE
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


@dataclass(frozen=True, slots=True)
class Left:
    """The last number of a column that a new layout has no more."""

    meta: Meta
    subject: str
    card: str
    key: str
    value: float
    at: float


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
    left: list[Left] = field(default_factory=list)


@dataclass(slots=True)
class _Walk:
    """Sorts the rounds of a batch into waves, by the layout that holds for each."""

    pool: Pool
    number: Callable[[], int]
    plan: Plan = field(default_factory=Plan)
    at: dict[int, int] = field(default_factory=dict)
    """Index of the seat that holds for a slot."""
    waves: dict[tuple[int, int], list[tuple[int, Heard]]] = field(default_factory=dict)
    """By the generation of their seats, and how many rounds these had before."""
    turns: list[int] = field(default_factory=list)
    """How many rounds each seat had so far."""
    generations: list[int] = field(default_factory=list)
    """How many layouts each slot had in this batch before that of the seat; the one it came with is the first."""
    followed: list[tuple[int, int, Layout]] = field(default_factory=list)
    """Seats that a new layout replaced, by what, in order."""

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
        for slot, at in batch.folded_to.items():
            if (folded := self._seat(slot)) is not None:
                self.plan.seats[folded].meta.since = max(self.plan.seats[folded].meta.since, at)

    def _sit(self, seat: Seat, generation: int = 0) -> int:
        self.plan.seats.append(seat)
        self.turns.append(0)
        self.generations.append(generation)
        self.at[seat.meta.slot] = len(self.turns) - 1
        return len(self.turns) - 1

    def _lay(self, layout: Layout) -> None:
        before = self._seat(layout.slot)
        said = Meta(layout.slot, layout.node, layout.source, layout.reporter)
        if before is not None:
            old = self.plan.seats[before].meta
            said = replace(old, node=layout.node, source=layout.source, reporter=layout.reporter)
        said.promise, said.bounds, said.node_names = layout.promise, layout.bounds, layout.node_names
        seat = Seat(said, self.number(), layout.width, gauges_rows.exact(layout.columns, layout.width))
        new = self._sit(seat, 0 if before is None else self.generations[before] + 1)
        if before is not None:
            self.followed.append((before, new, layout))
        self.plan.layouts.append((layout, seat))

    def _seat(self, slot: int) -> int | None:
        index = self.at.get(slot)
        if index is None and (held := self.pool.seats.get(slot)) is not None:
            return self._sit(held.copy())
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
        self.waves.setdefault((self.generations[index], turn), []).append((index, heard))


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


def plan(
    batch: Batch, pool: Pool, number: Callable[[], int], late: dict[tuple[int, int], Shut], columns: Callable[[int], Sequence[tuple[str, str, str, int]]]
) -> Plan:
    """What ``batch`` does. ``number`` gives numbers to new layouts; ``late`` are minutes of the past that more can still be added to; ``columns`` are those
    of a layout that the store has. Raises InputError for numbers that fit no layout.
    """
    walk = _Walk(pool, number)
    walk.go(batch)
    made = walk.plan
    made.scratch = pool.copy(made.seats)
    laid = {seat.layout: layout.columns for layout, seat in made.layouts}
    for generation in range(1 + max(walk.generations, default=0)):
        for old, new, layout in walk.followed:
            if walk.generations[new] == generation:
                before = made.seats[old].layout
                _follow(made, made.scratch, (old, laid[before] if before in laid else columns(before)), (new, layout.columns))
        for turn in sorted(turn for mine, turn in walk.waves if mine == generation):
            _apply(made, made.scratch, walk.waves[(generation, turn)], late)
    return made


def _follow(made: Plan, scratch: Scratch, old: tuple[int, Sequence[tuple[str, str, str, int]]], new: tuple[int, Sequence[tuple[str, str, str, int]]]) -> None:
    """A new layout takes over: the minute is shut, and what it goes on telling keeps its last number and time. What it leaves out is told of in ``left``."""
    minute = made.seats[old[0]].minute
    _shut(made, scratch, [old[0]])
    made.seats[new[0]].minute = minute
    begin, end = int(scratch.starts[old[0]]), int(scratch.starts[new[0]])
    places = {(subject, key): place for subject, _, key, place in new[1]}
    for subject, card, key, place in old[1]:
        value, at = float(scratch.newest[begin + place]), float(scratch.told[begin + place])
        to = places.get((subject, key))
        if at == NONE:
            continue
        if to is None:
            made.left.append(Left(made.seats[old[0]].meta, subject, card, key, value, at))
        elif at > scratch.told[end + to]:
            scratch.newest[end + to], scratch.told[end + to] = value, at


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
            at = scratch.told[mine][rolled.count > 0].max()
            made.shut.append(Shut(seat.layout, seat.minute, float(at), rolled, seat.exact))
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
