# SPDX-License-Identifier: Apache-2.0
"""Documents of cards as bytes that are kept: all that a record says is written once, with gaps for what moves by itself (times, ages, gauges, findings).

A plate says what it holds for: which of its words are fresh, which of equals is the newer, which gauges are told. Where that is another, it is made anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from muster.domain.decide.choose import Shown
from muster.domain.decide.pick_rows import Makers
from muster.domain.decide.view import CardView, view
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known
from muster.domain.model.roll import CardRecord, Voice
from muster.store.again import card_on
from muster.wire import documents as d
from muster.wire import shown
from muster.wire.documents import encode
from muster.wiring.snapshot_clocks import Clock, Clocks, Holds, Said, Times, UnfitError
from muster.wiring.snapshot_tags import of_card, still

NAMED = frozenset({"product.name", "pci.vendor_id"})
"""What a card's name, model and maker are told by."""
_BY_NAME = frozenset({"name", "model", "vendor"})
_ALL = frozenset({"readings", "devices", "partitions", "increase"})
_ITSELF = 2000
"""About what a plate takes beside its bytes."""
_GAP = b"\x00"
"""Stands at both ends of the name of a gap: JSON has no such byte."""

Fill: TypeAlias = "bytes"
"""Bytes with gaps, as the operator ``%`` fills them by name."""
Names: TypeAlias = "Mapping[str, str]"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is told of a card: fields and readings in the order in which they were asked for; all of it where neither is named."""

    plain: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """True when documents are given as they are."""
        return not self.plain and not self.keys

    def asks(self, field: str) -> bool:
        """True when this field is told."""
        return self.whole or field in self.plain

    @property
    def chosen(self) -> frozenset[str] | None:
        """Readings that must be chosen for it; None for all."""
        if self.whole or not _ALL.isdisjoint(self.plain):
            return None
        name = NAMED if "vendor" in self.plain else {"product.name"} if not _BY_NAME.isdisjoint(self.plain) else frozenset()
        return frozenset(self.keys) | name

    @property
    def told(self) -> frozenset[str] | None:
        """Readings that it tells; None for all."""
        return None if self.asks("readings") else frozenset(self.keys)


@dataclass(slots=True)
class Plate:
    """The bytes of one card's document."""

    holds: Holds
    clocks: tuple[Clock, ...]
    pairs: tuple[tuple[int, int], ...]
    """Clocks of which it counts which is the newer."""
    places: tuple[str, ...]
    """Nodes whose names it tells."""
    rest: CardRecord
    """What of the record is still needed: where the card is, and who may tell its gauges."""
    increase: tuple[tuple[str, float, float | None, float | None], ...]
    """Of each counter what was counted, its number then, and the one that the record itself shows."""
    body: Fill
    still: Fill
    """The same without what moves by itself."""
    size: int
    speakers: Mapping[tuple[str, str], Voice]
    """Who speaks of the card."""
    base: Mapping[str, tuple[str, str] | None]
    """Gauges that stand in the record too, and who told them; None: several."""
    gaps: Mapping[str, bytes]
    """The gap of each gauge."""
    tag: str
    """What the card is, where the document is whole: the part of its ETag by which `If-Match` goes."""

    def alone(self, key: str, voice: Voice) -> bool:
        """True when nobody else speaks of this gauge."""
        return key not in self.base or self.base[key] == (voice.node, voice.source)


class Maker:
    """Makes plates."""

    def __init__(self, policy: Policy, makers: Makers) -> None:
        self._policy, self._makers = policy, makers

    def make(self, card: CardRecord, wanted: Wanted, times: Times, gauges: frozenset[str], names: Names, now: float) -> Plate:
        """The plate of a record as it was written. ``gauges`` are the readings that are told beside it. Raises UnfitError."""
        if card.devices or card.partitions or not NAMED.isdisjoint(gauges):
            raise UnfitError  # parts have gauges of their own
        light = _light(card, wanted)
        clocks = Clocks(light, times, self._policy, gauges)
        plain = {key: each for key, each in clocks.said.items() if key not in NAMED and key not in gauges and each.plain}
        seen = view(card_on(_without(light, plain.keys()), times.runs(light)), {}, self._policy, now)
        named = {key: each for key, each in seen.readings.items() if key in NAMED}
        document = shown.card(replace(seen, readings=named), self._vendor(seen) if wanted.asks("vendor") else None, (), names)
        for claim, told in zip(light.claims, document.claims, strict=True):
            told.last_at = _gap(f"T{clocks.of_claim(claim)}")
        counted = wanted.asks("increase")
        document.findings, document.increase, document.readings = _gap("F"), _gap("I"), _gap("R")
        body, gaps = _fields(document, wanted), {key: f"G{at}".encode() for at, key in enumerate(gauges)}
        if b"\x00R\x00" in body:
            moves = {key: _GAP + gap + _GAP for key, gap in gaps.items()}
            body = body.replace(b"\x00R\x00", _readings(moves, plain, seen, clocks, wanted))
        lasting = still(body)
        places = tuple(dict.fromkeys((*(claim.node for claim in light.claims), *(place.partition("/")[0] for place in light.details))))
        made, pairs, rest = tuple(clocks.known), tuple(clocks.pairs), _rest(card, gauges)
        return Plate(
            holds=times.holds(made, pairs, gauges, tuple(names.get(node) for node in places), now),
            clocks=made,
            pairs=pairs,
            places=places,
            rest=rest,
            increase=tuple((key, told, card.counted.get(key), _own(key, plain, seen)) for key, told in card.increase.items()) if counted else (),
            body=_fill(body),
            still=_fill(lasting),
            size=len(body) + len(lasting) + _ITSELF,
            speakers={(voice.node, voice.source): voice for voice in rest.voices},
            base=_base(rest),
            gaps=gaps,
            tag=of_card(card) if wanted.whole else "",
        )

    def _vendor(self, seen: CardView) -> str | None:
        found, named = seen.readings.get("pci.vendor_id"), seen.readings.get("product.name")
        return self._makers(getattr(found.reading, "value", None) if found else None, named.source if named else "")


