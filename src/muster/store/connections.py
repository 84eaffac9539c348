# SPDX-License-Identifier: Apache-2.0
"""Connections to the store: one that writes, some that read. What holds for each kind of database; `files` and `postgres` are the kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql import Executable

from muster.domain.model.errors import Unavailable
from muster.store.statements import Session

T = TypeVar("T")
PATIENCE = 10.0
"""Seconds to wait for another process that holds the store before it is said to be locked."""
READERS = 32
"""Connections that may read at one time; one more waits for the first that is done."""
ROOM = 1024 * 1024
"""Bytes that a disk must have left before a store that could not be written is tried again."""
LOST = "put a backup in its place; to begin anew, move it and the files with its name away first"
EMPTIED = "and it was not always: it has lost what it held"
POOL = {"poolclass": QueuePool, "pool_size": READERS, "max_overflow": 0, "pool_timeout": PATIENCE}


class InDoubt(Unavailable):
    """The connection was lost while a transaction was being committed: whether it was is not known yet."""


class Connections(Protocol):
    """Where the writer and the readers of one store get theirs."""

    name: str
    """What the store is called in messages; without a password."""
    new: bool
    """True when there was nothing: only then is an empty store ours to fill."""
    place: Path | None
    """Its file; None for a database, and for memory."""
    writing: Engine
    """For Alembic and the opening store: transactions of Core on a connection that may write."""

    def transaction(self) -> AbstractContextManager[Session]:
        """The writer's connection in a transaction of its own, committed at the end, undone by any exception. One thread at a time.

        Raises Unavailable when the store cannot be written, InDoubt when nobody knows whether it was.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that sees one state of the store until it is given back. Raises Unavailable when the store cannot be read."""

    def rows(self, *asked: Executable) -> list[list[dict[str, Any]]]:
        """The rows of each query, all of one state of the store. Raises Unavailable."""

    def whole(self, session: Session, read: Callable[[Session], T]) -> T:
        """What ``read`` reads, with texts that are damaged shown as such. Raises Unavailable for a store that is damaged beyond that."""

    def room(self) -> None:
        """Raises Unavailable when it is known that the store cannot grow."""

    def abandon(self) -> None:
        """Closes everything, and leaves nothing half-made behind where there was nothing before."""

    def close(self) -> None:
        """Closes the readers, then the writer."""


def answers(connection: Connection, asked: Sequence[Executable]) -> list[list[dict[str, Any]]]:
    """The rows of each query."""
    return [[dict(row) for row in connection.execute(each).mappings()] for each in asked]
