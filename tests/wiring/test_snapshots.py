# SPDX-License-Identifier: Apache-2.0
"""Columns kept by a thread: what is committed comes in by itself, trouble of the store is survived, and who has written waits for their own words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from tests.store.samples import card, finding, node

from muster.domain.model.errors import Unavailable
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Presence
from muster.spi.store import Batch
from muster.store import Store, open_store
from muster.wiring.snapshots import Settings, Views


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store(None)
    opened.writer.commit(Batch(at=100.0, cards=[card(f"c{number}") for number in range(30)], nodes=[node()]))
    yield opened
    opened.close()


@pytest.fixture
def views(store: Store) -> Iterator[Views]:
    made = Views(store.reader, Policy(), lambda: 200.0, numbers=store.numbers, settings=Settings(small=3, beat=0.02))
    yield made
    made.close()


def until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not there():
        assert time.monotonic() < end
        time.sleep(0.01)


def live(views: Views) -> int:
    return int(views.cards().live.sum())


def test_before_the_first_look_nothing_is_answered(views: Views) -> None:
    with pytest.raises(Unavailable, match="being read"):
        views.cards()
    views.start()
    until(lambda: not views.wrong())
    assert live(views) == 30


def test_what_is_committed_comes_in_by_itself(store: Store, views: Views) -> None:
    views.settle()
    views.settle()
    store.writer.commit(
        Batch(at=210.0, cards=[card("c-new"), card("c1", presence=Presence.MISSING)], vanished=["c2"], findings=[finding("f1", 210.0, subject="c1")])
    )
    until(lambda: "c-new" in {views.cards().texts("id", [row])[0] for row in range(views.cards().rows)})

    assert live(views) == 30
    assert views.records.of(["c1", "c2"])[0].presence is Presence.MISSING
    assert views.open_kinds() == {"card_missing": 1}
    assert views.findings()["c1"][0].id == "f1"


def test_who_has_written_waits_for_their_own_words(store: Store, views: Views) -> None:
    views.settle()
    views.settle()
    for number in range(20):
        store.writer.commit(Batch(at=300.0 + number, cards=[card(f"c-own-{number}")]))
        views.caught_up()
        assert live(views) == 31 + number


def test_trouble_of_the_store_is_survived(store: Store, views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    views.settle()
    views.settle()
    honest = type(store.reader).version
    failed: list[int] = []

    def failing(self: object) -> int:
        failed.append(1)
        raise Unavailable("the disk is away")

    monkeypatch.setattr(type(store.reader), "version", failing)
    until(lambda: len(failed) > 2)
    assert live(views) == 30
    monkeypatch.setattr(type(store.reader), "version", honest)
    store.writer.commit(Batch(at=210.0, cards=[card("c-later")]))
    until(lambda: live(views) == 31)


def test_a_snapshot_that_is_held_does_not_change(store: Store, views: Views) -> None:
    views.settle()
    views.settle()
    held = views.cards()
    before = [held.columns["presence"].at(row) for row in range(held.rows)]
    store.writer.commit(Batch(at=210.0, cards=[card(f"c{number}", presence=Presence.REMOVED) for number in range(30)]))
    views.caught_up()

    assert [held.columns["presence"].at(row) for row in range(held.rows)] == before
    assert {views.cards().columns["presence"].at(row) for row in range(30)} == {"removed"}
