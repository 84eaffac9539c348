# SPDX-License-Identifier: Apache-2.0
"""The times in a record of a card: which stand, which go on with their source, and what of a document depends on them beside the times themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from muster.domain.decide.choose import Shown
from muster.domain.decide.essence import moving
from muster.domain.model.attributes import ATTRIBUTES, Level
from muster.domain.model.moments import rfc3339
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known
from muster.domain.model.roll import CardRecord, Claim, Voice, Word
from muster.domain.model.source import WitnessClass
from muster.spi.numbers import Rounds
from muster.store.again import Runs, card_on
from muster.wire import shown
from muster.wire.documents import encode

OF_THE_PLACE = frozenset(key for key, entry in ATTRIBUTES.items() if entry.of in (Level.SERVER, Level.NODE))
"""What a source on another node does not tell of a card that was moved."""


class UnfitError(Exception):
    """A card that cannot be written so: it is put together each time."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A time in a record: it stands, or goes on with its source, and what was said then is fresh for some seconds after it."""

    source: tuple[str, str]
    base: float
    promise: float
    follows: bool


@dataclass(frozen=True, slots=True)
class Holds:
    """For what a plate was made."""

    since: tuple[float, ...]
    """When the source of each clock told last in full; infinity: never."""
    fresh: tuple[bool, ...]
    """Of each clock whether what was said then is fresh."""
    newer: tuple[int, ...]
    """Of each pair of clocks which is the newer: 1, 0, -1."""
    gauges: frozenset[str]
    names: tuple[str | None, ...]


@dataclass(slots=True)
class Said:
    """The word of a source alone. ``plain``: a value, and no absence since."""

    voice: Voice
    word: Word
    clock: int
    plain: bool


class Clocks:
    """The times in a record, each once. ``said`` are readings of which one source alone speaks."""

    def __init__(self, card: CardRecord, times: Times, policy: Policy, gauges: frozenset[str]) -> None:
        self._times, self._card = times, card
        self._numbers: dict[Clock, int] = {}
        self._last: tuple[Voice | None, float, bool, int] = (None, 0.0, False, 0)
        self.known: list[Clock] = []
        self.said: dict[str, Said] = {}
        several: dict[str, list[tuple[Voice, bool]]] = {}
        own = len(card.voices)
        for at, voice in enumerate((*card.voices, *card.node_voices)):
            strange = at < own and voice.node and voice.node != card.node
            for key, word in voice.words.items():
                if key in gauges or (strange and key in OF_THE_PLACE):
                    continue
                if key in several:
                    several[key].append((voice, at < own))
                elif (first := self.said.pop(key, None)) is not None:
                    several[key] = [(first.voice, first.voice in card.voices), (voice, at < own)]
                else:
                    known = word.at is not None
                    clock = self._of_word(key, voice, word, at < own, known=known)
                    self.said[key] = Said(voice, word, clock, known and word.why is None)
        self.pairs = list(dict.fromkeys(pair for key, voices in several.items() for pair in self._equals(key, voices, policy)))

    def _equals(self, key: str, voices: Sequence[tuple[Voice, bool]], policy: Policy) -> Iterator[tuple[int, int]]:
        """Clocks of equal rank for one reading: the newer one is shown."""
        if len({(voice.node, voice.source) for voice, _ in voices}) < len(voices):
            raise UnfitError
        order, ranked = policy.order(key), dict[tuple[bool, int], list[int]]()
        for voice, own in voices:
            known = voice.words[key].at is not None
            rank = order.index(voice.witness) if voice.witness in order else len(order)
            ranked.setdefault((known, rank), []).append(self._of_word(key, voice, voice.words[key], own, known=known))
        return (pair for same in ranked.values() for pair in combinations(dict.fromkeys(same), 2))

    def _number(self, clock: Clock) -> int:
        found = self._numbers.get(clock)
        if found is None:
            found = self._numbers[clock] = len(self.known)
            self.known.append(clock)
        return found

    def _of_word(self, key: str, voice: Voice, word: Word, own: bool, *, known: bool) -> int:
        base = (word.at if known else word.why_at) or 0.0
        moves = moving(key, word)
        last, at, moved, clock = self._last
        if last is not voice or at != base or moved != moves:
            source = (voice.node, voice.source)
            follows = own and base != 0.0 and not moves and base >= self._times.since(source)
            clock = self._number(Clock(source, base, inf if voice.witness is WitnessClass.OPERATOR else voice.promise, follows))
            self._last = (voice, base, moves, clock)
        return clock

    def fresh(self, clock: int, now: float) -> bool:
        """True when what was said then is fresh."""
        told = self.known[clock]
        return now - self._times.at((told,))[0] <= told.promise

    def of_reading(self, key: str, told: Shown) -> int:
        """The clock of a reading that is shown."""
        for at, voice in enumerate((*self._card.voices, *self._card.node_voices)):
            if voice.node == told.node and voice.source == told.source and key in voice.words:
                return self._of_word(key, voice, voice.words[key], at < len(self._card.voices), known=isinstance(told.reading, Known))
        raise UnfitError

    def of_claim(self, claim: Claim) -> int:
        """The clock of a claim."""
        source = (claim.node, claim.source)
        return self._number(Clock(source, claim.at, claim.promise, claim.denied_at is None and claim.at >= self._times.since(source)))


