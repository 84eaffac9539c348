# SPDX-License-Identifier: Apache-2.0
"""Columns of gauges and counters for snapshots: the newest numbers of all sources, and which source is shown in each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from muster.domain.decide.pick_numbers import newest
from muster.domain.decide.pick_table import Places, Table
from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Voice, Word
from muster.domain.model.snapshot import Floats, Ints
from muster.domain.model.source import WitnessClass
from muster.spi.numbers import Column, Numbers, Rounds
from muster.spi.store import CurrentValue

Voices: TypeAlias = "dict[tuple[str, str], tuple[float, WitnessClass]]"
"""Promise and class of each source by (node, source), as its voice on the cards has them."""
MOVING = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT and entry.numeric)
"""Attributes whose numbers move."""
BEAT = 0.25
"""Seconds for which a column of a large site is given again."""
IDLE = 300.0
"""Seconds after which what was made of an attribute goes that nobody asks for any more."""


class Beside:
    """Numbers that stand beside the columns of the newest: of sources that tell none in rounds, and older ones that stay while a source has none now."""

    def __init__(self) -> None:
        self._by_key: dict[str, dict[tuple[str, str, str], tuple[float, float, Voice]]] = {}
        self._keys: dict[str, set[str]] = {}
        self._made: dict[str, tuple[list[str], Floats, Floats, list[Voice]]] = {}

    def put(self, subject: str, voices: Iterable[Voice], tells: Callable[[str, str, float], bool]) -> None:
        """Takes in the numbers of a subject. ``tells`` says which come in rounds."""
        self.drop(subject)
        for voice in voices:
            for key in voice.words.keys() & MOVING:
                word = voice.words[key]
                if word.at is not None and number(word.value) and (word.why is not None or not tells(voice.node, voice.source, word.at)):
                    self._by_key.setdefault(key, {})[subject, voice.node, voice.source] = (float(word.value), word.at, voice)
                    self._keys.setdefault(subject, set()).add(key)
                    self._made.pop(key, None)

    def drop(self, subject: str) -> None:
        """Forgets a subject."""
        for key in self._keys.pop(subject, ()):
            told = self._by_key[key]
            for place in [place for place in told if place[0] == subject]:
                del told[place]
            self._made.pop(key, None)

    def keys(self) -> frozenset[str]:
        """Attributes of which such numbers are known."""
        return frozenset(key for key, told in list(self._by_key.items()) if told)

    def column(self, key: str) -> tuple[list[str], Floats, Floats, list[Voice]]:
        """Subjects, numbers, when each was told, and by whom."""
        made = self._made.get(key)
        if made is None:
            told = list(self._by_key.get(key, {}).items())
            values = np.array([value for _, (value, _, _) in told], np.float64)
            times = np.array([at for _, (_, at, _) in told], np.float64)
            made = self._made[key] = ([place[0] for place, _ in told], values, times, [voice for _, (_, _, voice) in told])
        return made


def number(value: object) -> bool:
    """True for what is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


