# SPDX-License-Identifier: Apache-2.0
"""A card as it is shown at a moment: every reading chosen among its sources, with age, dissent and reasons. What API, CLI and cases compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from muster.domain.decide.choose import Shown, choose
from muster.domain.model.attributes import ATTRIBUTES, Level
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known
from muster.domain.model.roll import CardRecord, PartRecord, Presence, Voice, Word

_OF_THE_PLACE = frozenset(key for key, entry in ATTRIBUTES.items() if entry.of in (Level.SERVER, Level.NODE))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    """A device or partition as shown."""

    record: PartRecord
    readings: Mapping[str, Shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    """A card as shown at ``now``. ``seen_by`` are the hardware sources that see it at that moment."""

    record: CardRecord
    now: float
    readings: Mapping[str, Shown]
    devices: tuple[PartView, ...]
    partitions: tuple[PartView, ...]
    seen_by: tuple[str, ...]


class How(StrEnum):
    """How the devices of a card make one number."""

    SUM = "sum of devices"
    MOST = "most of devices"


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """What the devices of a card say together. It is no reading: no source told it."""

    value: int | float
    how: How


OF_DEVICES: Mapping[str, How] = {
    **dict.fromkeys(("memory.total", "memory.used", "memory.free", "power.draw"), How.SUM),
    **dict.fromkeys(("utilization.core", "temperature.core"), How.MOST),
}
"""Attributes that devices can say together for their card."""

Apart = Mapping[str, Mapping[tuple[str, str], Mapping[str, Word]]]
"""Gauges and counters kept apart from the record: subject, then (node, source), then attribute."""


def view(card: CardRecord, apart: Apart, policy: Policy, now: float) -> CardView:
    """The card at ``now``, from its record and the gauges that are kept apart from it."""
    return CardView(
        record=card,
        now=now,
        readings=_readings(voices_of(card, apart), policy, now, card),
        devices=tuple(_part(p, apart, card, policy, now) for p in card.devices),
        partitions=tuple(_part(p, apart, card, policy, now) for p in card.partitions),
        seen_by=tuple(sorted({claim.source for claim in card.claims if claim.sees(now)})),
    )


def voices_of(card: CardRecord, apart: Apart) -> list[Voice]:
    """Who speaks of the card, with the words kept apart from it."""
    voices = _with(card.voices, apart.get(card.id, {}), card)
    return [_placed(v, card.node) for v in voices] + list(card.node_voices)


def part_voices(part: PartRecord, apart: Apart, card: CardRecord) -> list[Voice]:
    """Who speaks of a part of the card, with the words kept apart from it."""
    return _with(part.voices, apart.get(part.id, {}), card)


def _part(part: PartRecord, apart: Apart, card: CardRecord, policy: Policy, now: float) -> PartView:
    return PartView(record=part, readings=_readings(part_voices(part, apart, card), policy, now, None))


def _readings(voices: Sequence[Voice], policy: Policy, now: float, card: CardRecord | None) -> dict[str, Shown]:
    judged: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for key, one, other in card.disagree if card else ():
        judged[key].add((one, other))
    keys = sorted({key for voice in voices for key in voice.words})
    return {key: shown for key in keys if (shown := choose(key, voices, policy, now, judged[key])) is not None}


def _with(voices: Sequence[Voice], apart: Mapping[tuple[str, str], Mapping[str, Word]], card: CardRecord) -> list[Voice]:
    """Voices with the words kept apart added; a source whose voice the subject lacks takes channel and promise from the card's."""
    if not apart:
        return list(voices)
    rest = dict(apart)
    told = [replace(v, words={**v.words, **rest.pop((v.node, v.source), {})}) for v in voices]
    elsewhere = {(v.node, v.source): v for v in (*card.voices, *(v for p in (*card.devices, *card.partitions) for v in p.voices))}
    return told + [replace(elsewhere[place], words=words) for place, words in rest.items() if place in elsewhere]


def _placed(voice: Voice, node: str | None) -> Voice:
    """The voice without what it says of another node's place (rack, site): a moved card takes the new node's."""
    if voice.node == node or not voice.node or not (voice.words.keys() & _OF_THE_PLACE):
        return voice
    return replace(voice, words={key: word for key, word in voice.words.items() if key not in _OF_THE_PLACE})


def grown(card: CardView) -> dict[str, float]:
    """Use of each counter since its first reading: what was counted when facts were last taken in, and what the counter has grown since."""
    found: dict[str, float] = {}
    for key, total in card.record.increase.items():
        now, then = _number(card.readings.get(key)), card.record.counted.get(key)
        found[key] = total + (now - then if now is not None and then is not None and now > then else 0)
    return found


def together(card: CardView) -> dict[str, Together]:
    """What the devices say together, of each attribute that the card itself does not know and that every one of its devices tells."""
    return {key: told for key in OF_DEVICES if (told := of_devices(card, key)) is not None}


def of_devices(card: CardView, key: str) -> Together | None:
    """What the devices of a card say together of one attribute; None where the card knows it, a device does not, or there is no device."""
    how = OF_DEVICES.get(key)
    if how is None or not card.devices or _number(card.readings.get(key)) is not None:
        return None
    parts = [number for device in card.devices if (number := _number(device.readings.get(key))) is not None]
    if len(parts) < len(card.devices):
        return None
    return Together(value=sum(parts) if how is How.SUM else max(parts), how=how)


def value(card: CardView, key: str) -> Any:
    """The value of an attribute as lists compare it: the card's own, else that of its devices together; None where neither is known."""
    own = card.readings.get(key)
    if own is not None and isinstance(own.reading, Known):
        return own.reading.value
    told = of_devices(card, key)
    return told.value if told is not None else None


def total(cards: Iterable[CardView], key: str) -> float:
    """Sum over present, counted cards. A card gives its own reading; one without gives what its devices add up to. Stale values count, absent ones do not."""
    return sum(
        found for each in cards if each.record.presence is Presence.PRESENT and not each.record.aside for found in (_of(each, key),) if found is not None
    )


def _of(card: CardView, key: str) -> float | None:
    own = _number(card.readings.get(key))
    if own is not None:
        return own
    parts = [n for device in card.devices if (n := _number(device.readings.get(key))) is not None]
    return sum(parts) if parts else None


def _number(shown: Shown | None) -> int | float | None:
    if shown is None or not isinstance(shown.reading, Known):
        return None
    value = shown.reading.value
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
