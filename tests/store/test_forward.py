# SPDX-License-Identifier: Apache-2.0
"""A store of each released version, with data in it, is brought forward and has lost nothing. On SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.store import old
from tests.store.samples import card, finding, node, source

from muster.domain.model.errors import Unavailable
from muster.spi.store import AuditCheck, Batch, Received, Reporter, Said
from muster.store import Store, looking, open_store
from muster.store.opening import connect
from muster.store.schema import HEAD


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A store as the first version wrote it."""
    made: Path | str = tmp_path / "roll.db" if request.param == "file" else str(request.getfixturevalue("postgres_url"))
    old.made(made)
    return made


def test_what_was_kept_is_still_there(place: Path | str) -> None:
    assert old.schema_of(place) == old.FIRST
    store = open_store(place)
    reader = store.reader

    assert old.schema_of(place) == HEAD
    assert reader.cards() == [card("c1"), card("c2", product="Anvil 80")]
    assert [each.voices[0].words["identity.product"].value for each in reader.cards(at=70.0)] == ["Anvil 20"]
    assert reader.nodes() == [node()]
    assert reader.sources() == [source()]
    assert reader.resolve("c0") == "c1"
    assert [(row.number, row.change.id, row.superseded_at) for row in reader.changes(subject="c1")] == [(1, "h1", None), (2, "h0", 99.0)]
    assert [(each.key, each.word.value) for each in reader.current()] == [("power.draw", 40.5)]
    assert [row["count"] for row in reader.minutes("c1", "power.draw", 0, 100)] == [2]
    assert [each.id for each in reader.events()] == ["e1"]
    assert reader.capture("d1").payload == b"listing"
    store.close()


def test_what_a_starting_writer_needs_is_still_there(place: Path | str) -> None:
    store = open_store(place)
    loaded = store.writer.load()

    assert list(loaded.said) == [
        Said(order=6, at=9.0, received_at=12.0, kind="act", body=b"\x00two"),
        Said(order=4, at=10.0, received_at=11.0, kind="listing", body=b"\x00one"),
    ]
    assert loaded.base == {"r1": b"state of r1"}
    assert loaded.due == {}
    assert list(loaded.received) == [Received(reporter="agent@n1", incarnation="i1", sequence=7, digest="d7", received_at=5.0, answer="applied")]
    assert (loaded.next_order, loaded.ids) == (7, {"c0": "c1"})
    assert [each.id for each in loaded.findings] == ["f1"]
    store.close()


def test_keys_of_reports_go_when_their_reporters_row_tells_of_them(place: Path | str) -> None:
    store = open_store(place)
    told = Reporter(reporter="agent@n2", incarnation="i", high=1, recent=b"", received_at=10.0)
    store.writer.commit(Batch(at=10.0, reporters=[told]))
    store.writer.trim(1e9, {})
    assert [each.reporter for each in store.writer.load().received] == ["agent@n1"], "nothing else tells of these"
    store.writer.commit(Batch(at=11.0, reporters=[replace(told, reporter="agent@n1")]))
    assert list(store.writer.load().received) == []
    assert _keys(store) == 1

    store.writer.trim(1e9, {})
    assert _keys(store) == 0
    store.close()


def _keys(store: Store) -> int:
    with store.connections.transaction() as session:
        (row,) = session.execute("SELECT count(*) FROM received").fetchall()
    return int(row[0])


def test_the_audit_log_is_chained_and_goes_on(place: Path | str) -> None:
    store = open_store(place)
    assert store.verify() == AuditCheck(rows=2)
    store.writer.commit(Batch(at=20.0, audit=[{"by": "eve"}]))

    assert store.verify() == AuditCheck(rows=3)
    assert [entry["by"] for entry in store.reader.audit()] == ["eve", "bob", "ann"]
    with pytest.raises(Exception, match="only added to"), store.connections.transaction() as session:
        session.execute("DELETE FROM audit")
    store.close()


def test_what_is_new_knows_what_is_old(place: Path | str) -> None:
    store = open_store(place)
    fresh = store.reader.fresh(0)
    assert (fresh.version, [each.id for each in fresh.cards]) == (1, ["c1", "c2"])
    assert [row.finding for row in store.reader.findings(cards=["c2"])] == [finding("f1", 40.0, cards=("c1", "c2"), node="n1")]
    assert [row.finding.id for row in store.reader.findings(node="n1", kinds=["card_missing"])] == ["f1"]
    store.writer.commit(Batch(at=200.0, cards=[card("c1", product="Anvil 99")], names={("serial", "c1"): "r1"}, regions={"c1": "r1"}))
    store.writer.acknowledge("f1", "ann", 201.0, "")

    assert [each.id for each in store.reader.fresh(1).cards] == ["c1"]
    assert [each.what for each in store.reader.news(0)] == ["acknowledged"]
    assert len(store.reader.changes(limit=1, newest=True)) == 1
    store.close()


def test_each_step_by_itself_ends_at_the_same_tables(place: Path | str) -> None:
    assert looking.pending(place)[1][0].revision == "0002"
    open_store(place).close()

    assert looking.pending(place) == (HEAD, [])
    (damaged,) = looking.look(place).problems
    assert damaged.startswith("row 2 of the table findings cannot be read"), "it was so before"


def test_an_old_store_that_another_server_writes_is_left_alone(postgres_url: str) -> None:
    old.made(postgres_url, "0002")
    connections = connect(postgres_url)
    with connections.transaction() as session:
        session.execute("UPDATE lease SET holder = 'one'")
    connections.close()
    with pytest.raises(Unavailable, match="held by one") as refused:
        open_store(postgres_url)

    assert "upgrade" in refused.value.hint
    assert old.schema_of(postgres_url) == "0002"
    open_store(postgres_url, alone=True).close()
    assert old.schema_of(postgres_url) == HEAD
