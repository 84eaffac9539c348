# SPDX-License-Identifier: Apache-2.0
"""What must be true: the model hears what the server acknowledged, and from that and the hardware it knows what the roll has to say."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from muster.wire.report import ReportDoc
from tests.sim.speech import KEYS, Round
from tests.sim.world import BMC, DRIVER, Machine, World

Key = tuple[str, str, int]
"""Reporter, incarnation, sequence."""
SAMPLED = 48
"""So many boards are held to their gauges and minutes."""


@dataclass(slots=True)
class Told:
    """What the server has of one source: its newest word, and how many it said since the hardware was as it is."""

    at: float = 0.0
    version: int = -1
    words: int = 0
    stuck: bool = False
    failed: bool = False
    standing_by: bool = False
    uuids: tuple[str, ...] = ()


@dataclass(slots=True)
class Gauges:
    """What the driver told of one board: rounds that were surely taken, and the newest numbers."""

    rounds: int = 0
    at: float = 0.0
    values: dict[str, float] = field(default_factory=dict)


class Model:
    """Everything that the server must know."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.told: dict[tuple[int, str], Told] = defaultdict(Told)
        self.taken: Counter[tuple[str, str]] = Counter()
        """Reports taken, by reporter and incarnation."""
        self.doubt: dict[Key, None] = {}
        """Reports of which nobody knows whether they were taken."""
        self.gauges: dict[str, Gauges] = {}
        self.clock_wrong: set[str] = set()
        self.clashed: set[str] = set()
        self.history: list[tuple[float, int, ReportDoc]] = []
        self.faults: list[str] = []
        self.remember = False
        """Keeps every report that was taken, for the oracle that hears them in order."""
        self._open: dict[Key, tuple[int, list[Round]]] = {}
        self._apart = max(1, len(world.boards) // SAMPLED)

    def made(self, machine: Machine, doc: ReportDoc, rounds: list[Round]) -> None:
        """A report is on its way."""
        self._open[_key(doc)] = (machine.number, rounds)

    def unknown(self, doc: ReportDoc) -> None:
        """The server died on it."""
        if _key(doc) in self._open:
            self.doubt[_key(doc)] = None

    def answered(self, doc: ReportDoc, answer: str, server_now: float, tolerance: float) -> None:
        """The server said what became of it."""
        key = _key(doc)
        if answer == "refused":
            self.clashed.add(doc.reporter)
            return
        if answer == "applied":
            self.clashed.discard(doc.reporter)
            wrong = abs(server_now - doc.sent_at) > tolerance
            (self.clock_wrong.add if wrong else self.clock_wrong.discard)(doc.reporter)
        found = self._open.pop(key, None)
        if found is None:
            if answer == "applied":
                self.faults.append(f"{key} was taken twice")
            return
        self.doubt.pop(key, None)
        self.taken[key[:2]] += 1
        number, rounds = found
        for each in rounds:
            self._hear(number, each)
        if self.remember and rounds:
            self.history.append((rounds[0].at, len(self.history), doc))

    def _hear(self, number: int, told: Round) -> None:
        known = self.told[number, told.source]
        if told.at > known.at:
            known.words = known.words + 1 if known.version == told.version else 1
            known.at, known.version, known.uuids = told.at, told.version, told.uuids
            known.stuck, known.failed, known.standing_by = told.stuck, told.failed, told.standing_by
        if told.source == DRIVER:
            for place, uuid in enumerate(told.uuids):
                if int(uuid[4:12], 16) % self._apart == 0:
                    self._measure(uuid, told, place)

    def _measure(self, uuid: str, told: Round, place: int) -> None:
        mine = self.gauges.setdefault(uuid, Gauges())
        mine.rounds += 1
        if told.at > mine.at:
            mine.at = told.at
            mine.values = dict(zip(KEYS, np.asarray(told.values[place]).tolist(), strict=True))

    def sources(self, machine: Machine) -> tuple[str, ...]:
        """All that speaks of a machine."""
        return (*machine.sources(), BMC) if machine.has_bmc else machine.sources()

    def silent(self, machine: Machine, source: str, now: float, promise: float, about: float) -> bool | None:
        """Whether nobody heard it for longer than it promised; None within ``about`` seconds of that, and before its first word."""
        known = self.told.get((machine.number, source))
        if known is None or known.at == 0.0:
            return None
        over = now - known.at - promise
        return None if abs(over) < about else over > 0 and not known.standing_by

    def calm(self, machine: Machine, now: float, settled: float) -> bool:
        """True when all that speaks of it has told how it is now, often enough that the roll must know it, and goes on speaking."""
        if now - machine.changed < settled:
            return False
        found = [self.told[machine.number, source] for source in self.sources(machine)]
        return all(each.standing_by or (each.version == machine.version and each.words >= 3 and now - each.at < 600) for each in found)


def _key(doc: ReportDoc) -> Key:
    return doc.reporter, doc.incarnation, doc.sequence
