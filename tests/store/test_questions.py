# SPDX-License-Identifier: Apache-2.0
"""Questions go on from a place and filter in the store; news of findings are told once, in order."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, text
from tests.store.samples import card, change, event, finding, node, source

from muster.domain.model.errors import NotFound
from muster.domain.model.roll import FindingKind, Happening
from muster.spi.store import Answered, Batch
from muster.store import Store, asking
from muster.store.schema import cards, journal


def test_history_from_both_ends_and_by_kind(store: Store) -> None:
    kinds = [Happening.INSTALLED, Happening.MOVED, Happening.INSTALLED, Happening.MISSING]
    store.writer.commit(Batch(at=1.0, changes=[change(f"h{n}", float(n), kind=kind) for n, kind in enumerate(kinds)]))
    numbers = [row.number for row in store.reader.changes()]

    assert [row.change.id for row in store.reader.changes(newest=True, limit=2)] == ["h3", "h2"]
    assert [row.change.id for row in store.reader.changes(newest=True, limit=2, before=numbers[2])] == ["h1", "h0"]
    assert [row.change.id for row in store.reader.changes(after=numbers[0], before=numbers[3])] == ["h1", "h2"]
    assert [row.change.id for row in store.reader.changes(kinds=["installed"])] == ["h0", "h2"]
    assert [row.change.id for row in store.reader.changes(subject="c1", kinds=["moved", "missing"], newest=True)] == ["h3", "h1"]


def test_findings_of_cards_kinds_and_nodes(store: Store) -> None:
    found = [
        finding("a", 1.0, cards=("c1", "c2"), subject="S1", kind=FindingKind.SEQUENCE_CONFLICT),
        finding("b", 2.0, subject="c3"),
        finding("c", 3.0, subject="n1/s", node="n1"),
    ]
    store.writer.commit(Batch(at=5.0, findings=found))
    store.writer.commit(Batch(at=6.0, findings=[finding("b", 2.0, subject="c3", cards=("c4",))], closed=["c"]))

    def ids(**asked: Any) -> list[str]:
        return [row.finding.id for row in store.reader.findings(**asked)]

    assert ids(cards=["c2", "c9"]) == ["a"]
    assert ids(cards=["c3"]) == ids(cards=["c4"]) == ["b"]
    assert ids(cards=[]) == []
    assert ids(node="n1") == []
    assert ids(node="n1", closed=True) == ["c"]
    assert ids(kinds=[FindingKind.CARD_MISSING.value], closed=True, limit=1) == ["c"]
    assert ids(closed=True, before=(3.0, "c")) == ["b", "a"]
    assert ids(closed=True, before=(2.0, "b"), limit=5) == ["a"]


def test_findings_that_opened_together_are_gone_through_one_by_one(store: Store) -> None:
    store.writer.commit(Batch(at=5.0, findings=[finding(name, 2.0) for name in "badc"]))
    seen: list[str] = []
    place: tuple[float, str] | None = None
    while rows := store.reader.findings(limit=1, before=place):
        seen.append(rows[0].finding.id)
        place = (rows[0].finding.opened_at, rows[0].finding.id)

    assert seen == ["d", "c", "b", "a"]


def test_a_finding_by_its_id_is_the_newest(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, findings=[finding("f", 9.0)]))
    store.writer.commit(Batch(at=20.0, closed=["f"]))
    assert store.reader.finding("f").closed_at == 20.0
    store.writer.commit(Batch(at=30.0, findings=[finding("f", 29.0)]))

    assert (store.reader.finding("f").finding.opened_at, store.reader.finding("f").closed_at) == (29.0, None)
    with pytest.raises(NotFound, match="no finding g"):
        store.reader.finding("g")


def test_news_of_findings_are_told_once_and_in_order(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, findings=[finding("f", 9.0), finding("g", 9.0)]))
    store.writer.commit(Batch(at=10.0, findings=[finding("f", 9.0, evidence={"misses": 2})]))
    store.writer.acknowledge("f", "ann", 11.0, "")
    store.writer.commit(Batch(at=12.0, closed=["f", "unknown"], findings=[finding("f", 12.0)]))

    news = store.reader.news(0)
    assert [(each.what, each.row.finding.id, each.at) for each in news] == [
        ("opened", "f", 10.0),
        ("opened", "g", 10.0),
        ("acknowledged", "f", 11.0),
        ("closed", "f", 12.0),
        ("opened", "f", 12.0),
    ]
    assert [each.number for each in news] == sorted({each.number for each in news})
    assert [each.what for each in store.reader.news(news[1].number, limit=2)] == ["acknowledged", "closed"]
    assert news[3].row.closed_at == 12.0
    assert news[4].row.closed_at is None


def test_the_number_of_dropped_news_is_not_given_again(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, findings=[finding("f", 9.0)]))
    (last,) = store.reader.news(0)
    assert store.writer.trim(1000.0, {"events": 10.0}) == 1
    store.writer.commit(Batch(at=20.0, closed=["f"]))

    (news,) = store.reader.news(0)
    assert news.number > last.number


def test_events_go_on_from_a_place(store: Store) -> None:
    store.writer.commit(Batch(at=9.0, events=[event("a", 5.0), event("b", 5.0, kind="note"), event("c", 4.0), event("d", 6.0)]))

    assert [each.id for each in store.reader.events(before=(5.0, "a"))] == ["b", "c"]
    assert [each.id for each in store.reader.events(kinds=["fault"], before=(6.0, "d"), limit=1)] == ["a"]


def test_nodes_and_sources_of_one_page(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, nodes=[node("n1"), node("n2"), node("n3")], sources=[source("h1", "a"), source("h2", "b", node="n2")]))

    assert [each.id for each in store.reader.nodes(ids=["n3", "n1", "x"])] == ["n1", "n3"]
    assert [each.id for each in store.reader.nodes(at=5.0, ids=["n2"])] == ["n2"]
    assert [each.source for each in store.reader.sources(nodes=["n2"])] == ["b"]


def test_an_answer_is_kept_with_what_it_answers(store: Store) -> None:
    one = Answered(key="k1", digest="d1", at=5.0, status=200, body=b"\x00{}")
    store.writer.commit(Batch(at=5.0, cards=[card("c1")], answered=[one]))
    store.answers.keep(Answered(key="k1", digest="other", at=9.0, status=500, body=b""))
    store.answers.keep(Answered(key="k2", digest="d2", at=50.0, status=201, body=b"x"))

    assert store.answers.recall("k1") == one
    assert store.answers.recall("k3") is None
    assert store.answers.drop_older(50.0) == 1
    assert store.answers.recall("k1") is None
    assert store.answers.recall("k2") is not None


_FINDINGS: dict[str, Any] = {"closed": True, "at": None, "cards": None, "kinds": None, "node": None, "limit": 5, "before": (5.0, "f")}
_EVENTS: dict[str, Any] = {"kinds": None, "before": (5.0, "e")}
_PAGES = {
    "changes, kind": (asking.changes(None, 0, 5, None, before=9, kinds=["moved"], newest=True), "ix_changes_kind_number"),
    "changes, subject": (asking.changes("c1", 0, 5, None, before=None, kinds=None, newest=False), "ix_changes_subject_number"),
    "findings": (asking.findings(**_FINDINGS), "ix_findings_opened_at_id"),
    "findings, open": (asking.findings(**_FINDINGS | {"closed": False}), "ix_findings_still_open"),
    "findings, standing": (asking.standing(), "ix_findings_still_open"),
    "findings, kind": (asking.findings(**_FINDINGS | {"kinds": ["card_missing"]}), "ix_findings_kind_opened_at_id"),
    "findings, node": (asking.findings(**_FINDINGS | {"node": "n1"}), "ix_findings_node_opened_at_id"),
    "findings, card": (asking.findings(**_FINDINGS | {"cards": ["c1"]}), "finding_cards USING PRIMARY KEY (card=?)"),
    "events": (asking.events(None, None, 5, **_EVENTS), "ix_events_last_at"),
    "events, kind": (asking.events(None, None, 5, **_EVENTS | {"kinds": ["fault"]}), "ix_events_kind_last_at"),
    "events, node": (asking.events(None, "n1", 5, **_EVENTS), "ix_events_node_last_at"),
    "events, card": (asking.events("c1", None, 5, **_EVENTS), "ix_events_card_last_at"),
    "cards written": (select(cards).where(cards.c.written > 7), "ix_cards_written"),
    "journal": (select(journal).where(journal.c.region == "a").order_by(journal.c.number), "ix_journal_region_number"),
}


@pytest.mark.parametrize("name", _PAGES)
def test_pages_stand_on_an_index(store: Store, name: str) -> None:
    asked, index = _PAGES[name]
    if "postgres" in store.connections.name:
        index = index.replace("finding_cards USING PRIMARY KEY (card=?)", "finding_cards_pkey")
        with store.connections.reading() as connection:
            connection.execute(text("SET LOCAL enable_seqscan = off"))  # its planner scans small tables
            plan = _plan(connection, asked, "EXPLAIN")
        assert "Seq Scan" not in plan
        assert index in plan or name.startswith(("findings", "changes"))  # of few rows it may take another one
        return
    with store.connections.reading() as connection:
        plan = _plan(connection, asked, "EXPLAIN QUERY PLAN")
    assert index in plan, plan
    assert "TEMP B-TREE" not in plan or name in ("findings, card", "changes, subject", "events", "events, kind", "events, node", "events, card"), plan


def _plan(connection: Any, asked: Any, how: str) -> str:
    told = asked.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True, "render_postcompile": True})
    return " ".join(str(row) for row in connection.exec_driver_sql(f"{how} {told}".replace("%%", "%")))
