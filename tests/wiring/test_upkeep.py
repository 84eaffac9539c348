# SPDX-License-Identifier: Apache-2.0
"""The state of a server is backed up while it is written, restored, checked and upgraded: in a file and in PostgreSQL."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tarfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.postgres import Postgres, binaries, postgres, postgres_store_url, postgres_template, postgres_url
from tests.store import old
from tests.store.samples import card, change

from muster.domain.model.errors import Conflict, InputError, NotFound, Unavailable
from muster.spi.store import Batch
from muster.store import Store, open_store
from muster.store.schema import HEAD
from muster.wiring import holds, upkeep
from muster.wiring.settings import ServerSettings

__all__ = ["postgres", "postgres_store_url", "postgres_template", "postgres_url"]
NOW = 1_700_000_000.0


class Told(ServerSettings):
    """Settings that may name a database."""

    store: SecretStr | None = None


def told(state: Path, runtime: Path, store: SecretStr | None = None) -> Told:
    """Settings of a server there."""
    given: dict[str, Any] = {"state": state, "runtime": runtime, "store": store}
    return Told(**given)


@dataclass
class Place:
    """A server's state, in one of two kinds of stores."""

    settings: Told

    @property
    def at(self) -> Path | str:
        """Where its store is."""
        return upkeep.place_of(self.settings)

    def opened(self) -> Store:
        """The store, as a server has it."""
        return open_store(self.at)

    def write(self, *names: str) -> None:
        """Writes cards, an entry of the audit log for each, and ends."""
        store = self.opened()
        for name in names:
            store.writer.commit(Batch(at=1.0, cards=[card(name)], changes=[change(f"h-{name}", 1.0)], audit=[{"by": "ann", "what": name}]))
        store.close()

    def cards(self) -> list[str]:
        """What is in it."""
        store = self.opened()
        found = [each.id for each in store.reader.cards()]
        assert store.verify().broken is None
        store.close()
        return found


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of PostgreSQL on the PATH, where this machine has them."""
    found = binaries()
    if found:
        monkeypatch.setenv("PATH", f"{found}:{os.environ['PATH']}")


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    url = SecretStr(str(request.getfixturevalue("postgres_url"))) if request.param == "postgres" else None
    state = tmp_path / "state"
    state.mkdir()
    return Place(told(state, tmp_path / "run", url))


@pytest.fixture
def filed(tmp_path: Path) -> Place:
    state = tmp_path / "state"
    state.mkdir()
    return Place(told(state, tmp_path / "run"))


def in_postgres(place: Place) -> bool:
    return isinstance(place.at, str)


def keys(place: Place, **files: str) -> Path:
    folder = place.settings.state / "authority"
    folder.mkdir(exist_ok=True)
    for name, body in files.items():
        (folder / f"{name}.pem").write_text(body)
    (folder / "lock").touch()
    return folder


def test_a_backup_brings_everything_back(place: Place, tmp_path: Path) -> None:
    place.write("c1", "c2")
    keys(place, ca="first")
    made = upkeep.backup(place.settings, tmp_path / "a.backup", NOW, "1.2")
    assert made.manifest.schema == HEAD
    assert made.file.stat().st_mode & 0o077 == 0
    place.write("c3")
    keys(place, ca="second")

    done = upkeep.restore(place.settings, tmp_path / "a.backup", NOW, "1.2")
    assert place.cards() == ["c1", "c2"]
    assert (place.settings.state / "authority" / "ca.pem").read_text() == "first"
    assert done.manifest.made_at == NOW
    assert upkeep.check(place.settings).problems == ()
    assert all(path.exists() for path in done.before)

    place.write("c9")
    if in_postgres(place):
        upkeep.restore(place.settings, done.before[0], NOW + 1, "1.2")
        assert place.cards() == ["c1", "c2", "c3"]
    else:
        aside = open_store(done.before[0])
        assert [each.id for each in aside.reader.cards()] == ["c1", "c2", "c3"]
        aside.close()
    assert not [each for each in place.settings.state.iterdir() if each.name.startswith(".")]


def test_it_is_taken_while_a_server_writes(place: Place, tmp_path: Path) -> None:
    store = place.opened()
    ended = threading.Event()
    done: list[int] = []

    def write() -> None:
        while not ended.is_set():
            n = len(done)
            store.writer.commit(Batch(at=float(n), cards=[card(f"c{n}")], changes=[change(f"h{n}", float(n))], audit=[{"n": n}]))
            done.append(n)

    writer = threading.Thread(target=write)
    writer.start()
    while len(done) < 20:
        ended.wait(0.01)
    before = len(done)
    upkeep.backup(place.settings, tmp_path / "a.backup", NOW, "1")
    after = len(done)
    ended.set()
    writer.join()
    store.close()
    upkeep.restore(place.settings, tmp_path / "a.backup", NOW, "1")

    found = place.opened()
    cards, told = len(found.reader.cards()), len(found.reader.changes(limit=100_000))
    assert before <= cards <= after + 1
    assert cards == told == found.verify().rows
    found.close()


def test_a_server_that_holds_the_state_is_not_restored_under(place: Place, tmp_path: Path) -> None:
    place.write("c1")
    upkeep.backup(place.settings, tmp_path / "a.backup", NOW, "1")
    with holds.hold(place.settings.state), pytest.raises(Conflict, match="another server"):
        upkeep.restore(place.settings, tmp_path / "a.backup", NOW, "1")
    assert place.cards() == ["c1"]


def test_a_server_elsewhere_that_writes_the_database_is_not_restored_under(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "SPAN", 0.5)
    place = Place(told(tmp_path / "state", tmp_path / "run", SecretStr(postgres_url)))
    place.settings.state.mkdir()
    server = place.opened()
    ended = threading.Event()
    assert server.lease.acquire("elsewhere", 0.0)
    beat = threading.Thread(target=lambda: [server.lease.renew(float(n)) for n in range(10_000) if not ended.wait(0.05)])
    beat.start()
    server.writer.commit(Batch(at=1.0, cards=[card("c1")]))
    upkeep.backup(place.settings, tmp_path / "a.backup", NOW, "1")
    with pytest.raises(Conflict, match="written by elsewhere"):
        upkeep.restore(place.settings, tmp_path / "a.backup", NOW, "1", patience=1.0)
    ended.set()
    beat.join()
    server.writer.commit(Batch(at=1.0, cards=[card("c2")]))
    version = server.reader.version()

    upkeep.restore(place.settings, tmp_path / "a.backup", NOW, "1")
    with pytest.raises(Unavailable):
        server.writer.commit(Batch(at=1.0, cards=[card("late")]))
    assert server.reader.version() > version
    assert server.reader.fresh(version).regrounded
    server.close()
    assert place.cards() == ["c1"]


def test_a_restore_into_a_new_place(filed: Place, tmp_path: Path) -> None:
    filed.write("c1")
    keys(filed, ca="first")
    upkeep.backup(filed.settings, tmp_path / "a.backup", NOW, "1")
    other = Place(told(tmp_path / "other", tmp_path / "run"))
    done = upkeep.restore(other.settings, tmp_path / "a.backup", NOW, "1")

    assert other.cards() == ["c1"]
    assert list(done.before) == []
    assert (other.settings.state / "authority" / "ca.pem").read_text() == "first"


def test_a_restore_into_an_empty_database(postgres: Postgres, postgres_url: str, tmp_path: Path) -> None:
    place = Place(told(tmp_path / "state", tmp_path / "run", SecretStr(postgres_url)))
    place.settings.state.mkdir()
    place.write("c1")
    upkeep.backup(place.settings, tmp_path / "a.backup", NOW, "1")
    name = postgres.database()
    other = Place(told(tmp_path / "other", tmp_path / "run", SecretStr(postgres.url(name))))
    done = upkeep.restore(other.settings, tmp_path / "a.backup", NOW, "1")

    assert other.cards() == ["c1"]
    assert list(done.before) == []
    postgres.drop(name)


def test_a_backup_of_one_kind_is_no_backup_of_the_other(postgres_url: str, filed: Place, tmp_path: Path) -> None:
    filed.write("c1")
    upkeep.backup(filed.settings, tmp_path / "a.backup", NOW, "1")
    based = Place(told(filed.settings.state, tmp_path / "run", SecretStr(postgres_url)))
    based.write("c2")
    with pytest.raises(InputError, match="another kind"):
        upkeep.restore(based.settings, tmp_path / "a.backup", NOW, "1")
    upkeep.backup(based.settings, tmp_path / "b.backup", NOW, "1")
    with pytest.raises(InputError, match="another kind"):
        upkeep.restore(filed.settings, tmp_path / "b.backup", NOW, "1")

    assert (filed.cards(), based.cards()) == (["c1"], ["c2"])


def test_segments_go_along(filed: Place, tmp_path: Path) -> None:
    filed.write("c1")
    folder = filed.settings.state / "roll.sqlite-minutes"
    folder.mkdir()
    segment = sqlite3.connect(folder / "472222.segment")
    segment.execute("CREATE TABLE blocks (x)")
    segment.execute("INSERT INTO blocks VALUES (7)")
    segment.commit()
    segment.close()
    made = upkeep.backup(filed.settings, tmp_path / "a.backup", NOW, "1")
    assert {each.name for each in made.manifest.members} == {"roll.sqlite", "minutes/472222.segment"}
    shutil.rmtree(folder)
    upkeep.restore(filed.settings, tmp_path / "a.backup", NOW, "1")

    segment = sqlite3.connect(folder / "472222.segment")
    assert segment.execute("SELECT x FROM blocks").fetchall() == [(7,)]
    segment.close()


@pytest.mark.parametrize("spoil", ["cut", "byte", "not", "strange", "manifest"])
def test_a_file_that_is_no_whole_backup_changes_nothing(filed: Place, tmp_path: Path, spoil: str) -> None:
    filed.write("c1")
    file = tmp_path / "a.backup"
    upkeep.backup(filed.settings, file, NOW, "1")
    body = bytearray(file.read_bytes())
    match spoil:
        case "cut":
            body = body[: len(body) // 2]
        case "byte":
            body[20_000] ^= 1
        case "not":
            body = bytearray(b"some other file\n" * 100)
        case "strange":
            evil = tmp_path / "evil"
            evil.write_text("x")
            with tarfile.open(file, "w") as tar:
                tar.add(evil, "../../evil")
        case _:
            with tarfile.open(file) as tar:
                names = tar.getnames()
                tar.extractall(tmp_path / "out", filter="data")
            told = json.loads((tmp_path / "out" / "manifest.json").read_text())
            (tmp_path / "out" / "manifest.json").write_text(json.dumps(told | {"form": 99}))
            with tarfile.open(file, "w") as tar:
                for name in names:
                    tar.add(tmp_path / "out" / name, name)
    if spoil not in ("strange", "manifest"):
        file.write_bytes(body)
    with pytest.raises(InputError) as refused:
        upkeep.restore(filed.settings, file, NOW, "1")

    assert refused.value.hint
    assert filed.cards() == ["c1"]
    assert sorted(each.name for each in filed.settings.state.iterdir() if "before" in each.name or each.name.startswith(".")) == []


def test_a_name_that_is_taken_is_not_written_over(filed: Place, tmp_path: Path) -> None:
    filed.write("c1")
    file = tmp_path / "a.backup"
    file.write_text("mine")
    with pytest.raises(Conflict, match="already"):
        upkeep.backup(filed.settings, file, NOW, "1")
    with pytest.raises(Unavailable, match="cannot be written"):
        upkeep.backup(filed.settings, tmp_path / "no" / "a.backup", NOW, "1")
    with pytest.raises(NotFound, match="no file"):
        upkeep.restore(filed.settings, tmp_path / "none", NOW, "1")

    assert file.read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir() if "part" in each.name] == []


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

    assert upkeep.check(place.settings).problems == ("row 2 of the audit log is not as it was written",)


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
    assert upkeep.check(place.settings).problems == ()
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
    place = Place(told(tmp_path, tmp_path / "run", SecretStr(postgres_store_url)))
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
