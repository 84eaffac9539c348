# SPDX-License-Identifier: Apache-2.0
"""The readers' half of the gauges: newest numbers, what they were at a time, and their minutes.

Rows that wait to be packed are read before segments (`segments` says why). Columns of cards that were joined are read under the card they are now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, and_, or_, select

from muster.domain.model.roll import Word
from muster.spi.store import CurrentValue
from muster.store import gauges_rows, intake
from muster.store.connections import Connections
from muster.store.gauges_map import NONE
from muster.store.gauges_past import Past
from muster.store.gauges_rows import Rolled, plain
from muster.store.pack import BLOCK, MINUTE, Floats, Grid, unpack
from muster.store.schema import aliases
from muster.store.schema_gauges import layout_subjects, layouts, minute_rows, slots
from muster.store.segments import A_HOUR, HOUR, Block, Segments
from muster.store.statements import among
from muster.store.unread import Unread

_AGAIN = select(slots.c.node, slots.c.source, slots.c.since, slots.c.again_at).where(slots.c.again_at.is_not(None))
_JOINS = select(aliases.c.old, aliases.c.new)


@dataclass(slots=True)
class _Point:
    """A minute of one number."""

    at: float
    count: int
    total: float
    low: float
    high: float
    last: float

    def add(self, other: _Point) -> None:
        """Another part of the same minute."""
        if other.at >= self.at:
            self.at, self.last = other.at, other.last
        self.count, self.total = self.count + other.count, self.total + other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)


class GaugeReader:
    """Plain queries of the gauges. Safe for several threads."""

    def __init__(self, connections: Connections, segments: Segments, unread: Unread) -> None:
        self._connections = connections
        self._segments = segments
        self._unread, self._readable = unread, unread.readable

    def again(self) -> dict[tuple[str, str], tuple[float, float]]:
        """By node and source: since when its last full word is, and until when it was said again."""
        (rows,) = self._connections.rows(_AGAIN)
        return {(row["node"], row["source"]): (_never(row["since"]), row["again_at"]) for row in rows}

    def current(self, cards: Iterable[str] | None = None, at: float | None = None) -> list[CurrentValue]:
        """The numbers of cards and their parts, now or as they were at a time."""
        asked = select(layouts, *(slots.c[name] for name in ("at", "capture", "numbers", "told"))).where(_in_force(at))
        its_own = and_(slots.c.slot == layouts.c.slot, slots.c.layout == layouts.c.number)  # by the slot: nothing else of a source's row is indexed
        asked = asked.join(slots, its_own, isouter=at is not None)
        wanted = None if cards is None else set(cards)
        if wanted is not None:
            mine = or_(among(layout_subjects.c.card, wanted), layout_subjects.c.card.in_(select(aliases.c.old).where(among(aliases.c.new, wanted))))
            asked = asked.where(layouts.c.number.in_(select(layout_subjects.c.layout).where(mine)))
        joined, rows = self._connections.rows(_JOINS, asked.order_by(layouts.c.slot, layouts.c.number))
        joins = {row["old"]: row["new"] for row in joined}
        ours = None if wanted is None else frozenset([*wanted, *(old for old, new in joins.items() if new in wanted)])
        whole = self._readable("layouts", ("number",), rows, lambda row: (row, gauges_rows.columns(row["columns"], ours), _newest(row)))
        numbers = {row["number"]: newest for row, _, newest in whole}
        if at is not None:
            hours = sorted((hour for hour in self._segments.hours() if hour * HOUR <= at), reverse=True)
            times = {row["number"]: (row["since"], row["until"]) for row in rows}
            numbers = Past(self._connections, hours, self._blocks, at, self._unread).numbers(numbers, times)
        found: dict[tuple[str, str, str, str], CurrentValue] = {}
        for row, columns, _ in whole:
            for value in _values(row, columns, *numbers[row["number"]], joins):
                there = found.setdefault((value.subject, value.node, value.source, value.key), value)
                if (there.word.at or 0.0) < (value.word.at or 0.0):
                    found[(value.subject, value.node, value.source, value.key)] = value
        return list(found.values())

    def minutes(self, subject: str, key: str, since: float, until: float) -> list[dict[str, Any]]:
        """Roll-ups of one gauge, as `RollReader.minutes` gives them, in order of minute and source."""
        (joined,) = self._connections.rows(_JOINS.where(aliases.c.new == subject))
        names = [subject, *(row["old"] for row in joined)]
        mine = select(layout_subjects.c.layout).where(among(layout_subjects.c.subject, names))
        (found,) = self._connections.rows(select(layouts).where(layouts.c.number.in_(mine), or_(layouts.c.until.is_(None), layouts.c.until >= since - MINUTE)))
        asked = dict(self._readable("layouts", ("number",), found, lambda row: (row["number"], (row["source"], row["width"], _places(row, names, key)))))
        asked = {number: told for number, told in asked.items() if told[2]}
        points: dict[tuple[int, str], _Point] = {}
        for number, minute, point in self._points(list(asked), asked, since, until):
            there = points.setdefault((minute, asked[number][0]), point)
            if there is not point:
                there.add(point)
        return [
            {"minute": minute, "source": source, "count": point.count, "sum": point.total, "low": point.low, "high": point.high, "last": point.last}
            for (minute, source), point in sorted(points.items())
        ]

    def _points(self, numbers: Sequence[int], asked: Mapping[int, Any], since: float, until: float) -> Iterator[tuple[int, int, _Point]]:
        """Layout, minute and what was told of the columns asked for; of minutes that are packed, that wait, and that are open."""
        if not numbers:
            return
        within = (minute_rows.c.minute >= since, minute_rows.c.minute <= until)
        waiting, opened = self._connections.rows(
            select(minute_rows).where(minute_rows.c.layout.in_(numbers), *within),
            select(slots).where(slots.c.layout.in_(numbers), slots.c.minute >= since, slots.c.minute <= until),
        )
        through: defaultdict[tuple[int, int], int] = defaultdict(int)
        first, last = int(max(since, 0) // BLOCK), int(min(until, 2**40) // BLOCK)
        hours = [hour for hour in self._segments.hours() if first // A_HOUR <= hour <= last // A_HOUR]
        for start in range(0, len(hours), self._segments.at_once):
            some = hours[start : start + self._segments.at_once]
            for block, grid in self._blocks(some, numbers, lambda block: unpack(block.packed, asked[block.layout][2])):
                through[(block.layout, block.block)] = block.through
                for minute, point in _packed(block.block * BLOCK, grid):
                    if since <= minute <= until:
                        yield block.layout, minute, point
        left = [row for row in waiting if row["number"] > through[(row["layout"], row["block"])]]
        for row, rolled in self._readable("minute_rows", ("number",), left, lambda row: (row, gauges_rows.spread([row["packed"]], asked[row["layout"]][1]))):
            for point in _told(rolled, asked[row["layout"]][2], np.full(asked[row["layout"]][1], row["at"])):
                yield row["layout"], row["minute"], point
        for row in opened:
            if row["open"]:
                newest, told = _newest(row)
                for point in _told(gauges_rows.spread([row["open"]], row["width"], newest[None]), asked[row["layout"]][2], told):
                    yield row["layout"], row["minute"], point

    def _blocks(self, hours: Sequence[int], numbers: Sequence[int], open_: Callable[[Block], Grid]) -> list[tuple[Block, Grid]]:
        """Blocks of some layouts in hours; those that are damaged are passed over, and a damaged segment has none."""
        found = self._readable("segments", ("hour",), [{"hour": hours[0]}], lambda _: self._segments.read(hours, numbers))
        rows = [{"place": f"{block.layout}/{block.block}", "block": block} for blocks in found for block in blocks]
        return self._readable("blocks", ("place",), rows, lambda row: (row["block"], open_(row["block"])))


def _packed(begin: int, grid: Grid) -> Iterator[tuple[int, _Point]]:
    """Minutes of the columns of a block."""
    for column in range(len(grid.count)):
        at, stats = grid.at.tolist(), (getattr(grid, name)[column].tolist() for name in ("count", "total", "low", "high", "last"))
        for place, (after, count, *rest) in enumerate(zip(at, *stats, strict=True)):
            if count:
                minute = begin + place * MINUTE
                yield minute, _Point(minute + after, count, *rest)


def _told(rolled: Rolled, places: Sequence[int], at: Floats) -> Iterator[_Point]:
    """Some numbers of one row."""
    for place in places:
        if rolled.count[0, place]:
            rest = (float(getattr(rolled, name)[0, place]) for name in ("total", "low", "high", "last"))
            yield _Point(float(at[place]), int(rolled.count[0, place]), *rest)


def _in_force(at: float | None) -> ColumnElement[bool]:
    """Layouts that hold; at a time, those that had begun: what a later one left out stands with its age."""
    return layouts.c.until.is_(None) if at is None else layouts.c.since <= at


def _never(at: float | None) -> float:
    return NONE if at is None else float(at)


def _newest(row: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Numbers and their times as the source's row has them; of a layout that holds no more, none."""
    if row["numbers"] is None:
        return np.full(row["width"], np.nan), np.full(row["width"], NONE)
    numbers = np.frombuffer(row["numbers"], "<f8")
    told = np.frombuffer(row["told"], "<f8") if row["told"] else np.where(np.isnan(numbers), NONE, _never(row["at"]))
    return numbers, told


def _places(row: Mapping[str, Any], subjects: Sequence[str], key: str) -> list[int]:
    return list(dict.fromkeys(place for subject, _, named, place in gauges_rows.columns(row["columns"]) if named == key and subject in subjects))


def _values(
    row: Mapping[str, Any], columns: Iterable[tuple[str, str, str, int]], numbers: Floats, told: Floats, joins: Mapping[str, str]
) -> list[CurrentValue]:
    """What a source tells of cards, each subject and key once."""
    found: dict[tuple[str, str], CurrentValue] = {}
    node, source, capture = row["node"], row["source"], row["capture"] or ""
    for subject, card, key, place in columns:
        at = float(told[place])
        if at == NONE:
            continue
        now, mine = (intake.last(subject, joins), intake.last(card, joins)) if joins else (subject, card)
        there = found.get((now, key))
        if there is None or (there.word.at or 0.0) < at:
            word = Word(value=plain(float(numbers[place])), at=at, capture=capture)
            found[(now, key)] = CurrentValue(subject=now, card=mine, node=node, source=source, key=key, word=word)
    return list(found.values())
