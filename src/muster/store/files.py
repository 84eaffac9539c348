# SPDX-License-Identifier: Apache-2.0
"""A store in a file, or in memory. A file lets readers see the last commit while the writer is at work; memory has one connection for all."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool
from sqlalchemy.sql import Executable

from muster.domain.model.errors import Unavailable
from muster.store import connections
from muster.store.connections import LOST, answers
from muster.store.statements import SQLITE, Rows, Session, Statement
from muster.store.troubles import told
from muster.store.unread import lenient

T = TypeVar("T")
BESIDE = ("-wal", "-shm")
"""Ends of the names of the files that the database keeps beside its own."""
WRITTEN = ("-numbers", "-minutes")
"""Ends of the names of what a server writes beside the database once it has something to keep."""
_SETTINGS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", "journal_size_limit=67108864")
_CACHES = {False: "cache_size=-65536", True: "cache_size=-8192"}
"""KiB of pages in memory: for the one who writes, and for each who reads."""


class FileSession:
    """`Session` over the writer's connection."""

    kind = SQLITE

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: Statement | str, values: Mapping[str, Any] | None = None) -> Rows:
        """Runs one statement."""
        text = statement if isinstance(statement, str) else statement.text(SQLITE)
        return self._connection.execute(text, values or {})

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> int:
        """Runs it for each row."""
        return self._connection.executemany(statement.text(SQLITE), rows).rowcount


class FileConnections:
    """`Connections` of one file. ``path`` None is a private store in memory."""

    def __init__(self, path: Path | None) -> None:
        self.name = "the store in memory" if path is None else str(path)
        self._turn = threading.RLock()
        self._shared = path is None
        self.place = self._path = path
        self.new = path is None
        with told(self.name):
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                self.new = _private(path)
            try:
                self.writer = _connect(self.name if path else ":memory:")
            except sqlite3.Error:
                self._unmake()
                raise
            self._file = None if path is None else _file(path)
        self._beside: list[tuple[int, int] | None] = []
        """Which files the database keeps beside its own, once it writes."""
        self._lost = ""
        self._session = FileSession(self.writer)
        self.writing = _engine(lambda: self.writer, "BEGIN IMMEDIATE", poolclass=StaticPool)
        self._reading = self.writing if path is None else _engine(lambda: _connect(str(path), reads_only=True), "BEGIN", **connections.POOL)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """The writer's connection in a transaction of its own."""
        with self._turn, told(self.name):
            self._in_place()
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                self._beside = self._beside or self._found_beside()
                yield self._session
                self.writer.execute("COMMIT")
            finally:
                if self.writer.in_transaction:
                    self.writer.execute("ROLLBACK")

    def _in_place(self) -> None:
        """Raises Unavailable when another file was put in the place of the one that is open, as a restore does: what is written here would be lost."""
        if self._path is not None and _file(self._path) != self._file:
            raise Unavailable(f"{self.name} is another file than the one that was opened", hint="restart the server: a backup was put in its place")
        if self._path is not None and (self._lost or (self._beside and self._found_beside() != self._beside)):
            raise Unavailable(self._lost or self._rescued(), hint="restart the server, and remove nothing that lies beside a store")

    def _found_beside(self) -> list[tuple[int, int] | None]:
        return [] if self._path is None else [_file(self._path.with_name(self._path.name + end)) for end in BESIDE]

    def _rescued(self) -> str:
        """What to say of a log that was removed or replaced while it was open. What it held is in reach for as long as it is open: it goes into the file."""
        try:
            busy, _, _ = self.writer.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        except sqlite3.Error:
            busy = 1
        kept = "what it held could not be saved" if busy else "what it held was saved into the file"
        self._lost = f"a file beside {self.name} ({' or '.join(BESIDE)}) was removed or replaced while the server ran; {kept}, and nothing is taken in"
        return self._lost

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the store until it is given back."""
        with self._alone(), told(self.name), self._reading.begin() as connection:
            yield connection

    def rows(self, *asked: Executable) -> list[list[dict[str, Any]]]:
        """The rows of each query; a text that is no UTF-8 shows as escapes."""
        with self.reading() as connection:
            try:
                return answers(connection, asked)
            except OperationalError as error:
                raw: Any = connection.connection.driver_connection
                if "UTF-8" not in str(error.orig) or raw.text_factory is lenient:
                    raise
                raw.text_factory = lenient
                return answers(connection, asked)

    def whole(self, session: Session, read: Callable[[Session], T]) -> T:
        """What ``read`` reads; a text that is no UTF-8 shows as escapes."""
        try:
            return read(session)
        except sqlite3.OperationalError as error:
            if "UTF-8" not in str(error):
                raise Unavailable(f"{self.name} is damaged ({error})", hint="keep the file, and put a backup in its place") from error
            self.writer.text_factory = lenient
            return read(session)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._shared:
            yield
            return
        with self._turn:
            yield

    def room(self) -> None:
        """Raises Unavailable when the disk of the store has less than ROOM bytes left."""
        if self._path is None:
            return
        with told(self.name):
            disk = os.statvfs(self._path.parent)
        if disk.f_bavail * disk.f_frsize < connections.ROOM:
            raise Unavailable(f"{self.name} cannot grow: the disk is full", hint="make room on its disk; what was committed before is safe")

    def abandon(self) -> None:
        """Closes everything, and leaves no half-made file behind where there was none before."""
        self.close()
        self._unmake()

    def _unmake(self) -> None:
        if self._path is not None and self.new:
            for end in ("", *BESIDE):
                self._path.with_name(self._path.name + end).unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the readers, then the writer, which folds the log into the file."""
        with self._turn:
            self._reading.dispose()
            self.writer.close()


