# SPDX-License-Identifier: Apache-2.0
"""A round that says the same again goes another way than one with news. Both ways must lead to the same roll: one inventory takes every round in full,
the other may go by numbers alone, and whatever happens at the site, what they show is the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.domain.decide.view import grown, view
from muster.domain.model.errors import MusterError
from muster.domain.model.policy import Policy
from muster.domain.model.roll import FindingKind, Happening
from muster.services.inventory import Inventory
from muster.services.sources import Source
from muster.store import Store, open_store
from muster.wire.lanes import part
from muster.wire.report import ActDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc

T0 = 1_750_000_000.0
CADENCE = 10.0
SOURCES = {"one.library": ("in_band", "driver"), "two.bus": ("in_band", "pci")}
POLICY = Policy(settle=40.0, stale_floor=33.0)


class World:
    """Cards in nodes, and what two sources on each see of them."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.where = {f"S{i}": f"n{i % 3}" for i in range(5)}
        self.version = dict.fromkeys(("n0", "n1", "n2"), "1.0")
        self.energy = dict.fromkeys(self.where, 100.0)
        self.sequence: dict[str, int] = {}
        self.dumb: set[tuple[str, str]] = set()
        self.blind: set[tuple[str, str]] = set()
        self.held: list[ReportDoc] = []

    def happen(self) -> None:
        """Something happens, now and then."""
        dice = self.dice
        what = dice.random()
        card, node, source = dice.choice(sorted(self.where)), dice.choice(("n0", "n1", "n2")), dice.choice(sorted(SOURCES))
        if what < 0.05:
            self.where[card] = node
        elif what < 0.08:
            self.where[card] = ""
        elif what < 0.12:
            self.version[node] = dice.choice(("1.0", "2.0"))
        elif what < 0.18:
            self.dumb ^= {(node, source)}
        elif what < 0.21:
            self.blind ^= {(card, source)}
        elif what < 0.24:
            self.energy[card] = 0.0

    def report(self, node: str, at: float, now: float) -> ReportDoc | None:
        """What the agent of a node says of what it saw at ``at``."""
        told = [self._listing(node, source, at) for source in sorted(SOURCES) if (node, source) not in self.dumb]
        if not told:
            return None
        self.sequence[node] = self.sequence.get(node, 0) + 1
        names = NodeDoc(name=node, machine_id=f"machine-{node}")
        return ReportDoc(
            reporter=f"agent@{node}", incarnation="i", sequence=self.sequence[node], node=names, sent_at=now, sent_mono=now - T0, boot_id="b",
            heard=[part(each) for each in told],
        )  # fmt: skip

    def _listing(self, node: str, source: str, at: float) -> ListingDoc:
        channel, witness = SOURCES[source]
        rows = [self._row(card, node, source, place) for place, card in enumerate(c for c in sorted(self.where) if self.where[c] == node)]
        seen = [row for row, card in rows if (card, source) not in self.blind]
        return ListingDoc(
            source=source, channel=channel, witness=witness, cadence=CADENCE, outcome="devices", complete=True, observed_at=at, observed_mono=at - T0,
            boot_id="b", observations=seen,
        )  # fmt: skip

    def _row(self, card: str, node: str, source: str, place: int) -> tuple[ObservationDoc, str]:
        address = f"0000:{place + 1:02x}:00.0"
        if source == "two.bus":
            readings: dict[str, dict[str, Any]] = {"pci.device_id": {"v": "0x2330"}, "pci.link.width": {"v": self.dice.choice((8, 16))}}
            return ObservationDoc(level="card", ids=[("pci_address", address)], ordinal=place, readings=readings), card
        self.energy[card] += self.dice.randrange(50)
        power = {"a": "error"} if self.dice.random() < 0.05 else {"v": self.dice.randrange(50, 700)}
        readings = {
            "product.name": {"v": "Model"}, "driver.version": {"v": self.version[node]}, "power.draw": power,
            "temperature.core": {"v": self.dice.randrange(30, 90)}, "energy.total": {"v": self.energy[card]},
        }  # fmt: skip
        return ObservationDoc(level="card", ids=[("serial", card), ("pci_address", address)], ordinal=place, readings=readings), card


class Side:
    """An inventory on a store of its own. ``light``: it may go by numbers alone."""

    def __init__(self, *, light: bool) -> None:
        self.light = light
        self.store: Store = open_store(None)
        self.start(T0)

    def start(self, now: float) -> None:
        self.inventory = Inventory(self.store.writer, POLICY, now)

    def report(self, doc: ReportDoc, now: float) -> str:
        with nullcontext() if self.light else patch.object(Source, "takes", return_value=False):
            return self.inventory.report(doc, now).answer

    def shown(self, now: float, *, late: bool) -> dict[str, Any]:
        """Everything that a person can see, but numbers of rows. Without what numbers of a card's former place, which merge knows only from its last full word,
        are held against (decision 0015); where rounds come late, without resets of counters.
        """
        reader = self.store.reader
        return {
            "cards": {card.id: _plain(card) for card in reader.cards()},
            "nodes": {node.id: (node.name, round(node.last_at, 2)) for node in reader.nodes()},
            "sources": {(s.node, s.source): (round(s.last_at, 2), s.silent, s.outcome, s.cards) for s in reader.sources()},
            "findings": {
                row.finding.id: (row.finding.kind, row.finding.about) for row in reader.findings() if row.finding.kind is not FindingKind.VALUES_DISAGREE
            },
            "changes": sorted(
                (row.change.subject, row.change.kind, round(row.change.at, 1))
                for row in reader.changes()
                if row.superseded_at is None and not (late and row.change.kind is Happening.COUNTER_RESET)
            ),
            "gauges": {(v.subject, v.node, v.source, v.key): _word(v.word) for v in reader.current()},
        }


