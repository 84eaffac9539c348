# SPDX-License-Identifier: Apache-2.0
"""A private PostgreSQL for tests: of the binaries of this machine, in a folder of its own, on a socket of its own, run by a user without rights.

`postgres` is one server for the whole run; `postgres_url` an empty database of it, new for each test.
Where the binaries are lacking the tests are skipped with the reason, but fail when CI=true.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from tests.needs import lacks

_FAST = ("fsync=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=60", "autovacuum=off", "listen_addresses=''")
_ROOM = 2**30
_count = itertools.count(1)


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl: of the newest version that the system has."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0)
    if found:
        return found[-1].parent
    named = shutil.which("initdb")
    return Path(named).resolve().parent if named else None


@dataclass
class Postgres:
    """A server. Each one is empty at first; ``settings`` are lines of its configuration, as NAME=VALUE."""

    folder: Path
    bin: Path
    settings: tuple[str, ...] = _FAST
    made: list[str] = field(default_factory=list)

    @property
    def data(self) -> Path:
        """Where its files are."""
        return self.folder / "data"

    def make(self) -> None:
        """Makes its files, with a user "muster" who needs no password on the socket."""
        self.own()
        self.run("initdb", "-D", str(self.data), "-U", "muster", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")

    def own(self) -> None:
        """Gives the folder to the user who runs it."""
        if os.geteuid() == 0:
            shutil.chown(self.folder, _user())

    def start(self) -> None:
        """Starts it and waits until it answers."""
        options = " ".join(f"-c {each}" for each in (*self.settings, f"unix_socket_directories={self.folder}"))
        self.run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "-t", "60", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stops it: "fast" in order, "immediate" as a crash does."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "-t", "60", "-m", mode, "stop")

    def url(self, database: str = "postgres", **more: str) -> str:
        """How a client reaches a database of it."""
        options = "".join(f"&{name}={value}" for name, value in more.items())
        return f"postgresql:///{database}?host={self.folder}&user=muster{options}"

    def database(self, template: str = "template0") -> str:
        """Makes a new database, empty or a copy of another; returns its name."""
        name = f"test{next(_count)}"
        self._admin(f"CREATE DATABASE {name} TEMPLATE {template}")
        self.made.append(name)
        return name

    def drop(self, database: str) -> None:
        """Drops a database, whoever uses it."""
        self._admin(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def _admin(self, statement: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def psql(self, statement: str, database: str = "postgres") -> str:
        """Runs one statement from outside."""
        return self.run("psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-U", "muster", "-d", database, "-c", statement)

    def run(self, program: str, *arguments: str) -> str:
        """Runs a program of the server as a user without rights."""
        command = [*_unprivileged(), str(self.bin / program), *arguments]
        done = subprocess.run(command, check=False, capture_output=program not in ("pg_ctl",), text=True, cwd=self.folder, env=_environment(), timeout=120)
        if done.returncode:
            log = self.folder / "log"
            raise RuntimeError(f"{program} failed: {done.stderr or ''}{log.read_text()[-2000:] if log.exists() else ''}")
        return done.stdout or ""


def _environment() -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "LC_ALL": "C"}


def _unprivileged() -> list[str]:
    """PostgreSQL does not run as root: root becomes "postgres", or "nobody" where there is none."""
    return ["runuser", "-u", _user(), "--"] if os.geteuid() == 0 else []


def _user() -> str:
    return next(name for name in ("postgres", "nobody") if any(each.pw_name == name for each in pwd.getpwall()))


def new_folder() -> Path:
    """A folder for a server: in memory where there is room, which makes databases ten times as fast. Its path is short, as that of a socket must be."""
    shared = Path("/dev/shm")
    roomy = shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > _ROOM
    return Path(tempfile.mkdtemp(prefix="muster-pg-", dir=shared if roomy else "/tmp"))


def lacking() -> str:
    """Why there can be no server here; empty when there can."""
    return "" if binaries() else "no binaries of PostgreSQL on this machine"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server for the whole run."""
    bin_folder = binaries()
    if bin_folder is None:
        lacks(lacking())
    folder = new_folder()
    server = Postgres(folder, bin_folder)
    try:
        server.make()
        server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The URL of an empty database."""
    name = postgres.database()
    yield postgres.url(name)
    postgres.drop(name)


@pytest.fixture(scope="session")
def postgres_template(postgres: Postgres) -> str:
    """A database with the tables of this version, to make others of: a copy takes a tenth of the time of making them."""
    from muster.store import open_store

    name = postgres.database()
    open_store(postgres.url(name)).close()
    return name


@pytest.fixture
def postgres_store_url(postgres: Postgres, postgres_template: str) -> Iterator[str]:
    """The URL of an empty store."""
    name = postgres.database(postgres_template)
    yield postgres.url(name)
    postgres.drop(name)
