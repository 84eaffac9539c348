# SPDX-License-Identifier: Apache-2.0
"""Opens a store: its file, its schema, its writer and its readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from muster.domain.model.errors import Unavailable
from muster.spi.store import RollReader, RollWriter
from muster.store.connections import LOST, Connections
from muster.store.reader import Reader
from muster.store.schema import HEAD, metadata
from muster.store.troubles import told
from muster.store.unread import Unread
from muster.store.writer import CAPTURE_BUDGET, Writer


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. Close it when done."""

    writer: RollWriter
    reader: RollReader
    connections: Connections
    unread: Unread
    probe: Callable[[], None]
    """Writes a little. Raises Unavailable when the store cannot be written."""

    def close(self) -> None:
        """Lets go of the file; a store in memory is forgotten."""
        self.connections.close()


def open_store(path: Path | None, *, capture_budget: int = CAPTURE_BUDGET) -> Store:
    """The store at ``path``, made or brought to this version's schema where needed; None is a private one in memory.

    ``capture_budget``: bytes of captures that are kept, as they are kept (packed).
    Raises Unavailable when the file cannot be opened or a newer version wrote it.
    """
    connections = Connections(path)
    try:
        with told(connections.name), connections.writing.begin() as connection:
            _prepare(connection, connections.name, new=connections.new)
    except BaseException:
        connections.abandon()
        raise
    unread = Unread(connections.name)
    writer = Writer(connections, capture_budget, unread)
    return Store(writer, Reader(connections, unread), connections, unread, writer.probe)


def _prepare(connection: Connection, name: str, *, new: bool) -> None:
    tables = set(inspect(connection).get_table_names())
    found = _revision(connection, tables, name)
    if found is None and not new:
        raise Unavailable(f"{name} is a database without a table: it has lost what it held", hint=LOST)
    if found != HEAD:
        from muster.store.migrating import migrate  # most starts find nothing to do and need not load it

        migrate(connection, name, found)
    elif lost := sorted(metadata.tables.keys() - tables):
        raise Unavailable(f"{name} is damaged: it has no table {lost[0]}", hint=LOST)


def _revision(connection: Connection, tables: set[str], name: str) -> str | None:
    if not tables:
        return None
    if "alembic_version" not in tables:
        raise Unavailable(f"{name} is a database, but not one of Muster's", hint="name another path")
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
