# SPDX-License-Identifier: Apache-2.0
"""One node's collection: reads what is due, lets adapters interpret, and tells each round. The clock is handed in, the reading is done by hands."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.collect.chain import Chains, Word, word
from muster.collect.clock import Clock
from muster.collect.hands import Hands, Job
from muster.collect.near import Signs
from muster.collect.pace import Pace
from muster.collect.presence import Presence
from muster.collect.route import Routed, Router, quiet
from muster.collect.swift import Moving, Numbers, Swift
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, Outcome, ReaderKind, Source, SourceId
from muster.spi.adapter import Adapter
from muster.spi.readers import Reader

_log = logging.getLogger("muster.collect")

STANDS_BY = "the leader of its chain speaks"
"""Why a source is not read."""


_STEPS = ((86_400.0, "a day"), (3600.0, "an hour"), (600.0, "ten minutes"), (60.0, "a minute"), (10.0, "ten seconds"))


def roughly(seconds: float) -> str:
    """So long, in words that seldom change: what is told each round is not to be news each time."""
    return next((words for step, words in _STEPS if seconds >= step), "a few seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of one source. ``at`` is wall time, ``mono`` monotonic, both of its beginning; ``cursor`` is where a stream was before it.

    ``standing_by`` when its chain does not need it, or when it is not there and another of its chain shows the cards.
    """

    source: Source
    at: float
    mono: float
    captures: Sequence[Capture] = ()
    routed: Sequence[Routed] = ()
    stuck: bool = False
    standing_by: bool = False
    cursor: str = ""
    took: float = 0.0
    """Seconds that the reading took."""
    moved: Numbers | None = None
    """Numbers that moved since the round that ``routed`` is of; None for a round that was interpreted itself."""

    @property
    def told(self) -> Interpretation:
        """What the source's own adapter made of it."""
        return next((each.told for each in self.routed if each.own), Interpretation(outcome=Outcome.UNREADABLE))


@dataclass(slots=True)
class _State:
    words: dict[SourceId, Word] = field(default_factory=dict)
    standing: frozenset[SourceId] = frozenset()
    news: bool = True
    """True when a source has said something since it was last looked who stands by."""
    needed: Sequence[Source] | None = None
    """Sources that are needed by what was said so far; None when that is to be looked at anew."""
    idle: frozenset[str] = frozenset()
    missing: dict[SourceId, Round] = field(default_factory=dict)
    """The last round of each source whose tool or library was never there."""
    instead: dict[SourceId, SourceId | None] = field(default_factory=dict)
    """Of these, who was said to show the cards in their place."""


