# SPDX-License-Identifier: Apache-2.0
"""What sources say of a card's values: words kept per source, changes of driver and firmware, counters over resets, drift, dissent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from muster.domain.decide.choose import Shown, agree, choose, chosen, disputed, pair, same
from muster.domain.decide.merge.groups import Group
from muster.domain.decide.merge.match import Moment
from muster.domain.decide.merge.parts import device_of, devices, hear
from muster.domain.decide.merge.state import OPERATOR, Card, Piece, Place, Site, Use
from muster.domain.model.attributes import ATTRIBUTES, Kind, Level
from muster.domain.model.names import NameKind
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.roll import Happening, Voice, Word
from muster.domain.model.source import Channel, WitnessClass

WATCHED = {"driver.version": Happening.DRIVER_CHANGED, "firmware.version": Happening.FIRMWARE_CHANGED}
_DRIFTED = frozenset({Why.NOT_REPORTED, Why.NOT_SUPPORTED})
SERIAL = "serial"
_PLAIN = (str, int, bool)
COUNTERS = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is Kind.COUNTER and entry.numeric)


class Ready(NamedTuple):
    """Words as a listing leaves them, but for some attributes that are still to be heard."""

    words: dict[str, Word]
    keys: Sequence[str]
    numbers: bool
    """Numbers that move, or absences, are among what is told."""


def take(site: Site, card: Card, group: Group, moment: Moment, capture: str, policy: Policy, ready: Ready | None = None) -> None:
    """Takes the group's readings as words of its source on the card and its devices. ``ready`` are the words but for some attributes, where known."""
    readings = group.folded.readings
    before = {key: chosen(key, voices(site, card.voices), policy, moment.at) for key in WATCHED if _may_change(card, key, readings)}
    if moment.whole and card.id in moment.alone and not group.folded.devices and all(d.voices.keys() <= {group.place} for d in card.devices):
        card.devices.clear()
    device = device_of(card, group)
    words = card.voices.setdefault(group.place, {})
    if ready is None or ready.numbers:
        drift(site, card, group.place, words, readings, moment)
        moment.measured(device or card, group.place, readings)
    details = _details(group)
    if details:
        card.details[group.place] = details
    if ready is not None:
        card.voices[group.place] = ready.words
        hear(ready.words, {key: readings[key] for key in ready.keys}, moment, capture)
    elif device is None:
        hear(words, readings, moment, capture)
    else:
        _to_device(device, words, group, moment, capture)
    devices(card, group, moment, capture, policy)
    if ready is None or ready.numbers:
        count(site, card, group.place, readings, moment, policy)
    for key, old in before.items():
        _changed(card, key, WATCHED[key], old, chosen(key, voices(site, card.voices), policy, moment.at), moment, policy)


def _may_change(card: Card, key: str, readings: Mapping[str, Reading]) -> bool:
    """False when all words that the card has and gets on an attribute are of one text: then that text is shown before and after."""
    new = readings.get(key)
    texts = {new.value if new.value.__class__ is str else None} if isinstance(new, Known) else set()
    for words in card.voices.values():
        word = words.get(key)
        if word is not None and word.at is not None:
            texts.add(word.value if word.value.__class__ is str else None)
    return len(texts) > 1 or None in texts


def _details(group: Group) -> dict[str, Any]:
    """The tool's own names and text on the card, those of its parts under their place in the listing."""
    found = dict(group.folded.vendor)
    for name, parts in (("devices", group.folded.devices), ("partitions", group.folded.partitions)):
        told = {str(part.ordinal): dict(part.vendor) for part in parts if part.vendor}
        if told:
            found[name] = told
    return found


def _to_device(device: Piece, words: dict[str, Word], group: Group, moment: Moment, capture: str) -> None:
    """A row that speaks of one device of several: what belongs to a device is the device's."""
    own = {k: r for k, r in group.folded.readings.items() if (e := ATTRIBUTES.get(k)) is not None and e.of is Level.DEVICE}
    hear(device.voices.setdefault(group.place, {}), own, moment, capture)
    hear(words, {k: r for k, r in group.folded.readings.items() if k not in own}, moment, capture)


def _changed(card: Card, key: str, kind: Happening, old: Word | None, new: Word | None, moment: Moment, policy: Policy) -> None:
    if old is not None and new is not None and not agree(key, old.value, new.value, policy):
        card.note(kind, moment.at, moment.learnt, was=old.value, now=new.value)


def _shown(site: Site, card: Card, key: str, policy: Policy, now: float) -> Shown | None:
    told = [v for v in voices(site, card.voices) if key in v.words]
    return choose(key, told, policy, now) if told else None


def voices(site: Site, said: Mapping[Place, Mapping[str, Word]]) -> list[Voice]:
    """Words by source as voices with their promise; a removed source has none."""
    found = []
    for place, words in said.items():
        speaker = site.speakers.get(place)
        if speaker is not None and not speaker.removed:
            found.append(Voice(node=place[0], source=place[1], channel=speaker.channel, witness=speaker.witness, promise=speaker.promise, words=words))
    return found


def operator_voice(words: Mapping[str, Word], node: str = "") -> list[Voice]:
    """The operator's words as a voice that never ages."""
    if not words:
        return []
    return [Voice(node=node, source=OPERATOR, channel=Channel.OPERATOR, witness=WitnessClass.OPERATOR, promise=0.0, words=words)]


def drift(site: Site, card: Card, place: Place, words: Mapping[str, Word], readings: Mapping[str, Reading], moment: Moment) -> None:
    """An attribute that this source knew and now asks for in vain, the card's mode being the same."""
    if not site.drift and not any(reading.__class__ is Absent for reading in readings.values()):
        return
    mode = readings.get("partition.mode")
    before = words.get("partition.mode")
    recut = isinstance(mode, Known) and before is not None and before.value != mode.value
    for key, reading in readings.items():
        spot = (*place, key)
        old = words.get(key)
        if isinstance(reading, Absent) and reading.why in _DRIFTED and old is not None and old.at is not None and not recut:
            site.drift.setdefault(spot, {})[card.id] = moment.at
        elif isinstance(reading, Known) and spot in site.drift:
            site.drift[spot].pop(card.id, None)
            if not site.drift[spot]:
                del site.drift[spot]


def count(site: Site, card: Card, place: Place, readings: Mapping[str, Reading], moment: Moment, policy: Policy) -> None:
    """Counters go on over a reset by at least the new reading."""
    reset: list[str] = []
    for key, reading in readings.items():
        if key not in COUNTERS or not isinstance(reading, Known):
            continue
        use = card.uses.get((place[1], key))
        if use is None:
            card.uses[place[1], key] = Use(total=0, last=reading.value)
            continue
        if reading.value < use.last:
            reset.append(key)
            use.total += reading.value
        else:
            use.total += reading.value - use.last
        use.last = reading.value
    chosen = [key for key in reset if (shown := _shown(site, card, key, policy, moment.at)) is not None and shown.source == place[1]]
    if chosen:
        card.note(Happening.COUNTER_RESET, moment.at, moment.learnt, counters=sorted(chosen))


def increase(site: Site, card: Card, policy: Policy, now: float) -> dict[str, Use]:
    """Use of each counter since the first reading of the source that is chosen for it."""
    found: dict[str, Use] = {}
    if not card.uses:
        return found
    speaking = voices(site, card.voices)
    for key in sorted({key for _, key in card.uses}):
        told = [v for v in speaking if key in v.words]
        source = told[0].source if len(told) == 1 else shown.source if (shown := choose(key, told, policy, now)) else ""
        use = card.uses.get((source, key))
        if use is not None:
            found[key] = use
    return found


def dissent(site: Site, card: Card, at: float, policy: Policy, odds: list[str] | None = None, told: list[Voice] | None = None) -> None:
    """Since when witnesses differ, per attribute; forgotten when they agree again or one falls silent. ``odds`` is what they may differ in, where known."""
    if told is None:
        node = site.nodes.get(card.node or "")
        told = [*voices(site, card.voices), *operator_voice(card.operator), *operator_voice(node.operator if node else {}, card.node or "")]
    if odds is None:
        odds = at_odds(told, policy)
    if odds:
        _near(card, told, odds, policy)
    differ = set()
    if odds:
        judged: dict[str, set[tuple[str, str]]] = {}
        for (key, one, two), apart in card.near.items():
            if apart:
                judged.setdefault(key, set()).add((one, two))
        for key in odds:
            if disputed(key, told, policy, at, judged.get(key, set())):
                differ.add(key)
    if two_serials(site, card):
        differ.add(SERIAL)
    for key in list(card.dissent):
        if key not in differ:
            del card.dissent[key]
    for key in sorted(differ):
        card.dissent.setdefault(key, at)


def at_odds(told: list[Voice], policy: Policy, among: Collection[str] | None = None) -> list[str]:
    """Compared attributes (``among`` these) that more than one source knows, less those that all know alike: nobody dissents there, whoever is shown."""
    found: dict[str, None] = {}
    first: dict[str, Any] = {}
    compare = policy.compare
    for voice in told:
        items = voice.words.items() if among is None else [(key, voice.words[key]) for key in among if key in voice.words]
        for key, word in items:
            if word.at is None or key not in compare:
                continue
            value = word.value
            if key not in first:
                first[key] = value
                continue
            known = first[key]
            if known.__class__ is not value.__class__ or value.__class__ not in _PLAIN or known != value or compare[key].how == "near":
                found[key] = None
    return list(found)


def two_serials(site: Site, card: Card) -> bool:
    """True when two witnesses tell different serials of one card. A driver and its exporter ask one library; a card of several devices has several."""
    if card.devices or len(card.names.get(NameKind.SERIAL, ())) < 2:
        return False
    by: dict[tuple[str, str], set[str]] = {}
    for value, each in card.names.get(NameKind.SERIAL, {}).items():
        for place in each.by if not each.board else ():
            by.setdefault(_witness(site, place), set()).add(value)
    told = list(by.values())
    return any(not (one & two) for i, one in enumerate(told) for two in told[i + 1 :])


def _witness(site: Site, place: Place) -> tuple[str, str]:
    speaker = site.speakers.get(place)
    if speaker is None:
        return OPERATOR, ""
    return speaker.channel.value, "library" if speaker.witness in (WitnessClass.DRIVER, WitnessClass.EXPORTER) else place[1]


def _near(card: Card, told: list[Voice], odds: list[str], policy: Policy) -> None:
    """Holds gauges of two sources to each other when they were read close together; the judgement stands until the next such pair."""
    for key in odds:
        compare = policy.compare[key]
        if compare.how != "near":
            continue
        said = [(v, w) for v in told if (w := v.words.get(key)) is not None and w.at is not None]
        for i, (one, first) in enumerate(said):
            for two, second in said[i + 1 :]:
                if abs((first.at or 0) - (second.at or 0)) <= policy.compare_within:
                    card.near[key, *pair(one, two)] = not same(compare, first.value, second.value)
