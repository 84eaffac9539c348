# SPDX-License-Identifier: Apache-2.0
"""Prints documents of cards from their plates: gauges, times, ages and findings as they are at the asking. Plates are kept until their card is written."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from muster.domain.decide.choose import choose
from muster.domain.decide.pick_rows import Makers
from muster.domain.decide.view import voices_of
from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.policy import Policy
from muster.domain.model.roll import CardRecord, Finding, Voice, Word
from muster.domain.model.source import WitnessClass
from muster.domain.model.units import Unit
from muster.spi.numbers import Numbers, Rounds, Told
from muster.spi.store import CurrentValue
from muster.store.again import card_on
from muster.store.reader import Reader
from muster.wire import documents as d
from muster.wire import shown
from muster.wire.documents import encode
from muster.wiring.snapshot_clocks import OF_THE_PLACE, Times, UnfitError
from muster.wiring.snapshot_plates import Maker, Names, Plate, Wanted, number, source_of, unit_of
from muster.wiring.snapshot_records import Records
from muster.wiring.snapshot_tags import still

ROOM = 32 * 2**20
"""Bytes of plates that are kept."""
Source: TypeAlias = "tuple[str, str]"
Findings: TypeAlias = "Mapping[str, Sequence[Finding]]"
Naming: TypeAlias = "Callable[[Iterable[str]], Names]"
Gauges: TypeAlias = "dict[str, list[_Number | CurrentValue]]"
_MOVE = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT or entry.unit is Unit.LIST)
"""Attributes that may be told beside the record."""


@dataclass(frozen=True, slots=True)
class Printed:
    """One card's document, and what of it does not move by itself."""

    node: str | None
    node_name: str
    body: bytes
    still: bytes
    tag: str = ""
    """What the card is, where the document is whole."""


class _Number(NamedTuple):
    """A number and who tells it."""

    voice: Voice
    slot: int
    value: int | float
    at: float


@dataclass(frozen=True, slots=True)
class _Asked:
    """One asking: what holds for all of its cards."""

    wanted: Wanted
    now: float
    findings: Findings
    names: Naming
    rounds: Rounds
    times: Times
    captures: Mapping[int, str]


