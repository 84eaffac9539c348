# SPDX-License-Identifier: Apache-2.0
"""The state of a server is looked over and upgraded; what its tools need is said."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from tests.store import old
from tests.wiring.kept import NOW, Place, filed, in_postgres, place, postgres, postgres_store_url, postgres_template, postgres_url, programs, told

from muster.domain.model.errors import Conflict, InputError, NotFound, Unavailable
from muster.store.schema import HEAD
from muster.wiring import holds, upkeep

__all__ = ["filed", "place", "postgres", "postgres_store_url", "postgres_template", "postgres_url", "programs"]


def test_where_there_is_no_store(filed: Place, tmp_path: Path) -> None:
    for act in (lambda: upkeep.backup(filed.settings, tmp_path / "a", NOW, "1"), lambda: upkeep.check(filed.settings)):
        with pytest.raises(NotFound, match="no store at"):
            act()
    with pytest.raises(InputError, match="memory"):
        upkeep.check(filed.settings.model_copy(update={"in_memory": True}))


def test_a_check_finds_what_is_wrong(place: Place) -> None:
    place.write("c1", "c2")
    fine = upkeep.check(place.settings)
    assert (fine.problems, fine.counts["cards"], fine.schema) == ((), 2, HEAD)
    assert fine.audit is not None
    assert fine.audit.rows == 2
    store = place.opened()
    with store.connections.transaction() as session:
        if in_postgres(place):
            session.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
        else:
            session.execute("DROP TRIGGER audit_no_update")
        session.execute("UPDATE audit SET entry = '{}' WHERE number = 2")
        session.execute("DROP TABLE sources")
    store.close()

    assert upkeep.check(place.settings).problems[0] == "the table sources is missing"


def test_a_check_names_the_broken_row_of_the_audit_log(place: Place) -> None:
    place.write("c1", "c2")
    store = place.opened()
    with store.connections.transaction() as session:
        session.execute("ALTER TABLE audit DISABLE TRIGGER ALL" if in_postgres(place) else "DROP TRIGGER audit_no_update")
        session.execute("UPDATE audit SET entry = '{}' WHERE number = 2")
    store.close()

    gone, *_, broken = upkeep.check(place.settings).problems
    assert f"the trigger {'audit_no_change' if in_postgres(place) else 'audit_no_update'} is gone" in gone
    assert broken == "row 2 of the audit log is not as it was written"


def test_a_check_of_a_damaged_file(filed: Place) -> None:
    filed.write(*(f"c{n}" for n in range(60)))
    path = filed.settings.state / "roll.sqlite"
    with path.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(b"\xff" * 4096 * 6)

    assert upkeep.check(filed.settings).problems


def test_an_upgrade_shows_asks_keeps_a_copy_and_runs(place: Place) -> None:
    old.made(place.at)
    asked: list[upkeep.Upgraded] = []

    def no(plan: upkeep.Upgraded) -> bool:
        asked.append(plan)
        return False

    shown = upkeep.upgrade(place.settings, NOW, "1", no, dry_run=True)
    assert ([each.revision for each in shown.steps][:1], shown.found, asked) == (["0002"], "0001", [])
    assert upkeep.upgrade(place.settings, NOW, "1", no).copy is None
    assert asked == [shown]
    assert old.schema_of(place.at) == "0001"
    assert upkeep.check(place.settings).problems

    done = upkeep.upgrade(place.settings, NOW, "1", lambda _: True)
    assert old.schema_of(place.at) == HEAD
    assert place.cards() == ["c1", "c2"]
    unread = [each.partition(" cannot")[0] for each in upkeep.check(place.settings).problems]
    assert unread == ["row r1 of the table base", "row 2 of the table findings", "row 4 of the table journal", "row 6 of the table journal"]
    assert upkeep.upgrade(place.settings, NOW, "1", no).steps == []
    assert done.copy is not None
    upkeep.restore(place.settings, done.copy, NOW + 5, "1")
    assert old.schema_of(place.at) == "0001"


def test_an_upgrade_under_a_server_is_refused(filed: Place) -> None:
    old.made(filed.at)
    with holds.hold(filed.settings.state), pytest.raises(Conflict, match="another server"):
        upkeep.upgrade(filed.settings, NOW, "1", lambda _: True)
    assert old.schema_of(filed.at) == "0001"


def test_a_backup_of_a_newer_version_is_refused(filed: Place, tmp_path: Path) -> None:
    filed.write("c1")
    path = filed.settings.state / "roll.sqlite"
    with sqlite3.connect(path) as later:
        later.execute("UPDATE alembic_version SET version_num = '9999'")
    later.close()
    with pytest.raises(Unavailable, match="newer"):
        upkeep.upgrade(filed.settings, NOW, "1", lambda _: True)
    with pytest.raises(Unavailable, match="newer"):
        upkeep.backup(filed.settings, tmp_path / "a.backup", NOW, "1")


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))


@pytest.mark.usefixtures("no_programs")
def test_without_the_programs_of_the_database_it_says_so(postgres_store_url: str, tmp_path: Path) -> None:
    place = Place(told(tmp_path, tmp_path / "run", postgres_store_url))
    with pytest.raises(Unavailable, match="pg_dump is not on the PATH") as refused:
        upkeep.backup(place.settings, tmp_path / "a.backup", NOW, "1")

    assert "client programs" in refused.value.hint
    assert not (tmp_path / "a.backup").exists()


def test_the_password_is_in_no_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from muster.store import dumps

    spy = tmp_path / "bin"
    spy.mkdir()
    (spy / "pg_dump").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/argv\necho "$PGPASSWORD" > {tmp_path}/env\necho boom >&2\nexit 3\n')
    (spy / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy}:{os.environ['PATH']}")
    with pytest.raises(Unavailable, match="boom") as refused:
        dumps.take("postgresql://u:s3cretword@h/db", tmp_path)

    assert "s3cretword" not in (tmp_path / "argv").read_text() + refused.value.message
    assert (tmp_path / "env").read_text() == "s3cretword\n"
