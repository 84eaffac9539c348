# SPDX-License-Identifier: Apache-2.0
"""Whether two records of a card differ in more than times and moving numbers: `essence` of both, compared without being built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from muster.domain.decide.essence import moving
from muster.domain.model.roll import CardRecord, Claim, PartRecord, Voice, Word

_APART = frozenset({"created_at", "presence_at", "increase", "counted", "details", "claims", "voices", "node_voices", "devices", "partitions"})
_CARD = tuple(f.name for f in fields(CardRecord) if f.name not in _APART)


def differ(one: CardRecord, two: CardRecord) -> bool:
    """True when the two have not the same essence."""
    return not (
        all(getattr(one, name) == getattr(two, name) for name in _CARD)
        and len(one.claims) == len(two.claims)
        and all(_claims(a, b) for a, b in zip(one.claims, two.claims, strict=True))
        and _voices(one.voices, two.voices)
        and _voices(one.node_voices, two.node_voices)
        and _parts(one.devices, two.devices)
        and _parts(one.partitions, two.partitions)
    )


def _claims(a: Claim, b: Claim) -> bool:
    return (
        a.node == b.node
        and a.source == b.source
        and a.channel == b.channel
        and a.ids == b.ids
        and a.slot == b.slot
        and a.addresses == b.addresses
        and a.index == b.index
        and a.promise == b.promise
        and a.void == b.void
        and (a.denied_at is None) == (b.denied_at is None)
        and (a.confirmed_at is None) == (b.confirmed_at is None)
    )


def _parts(ones: Sequence[PartRecord], twos: Sequence[PartRecord]) -> bool:
    return len(ones) == len(twos) and all(
        a.id == b.id and a.level == b.level and a.ordinal == b.ordinal and a.ids == b.ids and a.under == b.under and _voices(a.voices, b.voices)
        for a, b in zip(ones, twos, strict=True)
    )


def _voices(ones: Sequence[Voice], twos: Sequence[Voice]) -> bool:
    return len(ones) == len(twos) and all(
        a.node == b.node and a.source == b.source and a.channel == b.channel and a.witness == b.witness and a.promise == b.promise and words(a, b)
        for a, b in zip(ones, twos, strict=True)
    )


def words(one: Voice, two: Voice) -> bool:
    """True when both say the same, times and moving numbers aside."""
    if one.words.keys() != two.words.keys():
        return False
    for key, a in one.words.items():
        b = two.words[key]
        if a is not b and not _word(key, a, b):
            return False
    return True


def _word(key: str, a: Word, b: Word) -> bool:
    if (a.at is None) != (b.at is None) or a.why != b.why or a.detail != b.detail:
        return False
    return a.value == b.value or ((moving(key, a) or a.value is None) and (moving(key, b) or b.value is None))