def _plain(card: Any) -> Any:
    claims = {(c.node, c.source): (round(c.at, 2), c.denied_at is None, c.confirmed_at is None, c.void, c.addresses) for c in card.claims}
    voices = {(v.node, v.source): {key: _word(word) for key, word in v.words.items() if key not in ("temperature.core",)} for v in card.voices}
    return card.presence, card.node_name, card.rung, dict(card.ids), card.conflicts, claims, voices


def _word(word: Any) -> Any:
    return word.value, None if word.at is None else round(word.at, 2), word.why


@pytest.fixture
def sides() -> Iterator[tuple[Side, Side]]:
    one, two = Side(light=True), Side(light=False)
    yield one, two
    one.store.close()
    two.store.close()


def _play(seed: int, rounds: int, *, late: bool, restarts: bool) -> tuple[int, int]:
    """Plays a history on both sides and holds them to each other. Returns how many rounds went by numbers alone, and how many there were."""
    world, one, two = World(seed), Side(light=True), Side(light=False)
    light = total = 0
    try:
        for turn in range(1, rounds + 1):
            now = T0 + turn * CADENCE
            world.happen()
            docs = [doc for node in ("n0", "n1", "n2") if (doc := world.report(node, now - world.dice.choice((0.1, 0.2)), now))]
            docs = world.held + docs
            world.held = []
            if late and world.dice.random() < 0.1 and docs:
                world.held.append(docs.pop(world.dice.randrange(len(docs))))
            for doc in docs:
                assert one.report(doc, now) == two.report(doc, now)
                total += len(doc.heard)
            if world.dice.random() < 0.03:
                _act(world, one, two, now)
            for side in (one, two):
                side.inventory.tick(now + 1)
            if restarts and world.dice.random() < 0.05:
                one.start(now + 2)
            light = sum(source.again_at is not None for source in one.inventory._fold.sources)
            mine, theirs = one.shown(now + 2, late=late), two.shown(now + 2, late=late)
            for what in mine:
                assert mine[what] == theirs[what], f"seed {seed}, turn {turn}: {what}: {_apart(mine[what], theirs[what])}"
    finally:
        one.store.close()
        two.store.close()
    return light, total


def _apart(mine: Any, theirs: Any) -> str:
    """What one has and the other has not."""
    if isinstance(mine, dict):
        keys = [key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key)]
        return "; ".join(f"{key}: {mine.get(key)} / {theirs.get(key)}" for key in keys[:3])
    return f"{[each for each in mine if each not in theirs][:4]} / {[each for each in theirs if each not in mine][:4]}"


def _act(world: World, one: Side, two: Side, now: float) -> None:
    card = {"serial": world.dice.choice(sorted(world.where))}
    doc = ActDoc(what="set", by="op", card=card, values={"asset.owner": world.dice.choice(("a", "b"))}, reason="test")
    answers = []
    for side in (one, two):
        try:
            answers.append(str(side.inventory.act(doc, now)))
        except MusterError as error:
            answers.append(error.code)
    assert answers[0] == answers[1]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_both_ways_show_the_same(seed: int) -> None:
    _play(seed, 14, late=False, restarts=False)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_both_ways_show_the_same_over_restarts(seed: int) -> None:
    _play(seed, 14, late=False, restarts=True)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_both_ways_show_the_same_when_reports_come_late(seed: int) -> None:
    _play(seed, 14, late=True, restarts=True)


@pytest.mark.parametrize(
    ("seed", "late", "restarts"), [(24, False, False), (10, False, False), (14, True, True), (6, True, True), (25, True, False), (114, False, True)]
)
def test_both_ways_show_the_same_in_histories_that_once_told_them_apart(seed: int, *, late: bool, restarts: bool) -> None:
    _play(seed, 30, late=late, restarts=restarts)


def test_equal_rounds_do_go_by_numbers_alone() -> None:
    light, total = _play(7, 24, late=False, restarts=False)
    assert light > 0
    assert total > 80


def test_a_counter_that_falls_after_rounds_by_numbers_alone_is_counted_right() -> None:
    side = Side(light=True)
    told = [100, 200, 300, 600, 900, 500, 700]
    for turn, energy in enumerate(told):
        row = ObservationDoc(level="card", ids=[("serial", "S1")], readings={"energy.total": {"v": energy}, "power.draw": {"v": 60 + turn}})
        at = T0 + turn * CADENCE
        listing = ListingDoc(
            source="one.library", channel="in_band", witness="driver", cadence=CADENCE, outcome="devices", complete=True, observed_at=at, observations=[row]
        )
        doc = ReportDoc(reporter="a", incarnation="i", sequence=turn + 1, node=NodeDoc(name="n"), sent_at=at, heard=[part(listing)])
        assert side.report(doc, at) == "applied"

    (card,) = side.store.reader.cards()
    resets = [row.change.at for row in side.store.reader.changes() if row.change.kind is Happening.COUNTER_RESET]
    apart = {card.id: {(v.node, v.source): {v.key: v.word} for v in side.store.reader.current() if v.key == "energy.total"}}
    assert resets == [T0 + 5 * CADENCE]
    assert grown(view(card, apart, POLICY, T0 + 61)) == {"energy.total": 800 + 500 + 200}
    side.store.close()
