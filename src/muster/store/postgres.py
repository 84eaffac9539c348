# SPDX-License-Identifier: Apache-2.0
"""A store in a PostgreSQL database. A connection that was lost is made anew by the next one who needs it; the password stays in the URL and is told nowhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg.adapt import Buffer
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import StrDumper, StrDumperUnknown
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql import Executable

from muster.domain.model.errors import InputError, Unavailable
from muster.store import connections
from muster.store.connections import InDoubt, answers
from muster.store.postgres_troubles import told
from muster.store.postgres_watch import Watch
from muster.store.statements import NUL, POSTGRES, Rows, Session, Statement

T = TypeVar("T")
_HOW = {
    "connect_timeout": "5",
    "application_name": "muster",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Of every connection, where the URL does not say otherwise: a server that is away is noticed in seconds."""
_BY_INDEX = "enable_seqscan = off"
"""The writer asks by index. How it goes about a query is worked out once: on a new site while all tables are small, and they grow."""
_SETTINGS = ("synchronous_commit = on", "client_encoding = 'UTF8'", "timezone = 'UTC'", "idle_in_transaction_session_timeout = '30s'", "jit = off")


class _Text(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", NUL) if "\0" in obj else obj)


class _UntypedText(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", NUL) if "\0" in obj else obj)


class PostgresSession:
    """`Session` over the writer's connection."""

    kind = POSTGRES

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, statement: Statement | str, values: Mapping[str, Any] | None = None) -> Rows:
        """Runs one statement."""
        text = statement if isinstance(statement, str) else statement.text(POSTGRES)
        return self._connection.execute(text, values)

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> int:
        """Runs it for each row; the driver sends them without waiting for each answer."""
        with self._connection.cursor() as cursor:
            cursor.executemany(statement.text(POSTGRES), rows)
            return cursor.rowcount


class PostgresConnections:
    """`Connections` of one database. Raises InputError for a URL that is none."""

    def __init__(self, url: str) -> None:
        self._how, self.name = parsed(url)
        self.place: Path | None = None
        self._turn = threading.RLock()
        self._watch = Watch()
        self._writer: psycopg.Connection | None = None
        self.writing = create_engine("postgresql+psycopg://", creator=lambda: self._connect(writes=True, begins=True), poolclass=NullPool)
        self._reading = _reading(lambda: self._connect(writes=False, begins=True))
        with told(self.name):
            self.new = not self._tables()

    def _tables(self) -> bool:
        with self._turn:
            asked = "SELECT 1 FROM pg_catalog.pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v') LIMIT 1"
            return self._open().execute(asked).fetchone() is not None

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """The writer's connection in a transaction of its own."""
        with self._turn, told(self.name):
            connection = self._open()
            with self._watch.over(connection):
                try:
                    connection.execute("BEGIN")
                    yield PostgresSession(connection)
                except BaseException as error:
                    self._undo(connection, error)
                    raise
                self._commit(connection)

    def _open(self) -> psycopg.Connection:
        if self._writer is None or self._writer.closed or self._writer.broken:
            self._let_go()
            self._writer = self._connect(writes=True)
        return self._writer

    def _undo(self, connection: psycopg.Connection, error: BaseException) -> None:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        if connection.broken or isinstance(error, psycopg.OperationalError | psycopg.errors.ReadOnlySqlTransaction):
            self._let_go()  # the next try looks for the server that takes writes now

    def _commit(self, connection: psycopg.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            lost = connection.broken or isinstance(error, psycopg.OperationalError)
            self._undo(connection, error)
            if lost:
                raise InDoubt(f"{self.name} was lost while it was written", hint="it is tried again when the database answers") from error
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the store until it is given back."""
        with told(self.name), self._reading.begin() as connection:
            yield connection

    def rows(self, *asked: Executable) -> list[list[dict[str, Any]]]:
        """The rows of each query. A connection that was lost while nobody looked is made anew once."""
        try:
            with told(self.name), self._reading.begin() as connection:
                return answers(connection, asked)
        except Unavailable as error:
            lost = error.__cause__
            if not (isinstance(lost, DBAPIError) and lost.connection_invalidated):
                raise
        with self.reading() as connection:
            return answers(connection, asked)

    def whole(self, session: Session, read: Callable[[Session], T]) -> T:
        """What ``read`` reads: this database lets in no text that is damaged. Raises Unavailable when a table is not there."""
        try:
            return read(session)
        except psycopg.ProgrammingError as error:
            raise Unavailable(f"{self.name} is damaged ({error})", hint="keep it, and restore a backup into another database") from error

    def room(self) -> None:
        """What room it has is known to the database alone."""

    def abandon(self) -> None:
        """Closes everything: what was being made was undone with its transaction."""
        self.close()

    def close(self) -> None:
        """Closes the readers, then the writer."""
        with self._turn:
            self._reading.dispose()
            self._let_go()
            self._watch.close()

    def _let_go(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _connect(self, *, writes: bool, begins: bool = False) -> psycopg.Connection:
        """A new connection. ``begins``: its transactions begin by themselves, as Core takes it."""
        attributes = {"target_session_attrs": "read-write"} if writes else {}
        made = psycopg.connect(**{**_HOW, **attributes, **self._how}, autocommit=True)
        made.adapters.register_dumper(str, _Text)
        made.adapters.register_dumper(str, _UntypedText)
        waits = int(connections.PATIENCE * 1000)
        for setting in (*_SETTINGS, f"lock_timeout = {waits}", _BY_INDEX if writes else "statement_timeout = '30s'"):
            made.execute(f"SET {setting}")
        made.autocommit = not begins
        return made


def _reading(connect: Callable[[], psycopg.Connection]) -> Engine:
    engine = create_engine("postgresql+psycopg://", creator=connect, **connections.POOL)
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def parsed(url: str) -> tuple[dict[str, Any], str]:
    """The parts of the URL, and what the database is called without its password."""
    hint = "write postgresql://USER@HOST:PORT/DATABASE"
    try:
        how = {key: value for key, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        raise InputError("the URL of the store cannot be understood", hint=hint) from None
    port = str(how.get("port", ""))
    if not all(part.isdigit() for part in port.split(",") if part):
        raise InputError("the URL of the store has a port that is no number", hint=f"{hint}; special signs in a password are written like %2F")
    user, host = how.get("user", ""), how.get("host", "")
    where = f"{user}@{host}" if user else str(host)
    return how, f"postgresql://{where}{f':{port}' if port else ''}/{how.get('dbname', '')}"
