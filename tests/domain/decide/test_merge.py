# SPDX-License-Identifier: Apache-2.0
"""Merge as a function: it changes nothing that it was given, gives the same for the same, and does not mind when a word arrives."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.domain.decide.merge import Merged, Roll, merge, tick
from muster.domain.model.attributes import Level
from muster.domain.model.names import NameKind, names
from muster.domain.model.observation import Observation, Subject
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known
from muster.domain.model.roll import Listing, NodeNames, Witness
from muster.domain.model.source import Channel, Outcome, WitnessClass

POLICY = Policy()
T0 = 1_700_000_000.0
SOURCES = {
    "driver": Witness(source="driver", channel=Channel.IN_BAND, witness=WitnessClass.DRIVER, cadence=60),
    "bmc": Witness(source="bmc", channel=Channel.OUT_OF_BAND, witness=WitnessClass.BMC, cadence=120),
    "bus": Witness(source="bus", channel=Channel.IN_BAND, witness=WitnessClass.PCI, cadence=300),
}


def listing(node: int, source: str, at: float, cards: tuple[int, ...], whole: bool = True) -> Listing:
    """What a source of a node says: card ``n`` stands in slot and address ``n`` modulo 3; every third card has no UUID, every fourth no serial."""
    told = []
    for card in cards:
        place = card % 3
        named = {"pci_address": f"0000:{place + 1:02x}:00.0"}
        if source == "driver":
            named |= {} if card % 3 == 2 else {"vendor_uuid": f"GPU-{card:04d}-77aa"}
            named |= {} if card % 4 == 3 else {"serial": f"SN{card:05d}"}
        if source == "bmc":
            named = {"serial": f"SN{card:05d}", "chassis_slot": f"{place}"}
        told.append(Observation(subject=Subject(level=Level.CARD, names=names(**named)), readings={"energy.total": Known(at - T0)}))
    return Listing(
        node=NodeNames(name=f"n{node}"),
        witness=SOURCES[source],
        reporter=f"{source}@n{node}",
        incarnation="i",
        sequence=int(at),
        at=at,
        received_at=at,
        complete=whole,
        outcome=Outcome.DEVICES if whole else Outcome.PARTIAL,
        observations=tuple(told),
    )


def told(words: list[Listing], end: float) -> Merged:
    roll = Roll()
    for order, word in enumerate(words):
        roll = merge(roll, word, order, POLICY, max(word.received_at, word.at)).roll
    return tick(roll, POLICY, end)


def picture(merged: Merged) -> list[str]:
    """The roll without what depends on the order of arrival (ids and when we learnt)."""
    found = []
    for region in merged.roll.regions.values():
        for card in region.site.cards.values():
            history = sorted((round(c.at - T0, 3), c.kind.value) for c in card.history)
            node = region.site.nodes[card.node].name if card.node else None
            found.append(repr((sorted((k, tuple(sorted(v))) for k, v in card.names.items()), card.presence.value, node, history, dict(card.uses))))
    return sorted(found)


CARDS = st.sets(st.integers(0, 8), max_size=3).filter(lambda s: len({c % 3 for c in s}) == len(s)).map(lambda s: tuple(sorted(s)))
WORD = st.tuples(st.integers(0, 2), st.sampled_from(list(SOURCES)), CARDS, st.integers(0, 4))
SITES = st.lists(WORD, min_size=2, max_size=9)


def spoken(site: list[tuple[int, str, tuple[int, ...], int]], gap: float) -> list[Listing]:
    return [listing(node, source, T0 + (i + 1) * gap, cards, bool(whole)) for i, (node, source, cards, whole) in enumerate(site)]


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=120)
@given(SITES, st.sampled_from([20.0, 70.0, 200.0]), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(site: list[tuple[int, str, tuple[int, ...], int]], gap: float, dice: Random) -> None:
    words = spoken(site, gap)
    end = words[-1].at + 5
    late = [replace(word, received_at=end) for word in words]
    dice.shuffle(late)

    assert picture(told(late, end)) == picture(told(words, end))


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=40)
@given(SITES)
def test_a_step_changes_nothing_it_was_given(site: list[tuple[int, str, tuple[int, ...], int]]) -> None:
    roll = Roll()
    for order, word in enumerate(spoken(site, 60.0)):
        before = {i: msgspec.msgpack.encode(r.site) for i, r in roll.regions.items()}
        merged = merge(roll, word, order, POLICY, word.at)
        again = merge(roll, word, order, POLICY, word.at)

        assert {i: msgspec.msgpack.encode(r.site) for i, r in roll.regions.items()} == before
        assert (merged.cards, merged.changes, merged.findings, merged.samples) == (again.cards, again.changes, again.findings, again.samples)
        roll = merged.roll


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=120)
@given(SITES)
def test_no_uuid_is_on_two_cards_of_one_node_and_ids_are_kept(site: list[tuple[int, str, tuple[int, ...], int]]) -> None:
    roll = Roll()
    known: set[str] = set()
    for order, word in enumerate(spoken(site, 45.0)):
        merged = merge(roll, word, order, POLICY, word.at)
        roll = merged.roll
        cards = {c.id: c for r in roll.regions.values() for c in r.site.cards.values()}
        gone = {old for r in roll.regions.values() for old in r.site.gone}
        assert known <= cards.keys() | gone
        known = set(cards)
        for one, two in itertools.combinations(cards.values(), 2):
            shared = one.names.get(NameKind.VENDOR_UUID, {}).keys() & two.names.get(NameKind.VENDOR_UUID, {}).keys()
            assert not shared or one.node != two.node