def _file(path: Path) -> tuple[int, int] | None:
    """Which file it is, whatever its name; None when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def making(path: Path) -> Iterator[Path | None]:
    """The name under which the file at ``path`` is to be made; it gets its own when this ends well. None when another process has made it meanwhile.

    What one who was killed left under that name is removed. Raises Unavailable for a store that has lost its file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # let go by the system, however this process ends
        if path.exists():
            yield None
            return
        _orphaned(path)
        part = path.with_name(f"{path.name}.making")
        for end in ("", *BESIDE):
            part.with_name(part.name + end).unlink(missing_ok=True)
        yield part
        part.rename(path)
        os.fsync(folder)
    finally:
        os.close(folder)


def never_filled(connection: Connection) -> bool:
    """True for a database in a file that never had a table, and beside which nothing lies that a server wrote: there is nothing it could have lost.

    Such a one is left by a server that was killed while it made it. (In PostgreSQL all tables are made in one transaction, and none is left.)
    """
    if connection.dialect.name != SQLITE:
        return False
    asked = ("schema_version", "user_version", "page_count")
    schema, user, pages = (int(connection.exec_driver_sql(f"PRAGMA {name}").scalar() or 0) for name in asked)
    file = next((row[2] for row in connection.exec_driver_sql("PRAGMA database_list") if row[1] == "main"), "")
    beside = [Path(f"{file}{end}") for end in WRITTEN] if file else []
    return schema == user == 0 and pages <= 1 and not any(each.exists() for each in beside)


def _private(path: Path) -> bool:
    """Makes the file, where there is none, one that only its user reads; what the database puts beside it takes after it. True when it was made.

    Raises Unavailable for a file that has lost what it held.
    """
    if path.exists():
        if path.is_file() and path.stat().st_size == 0:
            raise Unavailable(f"{path} is empty: it has lost what it held", hint=LOST)
        return False
    _orphaned(path)
    path.touch(mode=0o600)
    return True


def _orphaned(path: Path) -> None:
    """Raises Unavailable when what belongs to a file is there, and the file is not."""
    left = [beside for end in BESIDE if (beside := path.with_name(path.name + end)).exists() and beside.stat().st_size]
    if left:
        raise Unavailable(f"{path} is gone, but {left[0].name} is there: the store has lost its file", hint=LOST)


def _connect(path: str, *, reads_only: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=connections.PATIENCE, isolation_level=None, check_same_thread=False)
    for setting in (*_SETTINGS, _CACHES[reads_only], *(("query_only=ON",) if reads_only else ())):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _engine(connect: Callable[[], sqlite3.Connection], begin: str, **pool: Any) -> Engine:
    """An engine whose transactions begin when they are begun: the driver's own habit begins them at the first write, too late for a read of one state."""
    engine = create_engine("sqlite://", creator=connect, **pool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine
