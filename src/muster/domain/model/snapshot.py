# SPDX-License-Identifier: Apache-2.0
"""The roll in columns: one row for each card, node or part, one column for each path that a list may ask of it. A snapshot never changes.

Numbers are float64 (NaN: no value). Everything else is a code into the words of its column. What float64 does not hold exactly stands beside it, by row.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int32]"
Mask: TypeAlias = "NDArray[np.bool_]"

V = TypeVar("V", bound=Any)
EXACT = 2**53
"""Whole numbers up to it are exact in float64."""


class Words:
    """The values of a column, each once; a value's place is its code. It only grows, so codes of older snapshots keep their meaning."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.texts = True
        """True while every value is a text."""
        self._codes: dict[Hashable, int] = {}
        self._kept: dict[Hashable, tuple[int, Any]] = {}

    def code(self, value: Any) -> int:
        """The code of ``value``, a new one where it was never seen."""
        named = value if type(value) is str else _named(value)
        found = self._codes.get(named)
        if found is None:
            found = len(self.values)
            self.texts = self.texts and isinstance(value, str)
            self.values.append(value)
            self._codes[named] = found
        return found

    def find(self, value: Any) -> int:
        """The code of ``value``; -1 where no row ever had it."""
        return self._codes.get(_named(value), -1)

    def kept(self, name: Hashable, make: Callable[[], Any], more: Callable[[Any], Any] | None = None) -> Any:
        """What ``make`` says of all values, made again when there are more of them; where a few came, by ``more`` of what was said before."""
        found = self._kept.get(name)
        known = len(self.values)
        if found is None or found[0] != known:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            few = found is not None and known - found[0] <= _FEW_MORE
            found = self._kept[name] = (known, more(found[1]) if more is not None and found is not None and few else make())
        return found[1]

    def keeps(self, name: Hashable) -> bool:
        """True when `kept` has an answer that it need not make anew."""
        found = self._kept.get(name)
        return found is not None and found[0] == len(self.values)

    def beginning(self, prefix: str) -> Ints:
        """Codes of the texts that begin with ``prefix``."""
        texts, codes = self.kept("alphabet", self._alphabet)
        low = bisect_left(texts, prefix, key=lambda text: text[: len(prefix)])
        high = bisect_right(texts, prefix, lo=low, key=lambda text: text[: len(prefix)])
        found: Ints = codes[low:high]
        return found

    def _alphabet(self) -> tuple[list[str], Ints]:
        texts = in_turns((value, code) for code, value in enumerate(self.values) if isinstance(value, str))
        return [text for text, _ in texts], np.fromiter((code for _, code in texts), np.int32, len(texts))


_AT_ONCE = 2000


def in_turns(values: Iterable[V]) -> list[V]:
    """The values in order. Many of them are sorted some at a time: one sorting of all would hold up every other thread for as long as it takes."""
    rest = iter(values)
    runs = list(iter(lambda: sorted(islice(rest, _AT_ONCE)), []))
    return runs[0] if len(runs) == 1 else list(merge(*runs))


_FEW_MORE = 500
_MOST_KEPT = 64
"""Answers about the words of a column that are kept."""


def _named(value: Any) -> Hashable:
    if isinstance(value, str):
        return value
    if type(value) is list and all(type(each) is str for each in value):
        return "list", tuple(value)
    return type(value).__name__, json.dumps(value, sort_keys=True, default=str) if isinstance(value, list | tuple | dict) else repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """A column of codes; -1 where there is no value."""

    codes: Ints
    words: Words

    def at(self, row: int) -> Any:
        """The value in ``row``; None where there is none."""
        code = int(self.codes[row])
        return None if code < 0 else self.words.values[code]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A column of numbers; NaN where there is no value. ``odd`` are values that float64 cannot hold or that are no numbers, by row."""

    values: Floats
    odd: Mapping[int, Any] = field(default_factory=dict)

    def at(self, row: int) -> Any:
        """The value in ``row``; None where there is none."""
        if row in self.odd:
            return self.odd[row]
        number = float(self.values[row])
        if number != number:
            return None
        return int(number) if number.is_integer() and abs(number) <= EXACT else number


Column: TypeAlias = "Coded | Numbers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Rows of one kind as they stood at one moment. ``live`` rows are there; the others are free places."""

    version: int
    at: float
    live: Mask
    columns: Mapping[str, Column]
    stamp: int = 0
    """Differs between two snapshots of one keeper."""

    @property
    def rows(self) -> int:
        """Places, free ones too."""
        return len(self.live)

    def texts(self, path: str, rows: Sequence[int] | Ints) -> list[str]:
        """The texts of a coded column in ``rows``; "" where there is none."""
        column = self.columns.get(path)
        if not isinstance(column, Coded):
            return [""] * len(rows)
        values = column.words.values
        return [values[code] if code >= 0 else "" for code in column.codes[np.asarray(rows, np.int64)].tolist()]
