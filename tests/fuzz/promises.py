# SPDX-License-Identifier: Apache-2.0
"""What must hold of a damaged capture beside the whole one: nothing raised, no card or name invented, none lost unseen, no number that was not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muster.domain.decide.fold import FoldedCard, Part
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.names import Name, NameKind
from muster.domain.model.reading import Known, Reading
from muster.services.hearing import Heard

PLACES = frozenset({NameKind.INDEX, NameKind.GPU_INSTANCE, NameKind.COMPUTE_INSTANCE})
"""Kinds of names that are only a place in a listing."""


def faults(before: Heard, after: Heard, *, renamed: bool = False, whole: bool = False) -> list[str]:
    """What is wrong with ``after``. ``renamed`` says that the damage may have hit a name itself, ``whole`` that nothing of the text was lost."""
    if after.told is None or before.told is None:
        return [after.problem]
    found: list[str] = []
    if len(after.cards) > len(before.cards) + renamed:
        found.append(f"{len(after.cards)} cards, {len(before.cards)} before")
    had, has = names(before), names(after)
    if has - had and not renamed:
        found.append(f"names that were not there: {sorted(has - had)[:3]}")
    if after.told.complete and not renamed:
        found += [f"complete without {sorted(lost)[:3]}" for card in before.cards if (lost := _of_card(card)) and not lost & has]
    if whole and had - has:
        found.append(f"names lost: {sorted(had - has)[:3]}")
    if after.told.complete and len(after.cards) < len(before.cards):
        found.append(f"complete with {len(after.cards)} cards, {len(before.cards)} before")
    if whole:
        found += [f"lost {where} {key} = {value!r}" for (where, key), value in numbers(before).items() if numbers(after).get((where, key)) != value]
    return found + list(wrong_numbers(before, after))


def names(heard: Heard) -> set[tuple[str, str]]:
    """Names of cards, devices and partitions that last longer than a listing."""
    return {each for card in heard.cards for each in _of_card(card)}


def _of_card(card: FoldedCard) -> set[tuple[str, str]]:
    told = (card.names, *(part.names for part in (*card.devices, *card.partitions)))
    return {(name.kind.value, name.canonical) for each in told for name in each if name.kind not in PLACES}


STANDS_IN = {"power.draw": "power.draw.average"}
"""Where the first is not told, the second is shown for it: the dictionary says so."""
OF_ANOTHER_SENSOR = frozenset({"temperature.limit.shutdown", "temperature.limit.slowdown", "power.module"})
"""Shown for the hottest sensor that has one; of the module's power its average where the present one does not read."""


def wrong_numbers(before: Heard, after: Heard) -> Iterator[str]:
    """Numbers of a card, device or partition that differ from what it had: they must be the same, or absent."""
    had = numbers(before)
    for (where, key), value in numbers(after).items():
        instead = had.get((where, STANDS_IN.get(key, "")))
        if (where, key) in had and had[where, key] != value and instead != value and key not in OF_ANOTHER_SENSOR:
            yield f"{where} {key} became {value!r}, was {had[where, key]!r}"


def numbers(heard: Heard) -> dict[tuple[str, str], Any]:
    """Known numbers by the thing they are told of and their key. A thing without a lasting name is left out: after damage nobody can say which it is."""
    found: dict[tuple[str, str], Any] = {}
    for card in heard.cards:
        where = _name(card.names)
        if where:
            found |= _of(where, card.readings)
            for part in (*card.devices, *card.partitions):
                found |= _of(f"{where} {part.level} {_part(card, part)}", part.readings)
    return found


def _of(where: str, readings: Mapping[str, Reading]) -> dict[tuple[str, str], Any]:
    known = ((key, each.value) for key, each in readings.items() if isinstance(each, Known))
    return {(where, key): value for key, value in known if key in ATTRIBUTES and ATTRIBUTES[key].numeric}


def _name(these: frozenset[Name]) -> str:
    lasting = sorted((name for name in these if name.kind not in PLACES), key=lambda name: list(NameKind).index(name.kind))
    return f"{lasting[0].kind} {lasting[0].canonical}" if lasting else ""


def _part(card: FoldedCard, part: Part) -> str:
    told = sorted(f"{name.kind} {name.canonical}" for name in part.names)
    return " ".join(told) or str(part.ordinal if part.level == "device" else (part.under, part.ordinal, len(card.partitions)))
