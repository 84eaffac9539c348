# SPDX-License-Identifier: Apache-2.0
"""Connections to the store: one that writes, some that read. A file lets readers see the last commit while the writer is at work; memory has one for all."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool, StaticPool

from muster.domain.model.errors import Unavailable
from muster.store.troubles import told

PATIENCE = 10.0
"""Seconds to wait for another process that holds the file before it is said to be locked."""
READERS = 32
"""Connections that may read at one time; one more waits for the first that is done."""

ROOM = 1024 * 1024
"""Bytes that a disk must have left before a store that could not be written is tried again."""
_BESIDE = ("-wal", "-shm")
"""Ends of the names of the files that the database keeps beside its own."""
LOST = "put a backup in its place; to begin anew, move it and the files with its name away first"

POOL = {"poolclass": QueuePool, "pool_size": READERS, "max_overflow": 0, "pool_timeout": PATIENCE}
_SETTINGS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", "journal_size_limit=67108864", "cache_size=-65536")


class Connections:
    """Where the writer and the readers of one store get theirs. ``path`` None is a private store in memory."""

    def __init__(self, path: Path | None) -> None:
        self.name = "the store in memory" if path is None else str(path)
        self._turn = threading.RLock()
        self._shared = path is None
        self._path = path
        self.new = path is None
        """True when there was no file: only then is an empty store ours to fill."""
        with told(self.name):
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                self.new = _private(path)
            try:
                self.writer = _connect(self.name if path else ":memory:")
            except sqlite3.Error:
                self._unmake()
                raise
        self.writing = _engine(lambda: self.writer, "BEGIN IMMEDIATE", poolclass=StaticPool)
        self._reading = self.writing if path is None else _engine(lambda: _connect(str(path), reads_only=True), "BEGIN", **POOL)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The writer's connection in a transaction of its own, committed at the end, undone by any exception. One thread at a time.

        Raises Unavailable when the store cannot be written.
        """
        with self._turn, told(self.name):
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                yield self.writer
                self.writer.execute("COMMIT")
            finally:
                if self.writer.in_transaction:
                    self.writer.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the store until it is given back. Raises Unavailable when the store cannot be read."""
        with self._alone(), told(self.name), self._reading.begin() as connection:
            yield connection

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
        if disk.f_bavail * disk.f_frsize < ROOM:
            raise Unavailable(f"{self.name} cannot grow: the disk is full", hint="make room on its disk; what was committed before is safe")

    def abandon(self) -> None:
        """Closes everything, and leaves no half-made file behind where there was none before."""
        self.close()
        self._unmake()

    def _unmake(self) -> None:
        if self._path is not None and self.new:
            for end in ("", *_BESIDE):
                self._path.with_name(self._path.name + end).unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the readers, then the writer, which folds the log into the file."""
        with self._turn:
            self._reading.dispose()
            self.writer.close()


def _private(path: Path) -> bool:
    """Makes the file, where there is none, one that only its user reads; what the database puts beside it takes after it. True when it was made.

    Raises Unavailable for a file that has lost what it held.
    """
    if path.exists():
        if path.is_file() and path.stat().st_size == 0:
            raise Unavailable(f"{path} is empty: it has lost what it held", hint=LOST)
        return False
    left = [beside for end in _BESIDE if (beside := path.with_name(path.name + end)).exists() and beside.stat().st_size]
    if left:
        raise Unavailable(f"{path} is gone, but {left[0].name} is there: the store has lost its file", hint=LOST)
    path.touch(mode=0o600)
    return True


def _connect(path: str, *, reads_only: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    for setting in (*_SETTINGS, *(("query_only=ON",) if reads_only else ())):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _engine(connect: Callable[[], sqlite3.Connection], begin: str, **pool: Any) -> Engine:
    """An engine whose transactions begin when they are begun: the driver's own habit begins them at the first write, too late for a read of one state."""
    engine = create_engine("sqlite://", creator=connect, **pool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine
