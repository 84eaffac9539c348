# SPDX-License-Identifier: Apache-2.0
"""What of a record makes a new version of it: everything but when it was last said, which capture it rests on, tools' own text, and numbers that only move.

A record whose essence is the same is brought up to date in place, so that ages are right and history does not grow with every report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.roll import CardRecord, Claim, NodeRecord, PartRecord, Voice, Word
from muster.store.mapping import ordered

_MOVING = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT)
_APART = frozenset({"created_at", "presence_at", "increase", "details", "claims", "voices", "node_voices", "devices", "partitions"})
_CARD = tuple(f.name for f in fields(CardRecord) if f.name not in _APART)
_NODE = tuple(f.name for f in fields(NodeRecord) if f.name not in {"created_at", "last_at", "voices"})


def digest(record: CardRecord | NodeRecord) -> str:
    """32 hex digits that differ when more than times, captures and moving numbers differ."""
    essence = _card(record) if isinstance(record, CardRecord) else _node(record)
    return hashlib.blake2b(ordered(essence), digest_size=16).hexdigest()


def captures(record: CardRecord | NodeRecord) -> list[str]:
    """Digests of the captures that its words rest on, each once, in order."""
    return sorted({word.capture for voice in _voices(record) for word in voice.words.values() if word.capture})


def moving(key: str, word: Word) -> bool:
    """True when the word is a number of a gauge or counter: it moves without news."""
    return key in _MOVING and isinstance(word.value, int | float) and not isinstance(word.value, bool)


def _voices(record: CardRecord | NodeRecord) -> Iterator[Voice]:
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


def card_then(card: CardRecord, at: float, updated_at: float) -> CardRecord:
    """The card as believed at ``at``: no time in it is later, and numbers that have moved since (brought up to date after ``at``) are left out."""
    later = updated_at > at
    return replace(
        card,
        presence_at=min(card.presence_at, at),
        claims=tuple(_claim_then(claim, at) for claim in card.claims),
        voices=_voices_then(card.voices, at, later),
        node_voices=_voices_then(card.node_voices, at, later),
        devices=tuple(replace(part, voices=_voices_then(part.voices, at, later)) for part in card.devices),
        partitions=tuple(replace(part, voices=_voices_then(part.voices, at, later)) for part in card.partitions),
        increase={} if later else card.increase,
    )


def node_then(node: NodeRecord, at: float, updated_at: float) -> NodeRecord:
    """The node as believed at ``at``."""
    return replace(node, last_at=min(node.last_at, at), voices=_voices_then(node.voices, at, updated_at > at))


def _claim_then(claim: Claim, at: float) -> Claim:
    return replace(
        claim,
        first_at=min(claim.first_at, at),
        at=min(claim.at, at),
        denied_at=_upto(claim.denied_at, at),
        confirmed_at=_upto(claim.confirmed_at, at),
    )


def _voices_then(voices: Iterable[Voice], at: float, later: bool) -> tuple[Voice, ...]:
    return tuple(replace(v, words={k: _word_then(w, at) for k, w in v.words.items() if not (later and moving(k, w))}) for v in voices)


def _word_then(word: Word, at: float) -> Word:
    return replace(word, at=_upto(word.at, at), why_at=_upto(word.why_at, at))


def _upto(time: float | None, at: float) -> float | None:
    return None if time is None else min(time, at)
