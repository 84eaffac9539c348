# SPDX-License-Identifier: Apache-2.0
"""Changes, findings, events and the audit keep what happened and what became of it."""

from __future__ import annotations

import pytest
from tests.store.samples import card, change, event, finding

from muster.domain.model.errors import Conflict, NotFound
from muster.spi.store import Batch
from muster.store import Store
from muster.store.reader import Reader


def test_changes_stand_in_the_order_in_which_they_were_learnt(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, changes=[change("b", 50.0), change("a", 20.0)]))
    store.writer.commit(Batch(at=20.0, changes=[change("a", 99.0), change("c", 60.0, "c2")]))

    rows = store.reader.changes()
    assert [row.change for row in rows] == [change("b", 50.0), change("a", 20.0), change("c", 60.0, "c2")]
    assert [row.number for row in rows] == sorted({row.number for row in rows})
    assert [row.change.id for row in store.reader.changes(subject="c1")] == ["b", "a"]
    assert [row.change.id for row in store.reader.changes(after=rows[0].number, limit=1)] == ["a"]


def test_a_disproved_change_is_kept_and_marked(store: Store) -> None:
    store.writer.commit(Batch(at=30.0, changes=[change("a", 20.0), change("b", 25.0)]))
    store.writer.commit(Batch(at=100.0, superseded=["a", "unknown"]))

    assert [(row.change.id, row.superseded_at) for row in store.reader.changes()] == [("a", 100.0), ("b", None)]
    assert [(row.change.id, row.superseded_at) for row in store.reader.changes(at=99.0)] == [("a", None), ("b", None)]
    assert [row.change.id for row in store.reader.changes(at=100.0)] == ["b"]
    assert [row.change.id for row in store.reader.changes(at=30.0)] == ["a"]


def test_a_disproved_change_can_be_believed_again(store: Store) -> None:
    store.writer.commit(Batch(at=30.0, changes=[change("a", 20.0)]))
    store.writer.commit(Batch(at=40.0, superseded=["a"]))
    store.writer.commit(Batch(at=50.0, changes=[change("a", 40.0)]))

    assert [(row.change.at, row.superseded_at) for row in store.reader.changes()] == [(20.0, 40.0), (40.0, None)]
    assert [row.change.at for row in store.reader.changes(at=60.0)] == [40.0]


def test_the_history_of_a_joined_card_is_its_own(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, cards=[card("c1"), card("c2")], changes=[change("a", 1.0, "c1"), change("b", 2.0, "c2")]))
    store.writer.commit(Batch(at=200.0, gone={"c1": "c2"}))

    assert [row.change.id for row in store.reader.changes(subject="c2")] == ["a", "b"]
    assert [row.change.id for row in store.reader.changes(subject="c2", at=199.0)] == ["b"]
    assert [row.change.id for row in store.reader.changes(subject="c2", at=200.0)] == ["a", "b"]


def test_a_finding_opens_changes_and_closes(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, findings=[finding("f", 9.0), finding("g", 5.0)]))
    store.writer.commit(Batch(at=20.0, findings=[finding("f", 9.0, evidence={"misses": 2})]))
    store.writer.commit(Batch(at=30.0, closed=["f"]))

    assert [row.finding for row in store.reader.findings()] == [finding("g", 5.0)]
    first, _ = store.reader.findings(closed=True)
    assert (first.finding, first.last_seen_at, first.closed_at) == (finding("f", 9.0, evidence={"misses": 2}), 20.0, 30.0)
    assert store.writer.load().findings == [finding("g", 5.0)]


def test_a_finding_that_comes_back_is_a_new_row(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, findings=[finding("f", 9.0)]))
    store.writer.acknowledge("f", "ann", 11.0, "seen")
    store.writer.commit(Batch(at=20.0, closed=["f"]))
    store.writer.commit(Batch(at=30.0, closed=["f"], findings=[finding("f", 29.0)]))

    rows = store.reader.findings(closed=True)
    assert [(row.finding.opened_at, row.closed_at, row.acknowledged_by) for row in rows] == [(29.0, None, ""), (9.0, 20.0, "ann")]


