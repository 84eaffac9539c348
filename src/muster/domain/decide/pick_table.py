# SPDX-License-Identifier: Apache-2.0
"""Where snapshots are made: rows are put in and taken out by id, and a snapshot is what stands at one moment.

A snapshot shares its arrays with the table; the table copies one before it changes what a snapshot shows. Working state, not a value: one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from math import inf, nan
from typing import Any

import numpy as np

from muster.domain.model.filters import Fields, Shape
from muster.domain.model.snapshot import EXACT, Coded, Column, Floats, Ints, Mask, Numbers, Words

_IN_NUMBERS = frozenset({Shape.NUMBER, Shape.TIME})
_FIRST = 64


class _NumberCells:
    """A column of numbers that can be changed."""

    def __init__(self, size: int) -> None:
        self._cells: Floats = np.full(size, nan)
        self._odd: dict[int, Any] = {}
        self._shown = 0

    def grow(self, size: int) -> None:
        self._cells = np.concatenate([self._cells, np.full(size - len(self._cells), nan)])
        self._shown = 0

    def put(self, row: int, value: Any) -> None:
        plain = _plain_number(value)
        odd = value is not None and plain is None
        told = nan if plain is None else plain
        old = self._cells[row]
        if not odd and row not in self._odd and (old == told or (old != old and told != told)):
            return
        if row < self._shown:
            self._cells, self._odd, self._shown = self._cells.copy(), dict(self._odd), 0
        elif odd or row in self._odd:
            self._odd = dict(self._odd)
        self._cells[row] = told
        if odd:
            self._odd[row] = value
        else:
            self._odd.pop(row, None)

    def first(self, row: int, value: Any) -> None:
        """Puts a value where none stands."""
        if type(value) is float and -inf < value < inf and row >= self._shown:
            self._cells[row] = value
        else:
            self.put(row, value)

    def at(self, row: int) -> Any:
        return self._odd.get(row, float(self._cells[row]))

    def show(self, rows: int) -> Column:
        self._shown = rows
        return Numbers(values=self._cells[:rows], odd=self._odd)


class _WordCells:
    """A column of codes that can be changed."""

    def __init__(self, size: int) -> None:
        self._words = Words()
        self._cells: Ints = np.full(size, -1, np.int32)
        self._shown = 0

    def grow(self, size: int) -> None:
        self._cells = np.concatenate([self._cells, np.full(size - len(self._cells), -1, np.int32)])
        self._shown = 0

    def put(self, row: int, value: Any) -> None:
        code = -1 if value is None else self._words.code(value)
        if self._cells[row] == code:
            return
        if row < self._shown:
            self._cells, self._shown = self._cells.copy(), 0
        self._cells[row] = code

    def first(self, row: int, value: Any) -> None:
        """Puts a value where none stands."""
        if row < self._shown:
            self.put(row, value)
        elif value is not None:
            self._cells[row] = self._words.code(value)

    def at(self, row: int) -> Any:
        code = int(self._cells[row])
        return None if code < 0 else self._words.values[code]

    def show(self, rows: int) -> Column:
        self._shown = rows
        return Coded(codes=self._cells[:rows], words=self._words)


def _plain_number(value: Any) -> float | None:
    """The value as a float64 that says the same; None where there is none."""
    if isinstance(value, float):
        return value if -inf < value < inf else None
    if isinstance(value, int) and not isinstance(value, bool) and -EXACT <= value <= EXACT:
        return float(value)
    return None


class Table:
    """Rows by id. ``fields`` say which columns hold numbers; a path that is none of them is passed over."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._size = _FIRST
        self._rows = 0
        self._free: list[int] = []
        self._cells: dict[str, _NumberCells | _WordCells] = {}
        self._live: Mask = np.zeros(_FIRST, np.bool_)
        self._live_shown = False
        self._turns: Floats = np.full(_FIRST, inf)
        self.places: dict[str, int] = {}
        """Rows by id."""
        self.generation = 0
        """Grows with every row that comes or goes."""
        self.changes = 0
        """Grows with every row that is put."""

    def __len__(self) -> int:
        return len(self.places)

    def put(self, id_: str, row: Mapping[str, Any], turns_at: float = inf) -> int:
        """Puts the row of ``id_`` in, in the place of the one it had; returns that place."""
        self.changes += 1
        place = self.places.get(id_)
        if place is None:
            place, known = self._new(id_), self._cells
            for path, value in row.items():
                mine = known.get(path)
                if mine is not None:
                    mine.first(place, value)
                else:
                    self._put(path, place, value)
        else:
            for path, cells in self._cells.items():
                cells.put(place, row.get(path))
            for path in row.keys() - self._cells.keys():
                self._put(path, place, row[path])
        self._turns[place] = turns_at
        return place

    def _put(self, path: str, place: int, value: Any) -> None:
        cells = self._cells_of(path)
        if cells is not None:
            cells.put(place, value)

    def _cells_of(self, path: str) -> _NumberCells | _WordCells | None:
        cells = self._cells.get(path)
        if cells is None:
            shape = self._fields.get(path)
            if shape is None:
                return None
            cells = self._cells[path] = _NumberCells(self._size) if shape in _IN_NUMBERS else _WordCells(self._size)
        return cells

    def _new(self, id_: str) -> int:
        self.generation += 1
        if self._free:
            place = self._free.pop()
        else:
            place = self._rows
            self._rows += 1
            if self._rows > self._size:
                self._grow()
        self.places[id_] = place
        self._alive(place, alive=True)
        return place

    def _grow(self) -> None:
        size = self._size * 2
        for cells in self._cells.values():
            cells.grow(size)
        self._live = np.concatenate([self._live, np.zeros(size - self._size, np.bool_)])
        self._turns = np.concatenate([self._turns, np.full(size - self._size, inf)])
        self._size = size
        self._live_shown = False

    def _alive(self, place: int, *, alive: bool) -> None:
        if self._live_shown:
            self._live, self._live_shown = self._live.copy(), False
        self._live[place] = alive

    def drop(self, id_: str) -> None:
        """Takes the row of ``id_`` out; nothing when there is none."""
        place = self.places.pop(id_, None)
        if place is None:
            return
        self.generation += 1
        self.changes += 1
        for cells in self._cells.values():
            cells.put(place, None)
        self._turns[place] = inf
        self._alive(place, alive=False)
        self._free.append(place)

    def keep(self, ids: Iterable[str]) -> None:
        """Drops every row that is not of ``ids``."""
        for id_ in self.places.keys() - set(ids):
            self.drop(id_)

    def turn(self, id_: str, at: float) -> None:
        """Says when time may change the row of ``id_`` next."""
        self._turns[self.places[id_]] = at

    def due(self, now: float) -> list[int]:
        """Places of rows that time may have changed by ``now``."""
        found: list[int] = np.flatnonzero(self._turns[: self._rows] <= now).tolist()
        return found

    @property
    def rows(self) -> int:
        """Places, free ones too."""
        return self._rows

    def ids(self, places: Iterable[int]) -> list[str]:
        """Ids of the rows in these places."""
        cells = self._cells.get("id")
        return [] if cells is None else [cells.at(place) for place in places]

    def value(self, id_: str, path: str) -> Any:
        """The value at ``path`` in the row of ``id_``; None where there is none."""
        place, cells = self.places.get(id_), self._cells.get(path)
        return None if place is None or cells is None else cells.at(place)

    def columns(self) -> tuple[Mask, dict[str, Column]]:
        """What stands now: which places are live, and the columns."""
        self._live_shown = True
        return self._live[: self._rows], {path: cells.show(self._rows) for path, cells in self._cells.items()}