def places_of(card: CardRecord) -> set[tuple[str, str]]:
    """Node and name of each source that speaks of a card."""
    return {(claim.node, claim.source) for claim in card.claims} | {(voice.node, voice.source) for voice in card.voices}


class Times:
    """How far each source has come, for one answer."""

    def __init__(self, rounds: Rounds, slots: Mapping[tuple[str, str], int]) -> None:
        self._slots = slots
        self._since, self._again = rounds.since, rounds.again_at
        self._known: dict[tuple[str, str], tuple[float, float]] = {}
        self._texts: dict[float, tuple[bytes, bytes]] = {}

    def run(self, source: tuple[str, str]) -> tuple[float, float]:
        """When it told last in full, and until when it said the same again; infinity for never, minus infinity for not at all."""
        found = self._known.get(source)
        if found is None:
            slot = self._slots.get(source, -1)
            there = 0 <= slot < len(self._since)
            since, again = (float(self._since[slot]), float(self._again[slot])) if there else (inf, -inf)
            found = self._known[source] = (inf, -inf) if since != since else (since, -inf if again != again else again)
        return found

    def since(self, source: tuple[str, str]) -> float:
        """When it told last in full; infinity: never."""
        return self.run(source)[0]

    def runs(self, card: CardRecord) -> Runs:
        """Those of the sources that speak of a card and said the same again."""
        return {place: run for place in places_of(card) if (run := self.run(place))[1] != -inf}

    def at(self, clocks: Sequence[Clock]) -> list[float]:
        """What each clock shows."""
        return [max(clock.base, self.run(clock.source)[1]) if clock.follows else clock.base for clock in clocks]

    def holds(self, clocks: Sequence[Clock], pairs: Sequence[tuple[int, int]], gauges: frozenset[str], names: tuple[str | None, ...], now: float) -> Holds:
        """What a plate with these clocks would be made for now."""
        at = self.at(clocks)
        return Holds(
            since=tuple([self.run(clock.source)[0] for clock in clocks]),
            fresh=tuple([now - time <= clock.promise for time, clock in zip(at, clocks, strict=True)]),
            newer=tuple([(at[one] > at[other]) - (at[one] < at[other]) for one, other in pairs]),
            gauges=gauges,
            names=names,
        )

    def hold(self, holds: Holds, clocks: Sequence[Clock], pairs: Sequence[tuple[int, int]], now: float) -> bool:
        """True when they show what they showed: all of `holds` but gauges and names."""
        at = self.at(clocks)
        for time, clock, since, fresh in zip(at, clocks, holds.since, holds.fresh, strict=True):
            if self.run(clock.source)[0] != since or (now - time <= clock.promise) is not fresh:
                return False
        return all((at[one] > at[other]) - (at[one] < at[other]) == newer for (one, other), newer in zip(pairs, holds.newer, strict=True))

    def texts(self, at: float, now: float) -> tuple[bytes, bytes]:
        """A time and its age as a document tells them."""
        found = self._texts.get(at)
        if found is None:
            found = self._texts[at] = encode(rfc3339(at)), encode(shown.seconds(max(0.0, now - at)))
        return found


def on_time(card: CardRecord, times: Times) -> CardRecord:
    """The card with the times that count for what of it is shown: those of claims, and of readings of which several speak."""
    runs = times.runs(card)
    if not runs or card.devices or card.partitions:
        return card_on(card, runs)
    known: set[str] = set()
    several: set[str] = set()
    for voice in (*card.voices, *card.node_voices):
        several |= known & voice.words.keys()
        known |= voice.words.keys()
    return card_on(card, runs, several)
