# SPDX-License-Identifier: Apache-2.0
"""What of a record makes it another: everything but when it was last said, which capture it rests on, tools' own text, and numbers that only move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.roll import CardRecord, Claim, NodeRecord, PartRecord, Voice, Word

_MOVING = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT)
_APART = frozenset({"created_at", "presence_at", "increase", "counted", "details", "claims", "voices", "node_voices", "devices", "partitions"})
_CARD = tuple(f.name for f in fields(CardRecord) if f.name not in _APART)
_NODE = tuple(f.name for f in fields(NodeRecord) if f.name not in {"created_at", "last_at", "voices"})


def essence(record: CardRecord | NodeRecord) -> list[Any]:
    """The record as nested lists of plain values; equal when nothing but times, captures and moving numbers differs."""
    return _card(record) if isinstance(record, CardRecord) else _node(record)


def moving(key: str, word: Word) -> bool:
    """True when the word is a number of a gauge or counter: it moves without news."""
    return key in _MOVING and isinstance(word.value, int | float) and not isinstance(word.value, bool)


def voices_of(record: CardRecord | NodeRecord) -> Iterator[Voice]:
    """Every voice in the record: of the card, its place and its parts."""
    yield from record.voices
    if isinstance(record, CardRecord):
        yield from record.node_voices
        for part in (*record.devices, *record.partitions):
            yield from part.voices


def _card(card: CardRecord) -> list[Any]:
    return [
        [getattr(card, name) for name in _CARD],
        [_claim(claim) for claim in card.claims],
        _told(card.voices),
        _told(card.node_voices),
        [_part(part) for part in card.devices],
        [_part(part) for part in card.partitions],
    ]


def _node(node: NodeRecord) -> list[Any]:
    return [[getattr(node, name) for name in _NODE], _told(node.voices)]


def _part(part: PartRecord) -> list[Any]:
    return [part.id, part.level, part.ordinal, part.ids, part.under, _told(part.voices)]


def _claim(claim: Claim) -> list[Any]:
    lasting = [claim.node, claim.source, claim.channel, claim.ids, claim.slot, claim.addresses, claim.index, claim.promise, claim.void]
    return [*lasting, claim.denied_at is None, claim.confirmed_at is None]


def _told(voices: Iterable[Voice]) -> list[Any]:
    return [[v.node, v.source, v.channel, v.witness, v.promise, {key: _word(key, word) for key, word in v.words.items()}] for v in voices]


def _word(key: str, word: Word) -> list[Any]:
    value = None if moving(key, word) else word.value
    return [value, word.at is None, word.why, word.detail]
