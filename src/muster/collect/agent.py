# SPDX-License-Identifier: Apache-2.0
"""The agent: collects, writes reports into the spool, and delivers them in a thread of its own, so that a server that does not answer delays no reading."""

from __future__ import annotations

import logging
import queue
import signal
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace

from muster.collect.clock import Clock
from muster.collect.collector import STANDS_BY, Collector, Round
from muster.collect.delivery import Delivery
from muster.collect.edge import Edge
from muster.collect.follow import Cursors, Follower, Piece
from muster.collect.node import NODE, node_of
from muster.collect.reports import Reports
from muster.collect.route import Routed, quiet
from muster.collect.spool import Spool
from muster.collect.tell import Teller, Told
from muster.domain.model.errors import MusterError
from muster.domain.model.source import Source, SourceId
from muster.wire.report import AgentDoc, NodeDoc

_log = logging.getLogger("muster.agent")

GATHER_S = 2.0
"""Seconds that rounds are gathered for one report while others are being read."""

COMPANY_S = 12.0
"""Seconds that the word of a quiet stream waits for a round to go with, so that it needs no report of its own."""

BEAT_S = 30.0
"""Seconds after which a stream that brought nothing is said to be followed still."""

SELF_S = 60.0
"""Seconds between two words of the agent on itself."""

STEP_S = 2.5
"""Seconds that a step waits at most while streams are being opened, and where nothing else than the clock tells that it is time to end."""

LONGEST_S = 30.0
"""Seconds that a step waits at most; what comes from a read, a stream, the server or a signal ends the wait."""

LOOK_S = 60.0
"""Seconds after which delivery looks again, though nothing came."""


