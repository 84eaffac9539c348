# SPDX-License-Identifier: Apache-2.0
"""In a calm part of the site merge looks only at what is said otherwise. The short way against the long one, on histories in which little happens."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.decide import telling
from tests.domain.decide.telling import T0, WITNESSES

from muster.domain.decide.choose import choose, chosen, disputed
from muster.domain.decide.merge import Merged, Roll, calm, merge, restore, roll
from muster.domain.model.attributes import Level
from muster.domain.model.names import names
from muster.domain.model.observation import Observation, Subject
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.roll import Act, ActKind, Listing, NodeNames, Word
from muster.domain.model.source import Outcome

POLICY = Policy(settle=100.0, late_listings=40, late_window=200.0)
SOURCES = {name: WITNESSES[name] for name in ("driver", "twin", "bmc", "bus", "cluster")}
TOLD: dict[str, list[Any]] = {
    "product.name": ["Model M1", "M1", "M1", "Z9"],
    "firmware.version": ["1", "2"],
    "driver.version": ["5.1", "5.2"],
    "pci.device_id": ["2330", "2330", "2331"],
    "pci.class": ["0302", "0302", "0300"],
    "memory.total": [80e9, 80_000_000_000, 100e9],
    "numa.node": [1, 1, 0, True],
    "temperature.core": [50, 51.5, 70, "hot"],
    "energy.total": [3, 40, 500.5],
    "power.draw": [90, 800],
    "partition.mode": ["none"] * 9 + ["mig"],
    "health.reported": ["ok", "critical"],
    "compute.formats": [["fp8"], [1], [1.0]],
    "ecc.enabled": [True, 1],
}
MOVING = ("temperature.core", "energy.total", "power.draw")


class Story:
    """A part of the site whose sources say mostly what they said before."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        self.cards, self.wild = dice.randrange(1, 5), dice.choice((0.0, 0.0, 0.01, 0.05))
        self.stir, self.pace = dice.choice((0.0, 0.05, 0.3)), dice.choice((1, 5, 20))
        self.sources = dice.sample(sorted(SOURCES), dice.randrange(1, 4))
        strong = ("vendor_uuid", "serial", "index")
        self.kinds = {each: {*dice.sample(strong, dice.choice((0, 1, 1, 2, 2, 3))), *dice.sample(("pci", "slot"), 1)} for each in self.sources}
        self.keys = {each: dice.sample(sorted(TOLD), dice.randrange(2, len(TOLD))) for each in self.sources}
        self.alike = dice.random() < 0.5
        self.said: dict[tuple[str, int], dict[str, Reading]] = {}

    def names(self, source: str, card: int) -> dict[str, str]:
        """How a source names a card."""
        spelt = "sn" if self.dice.random() < self.wild else "SN"
        every = {
            "vendor_uuid": f"GPU-{card:04d}-77aa",
            "serial": f"{spelt}{card:05d}",
            "index": str(card + len(source)),
            "pci_address": f"0000:{card + 1:02x}:00.0",
            "chassis_slot": str(card),
        }
        kinds = {*self.kinds[source], "chassis_slot" if source == "bmc" or "slot" in self.kinds[source] else "pci_address"}
        return {kind: value for kind, value in every.items() if kind in kinds}

    def value(self, key: str) -> Reading:
        """Something that is said of an attribute."""
        return Absent(self.dice.choice(list(Why)), "") if self.dice.random() < 0.08 else Known(self.dice.choice(TOLD[key]))

    def row(self, source: str, card: int) -> Observation:
        """What a source says of a card."""
        like = self.said.get((source, 0)) if self.alike else None
        told = self.said.get((source, card)) or like or {key: self.value(key) for key in self.keys[source]}
        again = {key: Known(each.value) if isinstance(each, Known) else each for key, each in told.items()}
        for key in again:
            if self.dice.random() < self.stir / len(again) or (key in MOVING and self.dice.random() < 0.5):
                again[key] = self.value(key)
        if self.dice.random() < self.wild:
            again.pop(next(iter(again)))
        self.said[source, card] = again or told
        vendor = {"a": self.dice.choice((1, 1.0))} if source == "twin" else {}
        return Observation(subject=Subject(level=Level.CARD, names=names(**self.names(source, card))), readings=dict(again), vendor=vendor)

    def listing(self, at: float, order: int) -> Listing:
        """A source's word."""
        source = self.dice.choice(self.sources)
        cards = [card for card in range(self.cards) if self.dice.random() >= self.wild]
        node = Observation(subject=Subject(level=Level.NODE), readings={"node.kernel": Known(self.dice.choice("667"))})
        whole = self.dice.random() >= (self.wild if len(cards) == self.cards else 0.5)
        return Listing(
            node=NodeNames(name="n0", machine_id=self.dice.choice(("", "m0"))),
            witness=SOURCES[source],
            reporter=f"{source}@n0",
            incarnation="i",
            sequence=order,
            at=at - 40 if self.dice.random() < self.wild else at,
            received_at=at,
            complete=whole,
            outcome=Outcome.DEVICES if whole else Outcome.PARTIAL,
            counts={"cards": self.cards + self.dice.choice((0, 0, 1))} if source == "cluster" else {},
            observations=(node, *(self.row(source, card) for card in cards)),
            capture=self.dice.choice(("", f"c{order}")),
        )

    def words(self, length: int) -> list[telling.Step]:
        """Words and moments at which time passes."""
        at, found, last = T0, list[telling.Step](), dict[str, Listing]()
        for order in range(length):
            at += self.dice.choice((0, 0.5, 1, 3)) * self.pace if self.dice.random() >= self.wild else 400
            what = self.dice.random()
            if what < self.wild / 2:
                card = {"serial": f"SN{self.dice.randrange(self.cards):05d}"}
                found.append(Act(what=self.dice.choice((ActKind.STORE, ActKind.SET)), by="op", at=at, received_at=at, card=card, values={"numa.node": 7}))
            elif what < 0.15 and last:
                found.append(telling.again([(each, max(each.at, at - 1)) for each in last.values()], at))
            elif what < 0.2:
                found.append(at)
            else:
                said = self.listing(at, order)
                last[said.reporter] = said
                found.append(said)
        return found


def played(seed: int, length: int = 30) -> list[Merged]:
    """What each step of a story gives."""
    return telling.played(Story(seed).words(length), POLICY)


def _exact(merged: Merged) -> dict[str, Any]:
    """All that a step gives; of what is shown every type too, so that 1 is not 1.0."""
    told = {each.name: getattr(merged, each.name) for each in fields(Merged)}
    shown = repr([told[name] for name in ("cards", "nodes", "sources", "samples", "changes", "findings")])
    return {**told, "shown": shown, "records": [repr(list((region.records or {}).values())) for region in merged.roll.regions.values()]}


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32))
def test_the_short_way_gives_what_the_long_one_gives(seed: int) -> None:
    short = played(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roll, "_short", lambda *_: None)
        long = played(seed)

    for one, two in zip(short, long, strict=True):
        assert _exact(one) == _exact(two)


def test_the_short_way_is_gone_where_little_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {"quick": [0, 0], "run_on": [0, 0]}

    def counted(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def way(*told: Any) -> Any:
            found = plain(*told)
            gone[name][found is not None] += 1
            return found

        return way

    for name in gone:
        monkeypatch.setattr(roll, name, counted(name, getattr(roll, name)))
    for seed in range(40):
        played(seed)

    assert gone["quick"][1] > 250
    assert gone["run_on"][1] > 40


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32))
def test_a_part_is_read_from_its_journal_the_same_by_both_ways(seed: int) -> None:
    region = next(iter(played(seed)[-1].roll.regions.values()))
    with pytest.MonkeyPatch.context() as patch:
        short = restore(region.id, region.base, region.journal, POLICY)
        patch.setattr(roll, "_short", lambda *_: None)
        assert restore(region.id, region.base, region.journal, POLICY) == short


def test_a_step_changes_nothing_in_the_state_before_it() -> None:
    found = played(7)
    kept = [repr(each.roll) for each in found]
    again = played(7)

    assert [repr(each.roll) for each in again] == kept
    assert [repr(each.roll) for each in found] == kept


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32))
def test_what_is_known_of_a_calm_part_is_what_a_survey_finds(seed: int) -> None:
    for merged in played(seed, 20):
        for region in merged.roll.regions.values():
            known = region.calm
            if known is None:
                continue
            found = calm.survey(region.site, POLICY)
            assert found is not None
            assert known.due <= found.due
            assert (known.node, known.standing, known.accelerators, known.named) == (found.node, found.standing, found.accelerators, found.named)
            for i, still in found.cards.items():
                mine = known.cards[i]
                assert replace(mine, odds=sorted(mine.odds), restless=True) == replace(still, odds=sorted(still.odds), restless=True)
                assert mine.restless >= still.restless


@pytest.mark.parametrize(
    ("bmc", "bus", "is_calm"),
    [
        ([{"chassis_slot": "0", "serial": "SN1"}, {"chassis_slot": "1", "serial": "SN2"}], [], True),
        ([{"chassis_slot": "0"}], [{"pci_address": "0000:01:00.0"}], False),
        ([{"chassis_slot": "0"}], [{"chassis_slot": "0", "pci_address": "0000:01:00.0"}], True),
    ],
    ids=["named", "views-of-one-card", "in-one-place"],
)
def test_a_part_is_calm_where_no_card_may_be_a_view_of_another(bmc: list[dict[str, str]], bus: list[dict[str, str]], *, is_calm: bool) -> None:
    site = merge(Roll(), telling.listing("bmc", *bmc), 0, POLICY, T0).roll
    if bus:
        site = merge(site, telling.listing("bus", *bus), 1, POLICY, T0).roll

    assert (calm.survey(next(iter(site.regions.values())).site, POLICY) is not None) is is_calm


VOICES = st.lists(
    st.builds(
        lambda place, value, at, why: (place, Word(value=value, at=at, why=why, why_at=T0 if why else None)),
        st.sampled_from(sorted(SOURCES)),
        st.sampled_from(["1", "2", 1, 1.5, "ok", "critical"]),
        st.sampled_from([None, T0 - 500, T0 - 5, T0]),
        st.sampled_from([None, Why.ERROR]),
    ),
    max_size=4,
    unique_by=lambda each: each[0],
)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(VOICES, st.sampled_from(["firmware.version", "health.reported", "memory.total", "temperature.core", "power.draw"]))
def test_the_short_answers_are_those_of_the_choice(said: list[tuple[str, Word]], key: str) -> None:
    told = telling.voices((each, {key: word}) for each, word in said)
    judged = {("n/bmc", "n/driver")}
    shown = choose(key, told, POLICY, T0, judged)
    word = chosen(key, told, POLICY, T0)

    assert disputed(key, told, POLICY, T0, judged) == bool(shown and shown.dissent)
    assert (word is not None) == (shown is not None and isinstance(shown.reading, Known))
    if word is not None and shown is not None:
        assert shown.reading == Known(word.value)
