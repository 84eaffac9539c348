# SPDX-License-Identifier: Apache-2.0
"""Statements that run for every row of a batch: written and compiled once by Core, executed by the driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ClauseElement, Column, Table, bindparam
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import Insert, insert

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


def each(connection: sqlite3.Connection, statement: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Runs a compiled statement for every row; returns the rows it changed."""
    return connection.executemany(statement, rows).rowcount
