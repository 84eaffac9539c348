# SPDX-License-Identifier: Apache-2.0
"""Columns kept by a thread: what is committed comes in by itself, trouble of the store is survived, and who has written waits for their own words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.store.samples import card, finding, node

from muster.domain.model.errors import Unavailable
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Presence
from muster.spi.store import Batch
from muster.store import Store, open_store
from muster.store.reader import Reader
from muster.wiring import snapshot_lists
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
    assert views.opened.kinds == {"card_missing": 1}
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


def test_who_asks_for_a_list_of_a_large_roll_has_what_stands(store: Store, views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_lists, "REST", 0.0)
    monkeypatch.setattr(snapshot_lists, "IDLE", 0.0)
    views.refresh()
    views.lists.keep()
    read: list[str] = []
    honest = type(store.reader).nodes

    def counted(self: Any, *args: Any, **more: Any) -> Any:
        read.append("nodes")
        return honest(self, *args, **more)

    monkeypatch.setattr(type(store.reader), "nodes", counted)
    store.writer.commit(Batch(at=210.0, cards=[card("c-new")], nodes=[node("n2")]))
    views.refresh()
    assert not views.lists.old()
    assert len(views.lists.nodes().records) == 1
    assert read == []  # another has it to do
    views.lists.keep()
    assert len(views.lists.nodes().records) == 2
    assert read == ["nodes"]


def test_a_list_that_nobody_asks_for_is_read_seldom(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    views = Views(store.reader, Policy(), lambda: 200.0, numbers=store.numbers, settings=Settings(small=3), ticks=lambda: now[0])
    views.refresh()
    views.lists.keep()
    for number in range(2, 12):
        store.writer.commit(Batch(at=210.0 + number, cards=[card(f"c-{number}")], nodes=[node(f"n{number}")]))
        views.refresh()
        views.lists.keep()
        now[0] += 10.0
    assert len(views.lists.nodes().records) == 8  # as they stood a minute after the first look
    views.lists.keep()
    assert len(views.lists.nodes().records) == 11


def test_times_in_a_list_go_on_where_nothing_else_changes(store: Store) -> None:
    now = [0.0]
    views = Views(store.reader, Policy(), lambda: 200.0, numbers=store.numbers, settings=Settings(small=3), ticks=lambda: now[0])
    views.refresh()
    views.lists.keep()
    first = views.lists.sources()
    now[0] += snapshot_lists.IDLE - 1
    views.lists.keep()
    assert views.lists.sources() is first
    now[0] += 1
    views.lists.keep()
    assert views.lists.sources() is not first


def test_only_findings_that_are_new_are_read(store: Store, views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    store.writer.commit(Batch(at=210.0, cards=[card("c1")], findings=[finding(f"f{number}", 200.0 + number) for number in range(9)]))
    views.refresh()
    assert [each.id for each in views.opened.all] == [each.finding.id for each in store.reader.findings()]
    read: list[int] = []
    honest = Reader.numbered

    def counted(self: Any, numbers: Any) -> Any:
        read.extend(numbers)
        return honest(self, numbers)

    monkeypatch.setattr(Reader, "numbered", counted)
    store.writer.commit(Batch(at=220.0, cards=[card("c2")]))
    views.refresh()
    assert read == []
    store.writer.commit(
        Batch(at=230.0, cards=[card("c3")], closed=["f3"], findings=[finding("f4", 204.0, about="Still gone.", cards=("c2",)), finding("f-new", 230.0)])
    )
    views.refresh()
    assert len(read) == 2
    assert list(views.opened.all) == [each.finding for each in store.reader.findings()]
    assert views.opened.kinds == {"card_missing": 9}
    assert [each.id for each in views.findings()["c2"]] == ["f4"]
    store.writer.commit(Batch(at=231.0, closed=["f5"]))
    views.refresh()
    assert views.opened.kinds == {"card_missing": 8}, "one that ends and nothing else"
    columns = views.cards().columns["findings"]
    assert {row for row in range(views.cards().rows) if columns.at(row)} == {views._cards.places["c1"], views._cards.places["c2"]}


def test_a_finding_that_cannot_be_read_is_passed_over_and_not_asked_for_again(store: Store, views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    store.writer.commit(Batch(at=210.0, cards=[card("c1")], findings=[finding("f1", 200.0), finding("f2", 201.0)]))
    with store.connections.transaction() as session:
        session.execute("UPDATE findings SET record = '{' WHERE id = 'f1'")
    views.refresh()
    assert [each.id for each in views.opened.all] == ["f2"]
    monkeypatch.setattr(Reader, "numbered", lambda _self, numbers: pytest.fail(f"asked for {numbers}"))
    store.writer.commit(Batch(at=220.0, cards=[card("c2")]))
    views.refresh()


def test_who_keeps_the_columns_lets_go_of_what_nobody_asks_for(views: Views) -> None:
    views.settle()
    views.settle()
    moving = views._moving
    assert moving is not None
    moving._kept["cards", "power.draw"] = (float("-inf"), 0, np.empty(0))
    until(lambda: not moving._kept)
