# SPDX-License-Identifier: Apache-2.0
"""What a starting writer finds: journal and base."""

from __future__ import annotations

import pytest
from tests.store.samples import capture, event, sample

from muster.domain.model.errors import InputError
from muster.spi.store import Batch, Said
from muster.store import Store
from muster.store.statements import CHUNK


def said(order: int, at: float) -> Said:
    return Said(order=order, at=at, received_at=at + 1, kind="listing", body=b"\x00said")


def test_an_empty_store_starts_with_nothing(store: Store) -> None:
    loaded = store.writer.load()

    assert (list(loaded.said), dict(loaded.base), list(loaded.received), list(loaded.findings), loaded.next_order) == ([], {}, [], [], 1)


def test_the_journal_comes_back_in_order_of_time(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, said=[said(1, 20.0), said(2, 10.0), said(3, 10.0)], base={"n1": b"state", "n2": b"x"}))
    store.writer.commit(Batch(at=2.0, forget=[2], base={"n2": b"", "n1": b"newer"}))

    loaded = store.writer.load()
    assert list(loaded.said) == [said(3, 10.0), said(1, 20.0)]
    assert loaded.base == {"n1": b"newer"}


def test_an_order_is_never_given_twice(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, said=[said(7, 1.0), said(4, 2.0)]))
    store.writer.commit(Batch(at=2.0, said=[said(5, 1.0)], forget=[4, 5, 7]))

    assert store.writer.load().next_order == 8


def test_trimming_drops_what_is_old_and_keeps_what_stood_at_the_cut(store: Store) -> None:
    store.writer.commit(
        Batch(
            at=1200.0,
            samples=[sample(n, at) for n, at in enumerate((60.0, 120.0, 180.0, 1200.0))] + [sample(5, 60.0, subject="c2")],
            events=[event("old", 100.0), event("new", 1000.0)],
            captures=[capture("old", 100.0), capture("new", 1000.0)],
        )
    )

    assert store.writer.trim(1500.0, {"minutes": 600.0, "events": 600.0, "captures": 600.0}) == 4
    assert [row["minute"] for row in store.reader.minutes("c1", "power.draw", 0, 1e9)] == [180, 1200]
    assert [row["minute"] for row in store.reader.minutes("c2", "power.draw", 0, 1e9)] == [60]
    assert [each.id for each in store.reader.events()] == ["new"]
    assert store.reader.capture("new").taken_at == 1000.0
    assert store.writer.trim(1500.0, {}) == 0


def test_a_long_trim_goes_in_parts(store: Store) -> None:
    many = 2 * CHUNK + 10
    store.writer.commit(Batch(at=1.0, events=[event(f"e{n}", 1.0) for n in range(many)]))

    assert store.writer.trim(1000.0, {"events": 10.0}) == many
    assert list(store.reader.events()) == []


def test_trimming_something_unknown_says_what_can_be_trimmed(store: Store) -> None:
    with pytest.raises(InputError, match="cards") as caught:
        store.writer.trim(1.0, {"cards": 1.0})
    assert "minutes" in caught.value.hint
