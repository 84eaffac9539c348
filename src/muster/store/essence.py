# SPDX-License-Identifier: Apache-2.0
"""What of a record makes a new version of it: everything but when it was last said, which capture it rests on, tools' own text, and numbers that only move.

A record whose essence is the same is brought up to date in place, so that ages are right and history does not grow with every report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from muster.domain.decide.essence import essence, moving, voices_of
from muster.domain.model.roll import CardRecord, Claim, NodeRecord, Voice, Word
from muster.store.mapping import ordered


def digest(record: CardRecord | NodeRecord) -> str:
    """32 hex digits that differ when more than times, captures and moving numbers differ."""
    return hashlib.blake2b(ordered(essence(record)), digest_size=16).hexdigest()


def captures(record: CardRecord | NodeRecord) -> list[str]:
    """Digests of the captures that its words rest on, each once, in order."""
    return sorted({word.capture for voice in voices_of(record) for word in voice.words.values() if word.capture})


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
