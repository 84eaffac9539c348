# SPDX-License-Identifier: Apache-2.0
"""When the disk or another process is in the way, the caller is told what to do, and nothing is half written."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from tests.store.samples import capture, card, file_writer

from muster.domain.model.errors import Unavailable
from muster.spi.store import Batch
from muster.store import Store, connections, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "roll.db"
    open_store(made).close()
    return made


def trouble(store: Store) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        store.writer.commit(Batch(at=1.0, cards=[card("c1")], captures=[capture("d", 1.0, os.urandom(500_000))]))
    assert caught.value.hint
    return caught.value


def test_a_store_held_by_another_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.05)
    store = open_store(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    assert "held by another process" in trouble(store).message

    other.execute("ROLLBACK")
    other.close()
    store.writer.commit(Batch(at=1.0, cards=[card("c1")]))
    assert store.reader.cards() == [card("c1")]
    store.close()


def test_a_full_disk_undoes_the_batch(path: Path) -> None:
    store = open_store(path)
    file_writer(store).execute(f"PRAGMA max_page_count={file_writer(store).execute('PRAGMA page_count').fetchone()[0]}")

    assert "disk is full" in trouble(store).message
    assert store.reader.cards() == []

    file_writer(store).execute("PRAGMA max_page_count=1000000")
    store.writer.commit(Batch(at=1.0, cards=[card("c1")]))
    assert store.reader.cards() == [card("c1")]
    store.close()


def test_a_file_that_may_not_be_written(path: Path) -> None:
    store = open_store(path)
    file_writer(store).execute("PRAGMA query_only=ON")

    assert "may not be written" in trouble(store).message
    store.close()


def test_a_damaged_file(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    with pytest.raises(Unavailable, match="is damaged"):
        open_store(path)


def test_a_file_that_is_damaged_under_a_reader(path: Path) -> None:
    store = open_store(path)
    file_writer(store).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))

    with pytest.raises(Unavailable, match="is damaged"):
        store.reader.cards()
    store.close()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("a file of some other program, long enough to be looked at\n" * 50)

    with pytest.raises(Unavailable, match="is no store of Muster"):
        open_store(text)
    assert text.read_text().startswith("a file of some other program")


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE theirs (x)")
    other.close()

    with pytest.raises(Unavailable, match="not one of Muster's"):
        open_store(tmp_path / "other.db")
    check = sqlite3.connect(tmp_path / "other.db")
    assert check.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    check.close()


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be opened"):
        open_store(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="cannot be opened"):
        open_store(tmp_path / "file" / "roll.db")


def test_a_reader_that_waits_too_long_for_its_turn(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "POOL", {**connections.POOL, "pool_size": 1, "pool_timeout": 0.05})
    store = open_store(path)
    with store.connections.reading(), pytest.raises(Unavailable, match="too many readers"):
        store.reader.cards()
    assert store.reader.cards() == []
    store.close()


def test_a_mistake_of_ours_is_not_said_to_be_the_disks(path: Path) -> None:
    store = open_store(path)
    with pytest.raises(sqlite3.OperationalError, match="no such table"), store.connections.transaction() as connection:
        connection.execute("SELECT x FROM missing")
    store.writer.commit(Batch(at=1.0, cards=[card("c1")]))
    store.close()
