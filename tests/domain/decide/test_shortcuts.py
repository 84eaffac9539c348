# SPDX-License-Identifier: Apache-2.0
"""Merge leaves out work that changes nothing. Each shortcut against the plain way, on random histories and values."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.decide import telling
from tests.domain.decide.telling import T0, WITNESSES

from muster.domain.decide import fold
from muster.domain.decide.choose import choose
from muster.domain.decide.essence import essence
from muster.domain.decide.merge import Merged, difference, findings, groups, naming, nodes, parts, roll, sight, values, words
from muster.domain.decide.merge.news import differ
from muster.domain.decide.merge.record import source_record
from muster.domain.decide.merge.state import Card, Piece, Shelf, Sighting, Site, Told, Use
from muster.domain.model.attributes import ATTRIBUTES, Level
from muster.domain.model.names import NameKind, canonical, names, names_nothing
from muster.domain.model.observation import Observation, Role, Subject
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.roll import Act, ActKind, CardRecord, Change, Happening, Listing, NodeNames, Presence, Rung, Voice, Word
from muster.domain.model.source import Outcome
from muster.wire.mapping import fit, to_observations, to_reading
from muster.wire.report import ListingDoc, ObservationDoc

POLICY = Policy(settle=100.0, late_listings=20, late_window=200.0)
SOURCES = {name: WITNESSES[name] for name in ("driver", "exporter", "bmc", "bus", "cluster")}
TOLD: dict[str, list[Any]] = {
    "product.name": ["Model M1", "M1", "M 2"],
    "firmware.version": ["1", "2"],
    "driver.version": ["5.1", "5.2"],
    "memory.total": [80e9, 80_000_000_000, 81e9, 100e9],
    "pci.class": ["0302", "030200", "0300"],
    "pci.vendor_id": ["abcd", "abce"],
    "temperature.core": [50, 51.5, 70],
    "energy.total": [3, 40, 500],
    "power.draw": [90, 800],
    "power.limit": [300],
    "partition.mode": ["none", "mig"],
    "health.reported": ["ok", "critical"],
    "compute.formats": [["fp8"], ["fp8", "fp16"]],
    "memory.used": [1e9, 90e9],
}


def reading(dice: random.Random, key: str) -> Reading:
    """A value of an attribute, or that there is none."""
    return Absent(dice.choice(list(Why)), dice.choice(("", "x"))) if dice.random() < 0.1 else Known(dice.choice(TOLD[key]))


def named(dice: random.Random, source: str, card: int) -> dict[str, str]:
    """How a source names a card."""
    place = card % 3
    if source == "bus":
        return {"pci_address": f"{place + 1:02x}:00.0"}
    found = {"serial": f"SN{card:05d}"} if dice.random() < 0.6 else {}
    if source == "bmc":
        return {"chassis_slot": str(place), **found}
    if dice.random() < 0.7:
        found["vendor_uuid"] = f"GPU-{card:04d}-77aa"
    return {"pci_address": f"0000:{place + 1:02x}:00.{dice.choice('0001')}", **found}


def listing(dice: random.Random, at: float, order: int) -> Listing:
    """A source's word: some cards with some readings, now and then with parts, late or cut."""
    node, source = dice.randrange(3), dice.choice(sorted(SOURCES))
    told = [Observation(subject=Subject(level=Level.NODE), readings={"node.kernel": Known(dice.choice(("6", "7")))})]
    for card in dice.sample(range(8), dice.randrange(5)):
        own = names(**named(dice, source, card))
        keys = dice.sample(sorted(TOLD), dice.randrange(2, len(TOLD)))
        role = Role.DISPLAY if dice.random() < 0.1 else None
        told.append(Observation(subject=Subject(level=Level.CARD, names=own), readings={key: reading(dice, key) for key in keys}, role=role))
        for part in range(dice.randrange(3) if dice.random() < 0.2 else 0):
            subject = Subject(level=Level.PARTITION, names=names(gpu_instance_id=part), parent=own, ordinal=part)
            told.append(Observation(subject=subject, readings={"partition.profile": Known(dice.choice(("1g", "2g"))), "memory.used": Known(part)}))
    whole = dice.random() < 0.7
    return Listing(
        node=NodeNames(name=f"n{node}"),
        witness=SOURCES[source],
        reporter=f"{source}@n{node}",
        incarnation="i",
        sequence=order,
        at=at - dice.choice((5, 40, 150)) if dice.random() < 0.15 else at,
        received_at=at,
        complete=whole,
        outcome=Outcome.DEVICES if whole else dice.choice((Outcome.PARTIAL, Outcome.TIMED_OUT)),
        counts={"cards": dice.randrange(5)} if source == "cluster" else {},
        observations=tuple(told),
        stuck=dice.random() < 0.02,
        standing_by=dice.random() < 0.03,
    )


