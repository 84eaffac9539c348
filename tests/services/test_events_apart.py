# SPDX-License-Identifier: Apache-2.0
"""Events of one reporter are no other's to swallow or to change, and none happened in the future."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.domain.model.policy import Policy
from muster.services.inventory import Inventory
from muster.spi.store import EventRow
from muster.store import Store, open_store
from muster.wire.report import EventDoc, NodeDoc, ReportDoc

T0 = 1_700_000_000.0


@pytest.fixture
def store() -> Iterator[Store]:
    made = open_store(None)
    yield made
    made.close()


def told(store: Store, *reports: tuple[str, EventDoc]) -> list[EventRow]:
    """The events that are kept of these reports, oldest first."""
    inventory = Inventory(store.writer, Policy(), T0)
    for number, (name, event) in enumerate(reports):
        doc = ReportDoc(reporter=f"agent@{name}", incarnation="i", sequence=number, node=NodeDoc(name=name), sent_at=T0, events=[event])
        assert inventory.report(doc, T0).answer == "applied"
    return sorted(store.reader.events(), key=lambda each: each.node)


def event(text: str, at: float = T0, repeats: int = 1) -> EventDoc:
    return EventDoc(id="boot-5", source="log", adapter="a", text=text, first_at=at, last_at=at, repeats=repeats)


def test_an_event_is_not_swallowed_by_one_that_has_its_id(store: Store) -> None:
    kept = told(store, ("rogue", event("nothing")), ("victim", event("fallen off the bus")))
    assert [(each.node, each.text) for each in kept] == [("rogue", "nothing"), ("victim", "fallen off the bus")]


def test_an_event_is_changed_by_its_reporter_alone(store: Store) -> None:
    kept = told(store, ("victim", event("x")), ("rogue", event("x", T0 - 9e8, repeats=1000)), ("victim", event("x", T0 - 10, repeats=2)))
    assert [(each.node, each.repeats, each.first_at, each.last_at) for each in kept if each.node == "victim"] == [("victim", 2, T0 - 10, T0)]


def test_ids_are_told_with_the_mark_of_their_reporter(store: Store) -> None:
    first, second = told(store, ("a", event("x")), ("b", event("x")))
    assert {each.id.partition("-")[2] for each in (first, second)} == {"boot-5"}
    assert first.id != second.id


def test_an_event_of_the_future_is_one_of_now(store: Store) -> None:
    (kept,) = told(store, ("victim", event("x", 253_402_300_000.0)))
    assert (kept.first_at, kept.last_at) == (T0, T0)