class Agent:
    """One reporter. ``step`` is called again and again; ``run`` does that until it is told to stop.

    ``weighed`` adds to the agent's word on itself what it takes; left out, it says nothing of itself.
    """

    def __init__(
        self,
        collector: Collector,
        teller: Teller,
        reports: Reports,
        spool: Spool,
        clock: Clock,
        *,
        follower: Follower | None = None,
        cursors: Cursors | None = None,
        streams: Iterable[Source] = (),
        weighed: Callable[[AgentDoc], AgentDoc] | None = None,
    ) -> None:
        self._collector = collector
        self._teller = teller
        self._reports = reports
        self._spool = spool
        self._clock = clock
        self._follower = follower
        if follower is not None:
            follower.came = collector.wake
        self._cursors = cursors or Cursors(None)
        self._beats = {each.id: (each, float("-inf")) for each in streams}
        self._told = Told()
        self._since = float("inf")
        self._pressing = False
        self._renew = threading.Event()
        self._behind: dict[SourceId, str] = {}
        self._failed: dict[SourceId, list[Routed]] = {}
        self._standing: set[SourceId] = set()
        self._spoken: set[SourceId] = set()
        self._weighed = weighed
        self._said_self = float("-inf")
        self._costs: dict[str, float] = {}
        self._wanted: queue.SimpleQueue[str] = queue.SimpleQueue()

    def wanted(self, digests: Iterable[str]) -> None:
        """The server asks for captures; may be called from any thread."""
        for each in digests:
            self._wanted.put(each)
        self.wake()

    def renew(self) -> None:
        """Begins a new incarnation at the next step; may be called from any thread."""
        self._renew.set()
        self.wake()

    def wake(self) -> None:
        """Ends a `step` that waits; may be called from any thread, and when a signal comes."""
        self._collector.wake()

    def step(self, seconds: float = STEP_S) -> None:
        """Collects for ``seconds`` at most, less when something of the agent's own is due before, and writes what was told when it is time."""
        if self._renew.is_set():
            self._renew.clear()
            self._reports.renew()
            self._teller.forget()
            self._collector.forget()
            self._standing.clear()
        self.hear(self._collector.step(min(seconds, self._patience())))
        self._streams()
        self._fetch()
        waited = self._clock.mono() - self._since
        if self._told and (waited >= COMPANY_S or (self._pressing and (not self._collector.busy or waited >= GATHER_S))):
            self.write()

    def _patience(self) -> float:
        """Seconds until what was told must be written, or a stream must be spoken of; infinite where neither is to come."""
        now = self._clock.mono()
        due = float("inf")
        if self._told:
            due = self._since + (GATHER_S if self._pressing else COMPANY_S)
        if self._follower is not None:
            for source, last in self._beats.values():
                if source.id not in self._standing:
                    steady = source.id in self._spoken and (source.id in self._follower.followed or self._failed.get(source.id))
                    due = min(due, last + self._pulse(source) + COMPANY_S if steady else now + STEP_S)
        return max(0.0, due - now)

    @staticmethod
    def _pulse(source: Source) -> float:
        """Seconds after which a stream that brought nothing is spoken of."""
        return max(source.cadence.total_seconds(), BEAT_S)

    def once(self) -> None:
        """Each source once, written as soon as all are read."""
        self.hear(self._collector.once())
        self.write()

    def hear(self, rounds: Iterable[Round], *, pressing: bool = True) -> None:
        """Takes in rounds; those of vendors that are not here are passed over. What is not ``pressing`` may wait for others to go with."""
        for each in rounds:
            self._pressing |= pressing
            if each.source.id == NODE:
                self._named(each)
            if not each.standing_by:
                self._costs[str(each.source.id)] = round(each.took, 3)
            if each.standing_by or self._collector.presence.counts(each.source, each.told):
                self._add(self._teller.tell([each]))

    def write(self) -> None:
        """Puts what was told into the spool, then lets the streams' cursors follow."""
        told, self._told, self._since, self._pressing = self._told, Told(), float("inf"), False
        kept = [self._spool.add(report) for report in self._reports.build(told.heard, told.events, told.captures, self._self())]
        if all(kept):
            behind, self._behind = self._behind, {}
            for source, cursor in behind.items():
                self._cursors.put(source, cursor)

    def _self(self) -> AgentDoc | None:
        """What the agent says of itself, once in a while."""
        now = self._clock.mono()
        if self._weighed is None or now - self._said_self < SELF_S:
            return None
        self._said_self = now
        oldest = self._spool.since()
        return self._weighed(
            AgentDoc(
                spool_reports=len(self._spool),
                spool_bytes=self._spool.size,
                spool_oldest=max(0.0, self._clock.wall() - oldest) if oldest is not None else 0.0,
                dropped=self._spool.dropped,
                workers=self._collector.doing(),
                costs=dict(self._costs),
            )
        )

    def _fetch(self) -> None:
        """Takes the captures that the server asked for out of the ring."""
        digests = []
        while not self._wanted.empty():
            digests.append(self._wanted.get())
        evidence, mono = self._teller.evidence, self._clock.mono()
        if digests or evidence.owes(mono):
            self._pressing = True
            self._add(Told(captures=evidence.wanted(digests, mono)))

    def _add(self, told: Told) -> None:
        if told and not self._told:
            self._since = self._clock.mono()
        self._told.listings += told.listings
        self._told.heard += told.heard
        self._told.events += told.events
        self._told.captures += told.captures

    def _named(self, each: Round) -> None:
        doc = node_of(each.captures)
        known = self._reports.identity.node
        if doc.name and doc != known:
            fresh = NodeDoc(name=doc.name, machine_id=doc.machine_id or known.machine_id, system=doc.system or known.system)
            self._reports.identity = replace(self._reports.identity, node=fresh)

    def _streams(self) -> None:
        if self._follower is None:
            return
        for piece in self._follower.take():
            self._beat(piece.source, piece)
            self._behind[piece.source.id] = piece.behind
        standing = {each.id for each in self._follower.standing_by()}
        for source, last in tuple(self._beats.values()):
            if source.id in standing:
                self._stand(source)
            elif source.id in self._follower.followed or self._failed.get(source.id):
                self._standing.discard(source.id)
                if self._clock.mono() - last >= self._pulse(source):
                    self._beat(source, None)

    def _stand(self, source: Source) -> None:
        """Says once that a stream is not needed."""
        if source.id not in self._standing:
            self._standing.add(source.id)
            self._failed.pop(source.id, None)
            self.hear([Round(source=source, at=self._clock.wall(), mono=self._clock.mono(), routed=quiet(source, STANDS_BY), standing_by=True)])

    def _beat(self, source: Source, piece: Piece | None) -> None:
        """What came from a stream; or that it is still followed and quiet, or still cannot be. What has waited for company before does not wait again."""
        captures = [piece.capture] if piece else []
        at, mono = self._clock.wall(), self._clock.mono()
        waited = mono - self._beats[source.id][1] >= self._pulse(source) + COMPANY_S
        routed = self._collector.router.route(source.adapter, captures) if piece else self._failed.get(source.id) or quiet(source, "followed; nothing came")
        self._beats[source.id] = (source, mono)
        self._failed[source.id] = routed if any(each.own and each.told.outcome.failed for each in routed) else []
        for other in routed:
            if other.told.events:
                self._collector.alert(other.adapter, "an event")
        self.hear(
            [Round(source=source, at=at, mono=mono, captures=captures, routed=routed, cursor=piece.before if piece else "")],
            pressing=piece is not None or waited,
        )
        self._spoken.add(source.id)