class Plates:
    """The plates of one application. Safe for several threads."""

    def __init__(self, records: Records, reader: Reader, numbers: Numbers, policy: Policy, makers: Makers) -> None:
        self._records, self._reader, self._numbers, self._policy = records, reader, numbers, policy
        self._maker = Maker(policy, makers)
        self._kept: OrderedDict[tuple[str, Wanted], Plate] = OrderedDict()
        self._wanted: dict[str, set[Wanted]] = {}
        self.size = 0
        """Bytes that are kept."""
        self._lock = threading.Lock()
        records.watch(self._drop)

    def _drop(self, id_: str) -> None:
        """Forgets the plates of a card."""
        with self._lock:
            for wanted in self._wanted.pop(id_, ()):
                self.size -= self._kept.pop((id_, wanted)).size

    def printed(
        self, ids: Sequence[str], wanted: Wanted, now: float, findings: Findings, names: Naming, known: Mapping[str, CardRecord] | None = None
    ) -> dict[str, Printed | CardRecord]:
        """The documents of these cards by id; the record itself of one that cannot be printed. What is no more is left out.

        ``known`` are records that were just read.
        """
        keys, began = wanted.chosen, self._records.changes
        plates = self._plates(ids, wanted)
        cards = dict(known or {})
        gauges = keys is None or not _MOVE.isdisjoint(keys)
        rounds = self._numbers.rounds()
        told = self._numbers.of(ids, keys) if gauges else [[] for _ in ids]
        nodes = {rounds.nodes[each[1]] for some in told for each in some}
        read, said, captures = self._reader.written([id_ for id_ in ids if id_ not in plates and id_ not in cards], ids if gauges else (), nodes)
        cards |= {card.id: card for card in read}
        by_card: dict[str, list[CurrentValue]] = {}
        for value in said:
            if keys is None or value.key in keys:
                by_card.setdefault(value.subject, []).append(value)
        asked = _Asked(wanted, now, findings, names, rounds, Times(rounds, self._records.slots(rounds)), captures)
        found: dict[str, Printed | CardRecord] = {}
        for id_, numbers in zip(ids, told, strict=True):
            printed = self._one(id_, plates.get(id_), cards.get(id_), numbers, by_card.get(id_, []), asked, began)
            if printed is not None:
                found[id_] = printed
        return found

    def _plates(self, ids: Sequence[str], wanted: Wanted) -> dict[str, Plate]:
        with self._lock:
            found = {id_: plate for id_ in ids if (plate := self._kept.get((id_, wanted))) is not None}
            for id_ in found:
                self._kept.move_to_end((id_, wanted))
        return found

    def _keep(self, id_: str, wanted: Wanted, plate: Plate, began: int) -> None:
        """Keeps a plate, if its card was not written since it was read."""
        with self._lock:
            if self._records.changes != began:
                return
            old = self._kept.pop((id_, wanted), None)
            self._kept[id_, wanted] = plate
            self._wanted.setdefault(id_, set()).add(wanted)
            self.size += plate.size - (old.size if old is not None else 0)
            while self.size > ROOM:
                (gone, told), last = self._kept.popitem(last=False)
                self.size -= last.size
                self._wanted[gone].discard(told)
                if not self._wanted[gone]:
                    del self._wanted[gone]

    def _one(
        self, id_: str, plate: Plate | None, card: CardRecord | None, numbers: Sequence[Told], said: Sequence[CurrentValue], asked: _Asked, began: int
    ) -> Printed | CardRecord | None:
        if plate is not None:
            gauges = _spoken(plate.rest, plate.speakers, numbers, said, asked)
            if asked.times.hold(plate.holds, plate.clocks, plate.pairs, asked.now) and gauges.keys() == plate.holds.gauges and _named(plate, asked):
                return self._print(plate, gauges, asked)
        if card is None:
            card = next(iter(self._reader.written([id_], (), ())[0]), None)
        if card is None:
            return None
        gauges = _spoken(card, {(voice.node, voice.source): voice for voice in card.voices}, numbers, said, asked)
        nodes = {claim.node for claim in card.claims} | {place.partition("/")[0] for place in card.details}
        names_of = asked.names(nodes) if asked.wanted.asks("claims") or asked.wanted.asks("details") else {}
        try:
            made = self._maker.make(card, asked.wanted, asked.times, frozenset(gauges), names_of, asked.now)
        except UnfitError:
            return card
        self._keep(id_, asked.wanted, made, began)
        return self._print(made, gauges, asked)

    def _print(self, plate: Plate, gauges: Gauges, asked: _Asked) -> Printed:
        gaps: dict[bytes, bytes] = {}
        for number_, at in enumerate(asked.times.at(plate.clocks)):
            gaps[b"T%d" % number_], gaps[b"A%d" % number_] = asked.times.texts(at, asked.now)
        findings = asked.findings.get(plate.rest.id)
        gaps[b"F"] = encode([d.FindingRef(id=each.id, kind=each.kind.value) for each in findings]) if findings else b"[]"
        lasting = {b"F": gaps[b"F"]}
        numbers = self._gauges(plate, gauges, asked, gaps, lasting)
        gaps[b"I"] = lasting[b"I"] = _increase(plate, numbers) if plate.increase else b"{}"
        return Printed(plate.rest.node, plate.rest.node_name, plate.body % gaps, plate.still % lasting, plate.tag)

    def _gauges(self, plate: Plate, gauges: Gauges, asked: _Asked, gaps: dict[bytes, bytes], lasting: dict[bytes, bytes]) -> dict[str, float | None]:
        """Puts the readings that move into the gaps; returns the numbers that are shown."""
        numbers: dict[str, float | None] = {}
        voices: list[Voice] = []
        for key, told in gauges.items():
            gap, one = plate.gaps[key], told[0]
            if len(told) == 1 and type(one) is _Number and plate.alone(key, one.voice):
                gaps[gap], lasting[gap] = _plain(key, one, asked)
                numbers[key] = one.value
                continue
            voices = voices or _voices(plate.rest, gauges, asked)
            judged = {(first, second) for name, first, second in plate.rest.disagree if name == key}
            found = choose(key, voices, self._policy, asked.now, judged)
            if found is None:
                raise AssertionError(key)
            gaps[gap] = encode(shown.reading(key, found, asked.now))
            lasting[gap] = still(gaps[gap])
            numbers[key] = number(found)
        return numbers


