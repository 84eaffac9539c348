# SPDX-License-Identifier: Apache-2.0
"""Statements that run for every row of a batch: written once by Core, compiled once for each kind of database, executed by its driver.

A module writes ``_ADD = compiled(adding(table))`` and runs it on the `Session` that a transaction hands over:
``session.execute(_ADD, {...})`` for one row and its answer, ``each(session, _ADD, rows)`` for many. Neither knows which database it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import BindParameter, ClauseElement, Column, ColumnElement, Dialect, Table, Text, bindparam, delete, literal, literal_column, select, tuple_
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.engine import make_url
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

CHUNK = 5000
"""Rows that one transaction of tidying drops at most."""
SQLITE, POSTGRES = "sqlite", "postgresql"
"""The kinds of databases."""

_DIALECTS: dict[str, Dialect] = {SQLITE: sqlite.dialect(paramstyle="named"), POSTGRES: make_url("postgresql+psycopg://").get_dialect()()}


class Statement:
    """A statement of Core whose values are all named parameters, as the text of any driver."""

    __slots__ = ("_core", "_texts")

    def __init__(self, core: ClauseElement) -> None:
        self._core = core
        self._texts: dict[str, str] = {}

    def text(self, kind: str) -> str:
        """The text for SQLITE or POSTGRES."""
        found = self._texts.get(kind)
        if found is None:
            found = self._texts[kind] = str(self._core.compile(dialect=_DIALECTS[kind]))
        return found


class Rows(Protocol):
    """What a statement answers: rows as tuples in the order of its columns."""

    @property
    def rowcount(self) -> int:
        """Rows that it changed."""

    def fetchone(self) -> Any:
        """The next row, None after the last."""

    def fetchall(self) -> list[Any]:
        """The rows that are left."""

    def __iter__(self) -> Iterator[Any]:
        """The rows one by one."""


class Session(Protocol):
    """The writer's connection within one transaction."""

    @property
    def kind(self) -> str:
        """SQLITE or POSTGRES."""

    def execute(self, statement: Statement | str, values: Mapping[str, Any] | None = None) -> Rows:
        """Runs one statement; a text without values is given to the driver as it is."""

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> int:
        """Runs it for each row; returns the rows that were changed."""


def compiled(statement: ClauseElement) -> Statement:
    """The statement, to be compiled when a database first needs it."""
    return Statement(statement)


def adding(table: Table, *, without: Iterable[str] = ()) -> Insert:
    """An insert of one whole row, with a parameter for each column but those that the database numbers itself."""
    left_out = {*without, *(c.name for c in table.primary_key if c.autoincrement is True)}
    return insert(table).values({c.name: bindparam(c.name) for c in table.columns if c.name not in left_out}).inline()


def replacing(table: Table, keys: Sequence[Column[Any]]) -> Statement:
    """An insert that puts the new row in the place of one with the same ``keys``."""
    statement = adding(table)
    taken = {c.name: statement.excluded[c.name] for c in table.columns if c not in set(keys) and c.autoincrement is not True}
    return compiled(statement.on_conflict_do_update(index_elements=list(keys), set_=taken))


def dropping(table: Table, where: ColumnElement[bool]) -> Statement:
    """A delete of at most CHUNK rows, so that a long tidying never holds up the writer."""
    keys = list(table.primary_key)
    some = select(*keys).where(where).limit(literal_column(str(CHUNK))).offset(literal_column("0"))
    return compiled(delete(table).where(tuple_(*keys).in_(some)))


def each(session: Session, statement: Statement, rows: Iterable[Mapping[str, Any]]) -> int:
    """Runs a statement for every row; returns the rows it changed."""
    found = rows if isinstance(rows, list) else list(rows)
    return session.many(statement, found) if found else 0


class _Among(FunctionElement[bool]):
    inherit_cache = True
    name = "among"


@compiles(_Among, SQLITE)
def _among_sqlite(element: _Among, compiler: Any, **more: Any) -> str:
    column, given = (compiler.process(each, **more) for each in element.clauses)
    return "".join((column, " IN (SELECT value FROM json_each(", given, "))"))


@compiles(_Among, POSTGRES)
def _among_postgres(element: _Among, compiler: Any, **more: Any) -> str:
    """As one array: that is looked up in an index whatever is believed of how many there are. What a query is joined with may be gone over whole."""
    column, given = (compiler.process(each, **more) for each in element.clauses)
    return "".join((column, " = ANY (ARRAY(SELECT json_array_elements_text(CAST(", given, " AS json))))"))


def among(column: ColumnElement[Any], values: str | Iterable[str]) -> ColumnElement[bool]:
    """The column has one of the values, however many they are. A ``str`` names a parameter of the statement whose value is a `listing`."""
    given: BindParameter[str] = bindparam(values, type_=Text()) if isinstance(values, str) else literal(listing(values), Text())
    return _Among(column, given)


def listing(values: Iterable[str]) -> str:
    """The value of a parameter of `among`."""
    return json.dumps([value.replace("\0", NUL) for value in values])


NUL = "\u2400"
"""What stands for a zero byte in a text: not every database takes one."""
