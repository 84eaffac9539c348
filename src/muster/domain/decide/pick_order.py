# SPDX-License-Identifier: Apache-2.0
"""The order of rows of a snapshot, and the page that follows a place in it: the order of `muster.domain.decide.select`, by columns.

Each column is made to numbers that stand in its order, infinity where there is no value. Those of words are kept with the words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from muster.domain.decide.select import Place, SortKey, weight
from muster.domain.model.snapshot import Coded, Column, Floats, Ints, Mask, Snapshot, Words, in_turns

Rows: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class Ranks:
    """Values in their order. A value that is among them stands at twice its place, one between two of them at the odd number between.

    ``numbers`` of them are numbers; texts stand after those, whichever way the order runs.
    """

    weights: list[Any]
    numbers: int

    def place(self, value: Any, down: bool) -> float:
        """Where ``value`` stands; infinity for what has no place in an order."""
        own = weight(value)
        if own[0] == _NO_PLACE:
            return inf
        at = bisect_left(self.weights, own)
        there = at < len(self.weights) and self.weights[at] == own
        return self._turned(2 * at if there else 2 * at - 1, own[0], down)

    def _turned(self, place: float, kind: int, down: bool) -> float:
        if not down:
            return place
        return 2 * (self.numbers - 1) - place if kind == 0 else 2 * (self.numbers + len(self.weights) - 1) - place


_NO_PLACE = 2


def ranks(values: Sequence[Any]) -> Ranks:
    """The ranks of these values, each once."""
    found: list[Any] = []
    for each in in_turns(own for own in map(weight, values) if own[0] != _NO_PLACE):
        if not found or found[-1] != each:
            found.append(each)
    return Ranks(found, sum(own[0] == 0 for own in found))


_FEW = 5000
"""Words that are put in order in milliseconds."""
_ORDERS = 32
"""Columns whose order is kept."""
_kept: dict[tuple[int, bool], tuple[Ints, Floats, Floats]] = {}


def order(column: Column | None, rows: int, down: bool) -> Floats:
    """The column as numbers in its order. That of words is kept for as long as neither they nor the codes are others. It is not to be changed."""
    if column is None:
        return np.full(rows, inf)
    if isinstance(column, Coded):
        return _kept_for(column.codes, _of_words(column.words, down), down)
    if not column.odd:
        found = -column.values if down else column.values
        return np.where(np.isnan(found), inf, found)
    told = [column.at(row) for row in range(rows)]
    known = ranks([each for each in told if each is not None])
    return np.array([known.place(each, down) for each in told], np.float64)


def _kept_for(codes: Ints, places: Floats, down: bool) -> Floats:
    """``places`` of these codes. The arrays themselves are kept too, so that another one is never taken for them."""
    name = (id(codes), down)
    known = _kept.get(name)
    if known is not None and known[0] is codes and known[1] is places:
        return known[2]
    found: Floats = places[codes]
    _kept[name] = (codes, places, found)
    while len(_kept) > _ORDERS:
        with suppress(RuntimeError, StopIteration):  # another thread keeps one at this moment
            _kept.pop(next(iter(_kept)), None)
    return found


def _of_words(words: Words, down: bool) -> Floats:
    known = ordered(words)

    def make() -> Floats:
        values = list(words.values)
        if known.numbers or not words.texts:
            return np.array([*(known.place(value, down) for value in values), inf], np.float64)
        at = {text: 2 * number for number, (_, (_, text)) in enumerate(known.weights)}
        last = 2 * (len(at) - 1)
        places = [found if (found := at.get(value)) is not None else known.place(value, down=False) for value in values]
        return np.array([*((last - each for each in places) if down else places), inf], np.float64)

    found: Floats = words.kept(("order", down), make)
    return found


def ordered(words: Words) -> Ranks:
    """The ranks of the words of a column."""
    found: Ranks = words.kept("ranks", lambda: ranks(list(words.values)))
    return found


def _place(column: Column | None, value: Any, down: bool, rows: int) -> float:
    """Where ``value`` stands among the numbers that `order` gives."""
    own = weight(value)
    if own[0] == _NO_PLACE:
        return inf
    if column is None:
        return 0.0
    if isinstance(column, Coded):
        return ordered(column.words).place(value, down)
    if column.odd:
        return ranks([each for row in range(rows) if (each := column.at(row)) is not None]).place(value, down)
    if own[0] == 1:
        return _LAST
    number = _near(own[1])
    return -number if down else number


_LAST = 1.7976931348623157e308
"""Where a text stands in a column of numbers: after them, before what is absent."""


def _near(number: Any) -> float:
    try:
        return max(-_LAST, min(_LAST, float(number)))
    except OverflowError:
        return _LAST if number > 0 else -_LAST


def page(snapshot: Snapshot, chosen: Mask, keys: Sequence[SortKey], after: Place | None, limit: int) -> Rows:
    """The first ``limit`` rows of ``chosen`` after a place, in order. Ids decide between equals."""
    columns = [order(snapshot.columns.get(key.path), snapshot.rows, key.down) for key in keys]
    columns.append(_ids(snapshot))
    rows = np.flatnonzero(chosen)
    if after is not None:
        rows = rows[_beyond(snapshot, columns, keys, after, rows)]
    first = _first(columns, rows, limit)
    return first[np.lexsort([column[first] for column in reversed(columns)])]


def prepare(snapshot: Snapshot, paths: Iterable[str]) -> None:
    """Makes what an order by these columns needs, so that no page waits for it."""
    for path in paths:
        order(snapshot.columns.get(path), snapshot.rows, down=False)
    _ids(snapshot)


def ready(snapshot: Snapshot, keys: Iterable[SortKey]) -> bool:
    """True when an order by these keys is a matter of milliseconds: columns of many words are in order already."""
    columns = [(snapshot.columns.get(key.path), key.down) for key in keys]
    return all(not isinstance(each, Coded) or len(each.words.values) <= _FEW or each.words.keeps(("order", down)) for each, down in columns)


def everything(snapshot: Snapshot, chosen: Mask, keys: Sequence[SortKey]) -> Rows:
    """All rows of ``chosen``, in order."""
    return page(snapshot, chosen, keys, None, snapshot.rows)


def place(snapshot: Snapshot, row: int, keys: Sequence[SortKey]) -> Place:
    """The place of a row: its values by key and its id."""
    columns = [snapshot.columns.get(key.path) for key in keys]
    return tuple(None if column is None else _plain(column.at(row)) for column in columns), snapshot.texts("id", [row])[0]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | bool | int) or (isinstance(value, float) and isfinite(value)) else None


def _ids(snapshot: Snapshot) -> Floats:
    column = snapshot.columns.get("id")
    if not isinstance(column, Coded):
        return np.zeros(snapshot.rows)
    places: Floats = _lettered(column.words)[0]
    return _kept_for(column.codes, places, down=False)


def _lettered(words: Words) -> tuple[Floats, list[str]]:
    found: tuple[Floats, list[str]] = words.kept("letters", lambda: _letters(words), lambda old: _more_letters(words, *old))
    return found


def _more_letters(words: Words, places: Floats, texts: list[str]) -> tuple[Floats, list[str]]:
    """The same as `_letters`, of what it said when there were fewer words: each new text moves those after it by one."""
    known = len(texts)
    new = sorted((value, code) for code, value in enumerate(words.values[known:], known))
    before = [bisect_left(texts, value) for value, _ in new]
    grown = np.full(known + len(new) + 1, nan)
    old = places[:known]
    grown[:known] = old + 2 * np.searchsorted(np.array(before), old / 2, "right")
    grown[[code for _, code in new]] = [2 * (at + number) for number, at in enumerate(before)]
    merged = texts.copy()
    for at, (value, _) in zip(reversed(before), reversed(new), strict=True):
        merged.insert(at, value)
    return grown, merged


def _letters(words: Words) -> tuple[Floats, list[str]]:
    """Places of texts by their letters alone, as ids are ordered, and the texts in that order."""
    texts = in_turns((value, code) for code, value in enumerate(list(words.values)))
    places = np.full(len(texts) + 1, nan)
    places[[code for _, code in texts]] = np.arange(0, 2 * len(texts), 2)
    return places, [text for text, _ in texts]


def _beyond(snapshot: Snapshot, columns: Sequence[Floats], keys: Sequence[SortKey], after: Place, rows: Rows) -> Mask:
    """Which of ``rows`` come after the place."""
    values, id_ = after
    bounds = [_place(snapshot.columns.get(key.path), value, key.down, snapshot.rows) for key, value in zip(keys, values, strict=True)]
    bounds.append(_id_place(snapshot, id_))
    later = np.zeros(len(rows), np.bool_)
    equal = np.ones(len(rows), np.bool_)
    for column, bound in zip(columns, bounds, strict=True):
        found = column[rows]
        later |= equal & (found > bound)
        equal &= found == bound
    return later


def _id_place(snapshot: Snapshot, id_: str) -> float:
    column = snapshot.columns.get("id")
    if not isinstance(column, Coded):
        return -1
    texts: list[str] = _lettered(column.words)[1]
    at = bisect_left(texts, id_)
    return 2 * at if at < len(texts) and texts[at] == id_ else 2 * at - 1


def _first(columns: Sequence[Floats], rows: Rows, limit: int) -> Rows:
    """The ``limit`` rows that come first, in no order: by the first column, then those that are equal in it by the next."""
    sure: list[Rows] = []
    left = limit
    for column in columns:
        if left <= 0 or len(rows) <= left:
            break
        found = column[rows]
        bound = np.partition(found, left - 1)[left - 1]
        before = rows[found < bound]
        sure.append(before)
        left -= len(before)
        rows = rows[found == bound]
    return np.concatenate([*sure, rows[: max(left, 0)]]).astype(np.int64)