class Moving:
    """Columns of what moves, made when they are asked for."""

    def __init__(self, numbers: Numbers, policy: Policy, ticks: Callable[[], float]) -> None:
        self._numbers = numbers
        self._policy = policy
        self._ticks = ticks
        self.beside = Beside()
        self._places: dict[str, Places] = {}
        self._sources: tuple[object, Floats, dict[WitnessClass | None, int], Floats] = (None, np.empty(0), {}, np.empty(0))
        self._prepared: dict[str, int] = {}
        self._kept: dict[tuple[str, str], tuple[float, int, Floats]] = {}
        self._columns: dict[str, tuple[float, Column | None]] = {}
        self._single: dict[tuple[str, str], tuple[object, NDArray[np.int64] | None, Ints]] = {}
        self._sorted: dict[tuple[str, str], tuple[tuple[int, int], NDArray[np.int64], Ints]] = {}

    def keys(self) -> frozenset[str]:
        """Attributes that have a column."""
        return frozenset(self._numbers.keys()) | self.beside.keys()

    def column(self, key: str, name: str, table: Table, size: int, voices: Voices, now: float, *, keep: float = 0.0) -> Floats:
        """The numbers of ``key`` in the rows of a table; one not older than ``keep`` seconds may be given again."""
        made, rows, found = self._kept.get((name, key), (-1.0, -1, np.empty(0)))
        if keep and rows == size and self._ticks() - made < keep:
            return found
        found = self._make(key, name, table, size, voices, now)
        self._kept[name, key] = (self._ticks(), size, found)
        return found

    def words(self, ids: Iterable[str], keys: frozenset[str], name: str, table: Table) -> list[CurrentValue]:
        """The newest words of these subjects of a table, without the captures that they rest on."""
        subjects = {table.places[id_]: id_ for id_ in ids if id_ in table.places}
        rows = np.array(sorted(subjects), np.int64)
        rounds = self._numbers.rounds()
        found: list[CurrentValue] = []
        for key in sorted(keys & frozenset(self._numbers.keys())):
            told = self._told(key)
            entries = self._entries(name, key, self._of(name, table, told), table.generation, rows)
            for entry in entries[~np.isnan(told.values[entries])].tolist():
                subject, slot, value = told.subjects[entry], int(told.slots[entry]), float(told.values[entry])
                word = Word(value=int(value) if value.is_integer() and abs(value) < 2**53 else value, at=float(told.times[entry]))
                found.append(CurrentValue(subject=subject, card=subject, node=rounds.nodes[slot], source=rounds.sources[slot], key=key, word=word))
        return found

    def prepare(self, name: str, table: Table) -> None:
        """Looks up what columns of a table need once after rows came or went, so that no request waits for it."""
        if self._prepared.get(name) != table.generation:
            self._prepared[name] = table.generation
            for key in {key for _, key in list(self._kept)} or sorted(self._numbers.keys())[:1]:  # other columns of the same subjects share it
                self._of(name, table, self._numbers.column(key))

    def tidy(self) -> None:
        """Lets go of what nobody asked for lately."""
        now = self._ticks()
        for key in [key for key, (made, _) in list(self._columns.items()) if now - made > IDLE]:
            self._columns.pop(key, None)
        for place in [place for place, (made, _, _) in list(self._kept.items()) if now - made > IDLE]:
            self._kept.pop(place, None)
            self._single.pop(place, None)
        for place in [place for place in list(self._sorted) if place[1] not in self._columns]:
            self._sorted.pop(place, None)

    def _told(self, key: str) -> Column:
        """The newest numbers of ``key``, not older than a beat."""
        made, column = self._columns.get(key, (-math.inf, None))
        if column is None or self._ticks() - made >= BEAT:
            column = self._numbers.column(key)
            self._columns[key] = (self._ticks(), column)
        return column

    def _entries(self, name: str, key: str, places: Ints, generation: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the numbers of these rows stand in a column."""
        stamp = (generation, len(places))
        kept = self._sorted.get((name, key))
        if kept is None or kept[0] != stamp:
            order = np.argsort(places, kind="stable")
            kept = self._sorted[name, key] = (stamp, order, places[order])
        _, order, known = kept
        begin, end = np.searchsorted(known, rows, "left"), np.searchsorted(known, rows, "right")
        return np.concatenate([order[one:other] for one, other in zip(begin.tolist(), end.tolist(), strict=True)] or [np.empty(0, np.int64)])

    def _make(self, key: str, name: str, table: Table, size: int, voices: Voices, now: float) -> Floats:
        told = self._numbers.column(key)
        places = self._of(name, table, told)
        subjects, values, times, others = self.beside.column(key)
        if not subjects:
            entries, rows = self._alone(name, key, (told.epoch, table.generation, len(places), size), places, size)
            if entries is not None:
                found = np.full(size, np.nan)
                found[rows] = told.values[entries]
                return found
        ranks, promises = self._by_slot(key, voices)
        if not subjects:
            return newest(places, told.values, told.times, ranks[told.slots], promises[told.slots], now, size)
        order = self._policy.order(key)
        own = np.array([order.index(each.witness) if each.witness in order else len(order) for each in others], np.float64)
        holds = np.array([math.inf if each.witness is WitnessClass.OPERATOR else each.promise for each in others], np.float64)
        return newest(
            np.concatenate([places, np.array([table.places.get(subject, -1) for subject in subjects], np.int32)]),
            np.concatenate([told.values, values]),
            np.concatenate([told.times, times]),
            np.concatenate([ranks[told.slots], own]),
            np.concatenate([promises[told.slots], holds]),
            now,
            size,
        )

    def _alone(self, name: str, key: str, stamp: object, places: Ints, size: int) -> tuple[NDArray[np.int64] | None, Ints]:
        """Which entries have a row, and it, where no two have the same one: then there is nothing to choose."""
        kept = self._single.get((name, key))
        if kept is None or kept[0] != stamp:
            entries = np.flatnonzero((places >= 0) & (places < size))
            rows = places[entries]
            several = len(rows) > 0 and int(np.bincount(rows).max()) > 1
            kept = self._single[name, key] = (stamp, None if several else entries, rows)
        return kept[1:]

    def _of(self, name: str, table: Table, told: Column) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        places = self._places.setdefault(name, Places())
        known = table.places
        return places.of(told.key, (told.epoch, table.generation), told.subjects, len(told.values), known.get)

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
