# SPDX-License-Identifier: Apache-2.0
"""Where packed minutes are kept: a segment for each hour, dropped whole. Beside a file they are files of their own; in a database, tables of their own.

A block is the minutes of one layout in a third of an hour. ``through`` is the greatest number of the rows that were packed into it: rows of that layout and
time up to it are in the block, and only those beyond count beside it. So it never matters when a row that was packed is taken away, or whether a crash
came first; who reads asks for rows first and for blocks after them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, text

from muster.store.connections import PATIENCE, Connections
from muster.store.pack import BLOCK
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

    def hours(self) -> dict[int, int]:
        """Every segment there is, and its bytes. Raises Unavailable."""

    def write(self, blocks: Sequence[Block]) -> None:
        """Puts blocks of one hour in place of those there are; durable when it returns. Raises Unavailable."""

    def read(self, hour: int, layouts: Sequence[int] | None, blocks: Sequence[int] = ()) -> list[Block]:
        """Blocks of an hour, of some layouts or all, all three or some. Empty when there is no such segment. Raises Unavailable."""

    def drop(self, hour: int) -> None:
        """Drops a segment whole. Raises Unavailable."""


def hours(blocks: Iterable[int]) -> list[int]:
    """The hours in which blocks are."""
    return sorted({block // A_HOUR for block in blocks})


class FileSegments:
    """A file of its own for each hour."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: set[int] = set()

    def hours(self) -> dict[int, int]:
        """Every segment there is."""
        with told(str(self._folder)):
            if not self._folder.is_dir():
                return {}
            return {int(path.stem): path.stat().st_size for path in self._folder.iterdir() if re.fullmatch(r"\d+\.segment", path.name)}

    def write(self, blocks: Sequence[Block]) -> None:
        """Puts blocks in place."""
        (hour,) = hours(block.block for block in blocks)
        path = self._path(hour)
        with told(str(path)):
            self._make(path)
            with closing(_connected(path)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("CREATE TABLE IF NOT EXISTS blocks (layout INTEGER, block INTEGER, through INTEGER, packed BLOB, PRIMARY KEY (layout, block))")
                rows = [(each.layout, each.block, each.through, each.packed) for each in blocks]
                connection.executemany("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?)", rows)
                connection.execute("COMMIT")

    def _make(self, path: Path) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)

    def read(self, hour: int, layouts: Sequence[int] | None, blocks: Sequence[int] = ()) -> list[Block]:
        """Blocks of an hour."""
        path = self._path(hour)
        if not path.exists():
            return []
        with told(str(path)), closing(_connected(path, reads=True)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
                return []
            found: list[Block] = []
            for values, where in _wheres(layouts, blocks):
                found.extend(Block(*row) for row in connection.execute(f"SELECT layout, block, through, packed FROM blocks{where}", values))
            return found

    def drop(self, hour: int) -> None:
        """Drops a segment."""
        with told(str(self._folder)):
            for path in (self._path(hour), self._path(hour).with_name(f"{hour}.segment-journal")):
                path.unlink(missing_ok=True)

    def _path(self, hour: int) -> Path:
        return self._folder / f"{hour}.segment"


def _connected(path: Path, *, reads: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{path.absolute().as_uri()[7:]}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None)
    for setting in (f"page_size={_PAGE}", "synchronous=FULL", *(("query_only=ON",) if reads else ("cache_size=-8192",))):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _wheres(layouts: Sequence[int] | None, blocks: Sequence[int]) -> Iterator[tuple[list[int], str]]:
    """Conditions on some layouts each, with their values."""
    only = f"block IN ({', '.join('?' * len(blocks))})" if blocks else ""
    if layouts is None:
        yield [*blocks], f" WHERE {only}" if only else ""
        return
    for start in range(0, len(layouts), _CHUNK):
        some = layouts[start : start + _CHUNK]
        yield [*some, *blocks], f" WHERE layout IN ({', '.join('?' * len(some))})" + (f" AND {only}" if only else "")


class TableSegments:
    """A table of its own for each hour, in the database of the store."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def hours(self) -> dict[int, int]:
        """Every segment there is."""
        with self._connections.reading() as connection:
            return {int(name.removeprefix("minutes_")): _size(connection, name) for name in _tables(connection)}

    def write(self, blocks: Sequence[Block]) -> None:
        """Puts blocks in place."""
        (hour,) = hours(block.block for block in blocks)
        rows = [{"layout": each.layout, "block": each.block, "through": each.through, "packed": each.packed} for each in blocks]
        with self._writing() as connection:
            blob = "BYTEA" if connection.dialect.name == "postgresql" else "BLOB"
            columns = f"layout BIGINT, block BIGINT, through BIGINT, packed {blob}, PRIMARY KEY (layout, block)"
            connection.execute(text(f"CREATE TABLE IF NOT EXISTS minutes_{hour} ({columns})"))
            if blob == "BYTEA":
                connection.execute(text(f"ALTER TABLE minutes_{hour} ALTER COLUMN packed SET STORAGE EXTERNAL"))
            put = "ON CONFLICT (layout, block) DO UPDATE SET through = excluded.through, packed = excluded.packed"
            connection.execute(text(f"INSERT INTO minutes_{hour} VALUES (:layout, :block, :through, :packed) {put}"), rows)

    def read(self, hour: int, layouts: Sequence[int] | None, blocks: Sequence[int] = ()) -> list[Block]:
        """Blocks of an hour."""
        with self._connections.reading() as connection:
            if f"minutes_{hour}" not in _tables(connection):
                return []
            found: list[Block] = []
            for start in range(0, len(layouts), _CHUNK) if layouts is not None else (0,):
                some = () if layouts is None else layouts[start : start + _CHUNK]
                where = [f"layout IN ({', '.join(map(str, map(int, some)))})"] if layouts is not None else []
                where += [f"block IN ({', '.join(map(str, map(int, blocks)))})"] if blocks else []
                asked = f"SELECT layout, block, through, packed FROM minutes_{hour}{' WHERE ' if where else ''}{' AND '.join(where)}"
                found.extend(Block(row[0], row[1], row[2], bytes(row[3])) for row in connection.execute(text(asked)))
            return found

    def drop(self, hour: int) -> None:
        """Drops a segment."""
        with self._writing() as connection:
            connection.execute(text(f"DROP TABLE IF EXISTS minutes_{hour}"))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with told(self._connections.name), self._connections.writing.begin() as connection:
            yield connection


def _tables(connection: Connection) -> list[str]:
    postgres = connection.dialect.name == "postgresql"
    where = "SELECT relname FROM pg_class WHERE relkind = 'r' AND" if postgres else "SELECT name AS relname FROM sqlite_schema WHERE type = 'table' AND"
    rows: Iterable[Any] = connection.execute(text(f"{where} {'relname' if postgres else 'name'} LIKE 'minutes%'"))
    return [row[0] for row in rows if re.fullmatch(r"minutes_\d+", row[0])]


def _size(connection: Connection, name: str) -> int:
    if connection.dialect.name == "postgresql":
        return int(connection.execute(text(f"SELECT pg_total_relation_size('{name}')")).scalar() or 0)
    return int(connection.execute(text(f"SELECT coalesce(sum(length(packed) + 64), 0) FROM {name}")).scalar() or 0)
