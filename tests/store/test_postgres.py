# SPDX-License-Identifier: Apache-2.0
"""A database that is away, that only reads, that fails over, or whose answer is lost: the caller is told, and what was acknowledged stays, once."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from tests.postgres import Postgres, new_folder
from tests.store.samples import card, change

from muster.domain.model.errors import InputError, Unavailable
from muster.spi.store import Batch
from muster.store import Store, connections, open_store, postgres_watch

ROOT = Path(__file__).resolve().parents[2]


def one(n: int) -> Batch:
    return Batch(at=float(n), cards=[card(f"c{n}")], changes=[change(f"h{n}", float(n))])


def refused(store: Store, batch: Batch) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        store.writer.commit(batch)
    assert caught.value.hint
    return caught.value


@contextmanager
def server_like(postgres: Postgres, *settings: str) -> Iterator[Postgres]:
    """A server of its own: for tests that stop it."""
    made = Postgres(new_folder(), postgres.bin, (*postgres.settings, *settings))
    made.make()
    made.start()
    try:
        yield made
    finally:
        with suppress(RuntimeError):
            made.stop()
        shutil.rmtree(made.folder)


def test_a_database_that_was_stopped_and_is_back(postgres: Postgres) -> None:
    with server_like(postgres) as server:
        store = open_store(server.url(server.database()))
        store.writer.commit(one(1))
        assert len(store.reader.cards()) == 1
        server.stop("immediate")

        assert "does not answer" in refused(store, one(2)).message
        with pytest.raises(Unavailable, match="does not answer"):
            store.reader.cards()
        with pytest.raises(Unavailable, match="does not answer"):
            open_store(server.url("elsewhere"))
        server.start()
        store.writer.commit(one(3))

        assert [each.id for each in store.reader.cards()] == ["c1", "c3"]
        store.close()


def test_a_restart_between_two_questions_is_not_noticed(postgres: Postgres, postgres_store_url: str) -> None:
    store = open_store(postgres_store_url)
    store.writer.commit(one(1))
    assert len(store.reader.cards()) == 1
    postgres.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'muster'")

    assert len(store.reader.cards()) == 1
    refused(store, one(2))
    store.writer.commit(one(2))
    assert len(store.reader.cards()) == 2
    store.close()


def test_a_database_that_only_reads(postgres: Postgres, postgres_store_url: str) -> None:
    store = open_store(postgres_store_url)
    store.writer.commit(one(1))
    name = psycopg.conninfo.conninfo_to_dict(postgres_store_url)["dbname"]
    postgres.psql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    postgres.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'muster'")
    refused(store, one(2))

    assert "only reads" in refused(store, one(2)).message
    assert len(store.reader.cards()) == 1
    postgres.psql(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
    store.writer.commit(one(3))
    store.close()


def test_a_table_that_another_program_holds(postgres_store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.2)
    store = open_store(postgres_store_url)
    with psycopg.connect(postgres_store_url) as other:
        other.execute("LOCK TABLE cards IN ACCESS EXCLUSIVE MODE")
        assert "held by another program" in refused(store, one(1)).message
    store.writer.commit(one(1))
    assert len(store.reader.cards()) == 1
    store.close()


def test_a_database_that_is_reached_and_does_not_answer(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_watch, "LONGEST", 1.0)
    monkeypatch.setattr(connections, "PATIENCE", 0.5)
    with server_like(postgres) as server:
        store = open_store(server.url(server.database()))
        store.writer.commit(one(1))
        with store.connections.transaction() as session:
            process = session.execute("SELECT pg_backend_pid()").fetchone()[0]
        os.kill(process, signal.SIGSTOP)
        began = time.monotonic()
        refused(store, one(2))
        assert time.monotonic() - began < 5
        os.kill(process, signal.SIGCONT)
        store.writer.commit(one(3))

        assert [each.id for each in store.reader.cards()] == ["c1", "c3"]
        store.close()


def test_the_copy_takes_over_and_nothing_that_was_acknowledged_is_lost(postgres: Postgres) -> None:
    copy = Postgres(new_folder(), postgres.bin, postgres.settings)
    with server_like(postgres, "wal_level=replica", "synchronous_standby_names='*'", "synchronous_commit=local") as first:
        url = first.url(first.database())
        copied = ("-h", str(first.folder), "-U", "muster", "-D", str(copy.data), "-R", "-X", "stream", "--checkpoint=fast")
        copy.own()
        copy.run("pg_basebackup", *copied)
        copy.start()
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        store = open_store(f"postgresql:///{name}?host={first.folder},{copy.folder}&user=muster")
        for n in range(20):
            store.writer.commit(one(n))
        first.stop("immediate")
        refused(store, one(98))
        copy.run("pg_ctl", "-D", str(copy.data), "-w", "promote")
        store.writer.commit(one(99))

        assert [each.id for each in store.reader.cards()] == [*(f"c{n}" for n in range(20)), "c99"]
        store.close()
        copy.stop()
        shutil.rmtree(copy.folder)


class Between:
    """Stands between the store and the database, and cuts the line around a COMMIT when it is told to."""

    def __init__(self, folder: Path, to: Path) -> None:
        self.cut = ""
        """"before" or "after" the database got the next COMMIT."""
        self.shut = False
        """True: no new line is let through."""
        self._to = to
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.shut:
                    client.close()
                else:
                    threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(str(self._to / ".s.PGSQL.5432"))
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for way, other in ((client, server), (server, client)):
                    data = way.recv(65536) if way in ready else None
                    if data == b"":
                        return
                    if data and way is client and self.cut and b"COMMIT" in data:
                        if self.cut == "after":
                            server.sendall(data)
                        self.cut = ""
                        return
                    other.sendall(data or b"")

    def close(self) -> None:
        """Listens no more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def between(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Between, Path]]:
    folder = new_folder()
    made = Between(folder, postgres.folder)
    yield made, folder
    made.close()
    shutil.rmtree(folder)


