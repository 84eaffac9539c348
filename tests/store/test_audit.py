# SPDX-License-Identifier: Apache-2.0
"""The audit log is only added to, and what was done to it all the same is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError
from tests.store.samples import card, finding

from muster.domain.model.errors import MusterError
from muster.spi.store import AuditCheck, Batch, Said
from muster.store import Store, audit, open_store
from muster.store.looking import look

ACT = Said(order=1, at=1.0, received_at=1.0, kind="act", body=b"x")


def filled(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, said=[ACT], audit=[{"at": 9.5, "by": "ann", "what": "set"}, {"by": "bob", "what": "store", "text": "é\u2400"}]))
    store.writer.commit(Batch(at=20.0, findings=[finding("f", 9.0)]))
    store.writer.acknowledge("f", "ann", 21.25, "seen")
    store.writer.commit(Batch(at=30.0, audit=[{"by": "ann", "what": "retire", "n": n} for n in range(3)]))


def by_force(store: Store, *statements: str) -> None:
    """Changes the log as one with the rights of the database's owner can."""
    postgres = store.connections.name.startswith("postgresql")
    with store.connections.transaction() as session:
        if postgres:
            session.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
        else:
            session.execute("DROP TRIGGER audit_no_update")
            session.execute("DROP TRIGGER audit_no_delete")
        for statement in statements:
            session.execute(statement)


def test_the_log_is_whole(store: Store) -> None:
    assert store.verify() == AuditCheck(rows=0)
    filled(store)

    assert store.verify() == AuditCheck(rows=6)
    assert [entry["by"] for entry in store.reader.audit()] == ["ann", "ann", "ann", "ann", "bob", "ann"]


def test_a_long_log_is_gone_over_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_AT_ONCE", 3)
    filled(store)

    assert store.verify() == AuditCheck(rows=6)
    by_force(store, "UPDATE audit SET at = 1 WHERE number = 5")
    assert store.verify().broken == 5


@pytest.mark.parametrize(
    "statement", ["UPDATE audit SET entry = '{}'", "DELETE FROM audit", "DELETE FROM audit WHERE number = 6", "UPDATE audit SET number = 9 WHERE number = 6"]
)
def test_the_database_refuses_to_change_it(store: Store, statement: str) -> None:
    filled(store)
    with pytest.raises(Exception, match="only added to"), store.connections.transaction() as session:
        session.execute(statement)

    assert store.verify() == AuditCheck(rows=6)


def test_postgres_refuses_to_empty_it(store: Store) -> None:
    if not store.connections.name.startswith("postgresql"):
        pytest.skip("only this database has TRUNCATE")
    filled(store)
    with pytest.raises(Exception, match="only added to"), store.connections.transaction() as session:
        session.execute("TRUNCATE audit")


@pytest.mark.parametrize(
    ("statement", "broken", "why"),
    [
        ("UPDATE audit SET entry = replace(entry, 'bob', 'eve') WHERE number = 2", 2, "not as it was written"),
        ("UPDATE audit SET at = at + 1 WHERE number = 3", 3, "not as it was written"),
        ("UPDATE audit SET digest = 'x' WHERE number = 6", 6, "not as it was written"),
        ("DELETE FROM audit WHERE number = 1", 1, "missing"),
        ("DELETE FROM audit WHERE number = 4", 4, "missing"),
        ("DELETE FROM audit WHERE number = 6", 6, "missing at the end"),
        ("DELETE FROM audit WHERE number > 2", 3, "missing at the end"),
        ("DELETE FROM audit", 1, "missing at the end"),
        ("UPDATE audit SET number = -1 WHERE number = 1", 1, "missing"),
        ("UPDATE audit_head SET digest = 'x'", 6, "written last"),
        ("DELETE FROM audit_head", 6, "written last"),
    ],
)
def test_what_was_done_by_force_is_named(store: Store, statement: str, broken: int, why: str) -> None:
    filled(store)
    by_force(store, statement)
    found = store.verify()

    assert found.broken == broken
    assert why in found.why
    assert found.rows == (broken if "last" in why else broken - 1)


