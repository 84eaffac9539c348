# SPDX-License-Identifier: Apache-2.0
"""When time alone changes a row: a source on which it depends falls silent, or speaks again. One that goes on saying the same keeps its rows as they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from muster.domain.decide.pick_rows import End
from muster.domain.decide.pick_table import Table
from muster.domain.model.snapshot import Floats
from muster.spi.numbers import Numbers, Rounds

MOST = 2000
"""Rows that are made anew because of time alone in one look; the others wait for the next."""


@dataclass(frozen=True, slots=True)
class _Kept:
    fixed: float
    """When the first word ends that is not said again with the others of its source."""
    following: tuple[tuple[int, float], ...]
    """Slots whose words go on as long as they are heard, with their promise."""
    asleep: tuple[int, ...]
    """Slots that are silent now."""


class Turns:
    """What the rows of cards wait for."""

    def __init__(self, numbers: Numbers | None) -> None:
        self._numbers = numbers
        self._kept: dict[str, _Kept] = {}
        self._last = _Kept(math.inf, (), ())
        self._sleeping: dict[int, set[str]] = {}
        self._heard_at: dict[int, float] = {}
        self._slots: dict[tuple[str, str], int] = {}
        self._named = -1
        self._rounds: Rounds | None = None
        self._since: Floats = np.empty(0)

    def stirred(self) -> set[str]:
        """Nodes of the sources that said something else since this was asked last."""
        if self._numbers is None:
            return set()
        rounds = self._rounds = self._numbers.rounds()
        self._name(rounds.nodes, rounds.sources)
        known = np.full(len(rounds.since), np.nan)
        known[: len(self._since)] = self._since[: len(known)]
        self._since = rounds.since
        return {rounds.nodes[slot] for slot in np.flatnonzero((rounds.since != known) & ~np.isnan(rounds.since)).tolist()}

    def still(self) -> bool:
        """True when no source said something else since."""
        rounds = self._numbers.rounds() if self._numbers is not None else None
        return rounds is None or np.array_equal(rounds.since, self._since, equal_nan=True)

    def put(self, id_: str, ends: Iterable[End], now: float) -> float:
        """Takes in what the row of ``id_`` depends on; returns when time may change it first."""
        self.drop(id_)
        rounds = self._now()
        fixed = turn = math.inf
        following: list[tuple[int, float]] = []
        asleep: list[int] = []
        for end in ends:
            until = end.at + end.promise
            slot = self._slots.get((end.node, end.source))
            if until <= now:
                if slot is not None:
                    asleep.append(slot)
                continue
            turn = min(turn, until)
            if slot is not None and rounds is not None and end.at >= float(rounds.since[slot]):
                following.append((slot, end.promise))
            else:
                fixed = min(fixed, until)
        kept = _Kept(fixed, tuple(following), tuple(asleep))
        if kept != self._last:  # cards of one node, that come one after the other, mostly wait for the same
            self._last = kept
        self._kept[id_] = self._last
        for slot in asleep:
            self._sleeping.setdefault(slot, set()).add(id_)
            self._heard_at[slot] = self._heard(slot)
        return turn

    def tells(self, node: str, source: str, at: float) -> bool:
        """True for a number of a source whose numbers come in rounds, and that was in its last full word: it stands in a column of its own."""
        rounds = self._now()
        slot = self._slots.get((node, source))
        return slot is not None and rounds is not None and at >= float(rounds.since[slot])

    def drop(self, id_: str) -> None:
        """Forgets a row."""
        kept = self._kept.pop(id_, None)
        for slot in kept.asleep if kept is not None else ():
            waiting = self._sleeping.get(slot, set())
            waiting.discard(id_)
            if not waiting:
                self._sleeping.pop(slot, None)

    def due(self, cards: Table, now: float) -> list[str]:
        """Ids of the rows that must be made anew, at most ``MOST``. Those whose sources went on are told when to be looked at next."""
        found: list[str] = []
        for id_ in cards.ids(cards.due(now)):
            until = self._until(id_)
            if until > now:
                cards.turn(id_, until)
            else:
                found.append(id_)
        found += [id_ for slot, ids in self._sleeping.items() if self._heard(slot) > self._heard_at.get(slot, math.inf) for id_ in ids]
        return found[:MOST]

    def _until(self, id_: str) -> float:
        kept = self._kept.get(id_)
        if kept is None or self._now() is None:
            return -math.inf
        return min((kept.fixed, *(self._heard(slot) + promise for slot, promise in kept.following)))

    def _heard(self, slot: int) -> float:
        """Until when the words of a source were said."""
        rounds = self._now()
        if rounds is None or slot >= len(rounds.since):
            return -math.inf
        again = float(rounds.again_at[slot])
        return again if again == again else float(rounds.since[slot])

    def _now(self) -> Rounds | None:
        if self._rounds is None and self._numbers is not None:
            self._rounds = self._numbers.rounds()
            self._name(self._rounds.nodes, self._rounds.sources)
        return self._rounds

    def _name(self, nodes: Sequence[str], sources: Sequence[str]) -> None:
        if self._named != len(nodes):
            self._named = len(nodes)
            self._slots = {place: slot for slot, place in enumerate(zip(nodes, sources, strict=True)) if place[0]}