def test_findings_of_the_past_know_nothing_of_later(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, findings=[finding("f", 9.0)]))
    store.writer.acknowledge("f", "ann", 15.0, "")
    store.writer.commit(Batch(at=20.0, closed=["f"]))

    assert store.reader.findings(at=9.5) == []
    (then,) = store.reader.findings(at=14.0)
    assert (then.acknowledged_at, then.acknowledged_by, then.closed_at) == (None, "", None)
    (then,) = store.reader.findings(at=16.0)
    assert (then.acknowledged_at, then.acknowledged_by, then.closed_at) == (15.0, "ann", None)
    assert store.reader.findings(at=20.0) == []
    (then,) = store.reader.findings(at=20.0, closed=True)
    assert then.closed_at == 20.0


def test_acknowledging_says_who_and_stands_in_the_audit(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, findings=[finding("f", 9.0)]))

    row = store.writer.acknowledge("f", "ann", 11.0, "a new cable is on its way")
    assert [row] == store.reader.findings()
    assert (row.acknowledged_at, row.acknowledged_by) == (11.0, "ann")
    assert store.reader.audit() == [{"at": 11.0, "by": "ann", "what": "acknowledge", "finding": "f", "reason": "a new cable is on its way"}]

    store.writer.commit(Batch(at=20.0, findings=[finding("f", 9.0, node="n2")]))
    assert store.reader.findings()[0].acknowledged_by == "ann"


def test_only_an_open_finding_can_be_acknowledged(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, findings=[finding("f", 9.0)]))
    store.writer.commit(Batch(at=20.0, closed=["f"]))

    with pytest.raises(Conflict, match="closed"):
        store.writer.acknowledge("f", "ann", 21.0, "")
    with pytest.raises(NotFound, match="no finding g"):
        store.writer.acknowledge("g", "ann", 21.0, "")
    assert store.reader.audit() == []


def test_an_event_that_comes_again_is_one_event(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, events=[event("e", 5.0), event("x", 7.0, code=None, node="n2")]))
    store.writer.commit(Batch(at=20.0, events=[event("e", 9.0, repeats=4, card="c1")]))
    store.writer.commit(Batch(at=30.0, events=[event("e", 3.0, repeats=2)]))

    assert store.reader.events() == [event("e", 9.0, first_at=3.0, repeats=4, card="c1"), event("x", 7.0, code=None, node="n2")]
    assert [e.id for e in store.reader.events(card="c1")] == ["e"]
    assert [e.id for e in store.reader.events(node="n2")] == ["x"]
    assert [e.id for e in store.reader.events(limit=1)] == ["e"]


def test_events_follow_a_card_that_is_joined(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, cards=[card("c1"), card("c2")], events=[event("e", 5.0, card="c1")]))
    store.writer.commit(Batch(at=20.0, gone={"c1": "c2"}))

    assert [e.card for e in store.reader.events(card="c2")] == ["c2"]


def test_the_audit_is_told_newest_first(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, audit=[{"by": "ann", "what": "set", "at": 9.0}, {"by": "bob", "what": "store"}]))

    assert [entry["by"] for entry in store.reader.audit()] == ["bob", "ann"]
    assert [entry["by"] for entry in store.reader.audit(limit=1)] == ["bob"]


def test_what_stands_says_what_was_found_again(store: Store) -> None:
    reader = store.reader
    assert isinstance(reader, Reader)
    store.writer.commit(Batch(at=10.0, findings=[finding("f1", 1.0), finding("f2", 2.0), finding("f3", 2.0)]))
    before = reader.standing()
    assert [reader.numbered([number])[number].id for number, _ in before] == ["f3", "f2", "f1"]
    store.writer.commit(Batch(at=20.0, closed=["f2"], findings=[finding("f1", 1.0, about="Still."), finding("f4", 3.0)]))
    store.writer.commit(Batch(at=21.0, findings=[finding("f2", 2.0)]))
    now = reader.standing()
    read = reader.numbered([number for number, _ in now])
    assert [read[number].id for number, _ in now] == ["f4", "f3", "f2", "f1"]
    assert {read[number].id for number, at in now if (number, at) not in before} == {"f1", "f2", "f4"}
    assert reader.numbered([]) == {}
