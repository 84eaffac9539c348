# SPDX-License-Identifier: Apache-2.0
"""The short way of a round: it says what the long one says, and gives way to it whenever anything but plain numbers moved."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.world import Hands, Told, source

from muster.collect.collector import Collector, Round
from muster.collect.swift import EVERY, Moving
from muster.collect.tell import DETAIL_S, Teller
from muster.domain.model.gather import Gather
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, Outcome, ReaderKind
from muster.spi.adapter import Manifest
from muster.wire.lanes import whole
from muster.wire.report import HeardDoc
from muster.wiring.moving import short_ways

SOURCE = source("a", cadence=10)


@dataclass
class Cards:
    """An adapter whose text is JSON: one object per card. Counts how often it was asked."""

    asked: list[bytes] = field(default_factory=list)
    sources: Sequence[Any] = (SOURCE,)
    manifest: Manifest = field(default_factory=lambda: Manifest(name="acme", title="acme", tier="seen", formats={"list": "json"}))

    def recognise(self, head: bytes) -> str | None:
        """Nothing is shared."""
        return None

    def interpret(self, captures: Sequence[Capture]) -> Interpretation:
        """The cards."""
        self.asked.append(captures[0].payload)
        gather = Gather()
        for told in json.loads(captures[0].payload):
            card = gather.card(told["serial"]).named(serial=told["serial"]).value("memory.total", told["memory"])
            card.value("power.draw", told["watts"]).value("temperature.core", told["heat"]).tell("clock", told.get("clock", ""))
        return Interpretation(outcome=Outcome.DEVICES, complete=True, observations=gather.observations())


def short(payload: bytes) -> tuple[object, list[dict[str, float]]] | None:
    """The short way of `Cards`."""
    told = json.loads(payload)
    numbers = [{"power.draw": each.pop("watts"), "temperature.core": each.pop("heat")} for each in told]
    return None if any(each["temperature.core"] > 100 for each in numbers) else (told, numbers)


def card(serial: str = "77x1", memory: int = 1024, watts: float = 61.5, heat: int = 44, **more: str) -> dict[str, Any]:
    return {"serial": serial, "memory": memory, "watts": watts, "heat": heat, **more}


class World:
    """A collector and a teller over `Cards`, read by hand."""

    def __init__(self, offer: Moving | None = short) -> None:
        self.hands, self.adapter, self.reader = Hands(), Cards(), Told()
        offers = {"list": offer} if offer else {}
        self.collector = Collector([self.adapter], {ReaderKind.TOOL: self.reader}, self.hands.clock(), {}, offers=offers)
        self.teller = Teller("boot")

    def round(self, *cards: dict[str, Any]) -> tuple[Round, HeardDoc]:
        """One round in which these cards are listed."""
        self.reader.by["a"] = json.dumps(cards).encode()
        self.hands.pass_(10)
        while not (found := self.collector.step(1)):
            pass
        return found[0], self.teller.tell(found).heard[0]


def test_numbers_alone_go_the_short_way_and_say_the_same() -> None:
    world, plain = World(), World(None)
    for watts, heat in ((61.5, 44), (63, 45), (0, 0), (250.25, 99)):
        rounds = [each.round(card(watts=watts, heat=heat), card("77x2", watts=watts + 1)) for each in (world, plain)]
        (one, heard), (_, long) = rounds
        assert whole(heard) == whole(long)
        assert heard.facts == long.facts
        assert one.told.outcome is Outcome.DEVICES

    assert len(world.adapter.asked) == 1
    assert len(plain.adapter.asked) == 4


@given(st.lists(st.tuples(st.floats(0, 900, allow_nan=False), st.integers(0, 120), st.sampled_from([1024, 2048])), min_size=2, max_size=8))
def test_whatever_moves_both_ways_say_the_same(moves: list[tuple[float, int, int]]) -> None:
    world, plain = World(), World(None)
    for watts, heat, memory in moves:
        told = [whole(each.round(card(watts=watts, heat=heat, memory=memory))[1]) for each in (world, plain)]
        assert told[0] == told[1]


def test_anything_else_goes_the_long_way() -> None:
    world = World()
    for cards in ([card()], [card(memory=2048)], [card(memory=2048), card("77x2")], [card(heat=120)], [card()], [card(clock="x")]):
        found, heard = world.round(*cards)
        assert found.moved is None
        assert len(whole(heard).observations) == len(cards)

    assert len(world.adapter.asked) == 6


def test_a_failed_read_and_a_new_incarnation_go_the_long_way() -> None:
    world = World()
    world.round(card())
    assert world.round(card(watts=70))[0].moved is not None
    world.reader.by["a"] = Outcome.TIMED_OUT
    world.hands.pass_(10)
    (failed,) = world.collector.step(1)
    assert failed.told.outcome.failed
    world.collector.forget()
    assert world.round(card(watts=71))[0].moved is None
    assert world.round(card(watts=72))[0].moved is not None


def test_every_now_and_then_it_goes_the_long_way_anyhow() -> None:
    world = World()
    ways = [world.round(card(watts=watts))[0].moved is None for watts in range(2 * EVERY + 3)]

    assert [number for number, long in enumerate(ways) if long] == [0, EVERY + 1, 2 * EVERY + 2]


@pytest.mark.parametrize("wrong", ["numbers", "cards", "raises"])
def test_a_short_way_that_is_wrong_is_not_used(wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    def offer(payload: bytes) -> tuple[object, list[dict[str, float]]] | None:
        if wrong == "raises":
            raise ZeroDivisionError
        told = short(payload)
        assert told is not None
        return (told[0], [{**each, "power.draw": each["power.draw"] + 1} for each in told[1]]) if wrong == "numbers" else (told[0], [*told[1], {}])

    world = World(offer)
    with caplog.at_level(logging.WARNING):
        for watts in (61, 62, 63):
            found, heard = world.round(card(watts=watts))
            assert found.moved is None
            assert whole(heard).observations[0].readings["power.draw"] == {"v": watts}

    assert caplog.text.count("it is not used") == 1


def test_a_clock_in_the_vendors_detail_is_no_change_of_facts() -> None:
    world = World(None)
    heard = [world.round(card(watts=watts, clock=f"08:41:{watts}"))[1] for watts in (10, 11, 12)]
    assert len({each.facts for each in heard}) == 1
    assert [whole(each).observations[0].readings["power.draw"]["v"] for each in heard] == [10, 11, 12]
    changed = world.round(card(memory=2048, clock="09:00:00"))[1]
    assert whole(changed).observations[0].vendor == {"clock": "09:00:00"}
    world.hands.pass_(DETAIL_S)
    assert whole(world.round(card(memory=2048, clock="09:30:00"))[1]).observations[0].vendor == {"clock": "09:30:00"}


def test_short_ways_are_found_by_their_place() -> None:
    tree = Path(__file__).resolve().parents[2] / "src" / "muster" / "adapters"
    offered = list(tree.glob("*/moving.py"))

    assert bool(short_ways()) == bool(offered)