def until_signal(agent: Agent) -> threading.Event:
    """Set when a signal comes, which ends the agent's wait too."""
    stop = threading.Event()

    def heard(*_: object) -> None:
        stop.set()
        agent.wake()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, heard)
    return stop


def deliver(delivery: Delivery, clock: Clock, stop: threading.Event, noted: Callable[[], float] = lambda: LOOK_S) -> None:
    """Delivers until ``stop`` is set, whatever is raised. ``noted`` is called after each step, and gives the seconds after which it is to be called again."""
    while not stop.is_set():
        again, look = False, LOOK_S
        with Edge() as edge:
            again = delivery.step()
            look = min(noted(), LOOK_S)
        if edge.broke:
            delivery.stumbled(edge.broke)
        if again:
            continue
        left = delivery.next_at - clock.mono()
        if left > 0:
            stop.wait(min(left, look))
        else:
            delivery.wait(look)


def drain(delivery: Delivery, limit: Callable[[], bool]) -> bool:
    """Delivers all there is. False when the server did not take it before ``limit`` gave True."""
    while delivery.step():
        if limit():
            return False
    return not delivery.trouble


def run(
    agent: Agent,
    delivery: Delivery,
    clock: Clock,
    stop: threading.Event,
    follower: Follower | None = None,
    *,
    between: Callable[[], float] = lambda: STEP_S,
    noted: Callable[[], float] = lambda: LOOK_S,
) -> None:
    """Collects and delivers until ``stop`` is set; what is told by then is written.

    ``between`` is called after each step of collecting, ``noted`` after each of delivering; both give the seconds after which they are to be called again.
    Whoever sets ``stop`` wakes the agent too, or has ``between`` give few seconds.
    Raises MusterError when a thread ended that should not: an agent that only seems to work is worse than one that ends.
    """

    ended = threading.Event()

    def carry() -> None:
        try:
            deliver(delivery, clock, stop, noted)
        finally:
            ended.set()
            agent.wake()

    courier = threading.Thread(target=carry, name="deliver", daemon=True)
    courier.start()
    if follower is not None:
        follower.start()
    wait, lost = STEP_S, ""
    while not stop.is_set() and not lost:
        agent.step(wait)
        wait = min(between(), LONGEST_S)
        if not stop.is_set():
            lost = "deliver" if ended.is_set() else follower.lost() if follower is not None else ""
    if follower is not None:
        follower.close()
    agent.write()
    delivery.wake()
    courier.join(timeout=STEP_S)
    if lost:
        raise MusterError(f"the thread {lost} of the agent ended before its time", hint="the agent ends, so that it is started again; its log may say why")