def history(seed: int, length: int) -> list[telling.Step]:
    """Words and moments at which time passes."""
    dice, at = random.Random(seed), T0
    found: list[telling.Step] = []
    last: dict[str, Listing] = {}
    for order in range(length):
        at += dice.choice((1, 10, 35, 130))
        what = dice.random()
        if what < 0.06:
            kind = dice.choice((ActKind.SAME, ActKind.NOT_SAME, ActKind.STORE, ActKind.SET))
            card, other = ({"serial": f"SN{dice.randrange(8):05d}"} for _ in range(2))
            found.append(
                Act(what=kind, by="op", at=at, received_at=at, card=card, other=other, values={"firmware.version": "1"} if kind is ActKind.SET else {})
            )
        elif what < 0.12 and last:
            found.append(telling.again([(each, min(at, each.at + 20)) for each in last.values()], at))
        elif what < 0.2:
            found.append(at)
        else:
            said = listing(dice, at, order)
            last[said.reporter] = said
            found.append(said)
    return found


def played(seed: int, length: int = 25) -> list[Merged]:
    """What each step of a history gives."""
    return telling.played(history(seed, length), POLICY)


def _plain_hear(told: dict[str, Word], readings: Mapping[str, Reading], at: float, capture: str, _made: dict[Any, Word]) -> None:
    for key, each in readings.items():
        told[key] = words.heard(told.get(key), each, at, capture)


def _told_twice(told: list[Voice], policy: Policy) -> list[str]:
    """Compared attributes of which more than one source speaks."""
    said = [key for voice in told for key in voice.words]
    return [key for key in dict.fromkeys(said) if key in policy.compare and said.count(key) > 1]


def _plainly(patch: pytest.MonkeyPatch) -> None:
    """Takes every shortcut away."""
    patch.setattr(roll, "quick", lambda *_: None)
    for module in (sight, findings):
        patch.setattr(module, "crowded", lambda *_: True)
    patch.setattr(values, "_may_change", lambda *_: True)
    patch.setattr(values, "at_odds", _told_twice)
    patch.setattr(parts, "into", _plain_hear)
    patch.setattr(difference, "differ", lambda one, two: essence(one) != essence(two))
    patch.setattr(
        difference,
        "sources",
        lambda before, old, new: [r for p in new.speakers if (r := source_record(new, p)) != (source_record(old, p) if p in before else 0)],
    )
    patch.setattr(fold, "HELD", frozenset(ATTRIBUTES))
    patch.setattr(Card, "copy", copy.deepcopy)
    for module in (fold, naming, nodes, parts):
        patch.setattr(module, "form", canonical)
        patch.setattr(module, "nothing", names_nothing)
    patch.setattr(groups, "spelt", canonical)
    patch.setattr(groups, "nothing", names_nothing)


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32))
def test_a_history_is_the_same_by_the_plain_way(seed: int) -> None:
    short = played(seed)
    with pytest.MonkeyPatch.context() as patch:
        _plainly(patch)
        plain = played(seed)

    for one, two in zip(short, plain, strict=True):
        for each in fields(Merged):
            assert getattr(one, each.name) == getattr(two, each.name), each.name


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32))
def test_two_records_differ_when_their_essence_does(seed: int) -> None:
    records: dict[str, list[CardRecord]] = {}
    for merged in played(seed):
        for record in merged.cards:
            records.setdefault(record.id, []).append(record)

    pairs = [(one, two) for each in records.values() for one in each for two in each[-3:]]
    assert [differ(one, two) for one, two in pairs] == [essence(one) != essence(two) for one, two in pairs]


VALUES = st.one_of(
    st.sampled_from(["a", "A", "1", "0302", "030200"]), st.integers(-1, 3), st.booleans(), st.sampled_from([0.0, 1.0, 1.01, 3.0]), st.just(["a"])
)
TIMES = st.one_of(st.none(), st.sampled_from([T0 - 500, T0 - 1, T0]))
WORDS = st.builds(lambda value, at, why, why_at: Word(value=value, at=at, why=why, why_at=why_at), VALUES, TIMES, st.sampled_from([None, *Why]), TIMES)
KEYS = st.sampled_from(
    ["product.name", "pci.class", "memory.total", "firmware.version", "compute.formats", "health.reported", "temperature.core", "energy.total"]
)
SAID = st.dictionaries(KEYS, WORDS, max_size=5)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(SOURCES)), SAID, min_size=2, max_size=3))
def test_where_all_say_the_same_nobody_dissents(said: dict[str, dict[str, Word]]) -> None:
    told = telling.voices(said.items())
    left_out = set(_told_twice(told, POLICY)) - set(values.at_odds(told, POLICY))

    for key in left_out:
        shown = choose(key, told, POLICY, T0, {("n/bmc", "n/driver")})
        assert shown is None or not shown.dissent


READINGS = st.one_of(VALUES.map(Known), st.builds(Absent, st.sampled_from(list(Why)), st.sampled_from(["", "x"])))


