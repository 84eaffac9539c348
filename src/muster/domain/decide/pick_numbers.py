# SPDX-License-Identifier: Apache-2.0
"""Gauges and counters of all rows at once: which source is shown, by the rules of `choose`, and what devices say together for their card."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muster.domain.decide.view import How
from muster.domain.model.snapshot import Floats, Ints, Mask, Numbers


def newest(places: Ints, values: Floats, times: Floats, ranks: Floats, promises: Floats, now: float, size: int) -> Floats:
    """The number shown in each of ``size`` rows: known before absent, fresh before stale, then the better rank, the newer, the first.

    The arrays are parallel: the row of each number (-1: none), what was told, when, the rank of its source (0 is best) and how long its word holds.
    """
    told = np.flatnonzero(~np.isnan(values) & (places >= 0) & (places < size))
    found = np.full(size, np.nan)
    rows = places[told]
    if len(rows) == 0:
        return found
    if np.bincount(rows, minlength=size).max() > 1:
        fresh = now - times[told] <= promises[told]
        told = told[np.lexsort((-told, times[told], -ranks[told], fresh))]
        rows = places[told]
    found[rows] = values[told]
    return found


def merged(facts: Numbers | None, moving: Floats) -> Numbers:
    """A column of numbers, with those that stand in records where nothing newer is told."""
    if facts is None:
        return Numbers(values=moving)
    known = ~np.isnan(moving)
    odd = {row: value for row, value in facts.odd.items() if row >= len(known) or not known[row]}
    return Numbers(values=np.where(known, moving, facts.values), odd=odd)


def devices_together(own: Numbers | None, how: How, owners: Ints, told: Numbers | None, size: int) -> Numbers:
    """What cards say, and for those that say nothing what all of their devices say together.

    ``owners`` is the row of each device's card (-1: none), ``told`` what devices say.
    """
    mine = own or Numbers(values=np.full(size, np.nan))
    if told is None or not (owners >= 0).any():
        return mine
    count, known, value = _by_card(owners, told.values, how, size)
    silent = np.isnan(mine.values)
    silent[list(mine.odd)] = False
    speak = silent & (count > 0) & (known == count)
    return Numbers(values=np.where(speak, value, mine.values), odd=mine.odd)


def _by_card(owners: Ints, told: Floats, how: How, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Of each card how many devices it has, how many of them tell a number, and what those make."""
    here = owners >= 0
    count = np.bincount(owners[here], minlength=size)
    tells = here & ~np.isnan(told)
    rows, values = owners[tells], told[tells]
    known = np.bincount(rows, minlength=size)
    if how is How.SUM:
        added: Floats = np.bincount(rows, weights=values, minlength=size).astype(np.float64)
        return count, known, added
    most = np.full(size, -np.inf)
    np.maximum.at(most, rows, values)
    return count, known, most


def totals(chosen: Mask, own: Numbers | None, owners: Ints, told: Numbers | None) -> tuple[float, int]:
    """The sum over ``chosen`` cards, and how many of them have a value: their own, or what those of their devices add up to that tell one."""
    size = len(chosen)
    values = np.full(size, np.nan) if own is None else own.values
    if told is not None and (owners >= 0).any():
        _, known, added = _by_card(owners, told.values, How.SUM, size)
        values = np.where(np.isnan(values) & (known > 0), added, values)
    told_by = values[chosen & ~np.isnan(values)]
    if len(told_by) == 0:
        return 0, 0
    whole = np.abs(told_by).max() < 2**53 and bool((told_by == np.rint(told_by)).all())
    return (float(int(told_by.astype(np.int64).sum())) if whole else float(told_by.sum())), len(told_by)
