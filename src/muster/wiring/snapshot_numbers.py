# SPDX-License-Identifier: Apache-2.0
"""Columns of gauges and counters for snapshots: the newest numbers of all sources, and which source is shown in each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from muster.domain.decide.pick_numbers import newest
from muster.domain.decide.pick_table import Places, Table
from muster.domain.model.policy import Policy
from muster.domain.model.snapshot import Floats
from muster.domain.model.source import WitnessClass
from muster.spi.numbers import Column, Numbers, Rounds

Voices: TypeAlias = "dict[tuple[str, str], tuple[float, WitnessClass]]"
"""Promise and class of each source by (node, source), as its voice on the cards has them."""
BEAT = 0.25
"""Seconds for which a column of a large site is given again."""


class Moving:
    """Columns of what moves, made when they are asked for."""

    def __init__(self, numbers: Numbers, policy: Policy, ticks: Callable[[], float]) -> None:
        self._numbers = numbers
        self._policy = policy
        self._ticks = ticks
        self._places: dict[str, Places] = {}
        self._sources: tuple[object, Floats, dict[WitnessClass | None, int], Floats] = (None, np.empty(0), {}, np.empty(0))
        self._kept: dict[tuple[str, str], tuple[float, int, Floats]] = {}

    def keys(self) -> frozenset[str]:
        """Attributes that have a column."""
        return frozenset(self._numbers.keys())

    def column(self, key: str, name: str, table: Table, size: int, voices: Voices, now: float, *, keep: float = 0.0) -> Floats:
        """The numbers of ``key`` in the rows of a table; one not older than ``keep`` seconds may be given again."""
        made, rows, found = self._kept.get((name, key), (-1.0, -1, np.empty(0)))
        if keep and rows == size and self._ticks() - made < keep:
            return found
        found = self._make(key, name, table, size, voices, now)
        self._kept[name, key] = (self._ticks(), size, found)
        return found

    def _make(self, key: str, name: str, table: Table, size: int, voices: Voices, now: float) -> Floats:
        told = self._numbers.column(key)
        places = self._of(name, table, told)
        ranks, promises = self._by_slot(key, voices)
        return newest(places, told.values, told.times, ranks[told.slots], promises[told.slots], now, size)

    def _of(self, name: str, table: Table, told: Column) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        places = self._places.setdefault(name, Places())
        known = table.places
        return places.of(told.key, (told.epoch, table.generation), told.subjects, len(told.values), lambda subject: known.get(subject, -1))

    def _by_slot(self, key: str, voices: Voices) -> tuple[Floats, Floats]:
        """Rank for ``key`` and promise of each source, by slot."""
        rounds = self._numbers.rounds()
        stamp = (rounds.epoch, len(rounds.nodes), len(voices))
        if self._sources[0] != stamp:
            self._sources = (stamp, *_sources(rounds, voices))
        _, classes, numbered, promises = self._sources
        order = self._policy.order(key)
        ranks = np.array([order.index(each) if each in order else len(order) for each in numbered], np.float64)
        return ranks[classes.astype(np.int64)], promises


def _sources(rounds: Rounds, voices: Voices) -> tuple[Floats, dict[WitnessClass | None, int], Floats]:
    """Class and promise of each source by slot. One that no card knows promises nothing."""
    numbered: dict[WitnessClass | None, int] = {None: 0}
    classes, promises = np.zeros(len(rounds.nodes)), np.zeros(len(rounds.nodes))
    for slot, place in enumerate(zip(rounds.nodes, rounds.sources, strict=True)):
        promise, witness = voices.get(place, (0.0, None))
        classes[slot] = numbered.setdefault(witness, len(numbered))
        promises[slot] = promise
    return classes, numbered, promises
