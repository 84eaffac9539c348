# SPDX-License-Identifier: Apache-2.0
"""Parts of the site: their journals, names and cards are found by part, and go along when parts unite."""

from __future__ import annotations

from math import inf

import pytest
from tests.store.samples import card, node

from muster.domain.model.errors import NotFound
from muster.spi.store import Batch, RegionRows, Reporter, Said
from muster.store import Store


def said(order: int, region: str = "", at: float = 1.0) -> Said:
    return Said(order=order, at=at, received_at=2.0, kind="listing", body=b"\x00said", region=region)


def reporter(name: str, high: int) -> Reporter:
    return Reporter(
        reporter=name, incarnation="i1", high=high, recent=b"\x00\x01", received_at=5.0, skew=-2.5, agent_version="1.0", boot_id="b", node="n1", state=b"s"
    )


def in_part(store: Store, table: str, region: str) -> int:
    with store.connections.transaction() as session:
        return int(session.execute(f"SELECT count(*) FROM {table} WHERE region = '{region}'").fetchone()[0])


def test_a_part_is_rebuilt_from_its_base_and_journal(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, said=[said(1, "a", 9.0), said(2, "b"), said(3, "a", 4.0)], base={"a": b"state"}, due={"a": 70.0, "b": inf}))

    assert store.writer.region("a") == RegionRows(base=b"state", said=[said(1, "a", 9.0), said(3, "a", 4.0)])
    assert store.writer.region("b") == RegionRows(base=b"", said=[said(2, "b")])
    with pytest.raises(NotFound, match="no part c"):
        store.writer.region("c")


def test_parts_with_a_due_are_not_loaded_whole(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, said=[said(1), said(2, "a"), said(3, "spoken")], base={"a": b"state", "old": b"old"}, due={"a": 70.0}))
    store.writer.commit(Batch(at=2.0, due={"a": 90.0}, base={"a": b"newer"}))

    loaded = store.writer.load()
    assert list(loaded.said) == [said(1)]
    assert loaded.base == {"old": b"old"}
    assert loaded.due == {"a": 90.0, "spoken": inf}
    assert store.writer.region("a").base == b"newer"


def test_a_due_alone_keeps_the_state_and_a_state_alone_the_due(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, base={"a": b"one"}, due={"a": 5.0}))
    store.writer.commit(Batch(at=2.0, due={"a": inf}))
    assert store.writer.region("a").base == b"one"
    store.writer.commit(Batch(at=3.0, base={"a": b""}, due={"b": 1.0}))

    assert store.writer.load().due == {"b": 1.0}
    with pytest.raises(NotFound):
        store.writer.region("a")


def test_names_lead_to_parts(store: Store) -> None:
    names = {("serial", "S1"): "a", ("serial", "S2"): "b", ("name", "S1"): "c", ("card", "c1"): "a", ("name", "it's"): "a"}
    store.writer.commit(Batch(at=1.0, names=names))
    store.writer.commit(Batch(at=2.0, names={("serial", "S2"): "", ("card", "c1"): "b"}))

    asked = [*names, ("serial", "S9"), ("none", "x")]
    assert store.writer.regions_of(asked) == {("serial", "S1"): "a", ("name", "S1"): "c", ("card", "c1"): "b", ("name", "it's"): "a"}
    assert store.writer.regions_of([]) == {}
    assert store.writer.regions_of(("serial", f"S{n}") for n in range(40_000)) == {("serial", "S1"): "a"}


def test_united_parts_take_everything_along(store: Store) -> None:
    old = Batch(
        at=1.0,
        said=[said(1, "a"), said(2, "b"), said(3, "c")],
        base={"a": b"A", "b": b"B"},
        due={"a": 1.0, "b": 2.0, "c": 3.0},
        names={("serial", "S1"): "a", ("serial", "S2"): "b"},
        cards=[card("c1"), card("c2")],
        nodes=[node("n1")],
        regions={"c1": "a", "c2": "b", "n1": "a"},
    )
    store.writer.commit(old)
    store.writer.commit(Batch(at=2.0, united={"a": "b", "b": "c"}, base={"c": b"C"}, due={"c": 9.0}, said=[said(4, "c")], names={("serial", "S3"): "c"}))

    assert store.writer.load().due == {"c": 9.0}
    assert store.writer.region("c") == RegionRows(base=b"C", said=[said(1, "c"), said(2, "c"), said(3, "c"), said(4, "c")])
    assert set(store.writer.regions_of([("serial", "S1"), ("serial", "S2"), ("serial", "S3")]).values()) == {"c"}
    assert (in_part(store, "cards", "c"), in_part(store, "nodes", "c")) == (2, 1)


def test_a_record_stays_in_its_part_until_another_is_told(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card("c1")], nodes=[node("n1")], regions={"c1": "a", "n1": "a"}))
    store.writer.commit(Batch(at=2.0, cards=[card("c1", at=2.0)], nodes=[node("n1", at=2.0)]))
    assert (in_part(store, "cards", "a"), in_part(store, "nodes", "a")) == (1, 1)
    store.writer.commit(Batch(at=3.0, cards=[card("c1", product="Anvil 80")], regions={"c1": "b"}))

    assert (in_part(store, "cards", "a"), in_part(store, "cards", "b")) == (0, 1)


def test_a_reporter_has_one_row(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, reporters=[reporter("agent@n1", 4), reporter("agent@n0", 1)]))
    store.writer.commit(Batch(at=2.0, reporters=[reporter("agent@n1", 9)]))

    assert list(store.writer.load().reporters) == [reporter("agent@n0", 1), reporter("agent@n1", 9)]


def test_an_act_without_an_entry_of_the_audit_is_not_written(store: Store) -> None:
    act = Said(order=1, at=1.0, received_at=1.0, kind="act", body=b"x")
    with pytest.raises(ValueError, match="audit"):
        store.writer.commit(Batch(at=1.0, said=[act]))

    assert list(store.writer.load().said) == []


def test_a_zero_byte_in_a_text_is_no_trouble(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, names={("name", "a\0b"): "r"}, cards=[card("c1", slot="a\0b")]))

    assert store.reader.cards() == [card("c1", slot="a\0b")]
    assert len(store.writer.regions_of([("name", "a\0b")])) in (0, 1)
