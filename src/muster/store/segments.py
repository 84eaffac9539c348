# SPDX-License-Identifier: Apache-2.0
"""Where packed minutes are kept: a segment for each hour, dropped whole. Beside a file they are files of their own; in a database, tables of their own.

A block is the minutes of one layout in a third of an hour. ``through`` is the greatest number of the rows that were packed into it: rows of that layout and
time up to it are in the block, and only those beyond count beside it. So it never matters when a row that was packed is taken away, or whether a crash
came first; who reads asks for rows first and for blocks after them.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import BigInteger, Column, ColumnElement, Connection, LargeBinary, MetaData, Select, Table, Text, column, func, select, table, union_all
from sqlalchemy.schema import CreateTable, DropTable

from muster.store.connections import PATIENCE, Connections
from muster.store.pack import BLOCK
from muster.store.statements import POSTGRES, Session, adding, compiled, each
from muster.store.troubles import told

HOUR = 3600
A_HOUR = HOUR // BLOCK
"""Blocks in a segment."""
_CHUNK = 500
"""Layouts that one query names at most."""
_PAGE = 1024
"""Small pages: a block ends in the middle of one."""


@dataclass(frozen=True, slots=True)
class Block:
    """Packed minutes of one layout. ``block`` times BLOCK is when they begin."""

    layout: int
    block: int
    through: int
    packed: bytes


class Segments(Protocol):
    """Segments by hour (seconds since the epoch by HOUR)."""

    at_once: int
    """Hours that are best read together."""

    def hours(self) -> list[int]:
        """Every segment there is. Raises Unavailable."""

    def sizes(self) -> dict[int, int]:
        """Every segment there is, and its bytes. Raises Unavailable."""

    def write(self, blocks: Sequence[Block]) -> None:
        """Puts blocks of one hour in place of those there are, unless those hold more; durable when it returns. Raises Unavailable."""

    def read(self, hours: Sequence[int], layouts: Sequence[int]) -> list[Block]:
        """Blocks of some layouts in hours; none where there is no such segment. Raises Unavailable, and ValueError for a damaged segment."""

    def drop(self, hour: int) -> None:
        """Drops a segment whole. Raises Unavailable."""


_CREATE = "CREATE TABLE IF NOT EXISTS blocks (layout INTEGER, block INTEGER, through INTEGER, packed BLOB, PRIMARY KEY (layout, block))"
_PUT = """INSERT INTO blocks VALUES (?, ?, ?, ?) ON CONFLICT (layout, block)
DO UPDATE SET through = excluded.through, packed = excluded.packed WHERE excluded.through > blocks.through"""
_GET = "SELECT layout, block, through, packed FROM blocks WHERE layout IN (SELECT value FROM json_each(?)) ORDER BY layout, block"


class FileSegments:
    """A file of its own for each hour."""

    at_once = 1

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hours(self) -> list[int]:
        """Every segment there is."""
        return sorted(self._files())

    def sizes(self) -> dict[int, int]:
        """Every segment there is, and its bytes."""
        with told(str(self._folder)):
            return {hour: path.stat().st_size for hour, path in self._files().items()}

    def _files(self) -> dict[int, Path]:
        with told(str(self._folder)):
            if not self._folder.is_dir():
                return {}
            return {int(path.stem): path for path in self._folder.iterdir() if re.fullmatch(r"\d+\.segment", path.name)}

    def write(self, blocks: Sequence[Block]) -> None:
        """Puts blocks in place."""
        path = self._path(hour_of(blocks))
        with told(str(path)):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            with closing(_connected(path)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_CREATE)
                connection.executemany(_PUT, [(each.layout, each.block, each.through, each.packed) for each in blocks])
                connection.execute("COMMIT")

    def read(self, hours: Sequence[int], layouts: Sequence[int]) -> list[Block]:
        """Blocks of some layouts."""
        return [block for hour in hours for block in self._of(self._path(hour), layouts)]

    def _of(self, path: Path, layouts: Sequence[int]) -> list[Block]:
        if not path.exists():
            return []
        with told(str(path)):
            try:
                return _read(path, layouts)
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                    raise ValueError(f"damaged segment: {error}") from error
                raise

    def drop(self, hour: int) -> None:
        """Drops a segment."""
        with told(str(self._folder)):
            for path in (self._path(hour), self._path(hour).with_name(f"{hour}.segment-journal")):
                path.unlink(missing_ok=True)

    def _path(self, hour: int) -> Path:
        return self._folder / f"{hour}.segment"


def hour_of(blocks: Sequence[Block]) -> int:
    """The one hour of blocks."""
    (hour,) = {each.block // A_HOUR for each in blocks}
    return hour


def _read(path: Path, layouts: Sequence[int]) -> list[Block]:
    with closing(sqlite3.connect(_uri(path), uri=True, timeout=PATIENCE, isolation_level=None)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            return []
        return [Block(*row) for row in connection.execute(_GET, [json.dumps(list(layouts))])]


def _uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=rw"


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(_uri(path), uri=True, timeout=PATIENCE, isolation_level=None)
    for setting in (f"page_size={_PAGE}", "synchronous=FULL", "cache_size=-8192"):
        connection.execute(f"PRAGMA {setting}")
    return connection


class TableSegments:
    """A table of its own for each hour, in the database of the store. ``writing``: a transaction of the one who may write."""

    at_once = 24

    def __init__(self, connections: Connections, writing: Callable[[], AbstractContextManager[Session]]) -> None:
        self._connections = connections
        self._writing = writing

    def hours(self) -> list[int]:
        """Every segment there is."""
        with self._connections.reading() as connection:
            return sorted(_tables(connection))

    def sizes(self) -> dict[int, int]:
        """Every segment there is, and its bytes."""
        with self._connections.reading() as connection:
            return {hour: int(connection.execute(_size(connection, name)).scalar() or 0) for hour, name in _tables(connection).items()}

    def write(self, blocks: Sequence[Block]) -> None:
        """Puts blocks in place."""
        table = _table(hour_of(blocks))
        new = adding(table)
        taken = {"through": new.excluded.through, "packed": new.excluded.packed}
        put = new.on_conflict_do_update(index_elements=[table.c.layout, table.c.block], set_=taken, where=new.excluded.through > table.c.through)
        with self._writing() as session:
            session.execute(compiled(CreateTable(table, if_not_exists=True)))
            if session.kind == POSTGRES:
                session.execute(f"ALTER TABLE {table.name} ALTER COLUMN packed SET STORAGE EXTERNAL")
            each(session, compiled(put), map(asdict, blocks))

    def read(self, hours: Sequence[int], layouts: Sequence[int]) -> list[Block]:
        """Blocks of some layouts."""
        found: list[Block] = []
        with self._connections.reading() as connection:
            there = [_table(hour) for hour in sorted(set(hours) & _tables(connection).keys())]
            for start in range(0, len(layouts) if there else 0, _CHUNK):
                some = layouts[start : start + _CHUNK]
                rows = connection.execute(union_all(*(select(each).where(each.c.layout.in_(some)) for each in there)))
                found.extend(Block(row.layout, row.block, row.through, bytes(row.packed)) for row in rows)
        return sorted(found, key=lambda block: (block.layout, block.block))

    def drop(self, hour: int) -> None:
        """Drops a segment."""
        with self._writing() as session:
            session.execute(compiled(DropTable(_table(hour), if_exists=True)))


def _table(hour: int) -> Table:
    columns = (Column(name, BigInteger, primary_key=name != "through", autoincrement=False) for name in ("layout", "block", "through"))
    return Table(f"minutes_{hour}", MetaData(), *columns, Column("packed", LargeBinary, nullable=False))


def _tables(connection: Connection) -> dict[int, str]:
    """Tables of segments by hour."""
    kind: ColumnElement[str]
    if connection.dialect.name == POSTGRES:
        kind = column("tablename", Text)
        asked = select(kind).select_from(table("pg_tables", column("schemaname"))).where(column("schemaname") == func.current_schema())
    else:
        kind = column("name", Text)
        asked = select(kind).select_from(table("sqlite_schema", column("type"))).where(column("type") == "table")
    found = [row[0] for row in connection.execute(asked.where(kind.like("minutes%")))]
    return {int(each.removeprefix("minutes_")): each for each in found if re.fullmatch(r"minutes_\d+", each)}


def _size(connection: Connection, name: str) -> Select[Any]:
    if connection.dialect.name == POSTGRES:
        return select(func.pg_total_relation_size(name))
    return select(func.sum(func.length(column("packed")) + 64)).select_from(table(name))