def through(url: str, folder: Path) -> Store:
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    return open_store(f"postgresql:///{name}?host={folder}&user=muster")


def test_an_answer_that_was_lost_after_the_commit_counts(postgres_store_url: str, between: tuple[Between, Path]) -> None:
    proxy, folder = between
    store = through(postgres_store_url, folder)
    store.writer.commit(one(1))
    proxy.cut = "after"
    store.writer.commit(one(2))
    store.writer.commit(one(3))

    assert [row.change.id for row in store.reader.changes()] == ["h1", "h2", "h3"]
    store.close()


def test_a_commit_that_never_arrived_is_told(postgres_store_url: str, between: tuple[Between, Path]) -> None:
    proxy, folder = between
    store = through(postgres_store_url, folder)
    proxy.cut = "before"

    assert "nothing of it was kept" in refused(store, one(1)).message
    assert store.reader.cards() == []
    store.writer.commit(one(1))
    assert [row.change.id for row in store.reader.changes()] == ["h1"]
    store.close()


@pytest.mark.parametrize("cut", ["before", "after"])
def test_while_nobody_knows_what_was_kept_nothing_is_written(postgres_store_url: str, between: tuple[Between, Path], cut: str) -> None:
    proxy, folder = between
    store = through(postgres_store_url, folder)
    store.writer.commit(one(1))
    proxy.cut, proxy.shut = cut, True
    refused(store, one(2))
    refused(store, one(2))
    proxy.shut = False

    if cut == "after":
        assert "load its state anew" in refused(store, one(3)).hint
        refused(store, one(3))
        store.writer.load()
    store.writer.commit(one(3))
    assert [row.change.id for row in store.reader.changes()] == (["h1", "h2", "h3"] if cut == "after" else ["h1", "h3"])
    store.close()


SECRET = "s3cretword"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://muster:{SECRET}@127.0.0.1:1/roll",
        f"postgresql://muster:{SECRET}/x@127.0.0.1/roll",
        f"postgresql://muster:%zz{SECRET}@127.0.0.1/roll",
        f"postgresql://muster@127.0.0.1:1/roll?password={SECRET}",
        f"postgresql://muster@127.0.0.1:1/roll?passwrd={SECRET}",
        f"postgresql://muster:{SECRET}@[::1/roll",
    ],
)
def test_a_password_is_told_nowhere(url: str) -> None:
    with pytest.raises((Unavailable, InputError)) as caught:
        open_store(url)

    assert caught.value.hint
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in caught.value.hint


def test_a_user_who_is_not_let_in(postgres: Postgres) -> None:
    with server_like(postgres) as server:
        (server.data / "pg_hba.conf").write_text("local all muster trust\nlocal all all reject\n")
        server.stop("fast")
        server.start()
        with pytest.raises(Unavailable, match="does not let this user in"):
            open_store(f"postgresql://stranger:{SECRET}@/postgres?host={server.folder}")
        with pytest.raises(Unavailable, match="is not there"):
            open_store(server.url("nowhere"))


def test_the_database_of_another_program_is_left_alone(postgres: Postgres, postgres_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    assert isinstance(name, str)
    postgres.psql("CREATE TABLE theirs (x int)", name)

    with pytest.raises(Unavailable, match="not one of Muster's"):
        open_store(postgres_url)
    assert postgres.psql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", name).strip() == "1"


def test_no_place_at_all() -> None:
    with pytest.raises(InputError, match="PostgreSQL"):
        open_store("mysql://x/y")


def test_two_servers_that_start_at_once_make_the_tables_once(postgres_url: str) -> None:
    command = [sys.executable, "-c", "import sys; from muster.store import open_store; open_store(sys.argv[1]).close()", postgres_url]
    servers = [subprocess.Popen(command, env={"PYTHONPATH": str(ROOT / "src")}, stderr=subprocess.PIPE, text=True) for _ in range(3)]

    assert [(each.communicate()[1], each.returncode) for each in servers] == [("", 0)] * 3


def test_it_is_durable_when_commit_returns(postgres_store_url: str) -> None:
    store = open_store(postgres_store_url)
    with store.connections.transaction() as session:
        told = {name: session.execute(f"SHOW {name}").fetchone()[0] for name in ("synchronous_commit", "timezone", "client_encoding")}

    assert told == {"synchronous_commit": "on", "timezone": "UTC", "client_encoding": "UTF8"}
    store.close()