_AT_ONCE = 10_000
Resolve = Callable[[str, int], int]
"""The place of a subject; where it has none here what is given with it."""


class Places:
    """The places of the subjects of columns that only grow, looked up once. Begins anew when rows came or went, or when the columns begin anew.

    Columns of the same subjects share what was looked up.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, Sequence[str], Ints]] = {}

    def of(self, key: str, stamp: Any, subjects: Sequence[str], count: int, resolve: Resolve) -> Ints:
        """The places of the first ``count`` subjects of the column ``key``. ``stamp`` differs when what was looked up no longer holds."""
        old, _, places = self._known.get(key, (None, (), np.empty(0, np.int32)))
        if old != stamp or len(places) > count:
            places = np.empty(0, np.int32)
        if len(places) < count:
            told = subjects[:count]
            same = self._same(stamp, told)
            if same is not None:
                told, places = same
            for begin in range(len(places), count, _AT_ONCE):  # not all at once: other threads wait meanwhile
                end = min(begin + _AT_ONCE, count)
                more = np.fromiter(map(resolve, subjects[begin:end], repeat(-1)), np.int32, end - begin)
                places = np.concatenate([places, more])
            self._known[key] = (stamp, told, places)
        return places

    def _same(self, stamp: Any, subjects: Sequence[str]) -> tuple[Sequence[str], Ints] | None:
        """What is known of a column of the same subjects."""
        for old, others, places in list(self._known.values()):
            if old == stamp and len(others) == len(subjects) and others == subjects:
                return others, places
        return None