def _named(plate: Plate, asked: _Asked) -> bool:
    """True when the nodes that it names are still called so."""
    if not plate.places:
        return True
    names = asked.names(plate.places)
    return tuple([names.get(node) for node in plate.places]) == plate.holds.names


def _spoken(card: CardRecord, speakers: Mapping[Source, Voice], numbers: Sequence[Told], said: Sequence[CurrentValue], asked: _Asked) -> Gauges:
    """What is told beside the record by sources that speak of the card; of a number and a word of one source the newer, the word where they are as new."""
    found: Gauges = {}
    nodes, sources = asked.rounds.nodes, asked.rounds.sources
    words = {(each.node, each.source, each.key): each for each in said}
    for key, slot, value, at in numbers:
        voice = speakers.get((nodes[slot], sources[slot]))
        if voice is None or (voice.node and voice.node != card.node and key in OF_THE_PLACE):
            continue
        word = words.get((voice.node, voice.source, key)) if words else None
        if word is not None:
            if at <= max(word.word.at or 0.0, word.word.why_at or 0.0):
                continue
            del words[voice.node, voice.source, key]
        mine = found.get(key)
        told = _Number(voice, slot, int(value) if value.is_integer() and abs(value) < 2**53 else value, at)
        if mine is None:
            found[key] = [told]
        else:
            mine.append(told)
    for each in words.values():
        voice = speakers.get((each.node, each.source))
        if voice is not None and not (voice.node and voice.node != card.node and each.key in OF_THE_PLACE):
            found.setdefault(each.key, []).append(each)
    return found


def _voices(rest: CardRecord, gauges: Gauges, asked: _Asked) -> list[Voice]:
    """Who speaks of the card's gauges, with all their words."""
    apart: dict[Source, dict[str, Word]] = {}
    for key, told in gauges.items():
        for each in told:
            if isinstance(each, _Number):
                apart.setdefault((each.voice.node, each.voice.source), {})[key] = Word(value=each.value, at=each.at, capture=asked.captures.get(each.slot, ""))
            else:
                apart.setdefault((each.node, each.source), {})[key] = each.word
    return voices_of(card_on(rest, asked.times.runs(rest)), {rest.id: apart})


def _plain(key: str, told: _Number, asked: _Asked) -> tuple[bytes, bytes]:
    """The reading of a number that one source alone tells, and the same without what moves by itself."""
    begin, source = unit_of(key), source_of(told.voice.source)
    value = encode(told.value)
    seen, age = asked.times.texts(told.at, asked.now)
    end = b',"stale":true' if told.voice.witness is not WitnessClass.OPERATOR and asked.now - told.at > told.voice.promise else b""
    if capture := asked.captures.get(told.slot):
        end += b',"capture":' + encode(capture)
    lasting = b'{"value":' + value + begin + b"," + source + end + b"}"
    return b'{"value":' + value + begin + b'"observed_at":' + seen + b"," + source + b'"age":' + age + end + b"}", lasting


def _increase(plate: Plate, numbers: Mapping[str, float | None]) -> bytes:
    """As `muster.domain.decide.view.grown` says it."""
    found: dict[str, float] = {}
    for key, total, then, own in plate.increase:
        now = numbers.get(key, own)
        found[key] = total + (now - then if now is not None and then is not None and now > then else 0)
    return encode(found)