@pytest.mark.hypothesis
@settings(deadline=None)
@given(SAID, st.dictionaries(KEYS, READINGS, max_size=6), st.sampled_from([T0 - 2, T0]))
def test_many_readings_are_heard_as_one_by_one(old: dict[str, Word], readings: dict[str, Reading], at: float) -> None:
    one, two = dict(old), dict(old)
    words.hear(one, readings, at, "c", {})
    _plain_hear(two, readings, at, "c", {})

    assert [(key, word, type(word.value)) for key, word in one.items()] == [(key, word, type(word.value)) for key, word in two.items()]


DOCS = st.one_of(
    st.builds(lambda value: {"v": value}, st.one_of(st.none(), VALUES, st.sampled_from([-5, 2**63, 2**64, 1e30, float("nan"), float("inf"), -0.0, "é"]))),
    st.builds(lambda why: {"a": why}, st.sampled_from(["error", "not_supported", "of tomorrow"])),
    st.just({}),
)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(st.lists(st.dictionaries(st.one_of(KEYS, st.just("ours.alone")), DOCS, max_size=6), max_size=4))
def test_a_listing_is_read_as_each_of_its_readings(rows: list[dict[str, dict[str, Any]]]) -> None:
    told = [ObservationDoc(level="card", ids=[("serial", f"S{i}")], readings=row) for i, row in enumerate(rows)]
    doc = ListingDoc(source="s", channel="in_band", witness="driver", cadence=1, outcome="devices", complete=True, observed_at=0, observations=told)
    found = to_observations(doc)
    plain = [{key: fit(key, made) for key, each in row.items() if (made := to_reading(each)) is not None} for row in rows]

    assert [{key: repr(each) for key, each in row.readings.items()} for row in found] == [{key: repr(each) for key, each in row.items()} for row in plain]
    numbers = [each for row in found for key, each in row.readings.items() if key in ("temperature.core", "energy.total") and isinstance(each, Known)]
    assert len({id(each) for each in numbers}) == len(numbers)


def test_a_copy_has_everything_and_shares_nothing_that_changes() -> None:
    place = ("n", "s")
    word, turn = {"k": Word(value=1, at=1.0)}, (1.0, 1)
    seen = Sighting({"serial": ("a",)}, 1.0, turn, 2.0, turn, "3", ("4",), "5", turn, 6.0, 7.0, void=True, expired=True)
    part = Piece("p", Level.DEVICE, 1, {"serial": ("a",)}, "u", {place: dict(word)})
    entry = Change(id="e", subject="c", kind=Happening.MOVED, at=1.0, learnt_at=2.0)
    shelf = Shelf(Presence.STORED, 1.0, "x", ("n",), True)
    card = Card(
        "c", 1.0, turn, Presence.PRESENT, 2.0, "n", Rung.UUID, True, turn, {NameKind.SERIAL: {"a": Told("A", {place}, True)}}, {place: seen},
        {place: Role.DISPLAY}, {place: dict(word)}, dict(word), [part], [part], place, True, "mig", 3.0, [entry], shelf,
        {"serial"}, {("s", "k"): Use(1.0, 2.0)}, {"k": 1.0}, {("k", "a", "b"): True}, {place: 1.0}, {place: {"a": 1}},
    )  # fmt: skip
    empty = Card("", 0.0, (0.0, 0))
    assert [f.name for f in fields(Card) if getattr(card, f.name) == getattr(empty, f.name)] == []
    assert [f.name for f in fields(Sighting) if getattr(seen, f.name) == getattr(Sighting({}, 0.0, (0.0, 0), 0.0, (0.0, 0)), f.name)] == []

    made = Site(cards={"c": card}).copy().cards["c"]

    assert made == card
    shared = [f.name for f in fields(Card) if isinstance(getattr(card, f.name), dict | list | set | Shelf) and getattr(made, f.name) is getattr(card, f.name)]
    assert shared == []
    assert made.claims[place] is not seen
    assert made.names[NameKind.SERIAL]["a"].by is not card.names[NameKind.SERIAL]["a"].by
    assert made.voices[place] is not card.voices[place]
    assert made.devices[0].voices[place] is not part.voices[place]
    assert made.uses["s", "k"] is not card.uses["s", "k"]


def test_the_shortcut_for_watched_attributes_is_taken_only_where_one_text_stands() -> None:
    place = ("n", "s")
    card = Card("c", 0.0, (0.0, 0), voices={place: {"driver.version": Word(value="5.1", at=T0)}})

    assert not values._may_change(card, "driver.version", {"driver.version": Known("5.1")})
    assert values._may_change(card, "driver.version", {"driver.version": Known("5.2")})
    other = replace(card, voices={**card.voices, ("n", "t"): {"driver.version": Word(value="5.2", at=T0)}})
    assert values._may_change(other, "driver.version", {"driver.version": Known("5.1")})
