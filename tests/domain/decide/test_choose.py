# SPDX-License-Identifier: Apache-2.0
"""Choice among witnesses: known before absent, fresh before stale, then precedence; what is kept beside; and that nothing is ever made up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.decide.choose import Shown, agree, choose, normalised, pair, same
from muster.domain.model.attributes import Compare
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.roll import Voice, Word
from muster.domain.model.source import Channel, WitnessClass

NOW = 1000.0
POLICY = Policy(vendor_words=frozenset({"acme"}))
W = WitnessClass
CHANNELS = {
    W.DRIVER: Channel.IN_BAND,
    W.EXPORTER: Channel.IN_BAND,
    W.BMC: Channel.OUT_OF_BAND,
    W.PCI: Channel.IN_BAND,
    W.CLUSTER: Channel.CLUSTER,
    W.OPERATOR: Channel.OPERATOR,
}


def voice(witness: WitnessClass, key: str, word: Word, *, promise: float = 180.0, node: str = "n", source: str = "") -> Voice:
    return Voice(node=node, source=source or witness.value, channel=CHANNELS[witness], witness=witness, promise=promise, words={key: word})


def said(value: Any, age: float = 0.0) -> Word:
    return Word(value=value, at=NOW - age)


def shown(key: str, *voices: Voice, judged: Any = ()) -> Shown:
    found = choose(key, voices, POLICY, NOW, judged)
    assert found is not None
    return found


def test_nobody_speaks_nothing_is_shown() -> None:
    assert choose("memory.total", [], POLICY, NOW) is None
    assert choose("memory.total", [voice(W.DRIVER, "power.draw", said(1))], POLICY, NOW) is None


def test_the_better_class_is_shown() -> None:
    found = shown("memory.total", voice(W.BMC, "memory.total", said(100)), voice(W.DRIVER, "memory.total", said(99)))

    assert (found.reading, found.source, found.stale, found.dissent) == (Known(99), "driver", False, {})


def test_known_comes_before_absent_and_the_reason_is_kept() -> None:
    refused = Word(why=Why.NOT_SUPPORTED, why_at=NOW, detail="N/A")
    found = shown("temperature.memory", voice(W.DRIVER, "temperature.memory", refused), voice(W.BMC, "temperature.memory", said(39)))

    assert (found.reading, found.source, found.absent) == (Known(39), "bmc", {"driver": Why.NOT_SUPPORTED})


def test_where_nobody_knows_the_better_reason_is_shown() -> None:
    mine, theirs = Word(why=Why.NOT_PRESENT, why_at=NOW - 5, detail="no fan"), Word(why=Why.NOT_SUPPORTED, why_at=NOW)
    found = shown("fan.speed", voice(W.BMC, "fan.speed", theirs), voice(W.DRIVER, "fan.speed", mine))

    assert (found.reading, found.source, found.observed_at) == (Absent(Why.NOT_PRESENT, "no fan"), "driver", NOW - 5)


@pytest.mark.parametrize(("age", "stale"), [(180.0, False), (180.5, True)])
def test_stale_begins_after_the_promise(age: float, stale: bool) -> None:
    found = shown("power.draw", voice(W.DRIVER, "power.draw", said(90, age)))

    assert (found.stale, found.age(NOW)) == (stale, age)


def test_a_fresh_gauge_of_a_lesser_source_beats_a_stale_better_one() -> None:
    found = shown("power.draw", voice(W.DRIVER, "power.draw", said(640, 240)), voice(W.BMC, "power.draw", said(71)))

    assert (found.reading, found.source) == (Known(71), "bmc")


def test_when_all_are_stale_precedence_decides() -> None:
    found = shown("power.draw", voice(W.DRIVER, "power.draw", said(640, 700)), voice(W.BMC, "power.draw", said(71, 460)))

    assert (found.reading, found.source, found.stale) == (Known(640), "driver", True)


@pytest.mark.parametrize(("theirs", "source"), [(101.0, "driver"), (120.0, "bmc")])
def test_a_stale_better_fact_stays_while_it_is_agreed_with(theirs: float, source: str) -> None:
    found = shown("memory.total", voice(W.DRIVER, "memory.total", said(100.0, 300)), voice(W.BMC, "memory.total", said(theirs)))

    assert (found.source, found.stale) == (source, source == "driver")


def test_health_takes_the_worst_fresh_word() -> None:
    key = "health.reported"
    ok, bad, old = voice(W.DRIVER, key, said("ok")), voice(W.BMC, key, said("warning")), voice(W.PCI, key, said("critical", 999), source="bus")
    found = shown(key, ok, bad, old)

    assert (found.reading, found.source, found.dissent) == (Known("warning"), "bmc", {"driver": "ok"})


def test_a_word_that_nobody_ranked_is_no_worse_than_the_known_ones() -> None:
    found = shown("health.reported", voice(W.DRIVER, "health.reported", said("ok")), voice(W.BMC, "health.reported", said("odd")))

    assert found.reading == Known("ok")


def test_fresh_dissent_is_kept_and_stale_dissent_is_not() -> None:
    driver = voice(W.DRIVER, "memory.total", said(100))
    assert shown("memory.total", driver, voice(W.BMC, "memory.total", said(50))).dissent == {"bmc": 50}
    assert shown("memory.total", driver, voice(W.BMC, "memory.total", said(50, 400))).dissent == {}
    assert shown("memory.total", driver, voice(W.BMC, "memory.total", said(97))).dissent == {}


def test_driver_and_exporter_of_one_node_are_one_witness() -> None:
    driver = voice(W.DRIVER, "memory.total", said(100))
    assert shown("memory.total", driver, voice(W.EXPORTER, "memory.total", said(50))).dissent == {}
    assert shown("memory.total", driver, voice(W.EXPORTER, "memory.total", said(50), node="m")).dissent == {"exporter": 50}


def test_an_attribute_that_is_never_compared_has_no_dissent() -> None:
    assert shown("power.draw", voice(W.DRIVER, "power.draw", said(100)), voice(W.BMC, "power.draw", said(5))).dissent == {}


def test_gauges_dissent_only_as_judged() -> None:
    driver, bmc = voice(W.DRIVER, "temperature.core", said(61)), voice(W.BMC, "temperature.core", said(35))
    assert shown("temperature.core", driver, bmc).dissent == {}
    assert shown("temperature.core", driver, bmc, judged={pair(driver, bmc)}).dissent == {"bmc": 35}
    assert pair(driver, bmc) == pair(bmc, driver)


def test_the_operator_does_not_age_and_wins_for_what_is_his() -> None:
    old = Word(value="team-a", at=NOW - 1e9)
    found = shown("asset.owner", voice(W.OPERATOR, "asset.owner", old, promise=0.0), voice(W.CLUSTER, "asset.owner", said("team-b")))
    assert (found.reading, found.stale) == (Known("team-a"), False)

    typed = Word(value=1, at=NOW - 1e9)
    found = shown("memory.total", voice(W.OPERATOR, "memory.total", typed, promise=0.0), voice(W.DRIVER, "memory.total", said(100)))
    assert (found.reading, found.dissent) == (Known(100), {"operator": 1})


@pytest.mark.parametrize(
    ("compare", "one", "other", "right"),
    [
        ("exact", "A", "a", False),
        ("exact", 1, 1.0, True),
        ("exact", True, 1, True),
        ("normalised", "ACME  Super_Card-80", "super card 80", True),
        ("normalised", "Acme", "acme", True),
        ("normalised", "Other Super", "super", False),
        ("tolerance:0.05", 100, 95.0, True),
        ("tolerance:0.05", 100, 94.9, False),
        ("tolerance:0.05", 0, 0, True),
        ("near:10", 61, 51, True),
        ("near:10", 61, 50.9, False),
        ("near:10", "x", "x", True),
    ],
)
def test_two_values_are_the_same(compare: str, one: Any, other: Any, right: bool) -> None:
    how, _, by = compare.partition(":")

    assert same(Compare(how, float(by or 0)), one, other, {"acme"}) is right
    assert same(Compare(how, float(by or 0)), other, one, {"acme"}) is right


def test_classes_of_the_bus_are_told_in_two_lengths() -> None:
    assert agree("pci.class", "0302", "0x030200", POLICY)
    assert not agree("pci.class", "0300", "030200", POLICY)


def test_a_name_that_is_only_the_maker_stays() -> None:
    assert normalised("ACME", {"acme"}) == "acme"
    assert normalised("acme one two", {"acme"}) == "onetwo"


def test_classes_of_the_bus_are_told_with_or_without_a_mark_and_in_any_case() -> None:
    assert agree("pci.class", "0x0302", "030200", POLICY)
    assert agree("pci.class", "0X0B40", "0b4000", POLICY)
    assert agree("pci.class", "1200", "0x120000", POLICY)
    assert agree("pci.class", "0b40", "0B", POLICY)


def test_the_makers_name_before_a_name_is_no_dissent() -> None:
    assert agree("product.name", "Acme X1", "X1", POLICY)
    assert not agree("product.name", "Other X1", "X1", POLICY)


def test_what_the_policy_does_not_speak_of_is_the_same_only_exactly() -> None:
    assert agree("asset.rack", "r1", "r1", POLICY)
    assert not agree("asset.rack", "r1", "R1", POLICY)


def test_an_absence_says_who_where_and_on_what_bytes() -> None:
    word = Word(why=Why.NOT_SUPPORTED, why_at=NOW - 3, detail="N/A", capture="d1")
    found = shown("fan.speed", voice(W.DRIVER, "fan.speed", word, node="n7"))

    assert (found.source, found.node, found.observed_at, found.capture) == ("driver", "n7", NOW - 3, "d1")


def test_a_value_says_who_where_and_on_what_bytes() -> None:
    found = shown("power.draw", voice(W.DRIVER, "power.draw", Word(value=90, at=NOW - 3, capture="d2"), node="n7"))

    assert (found.source, found.node, found.observed_at, found.capture) == ("driver", "n7", NOW - 3, "d2")


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_sources_of_one_class_the_newer_is_shown(order: int) -> None:
    known = [voice(W.DRIVER, "power.draw", said(90 + age, age), source=f"s{age}") for age in (5, 40)][::order]
    refused = [voice(W.DRIVER, "fan.speed", Word(why=Why.NOT_SUPPORTED, why_at=NOW - age), source=f"s{age}") for age in (5, 40)][::order]

    assert shown("power.draw", *known).source == "s5"
    assert shown("fan.speed", *refused).source == "s5"


def test_a_stale_gauge_does_not_stay_though_a_fresh_one_agrees() -> None:
    found = shown("power.draw", voice(W.DRIVER, "power.draw", said(90, 400)), voice(W.BMC, "power.draw", said(90)))

    assert (found.source, found.stale) == ("bmc", False)


def test_nothing_is_younger_than_now() -> None:
    assert shown("power.draw", voice(W.DRIVER, "power.draw", said(90))).age(NOW - 50) == 0.0


def test_a_driver_and_the_bus_are_two_witnesses() -> None:
    found = shown("pci.device_id", voice(W.DRIVER, "pci.device_id", said("2330")), voice(W.PCI, "pci.device_id", said("2331")))

    assert found.dissent == {"pci": "2331"}


WORDS = st.one_of(
    st.builds(lambda v, a: Word(value=v, at=NOW - a), st.integers(0, 5), st.floats(0, 500)),
    st.builds(lambda w, a: Word(why=w, why_at=NOW - a), st.sampled_from(list(Why)), st.floats(0, 500)),
)


@pytest.mark.hypothesis
@given(st.lists(st.tuples(st.sampled_from(list(W)), WORDS), min_size=1, max_size=6, unique_by=lambda each: each[0]))
def test_what_is_shown_was_said_and_order_does_not_matter(told: list[tuple[WitnessClass, Word]]) -> None:
    voices = [voice(witness, "compute.units", word) for witness, word in told]
    found = shown("compute.units", *voices)
    word = next(w for c, w in told if c.value == found.source)

    if isinstance(found.reading, Known):
        assert word.at is not None
        assert (found.reading.value, found.observed_at) == (word.value, word.at)
        fresh = [c for c, w in told if w.at is not None and (c is W.OPERATOR or NOW - w.at <= 180)]
        agreed = found.stale and any(w.value == word.value for c, w in told if c in fresh)
        assert not (fresh and found.stale) or agreed
    else:
        assert all(w.at is None for _, w in told)
    assert found == shown("compute.units", *reversed(voices))
