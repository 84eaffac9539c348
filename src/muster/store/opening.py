# SPDX-License-Identifier: Apache-2.0
"""Opens a store: its file or database, its schema, its writer and its readers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import Connection, func, inspect, select, text

from muster.domain.model.errors import InputError, Unavailable
from muster.spi.enrolment import EnrolmentStore
from muster.spi.numbers import Numbers
from muster.spi.store import Answers, AuditCheck, Lease, RollReader, RollWriter
from muster.spi.users import UserStore
from muster.store import audit, audit_guard
from muster.store.access import AccessStore
from muster.store.answers import KeptAnswers
from muster.store.connections import EMPTIED, LOST, Connections
from muster.store.files import FileConnections, making, never_filled
from muster.store.gauges import Gauges
from muster.store.gauges_read import GaugeReader
from muster.store.gauges_shared import SharedNumbers, View
from muster.store.leasing import NAME, WriterLease
from muster.store.reader import Reader
from muster.store.schema import HEAD, metadata, reporters
from muster.store.schema import lease as lease_rows
from muster.store.schema_gauges import slots
from muster.store.segments import FileSegments, Segments, TableSegments
from muster.store.segments_seal import Kept, Sealer
from muster.store.troubles import told
from muster.store.unread import Unread
from muster.store.users import UserRows
from muster.store.writer import CAPTURE_BUDGET, Writer

Place: TypeAlias = "Path | str | None"
"""A file, the URL of a PostgreSQL database, or None for a private store in memory."""
SPAN = 10.0
"""Seconds after which a lease that was not renewed may be taken."""

MINUTES = Kept(age=400 * 86_400.0)
"""What is kept of minutes when nothing else is said: more than a year of them, if the size of the site lets it."""


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. Close it when done."""

    writer: RollWriter
    reader: RollReader
    connections: Connections
    unread: Unread
    probe: Callable[[], None]
    """Writes a little. Raises Unavailable when the store cannot be written."""
    lease: Lease
    adrift: Callable[[], bool]
    """True when the store holds more than its writer was told: only `RollWriter.load` helps, and what was built on the last one must be built anew."""
    verify: Callable[[], AuditCheck]
    """Goes over the whole audit log. Raises Unavailable when it cannot be read."""
    audit_head: Callable[[], tuple[int, str]]
    """How many entries the audit log says it has, and the digest of the last: what is kept elsewhere shows later whether any are cut off."""
    answers: Answers
    """Answers to requests that may come again."""
    users: UserStore
    """Tokens of users."""
    enrolment: EnrolmentStore
    """Reporters that joined, and tokens to join by."""
    numbers: Numbers
    """The newest numbers as columns."""
    gauges: GaugeReader
    latest: Callable[[], float]
    """When the last report was received that is kept; 0 when none is. Raises Unavailable."""
    seal: Callable[[float], bool]
    """At a time, one step of packing minutes and dropping old ones; True when there is more to do at once. For a thread of its own. Raises Unavailable."""

    def close(self) -> None:
        """Lets go of the file or the database; a store in memory is forgotten."""
        self.connections.close()


def open_store(
    place: Place,
    *,
    capture_budget: int = CAPTURE_BUDGET,
    lease_span: float = SPAN,
    minutes: Kept | None = MINUTES,
    alone: bool | None = None,
    upgrade: bool = True,
) -> Store:
    """The store at ``place``, made or brought to this version's schema where needed; None is a private one in memory.

    ``capture_budget``: bytes of captures that are kept, as they are kept (packed). ``minutes``: how much of the minutes is kept; None: no new ones.
    ``alone``: nobody else can have it open, so that its tables may be changed; left out: true of a file, whose folder is locked by who serves it.
    ``upgrade``: bring it to this version's schema; without it an older store is left as it is, and not opened.
    Raises Unavailable when it cannot be opened or a newer version wrote it, InputError for a place that is none.
    """
    if isinstance(place, Path):
        _make(place)
    connections = connect(place)
    try:
        with told(connections.name), connections.writing.begin() as connection:
            _prepare(connection, connections, alone=not isinstance(place, str) if alone is None else alone, upgrade=upgrade)
    except BaseException:
        connections.abandon()
        raise
    unread = Unread(connections.name)
    lease = WriterLease(connections, lease_span)
    beside = _beside(place, "numbers")
    gauges = Gauges(beside, unread, rolled=minutes is not None)
    writer = Writer(connections, capture_budget, unread, lease, gauges)
    folder = _beside(place, "minutes")
    segments: Segments = TableSegments(connections, writer.writing) if folder is None else FileSegments(folder)
    read = GaugeReader(connections, segments, unread)
    return Store(
        writer=writer,
        reader=Reader(connections, unread, read),
        connections=connections,
        unread=unread,
        probe=writer.probe,
        lease=lease,
        adrift=lambda: writer.adrift,
        verify=lambda: audit.verify(connections),
        audit_head=lambda: audit.head(connections),
        answers=KeptAnswers(connections, lease.check),
        users=UserRows(connections, lease),
        enrolment=AccessStore(connections, lease.check),
        numbers=SharedNumbers(View(gauges, beside, connections, time.monotonic), connections, unread),
        gauges=read,
        latest=partial(_latest, connections),
        seal=Sealer(gauges, segments, writer.writing, minutes or MINUTES).step,
    )