def test_two_rows_that_changed_places(store: Store) -> None:
    filled(store)
    by_force(store, *(f"UPDATE audit SET number = {new} WHERE number = {old}" for old, new in ((2, 99), (3, 2), (99, 3))))

    assert store.verify().broken == 2


def _bad(store: Store) -> None:
    store.writer.commit(Batch(at=40.0, cards=[card("c9")], audit=[{"by": object()}]))


def _unknown(store: Store) -> None:
    store.writer.acknowledge("no such", "ann", 41.0, "")


@pytest.mark.parametrize("act", [_bad, _unknown])
def test_what_did_not_happen_is_not_in_the_log(store: Store, act: Callable[[Store], None]) -> None:
    filled(store)
    with pytest.raises((TypeError, MusterError)):
        act(store)

    assert store.verify() == AuditCheck(rows=6)
    assert store.reader.cards() == []


def test_an_act_is_not_done_when_the_log_cannot_be_written(store: Store) -> None:
    filled(store)
    with store.connections.transaction() as session:
        session.execute("ALTER TABLE audit RENAME TO elsewhere")
    with pytest.raises((DBAPIError, Exception), match="audit"):
        store.writer.commit(Batch(at=50.0, cards=[card("c9")], audit=[{"by": "ann"}]))
    with pytest.raises(Exception, match="audit"):
        store.writer.acknowledge("f", "eve", 51.0, "")
    with store.connections.transaction() as session:
        session.execute("ALTER TABLE elsewhere RENAME TO audit")

    assert store.reader.cards() == []
    assert store.reader.finding("f").acknowledged_by == "ann"
    assert store.verify() == AuditCheck(rows=6)


def _unguarded(store: Store) -> None:
    with store.connections.transaction() as session:
        if session.kind == "sqlite":
            session.execute("DROP TRIGGER audit_no_update")
        else:
            session.execute("ALTER TABLE audit DISABLE TRIGGER audit_no_change")
            session.execute("DROP TRIGGER audit_no_truncate ON audit")


@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_triggers_that_are_gone_are_put_back_at_the_next_start(kind: str, request: pytest.FixtureRequest, tmp_path: Path, caplog: Any) -> None:
    place = tmp_path / "roll.sqlite" if kind == "file" else str(request.getfixturevalue("postgres_store_url"))
    store = open_store(place)
    filled(store)
    _unguarded(store)
    store.close()
    told = [each for each in look(place).problems if "trigger" in each]
    assert [each.split()[2] for each in told] == (["audit_no_update"] if kind == "file" else ["audit_no_change", "audit_no_truncate"])
    with caplog.at_level("WARNING"):
        store = open_store(place)
    assert "what guards the audit log against changes was gone" in caplog.text
    with pytest.raises(Exception, match="only added to"), store.connections.transaction() as session:
        session.execute("UPDATE audit SET entry = '{}'")
    store.close()
    assert [each for each in look(place).problems if "trigger" in each] == []


def test_the_head_that_is_told_is_missed_when_the_end_is_cut_off(store: Store) -> None:
    filled(store)
    before = store.audit_head()
    assert before == (6, store.verify().head)
    _unguarded(store)
    with store.connections.transaction() as session:
        if session.kind == "sqlite":
            session.execute("DROP TRIGGER audit_no_delete")
        (last,) = session.execute("SELECT digest FROM audit WHERE number = 5").fetchone()
        session.execute("DELETE FROM audit WHERE number = 6")
        session.execute(f"UPDATE audit_head SET number = 5, digest = '{last}'")
    found = store.verify()
    assert (found.broken, found.rows) == (None, 5), "the chain alone does not show it"
    assert store.audit_head() != before
