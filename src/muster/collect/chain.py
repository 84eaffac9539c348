# SPDX-License-Identifier: Apache-2.0
"""Which source is read when: cadences, and chains in which a follower speaks only where its leader is silent. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.collect.pace import Pace
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Absent, Why
from muster.domain.model.source import Outcome, Source, SourceId, WitnessClass

SHOWS = frozenset({Outcome.DEVICES, Outcome.PARTIAL, Outcome.DEVICE_LOST})
"""Outcomes of a source that has cards here."""

ABSENT = frozenset({Outcome.TOOL_MISSING, Outcome.DRIVER_UNUSABLE, Outcome.NOT_PERMITTED, Outcome.TIMED_OUT, Outcome.UNREACHABLE, Outcome.UNREADABLE})
"""Outcomes after which the next of the chain is asked."""

_ELSEWHERE = frozenset({Why.MOVED, Why.NOT_REPORTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a source said when it was last read, as far as its chain needs it. ``started`` is monotonic."""

    started: float
    outcome: Outcome
    spoken: frozenset[str] = frozenset()
    """Attributes it said something of."""
    elsewhere: frozenset[str] = frozenset()
    """Attributes it said to look for elsewhere, on every subject."""

    @property
    def absent(self) -> bool:
        """True when the next of the chain is asked."""
        return self.outcome in ABSENT


def word(told: Interpretation, started: float) -> Word:
    """The word that an interpretation leaves behind."""
    spoken: set[str] = set()
    elsewhere: set[str] = set()
    for observation in told.observations:
        for key, reading in observation.readings.items():
            (elsewhere if isinstance(reading, Absent) and reading.why in _ELSEWHERE else spoken).add(key)
    return Word(started=started, outcome=told.outcome, spoken=frozenset(spoken), elsewhere=frozenset(elsewhere - spoken))


class Chains:
    """The sources of one reporter that are read in rounds, at the pace that is given."""

    def __init__(self, sources: Iterable[Source], pace: Pace | None = None) -> None:
        self.sources: Sequence[Source] = tuple(sources)
        self._pace = pace or Pace()
        self._by_id = {each.id: each for each in self.sources}

    def leaders(self, source: Source) -> list[Source]:
        """Those before it in its chain, the nearest first. Sources that follow each other in a circle lead themselves."""
        found: list[Source] = []
        at = source
        while at.after is not None and (leader := self._by_id.get(at.after)) is not None and leader not in found:
            if leader is source:
                return []
            found.append(leader)
            at = leader
        return found

    def needed(self, source: Source, words: Mapping[SourceId, Word]) -> bool:
        """True when the source leads, when all before it are absent, or when it provides what they lack; False while they are still to be heard."""
        leaders = self.leaders(source)
        if any(each.id not in words and self.needed(each, words) for each in leaders):
            return False
        live = [(each, words[each.id]) for each in leaders if each.id in words and not words[each.id].absent]
        if not live:
            return True
        if any(told.outcome is Outcome.NO_DEVICES for _, told in live):
            return False
        covered = frozenset[str]().union(*((frozenset(each.provides) | told.spoken) - told.elsewhere for each, told in live))
        return not covered.issuperset(source.provides)

    def instead(self, source: SourceId, words: Mapping[SourceId, Word]) -> SourceId | None:
        """Which of its chain shows cards here, of those that come behind ``source``; None where none does."""
        behind = (each for each in self.sources if any(leader.id == source for leader in self.leaders(each)))
        return next((each.id for each in behind if (told := words.get(each.id)) is not None and told.outcome in SHOWS), None)

    def standing_by(self, words: Mapping[SourceId, Word]) -> list[Source]:
        """Sources whose chain does not need them now. One whose leaders are still to be heard is not among them."""
        heard = [each for each in self.sources if all(leader.id in words or not self.needed(leader, words) for leader in self.leaders(each))]
        return [each for each in heard if not self.needed(each, words)]

    def all_needed(self, words: Mapping[SourceId, Word]) -> list[Source]:
        """Every source that is needed, by what was said; when it was said is of no matter."""
        return [each for each in self.sources if self.needed(each, words)]

    def due(self, words: Mapping[SourceId, Word], now: float, idle: Collection[str] = (), needed: Iterable[Source] | None = None) -> list[Source]:
        """Sources to read at ``now`` (monotonic), the bus first, leaders before followers. ``idle`` are adapters with nothing on this node.

        ``needed`` are the sources that are needed, where that is known already.
        """
        among = self.all_needed(words) if needed is None else needed
        found = [each for each in among if self._at(each, words, idle, now) <= now]
        return sorted(found, key=lambda each: (each.witness is not WitnessClass.PCI, len(self.leaders(each))))

    def next_at(
        self, words: Mapping[SourceId, Word], now: float, idle: Collection[str] = (), busy: Collection[str] = (), needed: Iterable[Source] | None = None
    ) -> float:
        """When the next source is due (monotonic), as things stand at ``now``; infinite when none is. Sources of ``busy`` adapters wait for something else."""
        among = self.all_needed(words) if needed is None else needed
        return min((self._at(each, words, idle, now) for each in among if each.adapter not in busy), default=float("inf"))

    def _at(self, source: Source, words: Mapping[SourceId, Word], idle: Collection[str], now: float) -> float:
        told = words.get(source.id)
        return self._pace.next_at(source, told.started if told else None, now, source.adapter in idle)
