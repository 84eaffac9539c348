# SPDX-License-Identifier: Apache-2.0
"""The newest numbers as columns, for who goes over all of them: out of the writer's own memory, the file that it keeps, or the rows of the store."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from muster.spi.numbers import Column, Rounds, Told
from muster.store import gauges_rows, intake
from muster.store.connections import Connections
from muster.store.gauges import JOIN, LAYOUT, Gauges
from muster.store.gauges_map import NONE, Arrays, blank, opened
from muster.store.pack import Ints
from muster.store.schema import aliases, counters
from muster.store.schema_gauges import layouts, slots
from muster.store.unread import Unread

PAUSE = 3.0
"""Seconds for which rows of the store are not read again."""
_SPARE = 1000
"""Entries that nobody speaks of any more are kept until they are more than those that are told, and so many."""

_BELOW = 40
_MASK = (1 << _BELOW) - 1
_NOBODY = array("q")

_COUNTED = select(counters.c.name, counters.c.value).where(counters.c.name.in_((LAYOUT, JOIN)))
_ROWS = select(*(slots.c[name] for name in ("slot", "layout", "width", "at", "since", "again_at", "numbers", "told"))).order_by(slots.c.slot)
_COLUMNS = (layouts.c.number, layouts.c.slot, layouts.c.node, layouts.c.source, layouts.c.columns)
_HOLD = select(*_COLUMNS).where(layouts.c.until.is_(None)).order_by(layouts.c.number)
_JOINS = select(aliases.c.old, aliases.c.new)


class View:
    """Finds the arrays. ``clock``: seconds that only grow."""

    def __init__(self, gauges: Gauges, path: Path | None, connections: Connections, clock: Callable[[], float]) -> None:
        self._gauges, self._path, self._connections, self._clock = gauges, path, connections, clock
        self._mapped: Arrays | None = None
        self._read: Arrays | None = None
        self._read_at = -np.inf
        self._seats: list[tuple[int, int, int]] = []

    def arrays(self) -> Arrays:
        """The newest there are."""
        if self._gauges.wrote:
            return self._gauges.pool.arrays
        if self._mapped is None or self._mapped.retired:
            self._mapped = None if self._path is None else opened(self._path)
        return self._mapped or self._rows()

    def _rows(self) -> Arrays:
        now = self._clock()
        if self._read is None or now - self._read_at >= PAUSE:
            self._read_at = now
            rows, counted = self._connections.rows(_ROWS, _COUNTED)
            self._read = self._filled(rows)
            told = {row["name"]: row["value"] for row in counted}
            self._read.layouts, self._read.joins = told.get(LAYOUT, 1) - 1, told.get(JOIN, 0)
        return self._read

    def _filled(self, rows: list[dict[str, Any]]) -> Arrays:
        seats = [(row["slot"], row["layout"], row["width"]) for row in rows]
        arrays = self._read if self._read is not None and seats == self._seats else None
        if arrays is None:
            arrays = blank(None, 1 + max((slot for slot, _, _ in seats), default=0), sum(width for _, _, width in seats))
        end = 0
        for row in rows:
            slot, mine = row["slot"], slice(end, end + row["width"])
            numbers = np.frombuffer(row["numbers"], "<f8")
            arrays.newest[mine] = numbers
            arrays.told[mine] = np.frombuffer(row["told"], "<f8") if row["told"] else np.where(np.isnan(numbers), NONE, _or_nan(row["at"]))
            arrays.offset[slot], arrays.layout[slot] = end, row["layout"]
            arrays.at[slot], arrays.since[slot], arrays.again_at[slot] = (_or_nan(row[name]) for name in ("at", "since", "again_at"))
            end = mine.stop
        self._seats = seats
        return arrays


def _or_nan(at: float | None) -> float:
    return np.nan if at is None else at


def _ints() -> array[int]:
    return array("q")


@dataclass(slots=True)
class _Entries:
    """Who tells a key, in the order in which they were met."""

    number: int = 0
    subjects: list[str] = field(default_factory=list)
    cards: list[str] = field(default_factory=list)
    slots: array[int] = field(default_factory=_ints)
    places: array[int] = field(default_factory=_ints)
    layouts: array[int] = field(default_factory=_ints)
    made: tuple[Ints, Ints, Ints] | None = None
    found: tuple[Arrays, int, Ints, Ints] | None = None
    """Where they were found: the arrays, their count of changes, the places, and which entries have none."""

    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """Slots, places and layouts."""
        if self.made is None or len(self.made[0]) != len(self.slots):
            self.made = (np.array(self.slots, np.int64), np.array(self.places, np.int64), np.array(self.layouts, np.int64))
        return self.made

    def find(self, arrays: Arrays) -> tuple[Ints, Ints]:
        """Where the number of each entry stands, and which entries nobody speaks of any more."""
        changes = arrays.places
        if self.found is not None and self.found[0] is arrays and self.found[1] == changes and len(self.found[2]) == len(self.slots):
            return self.found[2:]
        told, places, held = self.arrays()
        within = told < arrays.slots
        slots_ = np.where(within, told, 0)
        gone = ~within | (arrays.layout[slots_] != held)
        where = np.where(gone, 0, arrays.offset[slots_] + places)
        found = (where, np.flatnonzero(gone))
        self.found = (arrays, changes, *found) if changes % 2 == 0 and arrays.places == changes else None
        return found


class SharedNumbers:
    """`Numbers` over a `View`."""

    def __init__(self, view: View, connections: Connections, unread: Unread) -> None:
        self._view, self._connections, self._readable = view, connections, unread.readable
        self._turn = threading.Lock()
        self._epoch = 0
        self._begin()

    def _begin(self) -> None:
        self._epoch += 1
        self._entries: dict[str, _Entries] = {}
        self._held: dict[int, int] = {}
        """Entries of each slot."""
        self._seen, self._all, self._live = 0, 0, 0
        self._joined = -1
        self._joins: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._nodes: list[str] = []
        self._sources: list[str] = []
        self._copies: tuple[list[str], list[str]] = ([], [])
        """Both as they were handed out: the same lists until a layout comes."""
        self._mine: dict[str, array[int]] = {}
        """The entries of each subject: the number of its key, and below `_BELOW` its place among that key's."""
        self._keys: list[str] = []

    def keys(self) -> Collection[str]:
        """Gauges and counters that have a column."""
        with self._turn:
            self._sync()
            return sorted(self._entries)

    def column(self, key: str) -> Column:
        """The column of ``key``."""
        with self._turn:
            while True:
                arrays = self._sync()
                entries = self._entries.get(key) or _Entries()
                changes = arrays.places
                where, gone = entries.find(arrays)
                values, times = arrays.newest.take(where), arrays.told.take(where)
                if arrays.places == changes:  # else a place may have been given to another meanwhile
                    break
            values[gone] = np.nan
            times[gone] = np.nan
            times[times == NONE] = np.nan
            return Column(
                key=key,
                epoch=self._epoch,
                subjects=entries.subjects,
                cards=entries.cards,
                slots=entries.arrays()[0].copy(),
                values=values,
                times=times,
            )

    def rounds(self) -> Rounds:
        """How far each source has come."""
        with self._turn:
            arrays = self._sync()
            nodes, sources = self._copies
            if not nodes:
                nodes, sources = self._copies = list(self._nodes), list(self._sources)
            at, since, again = (_padded(each, len(nodes)) for each in (arrays.at, arrays.since, arrays.again_at))
            return Rounds(epoch=self._epoch, nodes=nodes, sources=sources, at=at, since=since, again_at=again)

    def of(self, subjects: Sequence[str], keys: Collection[str] | None = None) -> list[list[Told]]:
        """What each subject's numbers are, of some keys or all."""
        with self._turn:
            while True:
                arrays = self._sync()
                changes = arrays.places
                found = self._told(arrays, subjects, keys)
                if arrays.places == changes:  # else a place may have been given to another meanwhile
                    return found

    def _told(self, arrays: Arrays, subjects: Sequence[str], keys: Collection[str] | None) -> list[list[Told]]:
        found: list[list[Told]] = [[] for _ in subjects]
        mine = [self._mine.get(subject, _NOBODY) for subject in subjects]
        packed = np.concatenate([np.frombuffer(each, np.int64) for each in mine if each] or [np.empty(0, np.int64)])
        whose = np.repeat(np.arange(len(mine)), [len(each) for each in mine])
        keys_ = packed >> _BELOW
        for number, key in enumerate(self._keys):
            if (keys is not None and key not in keys) or not arrays.numbers:
                continue
            here = np.flatnonzero(keys_ == number)
            slots_, places, held = (each[packed[here] & _MASK] for each in self._entries[key].arrays())
            within = np.where(slots_ < arrays.slots, slots_, 0)
            where = np.where((slots_ < arrays.slots) & (arrays.layout[within] == held), arrays.offset[within] + places, -1)
            values, times = arrays.newest[where], arrays.told[where]
            there = (where >= 0) & (times != NONE) & ~np.isnan(values)
            rows = zip(whose[here].tolist(), slots_.tolist(), values.tolist(), times.tolist(), there.tolist(), strict=True)
            for subject, slot, value, at, told in rows:
                if told:
                    found[subject].append((key, slot, value, at))
        return found

    def _sync(self) -> Arrays:
        """Takes in the layouts and joins that came since."""
        arrays = self._view.arrays()
        if self._joined != arrays.joins or self._all > 2 * self._live + _SPARE:
            self._begin()
            self._joined = arrays.joins
            (joins,) = self._connections.rows(_JOINS)
            self._joins = {row["old"]: row["new"] for row in joins}
        if arrays.layouts > self._seen:
            (rows,) = self._connections.rows(_HOLD.where(layouts.c.number > self._seen))
            self._seen = max([arrays.layouts, *(row["number"] for row in rows)])
            self._readable("layouts", ("number",), rows, self._lay)
        return arrays

    def _lay(self, row: dict[str, Any]) -> None:
        slot = row["slot"]
        if slot >= len(self._nodes):
            more = slot + 1 - len(self._nodes)
            self._nodes += [""] * more
            self._sources += [""] * more
        self._nodes[slot], self._sources[slot] = row["node"], row["source"]
        self._copies = ([], [])
        columns, name, all_, number = gauges_rows.columns(row["columns"]), self._name, self._entries, row["number"]
        last, card_, mine, told, packed = "", "", "", "", _ints()
        for subject, card, key, place in columns:
            entries = all_.get(key)
            if entries is None:
                entries = all_[key] = _Entries(number=len(self._keys))
                self._keys.append(key)
            if subject != last or card != card_:
                last, card_, mine = subject, card, name(card)
                told = mine if subject == card else name(subject)
                packed = self._mine.setdefault(told, _ints())
            packed.append(entries.number << _BELOW | len(entries.slots))
            entries.subjects.append(told)
            entries.cards.append(mine)
            entries.slots.append(slot)
            entries.places.append(place)
            entries.layouts.append(number)
        self._all += len(columns)
        self._live += len(columns) - self._held.get(slot, 0)
        self._held[slot] = len(columns)

    def _name(self, told: str) -> str:
        """What a card or part is called now, one text for all entries."""
        found = self._names.get(told)
        if found is None:
            found = self._names[told] = intake.last(told, self._joins)
        return found


def _padded(told: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    made = np.full(size, np.nan)
    many = min(size, len(told))
    made[:many] = told[:many]
    return made
