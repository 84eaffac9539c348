# SPDX-License-Identifier: Apache-2.0
"""The state of a server is backed up while it is written, and restored: in a file and in PostgreSQL."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import tarfile
import threading
import time
from pathlib import Path

import pytest
from tests.postgres import Postgres
from tests.store.samples import card, change
from tests.wiring.kept import NOW, Place, filed, in_postgres, keys, place, postgres, postgres_store_url, postgres_template, postgres_url, programs, told

from muster.domain.model.errors import Conflict, InputError, NotFound, Unavailable
from muster.spi.store import Batch
from muster.store import open_store
from muster.store.schema import HEAD
from muster.wiring import holds, upkeep

__all__ = ["filed", "place", "postgres", "postgres_store_url", "postgres_template", "postgres_url", "programs"]


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
    told = upkeep.check(place.settings).problems
    assert [each for each in told if "/authority" not in each] == [], "what stands for keys here is none"
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
    place = Place(told(tmp_path / "state", tmp_path / "run", postgres_url))
    place.settings.state.mkdir()
    server = place.opened()
    ended = threading.Event()
    assert server.lease.acquire("elsewhere", 0.0)
    beat = threading.Thread(target=lambda: [server.lease.renew(float(n)) for n in range(10_000) if not ended.wait(0.05)])
    beat.start()
    server.writer.commit(Batch(at=1.0, cards=[card("c1")]))
    upkeep.backup(place.settings, tmp_path / "a.backup", NOW, "1")
    began = time.monotonic()
    with pytest.raises(Conflict, match="written by elsewhere"):
        upkeep.restore(place.settings, tmp_path / "a.backup", NOW, "1")
    assert time.monotonic() - began < 8.0, "it is seen to be alive: nobody waits for it to be gone"
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
    place = Place(told(tmp_path / "state", tmp_path / "run", postgres_url))
    place.settings.state.mkdir()
    place.write("c1")
    upkeep.backup(place.settings, tmp_path / "a.backup", NOW, "1")
    name = postgres.database()
    other = Place(told(tmp_path / "other", tmp_path / "run", postgres.url(name)))
    done = upkeep.restore(other.settings, tmp_path / "a.backup", NOW, "1")

    assert other.cards() == ["c1"]
    assert list(done.before) == []
    postgres.drop(name)


def test_a_backup_of_one_kind_is_no_backup_of_the_other(postgres_url: str, filed: Place, tmp_path: Path) -> None:
    filed.write("c1")
    upkeep.backup(filed.settings, tmp_path / "a.backup", NOW, "1")
    based = Place(told(filed.settings.state, tmp_path / "run", postgres_url))
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
                parts = {each.name: held.read() for each in tar if (held := tar.extractfile(each)) is not None}
            parts["manifest.json"] = json.dumps(json.loads(parts["manifest.json"]) | {"form": 99}).encode()
            with tarfile.open(file, "w") as tar:
                for name, held_bytes in parts.items():
                    member = tarfile.TarInfo(name)
                    member.size = len(held_bytes)
                    tar.addfile(member, io.BytesIO(held_bytes))
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


def test_a_server_that_still_has_the_old_file_open_writes_no_more(filed: Place, tmp_path: Path) -> None:
    filed.write("c1")
    upkeep.backup(filed.settings, tmp_path / "a.backup", NOW, "1")
    server = filed.opened()
    upkeep.restore(filed.settings, tmp_path / "a.backup", NOW, "1")
    with pytest.raises(Unavailable, match="another file") as refused:
        server.writer.commit(Batch(at=1.0, cards=[card("lost")]))
    server.close()

    assert "restart" in refused.value.hint
    assert filed.cards() == ["c1"]


def test_a_server_that_writes_a_file_without_its_lock_is_not_restored_under(filed: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "SPAN", 5.0)
    server = filed.opened()
    assert server.lease.acquire("elsewhere", 0.0)
    server.writer.commit(Batch(at=1.0, cards=[card("c1")]))
    upkeep.backup(filed.settings, tmp_path / "a.backup", NOW, "1")
    with pytest.raises(Conflict, match="written by elsewhere"):
        upkeep.restore(filed.settings, tmp_path / "a.backup", NOW, "1", patience=0.3)
    server.lease.release()
    server.close()
    upkeep.restore(filed.settings, tmp_path / "a.backup", NOW, "1")

    assert filed.cards() == ["c1"]


def test_a_file_that_is_damaged_can_be_replaced(filed: Place, tmp_path: Path) -> None:
    filed.write("c1")
    upkeep.backup(filed.settings, tmp_path / "a.backup", NOW, "1")
    (filed.settings.state / "roll.sqlite").write_bytes(b"no database at all" * 1000)
    done = upkeep.restore(filed.settings, tmp_path / "a.backup", NOW, "1")

    assert filed.cards() == ["c1"]
    assert done.before[0].read_bytes().startswith(b"no database")
