# SPDX-License-Identifier: Apache-2.0
"""What came in and what the roll is rebuilt from: keys of reports with their answers, the journal, and the state before the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import bindparam, case, delete, literal_column, select

from muster.spi.store import Batch, Received, Said
from muster.store.schema import base, counters, journal, received
from muster.store.statements import adding, compiled, dropping, each, replacing

_RECEIVED = compiled(adding(received).on_conflict_do_nothing())
_SAID = compiled(adding(journal))
_FORGET = compiled(delete(journal).where(journal.c.number == bindparam("number_")))
_BASE = replacing(base, [base.c.part])
_BASE_GONE = compiled(delete(base).where(base.c.part == bindparam("part_")))
_ALL_RECEIVED = compiled(select(received).order_by(received.c.received_at))
_ALL_SAID = compiled(select(journal).order_by(journal.c.at, journal.c.number))
_ALL_BASE = compiled(select(base).order_by(base.c.part))
_COUNTED = compiled(select(counters.c.value).where(counters.c.name == bindparam("name_")))
_OLD_RECEIVED = dropping(received, received.c.received_at < bindparam("cut"))


def _count() -> str:
    statement = adding(counters)
    new, old = statement.excluded.value, counters.c.value
    return compiled(statement.on_conflict_do_update(index_elements=[counters.c.name], set_={"value": case((new > old, new), else_=old)}))


def _probe() -> str:
    return compiled(adding(counters).on_conflict_do_update(index_elements=[counters.c.name], set_={"value": counters.c.value + literal_column("1")}))


_COUNT = _count()
_PROBE = _probe()


def write(connection: sqlite3.Connection, batch: Batch) -> None:
    """Brings in what the batch received, said and folded."""
    each(connection, _RECEIVED, map(asdict, batch.received))
    each(connection, _SAID, (_said_row(said) for said in batch.said))
    if batch.said:
        connection.execute(_COUNT, {"name": "journal", "value": max(said.order for said in batch.said) + 1})
    each(connection, _FORGET, ({"number_": order} for order in batch.forget))
    each(connection, _BASE, ({"part": part, "state": state} for part, state in batch.base.items() if state))
    each(connection, _BASE_GONE, ({"part_": part} for part, state in batch.base.items() if not state))


def keys(connection: sqlite3.Connection) -> list[Received]:
    """Every report key that is still remembered, oldest first."""
    return [Received(**dict(zip(received.c.keys(), row, strict=True))) for row in connection.execute(_ALL_RECEIVED)]


def said(connection: sqlite3.Connection) -> Sequence[Said]:
    """The journal in order of time."""
    return [Said(order=number, at=at, received_at=arrived, kind=kind, body=body) for number, at, arrived, kind, body in connection.execute(_ALL_SAID)]


def states(connection: sqlite3.Connection) -> Mapping[str, bytes]:
    """State before the journal by part."""
    return dict(connection.execute(_ALL_BASE).fetchall())


def next_order(connection: sqlite3.Connection) -> int:
    """The first order that no journal entry ever had."""
    row = connection.execute(_COUNTED, {"name_": "journal"}).fetchone()
    return int(row[0]) if row else 1


def count_probe(connection: sqlite3.Connection) -> None:
    """Counts one more try to write."""
    connection.execute(_PROBE, {"name": "probe", "value": 1})


def drop_older(connection: sqlite3.Connection, than: float) -> int:
    """Forgets some keys of reports that arrived before ``than``; returns how many, 0 when none is left."""
    return connection.execute(_OLD_RECEIVED, {"cut": than}).rowcount


def _said_row(said: Said) -> dict[str, object]:
    return {"number": said.order, "at": said.at, "received_at": said.received_at, "kind": said.kind, "body": said.body}