def _light(card: CardRecord, wanted: Wanted) -> CardRecord:
    """The card without what nothing that is asked for tells."""
    keys = wanted.chosen
    claims = card.claims if wanted.asks("claims") or wanted.asks("seen_by") else ()
    details = card.details if wanted.asks("details") else {}
    if keys is None:
        return replace(card, claims=claims, details=details)
    return replace(card, claims=claims, details=details, voices=_pruned(card.voices, keys), node_voices=_pruned(card.node_voices, keys))


def _without(card: CardRecord, keys: Collection[str]) -> CardRecord:
    """The card without these readings."""
    return replace(card, voices=_pruned(card.voices, keys, out=True), node_voices=_pruned(card.node_voices, keys, out=True))


def _rest(card: CardRecord, gauges: frozenset[str]) -> CardRecord:
    return CardRecord(
        id=card.id, role=card.role, created_at=card.created_at, rung=card.rung, presence=card.presence, presence_at=card.presence_at,
        node=card.node, node_name=card.node_name, voices=_pruned(card.voices, gauges), node_voices=_pruned(card.node_voices, gauges), disagree=card.disagree,
    )  # fmt: skip


def _base(rest: CardRecord) -> dict[str, tuple[str, str] | None]:
    found: dict[str, tuple[str, str] | None] = {}
    for voice in (*rest.voices, *rest.node_voices):
        for key in voice.words:
            found[key] = (voice.node, voice.source) if key not in found else None
    return found


def _pruned(voices: Sequence[Voice], keys: Collection[str], *, out: bool = False) -> tuple[Voice, ...]:
    """The voices with their words of these readings, or ``out`` of all others."""
    return tuple(
        Voice(
            node=v.node,
            source=v.source,
            channel=v.channel,
            witness=v.witness,
            promise=v.promise,
            words={k: w for k, w in v.words.items() if (k in keys) != out},
        )
        for v in voices
    )


def _fields(document: d.Card, wanted: Wanted) -> bytes:
    """The fields that are asked for; readings after all others where some of them alone are."""
    if wanted.whole:
        return encode(document)
    names = ("id", *wanted.plain, *(("readings",) if wanted.keys else ()))
    return encode({name: getattr(document, name) for name in names})


def _readings(moves: Mapping[str, bytes], plain: Mapping[str, Said], seen: CardView, clocks: Clocks, wanted: Wanted) -> bytes:
    """The readings that are told, with gaps for those that move."""
    there = {**dict.fromkeys(seen.readings), **plain, **moves}
    keys = sorted(there) if wanted.told is None else [key for key in dict.fromkeys(wanted.keys) if key in there]
    pieces = []
    for key in keys:
        if key in moves:
            pieces.append(quoted(key) + moves[key])
        elif key in plain:
            pieces.append(quoted(key) + _plain(key, plain[key], clocks, seen.now))
        else:
            pieces.append(quoted(key) + _reading(key, seen.readings[key], clocks, seen.now))
    return b"{" + b",".join(pieces) + b"}"


def _reading(key: str, told: Shown, clocks: Clocks, now: float) -> bytes:
    document, clock = shown.reading(key, told, now), clocks.of_reading(key, told)
    document.observed_at, document.age = _gap(f"T{clock}"), _gap(f"A{clock}")
    return encode(document)


def _plain(key: str, said: Said, clocks: Clocks, now: float) -> bytes:
    """The reading of a value that one source alone tells: as `shown.reading` writes it."""
    word, clock = said.word, b"%d\x00" % said.clock
    told: str | None = word.value if isinstance(word.value, str) else None
    value = encode(word.value if told is not None else shown.plain(word.value))
    seen = b'"observed_at":\x00T' + clock + b"," + source_of(said.voice.source) + b'"age":\x00A' + clock
    end = b"" if clocks.fresh(said.clock, now) else b',"stale":true'
    return b'{"value":' + value + unit_of(key) + seen + (end + b',"capture":' + encode(word.capture) if word.capture else end) + b"}"


@lru_cache(maxsize=4096)
def quoted(key: str) -> bytes:
    """A key of an object."""
    return encode(key) + b":"


@lru_cache(maxsize=4096)
def unit_of(key: str) -> bytes:
    """The unit of a reading, between others of its fields."""
    entry = ATTRIBUTES.get(key)
    return b',"unit":' + encode(entry.unit.value if entry else "text") + b","


@lru_cache(maxsize=4096)
def source_of(name: str) -> bytes:
    """The source of a reading, before others of its fields."""
    return b'"source":' + encode(name) + b","


def _own(key: str, plain: Mapping[str, Said], seen: CardView) -> float | None:
    if key not in plain:
        return number(seen.readings.get(key))
    value = plain[key].word.value
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _gap(name: str) -> Any:
    return msgspec.Raw(_GAP + name.encode() + _GAP)


def _fill(body: bytes) -> Fill:
    parts = body.replace(b"%", b"%%").split(_GAP)
    parts[1::2] = [b"%(" + name + b")b" for name in parts[1::2]]
    return b"".join(parts)


def number(told: Shown | None) -> float | None:
    """The number that is shown; None where there is none."""
    value = told.reading.value if told is not None and isinstance(told.reading, Known) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
