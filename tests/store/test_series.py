# SPDX-License-Identifier: Apache-2.0
"""Gauges and counters: the newest word, the roll-ups, and what was so at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.store.samples import card, sample

from muster.domain.model.reading import Why
from muster.domain.model.roll import Word
from muster.spi.store import Batch
from muster.store import Store, open_store


def values(store: Store, at: float | None = None) -> list[Any]:
    return [(each.subject, each.key, each.word.value, each.word.at) for each in store.reader.current(at=at)]


def test_the_newest_word_is_current_in_whatever_order_it_comes(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, samples=[sample(30, 120.0), sample(10, 60.0)]))
    store.writer.commit(Batch(at=2.0, samples=[sample(20, 90.0)]))

    assert values(store) == [("c1", "power.draw", 30, 120.0)]


def test_each_source_and_node_has_its_own_word(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, samples=[sample(1, 60.0), sample(2, 60.0, source="bmc"), sample(3, 60.0, node="n2")]))

    assert [(each.node, each.source, each.word.value) for each in store.reader.current()] == [("n1", "acme.smi", 1), ("n1", "bmc", 2), ("n2", "acme.smi", 3)]


def test_only_the_gauges_of_the_cards_asked_for(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, samples=[sample(1, 60.0), sample(2, 60.0, subject="d1", card="c1"), sample(3, 60.0, subject="c2")]))

    assert [each.subject for each in store.reader.current(["c1"])] == ["c1", "d1"]
    assert [each.subject for each in store.reader.current(["c1"], at=60.0)] == ["c1", "d1"]
    assert store.reader.current([]) == []


def test_a_minute_is_rolled_up(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, samples=[sample(5.0, 61.0), sample(3.0, 119.0)]))
    store.writer.commit(Batch(at=2.0, samples=[sample(7.0, 90.0), sample(1.0, 120.0)]))

    assert store.reader.minutes("c1", "power.draw", 0, 119) == [
        {"minute": 60, "source": "acme.smi", "count": 3, "sum": 15.0, "low": 3.0, "high": 7.0, "last": 3.0}
    ]
    assert [row["minute"] for row in store.reader.minutes("c1", "power.draw", 60, 120)] == [60, 120]
    assert store.reader.minutes("c1", "fan.speed", 0, 1e9) == []


def test_the_past_is_told_from_the_minutes(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, samples=[sample(10, 60.0), sample(20, 110.0), sample(30.5, 130.0)]))

    assert values(store, at=59.0) == []
    assert values(store, at=60.0) == [("c1", "power.draw", 10.0, 60.0)]
    assert values(store, at=110.0) == [("c1", "power.draw", 20, 110.0)]
    assert values(store, at=129.0) == [("c1", "power.draw", 20, 110.0)]
    assert values(store, at=1e9) == [("c1", "power.draw", 30.5, 130.0)]


def test_a_whole_number_of_the_past_stays_whole(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, samples=[sample(85899345920, 60.0, key="memory.used"), sample(41.0, 60.0)]))

    assert [type(value) for _, _, value, _ in values(store, at=100.0)] == [int, float]


def test_a_word_that_is_no_number_is_kept_where_it_changed(store: Store) -> None:
    for at, state in ((60.0, "P0"), (120.0, "P0"), (180.0, "P8"), (240.0, "P8"), (300.0, "P8")):
        store.writer.commit(Batch(at=at, samples=[sample(state, at, key="performance.state")]))

    told = {at: values(store, at=at)[0][2:] for at in (60.0, 130.0, 200.0, 310.0)}
    assert told == {60.0: ("P0", 60.0), 130.0: ("P0", 60.0), 200.0: ("P8", 200.0), 310.0: ("P8", 300.0)}
    assert store.reader.minutes("c1", "performance.state", 0, 1e9) == []


def test_an_absence_is_told_with_the_value_before_it(store: Store) -> None:
    absent = Word(value=10, at=60.0, why=Why.ERROR, why_at=120.0, detail="Unknown Error")
    store.writer.commit(Batch(at=1.0, samples=[sample(10, 60.0), sample(None, 120.0, said=absent)]))

    assert [each.word for each in store.reader.current()] == [absent]
    assert [each.word for each in store.reader.current(at=130.0)] == [absent]
    assert [each.word for each in store.reader.current(at=119.0)] == [Word(value=10, at=60.0)]


def test_a_number_after_an_absence_counts_again(store: Store) -> None:
    absent = Word(why=Why.NOT_SAMPLED, why_at=61.0)
    store.writer.commit(Batch(at=1.0, samples=[sample(None, 61.0, said=absent), sample(4.0, 70.0)]))

    (row,) = store.reader.minutes("c1", "power.draw", 0, 1e9)
    assert (row["count"], row["low"], row["high"], row["last"]) == (1, 4.0, 4.0, 4.0)
    assert [each.word for each in store.reader.current(at=71.0)] == [Word(value=4.0, at=70.0)]


def test_a_joined_card_takes_the_newest_words_along(store: Store) -> None:
    old = [sample(1, 100.0, subject="c1"), sample(2, 100.0, subject="c1", key="fan.speed"), sample(3, 100.0, subject="d1", card="c1")]
    store.writer.commit(Batch(at=100.0, cards=[card("c1"), card("c2")], samples=[*old, sample(9, 160.0, subject="c2")]))
    store.writer.commit(Batch(at=200.0, gone={"c1": "c2"}))

    now = {(each.subject, each.key): (each.card, each.word.value) for each in store.reader.current()}
    assert now == {("c2", "power.draw"): ("c2", 9), ("c2", "fan.speed"): ("c2", 2), ("d1", "power.draw"): ("c2", 3)}
    assert {each.subject for each in store.reader.current(["c1"], at=170.0)} >= {"c1", "d1"}
    assert [row["last"] for row in store.reader.minutes("c2", "power.draw", 0, 1e9)] == [1.0, 9.0]


def test_words_that_are_bound_anew_replace_what_was_current_and_count_once(store: Store) -> None:
    state = sample("P0", 60.0, subject="d1", card="c1", key="performance.state")
    told = [sample(5.0, 60.0), sample(6.0, 60.0, key="fan.rpm"), state, sample(7.0, 60.0, subject="c2")]
    store.writer.commit(Batch(at=60.0, samples=told))
    store.writer.commit(Batch(at=61.0, rebound=["c1"], samples=[replace(sample(4.0, 50.0), rollup=False), replace(state, rollup=False)]))

    assert set(values(store)) == {("c1", "power.draw", 4.0, 50.0), ("d1", "performance.state", "P0", 60.0), ("c2", "power.draw", 7.0, 60.0)}
    assert [row["count"] for row in store.reader.minutes("c1", "power.draw", 0, 1e9)] == [1]
    assert {(key, value) for _, key, value, _ in values(store, at=60.0)} >= {("power.draw", 5.0), ("fan.rpm", 6.0)}

    store.writer.commit(Batch(at=62.0, samples=[sample(8.0, 120.0, key="fan.rpm")]))
    assert ("c1", "fan.rpm", 8.0, 120.0) in values(store)


def test_a_card_that_never_was_says_nothing_any_more(store: Store) -> None:
    store.writer.commit(Batch(at=60.0, cards=[card("c1"), card("c2")], samples=[sample(5.0, 60.0), sample(7.0, 60.0, subject="c2")]))
    store.writer.commit(Batch(at=90.0, vanished=["c1"]))

    assert values(store) == [("c2", "power.draw", 7.0, 60.0)]
    assert len(values(store, at=60.0)) == 2


@given(st.lists(st.tuples(st.floats(0, 600), st.floats(-1e6, 1e6)), min_size=1, max_size=30))
def test_roll_ups_add_up_whatever_the_order(told: list[tuple[float, float]]) -> None:
    store = open_store(None)
    store.writer.commit(Batch(at=1.0, samples=[sample(value, at) for at, value in told]))

    rows = store.reader.minutes("c1", "power.draw", 0, 600)
    assert sum(row["count"] for row in rows) == len(told)
    assert min(row["low"] for row in rows) == min(value for _, value in told)
    assert max(row["high"] for row in rows) == max(value for _, value in told)
    newest = max(at for at, _ in told)
    assert store.reader.current()[0].word.value in {value for at, value in told if at == newest}
    assert rows[-1]["last"] in {value for at, value in told if at == newest}
    store.close()