def _make(path: Path) -> None:
    """Makes a store's file where there is none: under another name, and renamed when it is whole. Who is killed meanwhile leaves nothing at its name."""
    if path.exists():
        return
    with told(str(path)), making(path) as part:
        if part is None:
            return
        connections = FileConnections(part)
        try:
            with connections.writing.begin() as connection:
                _prepare(connection, connections, alone=True, upgrade=True)
        except BaseException:
            connections.abandon()
            raise
        connections.close()


def _latest(connections: Connections) -> float:
    with told(connections.name), connections.reading() as connection:
        found = [connection.execute(select(func.max(table.c.received_at))).scalar() for table in (reporters, slots)]
    return max((each for each in found if each is not None), default=0.0)


def _beside(place: Place, what: str) -> Path | None:
    """A file or folder that goes with the store's file: it has its name."""
    return place.with_name(f"{place.name}-{what}") if isinstance(place, Path) else None


def connect(place: Place) -> Connections:
    """Connections to the place, whatever its schema."""
    if not isinstance(place, str):
        return FileConnections(place)
    if not place.startswith(("postgresql://", "postgres://")):
        raise InputError("the store is a folder's file or the URL of a PostgreSQL database", hint="write postgresql://USER@HOST/DATABASE")
    try:
        from muster.store.postgres import PostgresConnections  # its driver is installed where it is used
    except ImportError as error:
        raise InputError("this installation lacks the driver of PostgreSQL", hint='install "musterroll[postgres]"') from error
    return PostgresConnections(place)


def _prepare(connection: Connection, connections: Connections, *, alone: bool, upgrade: bool) -> None:
    name = connections.name
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7460, 1)"))  # two servers that start at once do not both make the tables
    tables = set(inspect(connection).get_table_names())
    found = revision(connection, tables, name)
    if found is None and not (connections.new or never_filled(connection)):
        raise Unavailable(f"{name} is a database without a table, {EMPTIED}", hint=LOST)
    if found != HEAD:
        if found is not None and not alone:
            _nobody(connection, tables, name)
        if found is not None and found < HEAD and not upgrade:
            hint = "`muster server upgrade` shows what is to be done to it, makes a backup, and does it"
            raise Unavailable(f"{name} has schema {found}, and this version has {HEAD}", hint=hint)
        from muster.store.migrating import migrate  # most starts find nothing to do and need not load it

        migrate(connection, name, found)
    elif lost := sorted(metadata.tables.keys() - tables):
        raise Unavailable(f"{name} is damaged: it has no table {lost[0]}", hint=LOST)
    audit_guard.put_back(connection, name)


def _nobody(connection: Connection, tables: set[str], name: str) -> None:
    """Raises Unavailable when a server of another version writes the store, or did and did not say that it is gone."""
    asked = select(lease_rows.c.holder).where(lease_rows.c.name == NAME, lease_rows.c.holder != "")
    holder = connection.execute(asked).scalar() if "lease" in tables else None
    if holder:
        raise Unavailable(f"{name} has an older schema and is held by {holder}", hint="stop that server, then run `muster server upgrade`")


def revision(connection: Connection, tables: set[str], name: str) -> str | None:
    """The schema that the database has; None when it has no table. Raises Unavailable for a database that is not ours."""
    if not tables:
        return None
    if "alembic_version" not in tables:
        raise Unavailable(f"{name} is a database, but not one of Muster's", hint="name another path")
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
