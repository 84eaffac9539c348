# SPDX-License-Identifier: Apache-2.0
"""What a filter selects of a snapshot: masks over columns, with the same three answers as `muster.domain.decide.select` gives for one row.

A mask of what is true and one of what is false; where neither holds, an absent value leaves it open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np

from muster.domain.decide.select import Lookup, holds
from muster.domain.model.filters import Always, And, Compare, Contains, Has, In, Not, Or, Scalar, StartsWith, Tree
from muster.domain.model.snapshot import Coded, Column, Mask, Numbers, Snapshot

_OPS: dict[str, Callable[[Any, Any], Any]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_ABOVE = {"<": "<", "<=": "<", ">": ">=", ">=": ">="}
"""How a bound between two floats is asked by the float above it."""
_BELOW = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
_FEW = 512
"""Words that are asked one by one rather than looked up."""


@dataclass(frozen=True, slots=True)
class Told:
    """For which rows it is true, and for which it is false."""

    true: Mask
    false: Mask


def mask(tree: Tree | None, snapshot: Snapshot) -> Mask:
    """The live rows for which the filter is true."""
    return snapshot.live if tree is None else told(tree, snapshot).true & snapshot.live


def told(tree: Tree, snapshot: Snapshot) -> Told:
    """What the filter says of every row."""
    match tree:
        case And(left=left, right=right):
            one, other = told(left, snapshot), told(right, snapshot)
            return Told(one.true & other.true, one.false | other.false)
        case Or(left=left, right=right):
            one, other = told(left, snapshot), told(right, snapshot)
            return Told(one.true | other.true, one.false & other.false)
        case Not(one=inner):
            turned = told(inner, snapshot)
            return Told(turned.false, turned.true)
        case Always(value=value):
            return Told(np.full(snapshot.rows, value), np.full(snapshot.rows, not value))
        case Has(path=path):
            there = having(snapshot, path)
            return Told(there, ~there)
        case _:
            return _leaf(tree, snapshot)


def having(snapshot: Snapshot, path: str) -> Mask:
    """Rows with a value at ``path``."""
    column = snapshot.columns.get(path)
    if column is None:
        return np.zeros(snapshot.rows, np.bool_)
    if isinstance(column, Coded):
        return column.codes >= 0
    there = ~np.isnan(column.values)
    there[list(column.odd)] = True
    return there


def _leaf(tree: Compare | In | Contains | StartsWith, snapshot: Snapshot) -> Told:
    column: Column | None = snapshot.columns.get(tree.path)
    if column is None:
        return Told(np.zeros(snapshot.rows, np.bool_), np.zeros(snapshot.rows, np.bool_))
    return _of_numbers(tree, column) if isinstance(column, Numbers) else _of_words(tree, column)


def _of_words(tree: Compare | In | Contains | StartsWith, column: Coded) -> Told:
    if column.words.texts and len(column.words.values) > _FEW:
        quick = _looked_up(tree, column)
        if quick is not None:
            return Told(quick, (column.codes >= 0) & ~quick)
    truth: Mask
    falsehood: Mask
    truth, falsehood = column.words.kept(str(tree), lambda: _table(tree, column.words.values))
    return Told(truth[column.codes], falsehood[column.codes])


def _looked_up(tree: Compare | In | Contains | StartsWith, column: Coded) -> Mask | None:
    """Where the answer is true, for a column of texts alone, without asking each word; None where each must be asked."""
    match tree:
        case Compare(op="==", value=str(text)):
            return np.isin(column.codes, [code for code in (column.words.find(text),) if code >= 0])
        case Compare(op="!=", value=str(text)):
            return (column.codes >= 0) & ~np.isin(column.codes, [column.words.find(text)])
        case In(values=values) if all(isinstance(value, str) for value in values):
            return np.isin(column.codes, [code for value in values if (code := column.words.find(value)) >= 0])
        case StartsWith(prefix=prefix):
            codes = column.words.beginning(prefix)
            begins = np.zeros(len(column.words.values) + 1, np.bool_)
            begins[codes] = True
            found: Mask = begins[column.codes]
            return found
        case _:
            return None


def _table(tree: Tree, values: list[Any]) -> tuple[Mask, Mask]:
    """The answer for each word; the last place is that of no value (code -1)."""
    answers = [holds(tree, _always(value)) for value in list(values)]
    return np.array([*(each is True for each in answers), False]), np.array([*(each is False for each in answers), False])


def _always(value: Any) -> Lookup:
    return lambda _: value


def _of_numbers(tree: Compare | In | Contains | StartsWith, column: Numbers) -> Told:
    known = ~np.isnan(column.values)
    match tree:
        case Compare(op=op, value=value) if _number(value):
            true = _compared(column.values, op, value)
            true, false = true & known, known & ~true
        case In(values=values):
            true = np.zeros(len(known), np.bool_)
            for value in values:
                if _number(value):
                    true |= _compared(column.values, "==", value)
            false = known & ~true
        case _:
            true, false = np.zeros(len(known), np.bool_), np.zeros(len(known), np.bool_)
    for row, odd in column.odd.items():
        answer = holds(tree, _always(odd))
        true[row], false[row] = answer is True, answer is False
    return Told(true, false)


def _number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compared(values: Any, op: str, bound: Any) -> Mask:
    """``values op bound`` as exactly as numbers are compared, where ``bound`` may lie between two floats. NaN is never true but for !=."""
    near = _float(bound)
    if near == bound:
        found: Mask = _OPS[op](values, near)
        return found
    if op in ("==", "!="):
        return np.full(len(values), op == "!=")
    asked: Mask = _OPS[(_ABOVE if near > bound else _BELOW)[op]](values, near)
    return asked


def _float(bound: Any) -> float:
    try:
        return float(bound)
    except OverflowError:
        return inf if bound > 0 else -inf
