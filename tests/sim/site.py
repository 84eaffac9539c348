# SPDX-License-Identifier: Apache-2.0
"""One site on its virtual clock: machines speak, agents deliver, the network loses, doubles and reorders, the server takes in, and the model listens."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path

import msgspec

from muster.collect.post import Fate, Posted
from muster.domain.model.errors import MusterError, Unavailable
from muster.wire.lanes import older
from muster.wire.report import ActDoc, AnswerDoc, ReportDoc, pack
from tests.sim import checks
from tests.sim.agents import Agent, wall
from tests.sim.faults import Faults
from tests.sim.model import Model
from tests.sim.rates import CALM, Rates
from tests.sim.server import POLICY, Server
from tests.sim.speech import Speech
from tests.sim.world import CADENCE, START, Machine, World

STEP = 30.0
AT_ONCE = 64
"""So many reports the server takes in one commit."""
PASSES = 40
"""So many reports an agent delivers in one step, at most."""
MANY = 400
"""So many recent reports may be sent once more."""


class Site:
    """Everything there is, from one seed. ``oracle`` keeps all that was taken for `ordered`; ``planned`` are faults that come in any case."""

    def __init__(
        self, seed: int, world: World, rates: Rates, folder: Path, *, on_disk: bool, deaths: float, oracle: bool = False,
        planned: Sequence[tuple[float, str]] = (),
    ) -> None:  # fmt: skip
        self.now = START
        self.world, self.rates, self.random = world, rates, world.random
        self.server = Server(seed, folder / "server" if on_disk else None, lambda: self.now, deaths)
        self.model = Model(world)
        self.model.remember = oracle
        self.faults = Faults(world, self.server, rates, START, planned)
        self.speech = Speech(world)
        self.agents = [Agent(machine, folder / "agents", lambda: self.now, self.random.random) for machine in world.machines]
        self.found: list[str] = []
        self.acts: list[tuple[float, ActDoc]] = []
        self.tally: Counter[str] = Counter()
        self._seen = checks.Seen()
        self._doubted: set[str] = set()
        self._waiting: dict[int, None] = {}
        self._strays: list[tuple[float, int, ReportDoc]] = []
        self._bmcs: list[tuple[float, int, ReportDoc]] = []
        self._recent: deque[ReportDoc] = deque(maxlen=MANY)
        self._count = itertools.count()
        self._phases: list[tuple[float, int]] = sorted((self.random.uniform(0, CADENCE), machine.number) for machine in world.machines)

    def step(self, *, quiet: bool = False) -> None:
        """The next half minute. ``quiet``: nothing befalls the site any more, and the network is good."""
        start, end = self.now, self.now + STEP
        if quiet:
            self.rates = CALM
            self.faults.rates = CALM
            self.faults._next.clear()
        self.faults.happen(start)
        for at, machine in self._due(start):
            self.now = at
            self._speak(machine, at)
        self.now = end
        self._deliver()
        self._operate()
        self.server.tick()
        if int(end) % 600 < STEP:
            self.server.pack()
        self.found += self.model.faults
        self.model.faults.clear()

    def _due(self, start: float) -> list[tuple[float, Machine]]:
        base = start - (start - START) % CADENCE
        return [(base + phase, self.world.machines[number]) for phase, number in self._phases if start <= base + phase < start + STEP]

    def _speak(self, machine: Machine, at: float) -> None:
        if machine.has_bmc:
            doc, told = self.speech.bmc(machine, at)
            self.model.made(machine, doc, [told])
            if self.random.random() >= self.rates.lost:
                late = self.random.random() < self.rates.late
                self.faults.seen["late"] += late
                heapq.heappush(self._bmcs, (at + (self.random.uniform(10, 3600) if late else 1.0), next(self._count), doc))
        if machine.down_until > at:
            return
        agent = self.agents[machine.number]
        if agent.born != machine.lives:
            agent.begin()
        agent.fill(full=machine.full_until > at)
        rounds = [self.speech.round(machine, source, at, wall(machine, at)) for source in machine.sources() if machine.mute.get(source, 0.0) <= at]
        if rounds:
            (doc,) = agent.say(rounds)
            self.model.made(machine, doc, rounds)
            self._waiting[machine.number] = None

    def _deliver(self) -> None:
        for _ in range(PASSES):
            sending = [(agent, doc) for agent in map(self.agents.__getitem__, list(self._waiting)) if (doc := self._next(agent)) is not None]
            others = [*self._arrived(self._bmcs), *self._arrived(self._strays)]
            if not sending and not others:
                return
            self.random.shuffle(sending)
            fates = self._posted([doc for _, doc in sending] + others)
            for (agent, doc), posted in zip(sending, fates, strict=False):
                agent.learn(doc, posted)
                if not len(agent.spool):
                    self._waiting.pop(agent.machine.number, None)
            for doc, posted in zip(others, fates[len(sending) :], strict=True):
                if posted.fate is Fate.LATER:
                    heapq.heappush(self._bmcs, (self.now + 5.0, next(self._count), doc))

    def _next(self, agent: Agent) -> ReportDoc | None:
        machine = agent.machine
        if max(machine.down_until, machine.cut_until, self.faults.site_cut_until) > self.now or agent.born != machine.lives:
            return None
        doc = agent.next()
        if doc is None and not len(agent.spool):
            self._waiting.pop(machine.number, None)
        return doc

    def _arrived(self, queue: list[tuple[float, int, ReportDoc]]) -> list[ReportDoc]:
        found = []
        while queue and queue[0][0] <= self.now:
            _, _, doc = heapq.heappop(queue)
            if queue is self._bmcs:
                doc = msgspec.structs.replace(doc, sent_at=self.now, sent_mono=self.now - START + 1)
            found.append(doc)
        return found

    def _posted(self, docs: list[ReportDoc]) -> list[Posted]:
        fates: dict[int, Posted] = {}
        arriving = []
        for place in range(len(docs)):
            if self.random.random() < self.rates.lost / 2:
                fates[place] = Posted(Fate.LATER, "timed out")
                self.faults.seen["lost"] += 1
            else:
                arriving.append(place)
        for start in range(0, len(arriving), AT_ONCE):
            some = arriving[start : start + AT_ONCE]
            answers = self.server.take([self._packed(docs[place]) for place in some])
            for n, place in enumerate(some):
                fates[place] = self._fate(docs[place], None if answers is None else answers[n])
        return [fates[place] for place in range(len(docs))]

    def _packed(self, doc: ReportDoc) -> bytes:
        number = int(doc.reporter.rpartition("m")[2])
        return pack(older(doc) if self.world.machines[number].schema == 1 else doc)

    def _fate(self, doc: ReportDoc, answer: AnswerDoc | MusterError | None) -> Posted:
        if answer is None:
            self.model.unknown(doc)
            return Posted(Fate.LATER, "the connection was lost")
        if isinstance(answer, Unavailable):
            self.tally["unavailable"] += 1
            return Posted(Fate.LATER, answer.message)
        if isinstance(answer, MusterError):
            self.found.append(f"{doc.reporter} {doc.sequence}: {answer.message}")
            return Posted(Fate.REFUSED, answer.message)
        self.tally[answer.answer] += 1
        self.model.answered(doc, answer.answer, self.server.now, POLICY.clock_tolerance)
        self._once_more(doc)
        if self.random.random() < self.rates.lost / 2:
            self.faults.seen["answer_lost"] += 1
            return Posted(Fate.LATER, "the answer was lost")
        if answer.answer == "refused":
            return Posted(Fate.REFUSED, answer.detail, renew=True)
        return Posted(Fate.TAKEN)

    def _once_more(self, doc: ReportDoc) -> None:
        """Copies of what was answered: the same again, an old one, or its number with other words."""
        dice = self.random.random()
        rates = self.rates
        if dice < rates.doubled:
            self.faults.seen["doubled"] += 1
            heapq.heappush(self._strays, (self.now + self.random.uniform(0.1, 300), next(self._count), doc))
        elif dice < rates.doubled + rates.replayed and self._recent:
            self.faults.seen["replayed"] += 1
            heapq.heappush(self._strays, (self.now + 1.0, next(self._count), self.random.choice(self._recent)))
        elif dice < rates.doubled + rates.replayed + rates.forged and doc.heard and doc.heard[0].numbers:
            self.faults.seen["forged"] += 1
            other = msgspec.structs.replace(doc.heard[0], numbers=bytes(len(doc.heard[0].numbers)))
            heapq.heappush(self._strays, (self.now + 1.0, next(self._count), msgspec.structs.replace(doc, heard=[other, *doc.heard[1:]])))
        self._recent.append(doc)

    def _operate(self) -> None:
        """An operator says what became of a board, once the roll misses it."""
        for board in list(self.world.retiring):
            if board.node is not None:
                self.world.retiring.remove(board)
                continue
            machine = self.world.machines[board.last]
            if not self.model.calm(machine, self.now, checks.SETTLED):
                continue
            doc = ActDoc(what=board.said, by="op", card={"vendor_uuid": board.uuid}, place="shelf" if board.said == "store" else "", reason="simulated")
            if self.server.act(doc):
                self.acts.append((self.now, doc))
                self.world.retiring.remove(board)

    def look(self, *, deep: bool = False) -> list[str]:
        """Holds the roll against what is true."""
        seen = checks.Look(self.world, self.model, self.server.store, self.now, checks.Seen() if deep else self._seen)
        faults = seen.faults()
        touched, self.world.touched = self.world.touched, set()
        faults += checks.biographies(seen, range(len(self.world.boards)) if deep else sorted(touched))
        hour = int((self.now - START) // 3600)
        faults += checks.gauges(seen, lambda number: deep or len(self.world.boards) < 100 or (number + hour) % 24 == 0)
        if deep:
            faults += checks.numbering(self.model, self.server.store)
        elif self.server.behind:  # what waited is being delivered at this very moment: what is wrong must be so the next time, too
            self.world.touched |= touched
            faults, self._doubted = [each for each in faults if each in self._doubted], set(faults)
        self.found += faults
        return faults
