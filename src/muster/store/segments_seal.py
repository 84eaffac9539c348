# SPDX-License-Identifier: Apache-2.0
"""Packs minutes into segments behind the writer's back, in steps that are short, and drops segments that are too old or too many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import bindparam, delete, func, literal_column, select

from muster.store import gauges_rows
from muster.store.gauges import Gauges
from muster.store.gauges_rows import Rolled, merged
from muster.store.pack import BLOCK, MINUTE, SPAN, Grid, pack, rules, unpack
from muster.store.schema_gauges import layout_subjects, layouts, minute_rows
from muster.store.segments import A_HOUR, HOUR, Block, Segments
from muster.store.statements import Session, compiled, dropping, each

GRACE = 180.0
"""Seconds after the end of a block before it is packed: late rounds still find its minutes in rows."""
STEP = 64
"""Layouts that one step packs at most."""
_TIDY = 60.0
"""Seconds between two looks at what may be dropped."""
_LEAST = 1024**3
_DAY_OF_NUMBER = 5_000
"""Bytes that a day of one number takes, with some to spare."""
_WEEK = 7

_NONE: Any = literal_column("0")
_rows = minute_rows.c
_RIPE = compiled(select(func.min(_rows.block)).where(_rows.block <= bindparam("ripe")))
_WAITING = compiled(
    select(_rows.layout, func.max(_rows.number))
    .where(_rows.block == bindparam("block_"), _rows.number <= bindparam("frozen"))
    .group_by(_rows.layout)
    .order_by(_rows.layout)
    .limit(bindparam("many"))
    .offset(_NONE)
)
_ROWS = compiled(
    select(_rows.layout, _rows.minute, _rows.at, _rows.packed, _rows.number)
    .where(_rows.block == bindparam("block_"), _rows.layout.between(bindparam("first"), bindparam("last")), _rows.number <= bindparam("frozen"))
    .order_by(_rows.layout, _rows.minute, _rows.number)
)
_LAYOUTS = compiled(select(layouts.c.number, layouts.c.width, layouts.c.columns).where(layouts.c.number.between(bindparam("first"), bindparam("last"))))
_PACKED = compiled(delete(minute_rows).where(_rows.block == bindparam("block_"), _rows.layout == bindparam("layout_"), _rows.number <= bindparam("through")))
_TOO_OLD = dropping(minute_rows, _rows.block < bindparam("block_"))
_PAST = compiled(select(layouts.c.number).where(layouts.c.until < bindparam("cut")).limit(bindparam("many")).offset(_NONE))
_LAYOUT_GONE = compiled(delete(layouts).where(layouts.c.number == bindparam("number_")))
_SUBJECT_GONE = compiled(delete(layout_subjects).where(layout_subjects.c.layout == bindparam("number_")))


@dataclass(frozen=True, slots=True)
class Kept:
    """How much of the minutes is kept: no older than ``age`` seconds, and no more than ``budget`` bytes (None: by the size of the site, `by_fleet`)."""

    age: float
    budget: int | None = None


def by_fleet(numbers: int) -> int:
    """Bytes of segments for a site that tells so many numbers: a week of them, and a gibibyte at least."""
    return max(_LEAST, numbers * _DAY_OF_NUMBER * _WEEK)


class Sealer:
    """Packs and drops. ``writing``: a transaction of the one who may write; raises Unavailable for another."""

    def __init__(self, gauges: Gauges, segments: Segments, writing: Callable[[], AbstractContextManager[Session]], kept: Kept) -> None:
        self._gauges, self._segments, self._writing, self._kept = gauges, segments, writing, kept
        self._tidied = -np.inf
        self._codes: dict[int, Any] = {}

    def step(self, now: float) -> bool:
        """One step of either; True when there is more to do at once. One thread at a time. Raises Unavailable."""
        if now - self._tidied >= _TIDY or now < self._tidied:
            self._tidied = now
            self._drop(now)
        found = self._find(now)
        if found is None:
            return False
        block, waiting, rows = found
        there = {each.layout: each for each in self._segments.read([block // A_HOUR], list(waiting)) if each.block == block}
        made = self._packed(block, waiting, rows, there)
        if made:
            self._segments.write(made)
        with self._writing() as session:
            each(session, _PACKED, ({"block_": block, "layout_": layout, "through": through} for layout, through in waiting.items()))
        return True

    def _find(self, now: float) -> tuple[int, dict[int, int], list[Any]] | None:
        """The oldest block that has rows to pack: some of its layouts with their greatest row, and the rows."""
        with self._writing() as session:
            (block,) = session.execute(_RIPE, {"ripe": int((now - GRACE) // BLOCK) - 1}).fetchone()
            if block is None:
                return None
            frozen = self._gauges.freeze(session)
            waiting = {row[0]: row[1] for row in session.execute(_WAITING, {"block_": block, "frozen": frozen, "many": STEP})}
            ends = {"first": min(waiting), "last": max(waiting)}
            rows = session.execute(_ROWS, {"block_": block, "frozen": frozen, **ends}).fetchall()
            if not self._codes.keys() >= waiting.keys():
                self._codes = {number: _codes(width, blob) for number, width, blob in session.execute(_LAYOUTS, ends)}
        return block, waiting, rows

    def _packed(self, block: int, waiting: dict[int, int], rows: list[Any], there: dict[int, Block]) -> list[Block]:
        """The blocks with the rows brought in; rows that are in a block already are left out. Rows of a layout that is no more go unpacked."""
        by_width: defaultdict[int, list[int]] = defaultdict(list)
        for layout, through in waiting.items():
            if layout in self._codes and (layout not in there or there[layout].through < through):
                by_width[len(self._codes[layout])].append(layout)
        made = []
        for width, mine in by_width.items():
            since = {layout: there[layout].through if layout in there else 0 for layout in mine}
            grids = _grids(block, width, mine, [row for row in rows if row[0] in since and row[4] > since[row[0]]])
            for layout, grid in grids.items():
                if layout in there:
                    with suppress(ValueError):  # a damaged block has nothing left to bring in
                        _bring_in(grid, unpack(there[layout].packed))
            packed = pack([grids[layout] for layout in mine], [self._codes[layout] for layout in mine])
            made += [Block(layout, block, waiting[layout], bytes_) for layout, bytes_ in zip(mine, packed, strict=True)]
        return made

    def _drop(self, now: float) -> None:
        """Drops segments and rows that are older than is kept, or too many."""
        cut = now - self._kept.age
        there = self._segments.sizes()
        numbers = sum(seat.width for seat in list(self._gauges.pool.seats.values()))
        budget = by_fleet(numbers) if self._kept.budget is None else self._kept.budget
        total = sum(there.values())
        for hour in sorted(there):
            if (hour + 1) * HOUR > cut and total <= budget:
                break
            self._segments.drop(hour)
            total -= there.pop(hour)
            cut = max(cut, (hour + 1) * HOUR)
        with self._writing() as session:
            session.execute(_TOO_OLD, {"block_": int(cut // BLOCK)})
            gone = [{"number_": row[0]} for row in session.execute(_PAST, {"cut": cut - HOUR, "many": STEP})]
            each(session, _SUBJECT_GONE, gone)
            each(session, _LAYOUT_GONE, gone)


def _codes(width: int, blob: bytes) -> Any:
    codes = np.zeros(width, dtype=np.uint8)
    try:
        columns = gauges_rows.columns(blob)
    except ValueError:  # a damaged layout: its minutes are kept as they are
        return codes
    codes[[place for *_, place in columns]] = rules(key for _, _, key, _ in columns)
    return codes


def _empty(width: int) -> Grid:
    shape = (width, SPAN)
    return Grid(np.full(SPAN, np.nan), np.zeros(shape, dtype=np.int64), *(np.full(shape, np.nan) for _ in range(4)))


def _grids(block: int, width: int, mine: Sequence[int], rows: Sequence[Any]) -> dict[int, Grid]:
    """Rows as grids by layout; several of one minute are added up."""
    grids = {layout: _empty(width) for layout in mine}
    by_size: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        by_size[len(row[3])].append(row)
    for some in by_size.values():
        try:
            rolled = gauges_rows.spread([row[3] for row in some], width)
        except ValueError:  # rows of no size that there is: damaged
            continue
        for index, (layout, minute, at, *_) in enumerate(some):
            _add(grids[layout], (minute - block * BLOCK) // MINUTE, at - minute, _at(rolled, index))
    return grids


def _at(rolled: Rolled, index: int) -> Rolled:
    return Rolled(rolled.count[index], rolled.low[index], rolled.high[index], rolled.total[index], rolled.last[index])


def _add(grid: Grid, place: int, at: float, new: Rolled) -> None:
    if not np.isnan(grid.at[place]):
        old = Rolled(*(getattr(grid, name)[:, place] for name in ("count", "low", "high", "total", "last")))
        new = merged(old, new) if at >= grid.at[place] else merged(new, old)
        at = max(at, grid.at[place])
    grid.at[place] = at
    for name in ("count", "low", "high", "total", "last"):
        getattr(grid, name)[:, place] = getattr(new, name)


def _bring_in(grid: Grid, old: Grid) -> None:
    for place in np.flatnonzero(~np.isnan(old.at)).tolist():
        _add(grid, place, old.at[place], Rolled(*(getattr(old, name)[:, place] for name in ("count", "low", "high", "total", "last"))))
