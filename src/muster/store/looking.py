# SPDX-License-Identifier: Apache-2.0
"""Looks a store over without changing it: its schema and what is pending, whether its file is whole, its audit log, and how much it holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Table, func, inspect, select

from muster.domain.model.errors import MusterError, NotFound, Unavailable
from muster.spi.store import AuditCheck
from muster.store import audit, audit_guard, looking_rows
from muster.store.connections import EMPTIED, LOST, Connections
from muster.store.files import never_filled
from muster.store.looking_rows import Decoders, Progress
from muster.store.opening import connect, revision
from muster.store.schema import HEAD, card_versions, cards, changes, findings, metadata, nodes, reporters, sources
from muster.store.schema_access import members
from muster.store.troubles import told

COUNTED: tuple[Table, ...] = (cards, nodes, sources, changes, findings, card_versions, reporters, members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found."""

    name: str
    schema: str | None
    """None: an empty database."""
    head: str = HEAD
    counts: Mapping[str, int] = field(default_factory=dict)
    audit: AuditCheck | None = None
    problems: tuple[str, ...] = ()
    """One sentence each; none when all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A migration that would run."""

    revision: str
    about: str


def _quiet(table: str, rows: int) -> None:
    del table, rows


def look(place: Path | str, decoders: Decoders | None = None, progress: Progress = _quiet) -> Looked:
    """Looks the whole store over, row by row, beside a server that may be at work on it. ``decoders``: of tables that the store does not understand itself.

    Raises NotFound when there is none, Unavailable when it cannot be read.
    """
    problems = list(damage(place)) if isinstance(place, Path) and place.is_file() else []
    try:
        connections = _reached(place)
    except Unavailable as error:
        if not problems:
            raise
        return Looked(name=str(place), schema=None, problems=tuple(dict.fromkeys((*problems, error.message))))
    try:
        found = schema(connections)
        if found != HEAD:
            return Looked(name=connections.name, schema=found, problems=(*problems, _other(connections, found)))
        checked, counts = None, {}
        try:
            lost = _lost(connections)
            problems += [f"the table {name} is missing" for name in sorted(lost)]
            counts = _counts(connections, lost)
            checked = audit.verify(connections) if not lost & {"audit", "audit_head"} else None
            problems += _unguarded(connections, lost)
            problems += looking_rows.look(connections, decoders or {}, progress, lost)
        except MusterError as error:
            problems.append(error.message)
        if checked is not None and checked.broken is not None:
            problems.append(f"row {checked.broken} of the audit log {checked.why}")
        return Looked(name=connections.name, schema=found, counts=counts, audit=checked, problems=tuple(problems))
    finally:
        connections.close()


def pending(place: Path | str) -> tuple[str | None, list[Pending]]:
    """The schema that the store has, and the migrations that would bring it to this version's. Raises NotFound, Unavailable for a newer one."""
    connections = _reached(place)
    try:
        found = schema(connections)
        from muster.store.migrating import steps

        return found, [Pending(revision=each, about=about) for each, about in steps(connections.name, found)]
    finally:
        connections.close()


def steps_after(found: str | None) -> list[Pending]:
    """The migrations after a schema. Raises Unavailable for one that this version does not know."""
    from muster.store.migrating import steps  # Alembic is loaded where it is needed

    return [Pending(revision=each, about=about) for each, about in steps("the backup", found)]


def schema(connections: Connections) -> str | None:
    """The schema that the store has; None when it has no table. Raises Unavailable for a database that is not ours."""
    with connections.reading() as connection:
        return revision(connection, set(inspect(connection).get_table_names()), connections.name)


def _reached(place: Path | str) -> Connections:
    if isinstance(place, Path) and not place.is_file():
        raise NotFound(f"no store at {place}", hint="name its folder with --state")
    return connect(place)


def _other(connections: Connections, found: str | None) -> str:
    if found is None:
        with connections.reading() as connection:
            begun = connections.new or never_filled(connection)
        return "it has no table yet: a server makes them when it starts" if begun else f"it is a database without a table, {EMPTIED}: {LOST}"
    return f"its schema is {found}, and this version's {HEAD}: `muster server upgrade` shows what that takes"


def _lost(connections: Connections) -> set[str]:
    with connections.reading() as connection:
        return metadata.tables.keys() - set(inspect(connection).get_table_names())


def _unguarded(connections: Connections, lost: set[str]) -> list[str]:
    with connections.reading() as connection:
        gone = [] if "audit" in lost else audit_guard.missing(connection)
    return [f"the trigger {each} is gone: rows of the audit log can be changed (a server puts it back when it starts)" for each in gone]


def _counts(connections: Connections, lost: set[str]) -> dict[str, int]:
    there = [table for table in COUNTED if table.name not in lost]
    counted = connections.rows(*(select(func.count().label("count")).select_from(table) for table in there))
    return {table.name: int(rows[0]["count"]) for table, rows in zip(there, counted, strict=True)}


def damage(place: Path) -> Iterator[str]:
    """What the database itself says of its file, and of each segment beside it."""
    segments = place.with_name(f"{place.name}-minutes")
    for file in (place, *(sorted(segments.glob("*.segment")) if segments.is_dir() else ())):
        try:
            with told(str(file)), closing(sqlite3.connect(file, timeout=10.0)) as connection:
                connection.execute("PRAGMA query_only=ON")
                said = [str(line) for (line,) in connection.execute("PRAGMA integrity_check(10)")]
                loose = connection.execute("PRAGMA foreign_key_check").fetchone()
        except Unavailable as error:
            yield error.message
            continue
        yield from (f"{file.name}: {line}" for line in said if line != "ok")
        if loose:
            yield f"{file.name}: a row of {loose[0]} has lost the one it belongs to"
