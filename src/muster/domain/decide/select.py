# SPDX-License-Identifier: Apache-2.0
"""What a filter selects and how rows are ordered, where a value may be absent.

An absent value makes a comparison neither true nor false: such a row is not selected, and ``!`` does not select it either. In any order absent comes last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

from muster.domain.model.errors import InputError
from muster.domain.model.filters import Always, And, Compare, Contains, Fields, Has, In, Not, Or, Scalar, Shape, StartsWith, Tree
from muster.domain.model.near import near

Lookup: TypeAlias = Callable[[str], Any]
"""The value at a path of one row; None where there is none."""

_OPS: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
MOST_KEYS = 4
"""Keys of one order."""
SORT = "an order is like: -temperature.core,name"


def selects(tree: Tree, row: Lookup) -> bool:
    """True when the filter is true of the row; not when it is false or cannot be told."""
    return holds(tree, row) is True


def holds(tree: Tree, row: Lookup) -> bool | None:
    """True, False, or None where an absent value leaves it open."""
    match tree:
        case And(left=left, right=right):
            return _and(holds(left, row), right, row)
        case Or(left=left, right=right):
            return _or(holds(left, row), right, row)
        case Not(one=one):
            inner = holds(one, row)
            return None if inner is None else not inner
        case Has(path=path):
            return row(path) is not None
        case Always(value=value):
            return value
        case _:
            return _asked(tree, row)


def _and(left: bool | None, right: Tree, row: Lookup) -> bool | None:
    if left is False:
        return False
    other = holds(right, row)
    return False if other is False else (None if left is None or other is None else True)


def _or(left: bool | None, right: Tree, row: Lookup) -> bool | None:
    if left is True:
        return True
    other = holds(right, row)
    return True if other is True else (None if left is None or other is None else False)


def _asked(tree: Compare | In | Contains | StartsWith, row: Lookup) -> bool | None:
    found = row(tree.path)
    if found is None:
        return None
    match tree:
        case Compare(op=op, value=value):
            return _OPS[op](found, value) if _alike(found, value) else None
        case In(values=values):
            return any(_alike(found, value) and found == value for value in values)
        case Contains(value=value):
            return any(_alike(each, value) and each == value for each in found) if isinstance(found, list | tuple | set | frozenset) else None
        case StartsWith(prefix=prefix):
            return found.startswith(prefix) if isinstance(found, str) else None


def _alike(one: Any, other: Scalar) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return isinstance(one, bool) and isinstance(other, bool)
    return isinstance(one, str) == isinstance(other, str) and isinstance(one, str | int | float)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order."""

    path: str
    down: bool = False


def order(text: str, fields: Fields) -> tuple[SortKey, ...]:
    """The keys of ``-temperature.core,name``. Raises InputError naming the key that cannot be sorted by."""
    keys = [SortKey(word.lstrip("-").removeprefix("readings."), word.startswith("-")) for word in (w.strip() for w in text.split(",")) if word]
    if len(keys) > MOST_KEYS:
        raise InputError(f"sort takes at most {MOST_KEYS} keys", hint=SORT)
    for key in keys:
        shape = fields.get(key.path)
        if shape is None:
            raise InputError("; ".join(filter(None, (f"sort: no field {key.path!r}", near(key.path, fields)))), hint=SORT)
        if shape in (Shape.LIST, Shape.MAP):
            raise InputError(f"sort: {key.path!r} is a {shape} and has no order", hint=SORT)
    return tuple(keys)


Place: TypeAlias = "tuple[tuple[Any, ...], str]"
"""Where a row stands in an order: its values by key (None where absent) and its id, which decides between equals."""


def stand(row: Lookup, id_: str, keys: Sequence[SortKey]) -> Place:
    """The place of a row. A value of another type than its neighbours counts as absent when they are compared."""
    return tuple(row(key.path) for key in keys), id_


def earlier(one: Place, other: Place, keys: Sequence[SortKey]) -> int:
    """Negative when ``one`` comes before ``other``, positive when after, 0 for the same place. A total order."""
    for key, left, right in zip(keys, one[0], other[0], strict=True):
        a, b = weight(left), weight(right)
        if a == b:
            continue
        if a[0] != b[0]:
            return -1 if a < b else 1
        return (1 if key.down else -1) if a < b else (-1 if key.down else 1)
    return (one[1] > other[1]) - (one[1] < other[1])


def weight(value: Any) -> tuple[int, Any]:
    """What a value is compared by: numbers before texts, and those before what has no place in an order (2)."""
    if isinstance(value, bool | int | float) and value == value:
        return 0, value
    if isinstance(value, str):
        return 1, _natural(value)
    return 2, 0


_RUNS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-9a-f])(?![0-9a-z])|([0-9]{1,18})")
"""Bus addresses and runs of digits."""


@lru_cache(maxsize=65_536)
def _natural(text: str) -> tuple[Any, ...]:
    """A text as people order it: digits by their number (``node-2`` before ``node-10``), bus addresses by theirs; equal ones by their letters."""
    parts: list[tuple[int, Any]] = []
    at = 0
    for run in _RUNS.finditer(text):
        if run.start() > at:
            parts.append((1, text[at : run.start()]))
        digits = run.group(5)
        parts += [(0, int(digits))] if digits else [(0, int(each, 16)) for each in run.groups()[:4]]
        at = run.end()
    return (*parts, (1, text[at:])), text
