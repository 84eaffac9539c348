# SPDX-License-Identifier: Apache-2.0
"""The card as it is shown: gauges that are kept apart, words that belong to the place a card left, and sums over the fleet."""

from __future__ import annotations

from typing import Any

from muster.domain.decide.view import CardView, total, view
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Role
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known
from muster.domain.model.roll import CardRecord, PartRecord, Presence, Rung, Voice, Word
from muster.domain.model.source import Channel, WitnessClass

NOW = 1000.0
DRIVER, BMC = "acme.tool", "bmc.tool"


def voice(node: str = "n1", source: str = DRIVER, promise: float = 180.0, **words: Any) -> Voice:
    witness, channel = (WitnessClass.BMC, Channel.OUT_OF_BAND) if source == BMC else (WitnessClass.DRIVER, Channel.IN_BAND)
    told = {key.replace("__", "."): Word(value=value, at=NOW - 10) for key, value in words.items()}
    return Voice(node=node, source=source, channel=channel, witness=witness, promise=promise, words=told)


def part(number: int, *voices: Voice) -> PartRecord:
    return PartRecord(id=f"c-1.d{number}", level=Level.DEVICE, ordinal=number, ids={}, voices=voices)


def card(
    *voices: Voice, node: str | None = "n1", presence: Presence = Presence.PRESENT, aside: bool = False, devices: tuple[PartRecord, ...] = ()
) -> CardRecord:
    return CardRecord(
        id="c-1", role=Role.ACCELERATOR, created_at=0, rung=Rung.UUID, presence=presence, presence_at=0, node=node, aside=aside, voices=voices, devices=devices
    )


def seen(record: CardRecord, **apart: dict[tuple[str, str], dict[str, Word]]) -> CardView:
    return view(record, {key.replace("_", "-").replace("--", "."): words for key, words in apart.items()}, Policy(), NOW)


def values(found: CardView) -> dict[str, Any]:
    return {key: shown.reading.value for key, shown in found.readings.items() if isinstance(shown.reading, Known)}


def test_gauges_kept_apart_are_shown_beside_the_facts_of_their_source() -> None:
    power = {("n1", DRIVER): {"power.draw": Word(value=300, at=NOW - 5)}}

    assert values(seen(card(voice(memory__total=80)), c_1=power)) == {"memory.total": 80, "power.draw": 300}


def test_a_source_that_tells_gauges_only_is_shown_by_what_the_parts_know_of_it() -> None:
    power = {("n1", DRIVER): {"power.draw": Word(value=300, at=NOW - 5)}, ("n9", "nobody"): {"power.draw": Word(value=1, at=NOW)}}
    found = seen(card(voice(source=BMC, memory__total=80), devices=(part(0, voice(promise=3.0, memory__total=80)),)), c_1=power)

    assert values(found) == {"memory.total": 80, "power.draw": 300}
    assert (found.readings["power.draw"].source, found.readings["power.draw"].stale) == (DRIVER, True)


def test_a_moved_card_leaves_the_place_of_the_old_node_behind() -> None:
    old = voice("n1", memory__total=80, server__model="Old 1", asset__rack="r1", asset__owner="vision")

    assert values(seen(card(old, node="n2"))) == {"memory.total": 80, "asset.owner": "vision"}
    assert values(seen(card(old, node="n1"))) == {"memory.total": 80, "server.model": "Old 1", "asset.rack": "r1", "asset.owner": "vision"}
    assert values(seen(card(voice("", asset__rack="r2"), node="n2"))) == {"asset.rack": "r2"}


def test_every_part_is_shown_at_the_same_time() -> None:
    found = seen(card(voice(memory__total=80)))

    assert (found.now, found.readings["memory.total"].age(found.now)) == (NOW, 10.0)


def test_a_sum_takes_present_and_counted_cards() -> None:
    told = [voice(memory__total=80)]
    cards = [card(*told), card(*told, presence=Presence.UNKNOWN), card(*told, presence=Presence.MISSING), card(*told, aside=True)]

    assert total([seen(each) for each in cards], "memory.total") == 80


def test_a_sum_takes_numbers_only() -> None:
    odd = card(voice(memory__total="a lot"), devices=(part(0, voice(memory__total=True)),))

    assert total([seen(odd), seen(card())], "memory.total") == 0
