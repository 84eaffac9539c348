# SPDX-License-Identifier: Apache-2.0
"""A row that cannot be read hides no other; an empty file is no new store; a probe finds out whether the store takes writes."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.store.samples import capture, card, file_writer, finding, node, source

from muster.domain.model.errors import Unavailable
from muster.spi.store import Batch
from muster.store import Store, looking, migrating, open_store
from muster.store.files import WRITTEN

ALL = Batch(
    at=1.0,
    cards=[card("c1"), card("c2")],
    nodes=[node("n1"), node("n2")],
    sources=[source("n1", "a"), source("n1", "b")],
    findings=[finding("f1", 1.0), finding("f2", 1.0)],
    captures=[capture("d1", 1.0, b"x")],
)
BAD = ["{", "{}", '{"id": 7}', "[" * 5000, b"\xff\xfe{}"]


def spoil(store: Store, table: str, where: str, text: str | bytes) -> None:
    put = f"CAST(x'{text.hex()}' AS TEXT)" if isinstance(text, bytes) else f"'{text}'"
    with store.connections.transaction() as connection:
        connection.execute(f"UPDATE {table} SET record = {put} WHERE {where}")


@pytest.mark.parametrize("text", BAD, ids=["cut", "bare", "wrong", "deep", "bytes"])
def test_one_bad_row_hides_no_other(store: Store, text: str | bytes, caplog: pytest.LogCaptureFixture) -> None:
    store.writer.commit(ALL)
    for table, where in (("cards", "id = 'c1'"), ("nodes", "id = 'n1'"), ("sources", "source = 'a'"), ("findings", "id = 'f1'")):
        spoil(store, table, where, text)
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert [each.id for each in store.reader.cards()] == ["c2"]
            assert [each.id for each in store.reader.cards(at=5.0)] == ["c2"]
            assert [each.id for each in store.reader.nodes()] == ["n2"]
            assert [each.source for each in store.reader.sources()] == ["b"]
            assert [each.finding.id for each in store.reader.findings()] == ["f2"]

    assert caplog.text.count("row c1 of the table cards cannot be read and is passed over") == 1
    assert "1 row of nodes cannot be read" in store.unread.told()
    assert [each.id for each in store.writer.load().findings] == ["f2"]


def test_a_row_that_is_written_anew_is_read_again(store: Store) -> None:
    store.writer.commit(ALL)
    spoil(store, "cards", "id = 'c1'", "{")
    assert len(store.reader.cards()) == 1
    assert store.unread.told() == "1 row of cards cannot be read"
    store.writer.commit(Batch(at=2.0, cards=[card("c1")]))

    assert len(store.reader.cards()) == 2
    assert store.unread.told() == ""
    spoil(store, "cards", "id = 'c1'", "{")
    assert len(store.reader.cards()) == 1
    assert store.reader.cards(ids=["c2"])
    assert store.unread.told() == "1 row of cards cannot be read"
    store.writer.commit(Batch(at=3.0, vanished=["c1"]))
    assert len(store.reader.cards()) == 1
    assert store.unread.told() == ""


def test_a_damaged_capture_is_told(store: Store) -> None:
    store.writer.commit(ALL)
    with store.connections.transaction() as connection:
        bad = "x'0011'" if connection.kind == "sqlite" else "'\\x0011'::bytea"
        connection.execute(f"UPDATE captures SET payload = {bad}")
    with pytest.raises(Unavailable, match="capture d1 is damaged"):
        store.reader.capture("d1")


@pytest.mark.parametrize("beside", ["", "-wal"])
def test_an_empty_file_is_no_new_store(tmp_path: Path, beside: str) -> None:
    path = tmp_path / "roll.sqlite"
    path.touch()
    if beside:
        path.with_name(path.name + beside).write_bytes(b"left")
    for _ in range(2):
        with pytest.raises(Unavailable, match="empty: it has lost") as refused:
            open_store(path)
        assert "backup" in refused.value.hint
    assert path.stat().st_size == 0


def test_a_file_that_is_gone_beside_its_log(tmp_path: Path) -> None:
    (tmp_path / "roll.sqlite-wal").write_bytes(b"left")
    with pytest.raises(Unavailable, match=r"roll\.sqlite-wal is there"):
        open_store(tmp_path / "roll.sqlite")
    assert not (tmp_path / "roll.sqlite").exists()


def test_a_database_without_a_table(tmp_path: Path) -> None:
    made = sqlite3.connect(tmp_path / "roll.sqlite")
    made.execute("PRAGMA journal_mode=WAL")
    made.execute("PRAGMA user_version=1")
    made.commit()
    made.close()
    with pytest.raises(Unavailable, match="without a table"):
        open_store(tmp_path / "roll.sqlite")
    assert (tmp_path / "roll.sqlite").exists()


def _begun(path: Path) -> None:
    """What a server leaves that is killed while it makes its store: a database that writes its log, and nothing in it."""
    made = sqlite3.connect(path)
    made.execute("PRAGMA journal_mode=WAL")
    made.close()
    assert path.stat().st_size == 4096


def test_a_database_that_never_had_a_table_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "roll.sqlite"
    _begun(path)
    found = looking.look(path)
    assert found.problems == ("it has no table yet: a server makes them when it starts",)
    open_store(path).close()
    assert looking.look(path).problems == ()


@pytest.mark.parametrize("beside", WRITTEN)
def test_a_database_without_a_table_beside_what_was_written(tmp_path: Path, beside: str) -> None:
    path = tmp_path / "roll.sqlite"
    _begun(path)
    path.with_name(path.name + beside).write_bytes(b"kept")
    with pytest.raises(Unavailable, match="it has lost what it held") as refused:
        open_store(path)
    (said,) = looking.look(path).problems
    assert "it has lost what it held" in said
    assert refused.value.hint in said


def test_a_database_whose_tables_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "roll.sqlite"
    made = sqlite3.connect(path)
    made.execute("CREATE TABLE cards (id TEXT)")
    made.execute("DROP TABLE cards")
    made.close()
    with pytest.raises(Unavailable, match="it has lost what it held"):
        open_store(path)


def test_what_one_who_was_killed_left_half_made_is_removed(tmp_path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"roll.sqlite.making{end}").write_bytes(b"half")
    open_store(tmp_path / "roll.sqlite").close()
    assert [each.name for each in tmp_path.iterdir() if "making" in each.name] == []


def test_the_file_has_its_name_only_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "roll.sqlite", []
    migrate = migrating.migrate

    def looked(*told: Any) -> None:
        migrate(*told)
        seen.append(path.exists())

    monkeypatch.setattr(migrating, "migrate", looked)
    open_store(path).close()
    assert seen == [False]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_store_that_could_not_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("no")

    monkeypatch.setattr("muster.store.migrating.migrate", full)
    with pytest.raises(sqlite3.OperationalError):
        open_store(tmp_path / "roll.sqlite")

    assert list(tmp_path.iterdir()) == []


def test_a_probe_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "roll.sqlite")
    store.probe()
    store.probe()
    assert file_writer(store).execute("SELECT value FROM counters WHERE name = 'probe'").fetchone() == (2,)
    monkeypatch.setattr("muster.store.connections.ROOM", 2**70)
    with pytest.raises(Unavailable, match="disk is full"):
        store.probe()
    store.close()
