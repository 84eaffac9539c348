# SPDX-License-Identifier: Apache-2.0
"""From records to rows of a snapshot: the value at every path that a list may ask, as `muster.domain.decide.choose` shows it at one moment.

A row also says what time alone may change in it: when one of several sources that differ, or one that sees the card, falls silent or speaks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from muster.domain.decide.choose import choose, leading
from muster.domain.decide.view import Apart, part_voices, voices_of
from muster.domain.model.names import NameKind
from muster.domain.model.policy import Policy
from muster.domain.model.roll import CardRecord, NodeRecord, PartRecord, Voice, Word
from muster.domain.model.source import WitnessClass

Row: TypeAlias = "dict[str, Any]"
Makers: TypeAlias = Callable[[Any, str], "str | None"]
"""The maker of a card by its PCI vendor id and the source that named its product."""
Naming: TypeAlias = Callable[[CardRecord, "str | None"], str]
"""The name of a card by its record and product."""

_TEXTS = ("id", "presence", "rung", "role", "slot", "address", "index", "place")
PRODUCT = "product.name"
NOTHING: Apart = {}


@dataclass(frozen=True, slots=True)
class End:
    """Until when a source's word holds on which a row depends: ``promise`` seconds from ``at``. It may be over already."""

    node: str
    source: str
    at: float
    promise: float


@dataclass(frozen=True, slots=True)
class Made:
    """A row, and what time alone may change in it: it is another when one of these words ends, or when one that has ended is said again."""

    row: Row
    ends: tuple[End, ...]
    voices: Sequence[Voice] = ()
    """Who speaks of it."""


def card_row(card: CardRecord, apart: Apart, policy: Policy, now: float, makers: Makers, naming: Naming) -> Made:
    """The row of a card: its own readings, and what a filter may ask of its record. What its devices say together is not in it."""
    voices = voices_of(card, apart)
    row, maker_by, ends = _values(voices, policy, now)
    for name in _TEXTS:
        told = getattr(card, name)
        if told:
            row[name] = str(told)
    product = row.get(PRODUCT)
    model = None if product is None else str(product)
    if model is not None:
        row["model"] = model
    maker = makers(row.get("pci.vendor_id"), maker_by)
    if maker is not None:
        row["vendor"] = maker
    row["name"] = naming(card, model)
    if card.node:
        row["node_id"] = card.node
        if card.node_name:
            row["node"] = card.node_name
    row |= {"aside": card.aside, "conflicts": list(card.conflicts), "presence_since": card.presence_at, "created_at": card.created_at}
    _named(row, card.ids)
    row["seen_by"] = sorted({claim.source for claim in card.claims if claim.sees(now)})
    ends |= {(claim.node, claim.source): End(claim.node, claim.source, claim.at, claim.promise) for claim in card.claims if claim.sees(claim.at)}
    return Made(row, tuple(ends.values()), voices)


def part_row(part: PartRecord, card: CardRecord, apart: Apart, policy: Policy, now: float) -> Made:
    """The row of a device or partition; presence, role and node are its card's."""
    voices = part_voices(part, apart, card)
    row, _, ends = _values(voices, policy, now)
    row |= {"id": part.id, "ordinal": part.ordinal, "card": card.id, "presence": str(card.presence), "role": str(card.role)}
    if part.under:
        row["under"] = part.under
    if card.node and card.node_name:
        row["node"] = card.node_name
    _named(row, part.ids)
    return Made(row, tuple(ends.values()), voices)


def node_row(node: NodeRecord, policy: Policy, now: float) -> Row:
    """The row of a node."""
    row, _, _ = _values(node.voices, policy, now)
    for name in ("id", "name", "machine_id", "system", "created_at", "last_at"):
        told = getattr(node, name)
        if told:
            row[name] = told
    return row


def _named(row: Row, ids: Mapping[str, Sequence[str]]) -> None:
    for kind in (NameKind.SERIAL, NameKind.VENDOR_UUID):
        for value in ids.get(kind, ()):
            row[kind.value] = value
            break


_Ends: TypeAlias = "dict[tuple[str, str], End]"


def _values(voices: Sequence[Voice], policy: Policy, now: float) -> tuple[Row, str, _Ends]:
    """The value shown of every attribute, the source that names the product, and on whose going on it depends."""
    first: dict[str, tuple[Voice, Word]] = {}
    several: dict[str, list[tuple[Voice, Word]]] = {}
    for voice in voices:
        for key, word in voice.words.items():
            if key not in first:
                first[key] = (voice, word)
            elif key in several:
                several[key].append((voice, word))
            else:
                several[key] = [first[key], (voice, word)]
    row: Row = {key: word.value for key, (_, word) in first.items() if word.at is not None and key not in several}
    ends: _Ends = {}
    named = first[PRODUCT][0].source if PRODUCT in first else ""
    for key, said in several.items():
        source = _chosen(key, said, policy, now, row, ends)
        named = source if key == PRODUCT else named
    return row, named, ends


def _chosen(key: str, said: Sequence[tuple[Voice, Word]], policy: Policy, now: float, row: Row, ends: _Ends) -> str:
    """Puts in what is shown of one attribute; returns whose word it is, where that is asked for."""
    known = [each for each in said if each[1].at is not None]
    if not known:
        shown = choose(key, [voice for voice, _ in said], policy, now) if key == PRODUCT else None
        return shown.source if shown is not None else ""
    value = known[0][1].value
    if key != PRODUCT and all(type(word.value) is type(value) and word.value == value for _, word in known):
        row[key] = value
        return ""
    voice, row[key] = leading(key, known, policy, now)
    source = voice.source
    for voice, word in known:
        if word.at is not None and voice.witness is not WitnessClass.OPERATOR:
            earlier = ends.get((voice.node, voice.source))
            if earlier is None or word.at < earlier.at:
                ends[voice.node, voice.source] = End(voice.node, voice.source, word.at, voice.promise)
    return source