class Collector:
    """Reads the sources of ``adapters`` by ``readers``.

    ``hung`` gives what of an adapter outlived being killed (an empty text: nothing).
    ``let_go`` is told of an adapter whose library is not there, so that no worker is kept for it. ``offers`` are short ways by format (see `swift`).
    """

    def __init__(
        self,
        adapters: Sequence[Adapter],
        readers: Mapping[ReaderKind, Reader],
        clock: Clock,
        context: Mapping[str, str],
        hung: Callable[[str], str] = lambda _: "",
        let_go: Callable[[str], object] = lambda _: None,
        offers: Mapping[str, Moving] | None = None,
    ) -> None:
        self.adapters = {each.manifest.name: each for each in adapters}
        self.router = Router(adapters, context)
        self.presence = Presence([each.manifest for each in adapters])
        self._readers = readers
        self._clock = clock
        self._hung = hung
        self._let_go = let_go
        self._pace = Pace()
        self._signs = Signs()
        self._swift = Swift(offers or {})
        self._chains = Chains((source for each in adapters for source in each.sources if source.reader in readers), self._pace)
        self._hands = Hands(clock)
        self._state = _State()

    def step(self, seconds: float) -> list[Round]:
        """Starts what is due, waits ``seconds`` at most for something to end, and gives the rounds that ended, hung, or stand by from now on.

        `wake` ends the wait.
        """
        found = [self._ended(job) for job in self._hands.ended(0)]
        woken = self._hands.woken
        found += self._start()
        found += [self._ended(job) for job in self._hands.ended(0 if found or woken else min(seconds, self.wait()))]
        found += [self._hanging(job) for job in self._hands.overdue()]
        return [*found, *self._standing()]

    def once(self) -> Iterator[Round]:
        """Each source once, as far as its chain needs it; ends when nothing is left to read. Those that stand by are told last."""
        while True:
            yield from self._start(again=False)
            if not self._hands.busy:
                break
            limit = self._hands.next_limit() - self._clock.mono()
            yield from [self._ended(job) for job in self._hands.ended(max(limit, 0.01))]
            yield from [self._hanging(job) for job in self._hands.overdue()]
        self._hands.dismiss()
        yield from self._standing()

    def wait(self) -> float:
        """Seconds until something is due or overdue; infinite when nothing is."""
        now = self._clock.mono()
        needed, idle = self._needed()
        due = self._chains.next_at(self._state.words, now, idle, self._hands.busy, needed)
        return max(0.0, min(due, self._hands.next_limit()) - now)

    def forget(self) -> None:
        """Tells anew which sources stand by: a new incarnation begins."""
        self._state.standing, self._state.news = frozenset(), True
        self._state.instead.clear()
        self._swift.forget()

    def alert(self, adapter: str, why: str) -> None:
        """Reads the adapter's sources more often for a while, because a fault is near."""
        if self._pace.alert(adapter, self._clock.mono()):
            _log.info("%s is read more often for a while: %s", adapter, why)

    def release(self, seconds: float) -> list[str]:
        """Lets go of every handle of a driver, and takes none for so long. Gives the adapters that hold none now."""
        self._pace.hold(self._clock.mono() + seconds)
        holding = sorted({each.adapter for each in self._chains.sources if each.reader is ReaderKind.LIBRARY})
        return [adapter for adapter in holding if self._let_go(adapter) is not False]

    def wake(self) -> None:
        """Ends a `step` that waits; may be called from any thread."""
        self._hands.wake()

    def doing(self) -> dict[str, str]:
        """What is done with each adapter that something is done with: the source that is read, or hangs."""
        return self._hands.doing()

    @property
    def busy(self) -> bool:
        """True while something is being read."""
        return bool(self._hands.busy)

    def _start(self, again: bool = True) -> list[Round]:
        """Starts what is due; gives the rounds of sources that are not read because a read of their adapter hangs."""
        words, now = self._state.words, self._clock.mono()
        needed, idle = self._needed()
        blocked = []
        for source in self._chains.due(words, now, idle, needed):
            if not again and source.id in words:
                continue
            if self._hands.free(source.adapter):
                self._hands.start(source, self._readers[source.reader])
            elif (job := self._hands.stuck(source.adapter)) is not None:
                blocked.append(self._stuck(source, job, self._clock.wall(), now))
        return blocked

    def _needed(self) -> tuple[Sequence[Source], frozenset[str]]:
        """Sources that are needed, and adapters with nothing here; both change only by what is said."""
        state = self._state
        if state.needed is None:
            state.needed, state.idle = self._chains.all_needed(state.words), self.presence.idle
        return state.needed, state.idle

    def _ended(self, job: Job) -> Round:
        moved = self._swift.moved(job.source.id, job.captures)
        if moved is not None:
            return self._moved(job, *moved)
        routed = self.router.route(job.source.adapter, job.captures)
        self._swift.heard(job.source.id, job.captures, routed)
        took = self._clock.mono() - job.started
        found = Round(source=job.source, at=job.started_wall, mono=job.started, captures=job.captures, routed=routed, took=took)
        if found.told.outcome is Outcome.TIMED_OUT and self._hung(job.source.adapter):
            found = replace(found, stuck=True)
        if job.source.reader is ReaderKind.LIBRARY and found.told.outcome is Outcome.TOOL_MISSING:
            self._let_go(job.source.adapter)
        self._heard(found)
        return self._placed(replace(found, source=self._pace.promised(found.source)))

    def _placed(self, found: Round) -> Round:
        """The round; of a source that was never there while another of its chain shows the cards, that it is absent: nothing is amiss then."""
        state, source = self._state, found.source
        if found.told.outcome is not Outcome.TOOL_MISSING or not self._pace.never(source.id):
            return found
        state.missing[source.id] = found
        state.instead[source.id] = speaker = self._chains.instead(source.id, state.words)
        if speaker is None:
            return found
        told = replace(found.told, detail=f"absent, {speaker} speaks in its place" + (f": {found.told.detail}" if found.told.detail else ""))
        return replace(found, routed=[Routed(source.adapter, told, True)], standing_by=True)

    def _moved(self, job: Job, numbers: Numbers, routed: Sequence[Routed]) -> Round:
        """A round in which only numbers moved: what else was said is said again."""
        source = job.source
        self._state.words[source.id] = replace(self._state.words[source.id], started=job.started)
        why = self._signs.moved(f"{source.id}:{source.adapter}", numbers)
        if why:
            self.alert(source.adapter, why)
        took = self._clock.mono() - job.started
        return Round(source=source, at=job.started_wall, mono=job.started, captures=job.captures, routed=routed, took=took, moved=numbers)

    def _hanging(self, job: Job) -> Round:
        return self._stuck(job.source, job, job.started_wall, job.started)

    def _stuck(self, source: Source, job: Job, at: float, mono: float) -> Round:
        own = "" if source is job.source else "not read: "
        detail = f"{own}the read of {job.source.id} has not come back for more than {roughly(self._clock.mono() - job.started)}"
        told = Interpretation(outcome=Outcome.TIMED_OUT, detail=detail)
        found = Round(source=source, at=at, mono=mono, routed=(Routed(source.adapter, told, True),), stuck=True)
        self._heard(found)
        return found

    def _heard(self, found: Round) -> None:
        self._state.words[found.source.id] = word(found.told, found.mono)
        self._state.news, self._state.needed = True, None
        self.presence.hear(found.source, found.told)
        self._pace.hear(found.source.id, found.told.outcome)
        self._state.missing.pop(found.source.id, None)
        self._state.instead.pop(found.source.id, None)
        for each in found.routed:
            why = self._signs.hear(f"{found.source.id}:{each.adapter}", each.told)
            if why and self.presence.has(each.adapter) is not False:
                self.alert(each.adapter, why)

    def _standing(self) -> list[Round]:
        if not self._state.news:
            return []
        self._state.news = False
        standing = self._chains.standing_by(self._state.words)
        fresh = [each for each in standing if each.id not in self._state.standing]
        self._state.standing = frozenset(each.id for each in standing)
        at, mono = self._clock.wall(), self._clock.mono()
        rounds = [Round(source=each, at=at, mono=mono, routed=quiet(each, STANDS_BY), standing_by=True) for each in fresh]
        turned = [each for key, each in self._state.missing.items() if self._chains.instead(key, self._state.words) != self._state.instead.get(key)]
        return [*rounds, *(replace(self._placed(each), at=at, mono=mono) for each in turned)]
