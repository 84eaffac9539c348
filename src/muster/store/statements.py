# SPDX-License-Identifier: Apache-2.0
"""Statements that run for every row of a batch: written and compiled once by Core, executed by the driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ClauseElement, Column, ColumnElement, Table, bindparam, delete, literal_column, select, tuple_
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import Insert, insert

CHUNK = 5000
"""Rows that one transaction of tidying drops at most."""

_dialect = sqlite.dialect(paramstyle="named")


def compiled(statement: ClauseElement) -> str:
    """The driver's text of a statement whose values are all named parameters."""
    return str(statement.compile(dialect=_dialect))


def adding(table: Table, *, without: Iterable[str] = ()) -> Insert:
    """An insert of one whole row, with a parameter for each column but those that the database numbers itself."""
    left_out = {*without, *(c.name for c in table.primary_key if c.autoincrement is True)}
    return insert(table).values({c.name: bindparam(c.name) for c in table.columns if c.name not in left_out})


def replacing(table: Table, keys: Sequence[Column[Any]]) -> str:
    """An insert that puts the new row in the place of one with the same ``keys``."""
    statement = adding(table)
    taken = {c.name: statement.excluded[c.name] for c in table.columns if c not in set(keys) and c.autoincrement is not True}
    return compiled(statement.on_conflict_do_update(index_elements=list(keys), set_=taken))


def dropping(table: Table, where: ColumnElement[bool]) -> str:
    """A delete of at most CHUNK rows, so that a long tidying never holds up the writer."""
    keys = list(table.primary_key)
    some = select(*keys).where(where).limit(literal_column(str(CHUNK))).offset(literal_column("0"))
    return compiled(delete(table).where(tuple_(*keys).in_(some)))


def each(connection: sqlite3.Connection, statement: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Runs a compiled statement for every row; returns the rows it changed."""
    return connection.executemany(statement, rows).rowcount
