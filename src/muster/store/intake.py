# SPDX-License-Identifier: Apache-2.0
"""What came in and what the roll is rebuilt from: keys of reports, how far reporters have come, the journal, and the parts of the site with their states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from sqlalchemy import Column, Table, bindparam, case, delete, literal_column, select, update

from muster.domain.model.errors import NotFound
from muster.spi.store import Batch, Received, RegionRows, Reporter, Said
from muster.store import answers
from muster.store.schema import base, cards, counters, journal, names, nodes, received, reporters
from muster.store.statements import Session, Statement, adding, among, compiled, dropping, each, listing, replacing

_SAID = compiled(adding(journal))
_FORGET = compiled(delete(journal).where(journal.c.number == bindparam("number_")))
_BASE_GONE = compiled(delete(base).where(base.c.part == bindparam("part_")))
_OF_REPORTER = tuple(reporters.c.keys())
_REPORTER = replacing(reporters, [reporters.c.reporter])
_NAME = replacing(names, [names.c.kind, names.c.value])
_NAME_GONE = compiled(delete(names).where(names.c.kind == bindparam("kind_"), names.c.value == bindparam("value_")))
_TOLD = received.c.reporter.in_(select(reporters.c.reporter))
_ALL_RECEIVED = compiled(select(received).where(~_TOLD).order_by(received.c.received_at))
_ALL_REPORTERS = compiled(select(reporters).order_by(reporters.c.reporter))
_UNPLACED = compiled(select(journal).where(journal.c.region == literal_column("''")).order_by(journal.c.at, journal.c.number))
_WHOLE = compiled(select(base.c.part, base.c.state).where(base.c.due.is_(None)).order_by(base.c.part))
_DUE = compiled(select(base.c.part, base.c.due).where(base.c.due.is_not(None)).order_by(base.c.part))
_STATE = compiled(select(base.c.state).where(base.c.part == bindparam("part_")))
_JOURNAL = compiled(select(journal).where(journal.c.region == bindparam("part_")).order_by(journal.c.number))
_KNOWING = compiled(select(names.c.value, names.c.region).where(names.c.kind == bindparam("kind_"), among(names.c.value, "values_")))
_COUNTED = compiled(select(counters.c.value).where(counters.c.name == bindparam("name_")))
_TOLD_RECEIVED = dropping(received, _TOLD)


def _count() -> Statement:
    statement = adding(counters)
    new, old = statement.excluded.value, counters.c.value
    return compiled(statement.on_conflict_do_update(index_elements=[counters.c.name], set_={"value": case((new > old, new), else_=old)}))


def _part(column: Column[Any]) -> Statement:
    """An insert of a part of the site; of one that is there, only the column is put."""
    statement = adding(base)
    return compiled(statement.on_conflict_do_update(index_elements=[base.c.part], set_={column.name: statement.excluded[column.name]}))


def _moving(table: Table) -> Statement:
    return compiled(update(table).where(table.c.region == bindparam("old")).values(region=bindparam("new")))


_COUNT = _count()
_BUMP = compiled(adding(counters).on_conflict_do_update(index_elements=[counters.c.name], set_={"value": counters.c.value + literal_column("1")}))
_PUT_STATE = _part(base.c.state)
_PUT_DUE = _part(base.c.due)
_PUT_PART = compiled(adding(base).on_conflict_do_nothing())
_MOVE = tuple(_moving(table) for table in (journal, names, cards, nodes))


def write(session: Session, batch: Batch) -> None:
    """Brings in what the batch received, said and folded. Parts that are no more go first: what the batch says stands in those that took them in."""
    _unite(session, batch.united)
    each(session, _REPORTER, ({name: getattr(row, name) for name in _OF_REPORTER} for row in batch.reporters))
    each(session, _SAID, (_said_row(said) for said in batch.said))
    if batch.said:
        count(session, "journal", max(said.order for said in batch.said) + 1)
    each(session, _FORGET, ({"number_": order} for order in batch.forget))
    _parts(session, batch)
    each(session, _NAME, ({"kind": kind, "value": value, "region": part} for (kind, value), part in batch.names.items() if part))
    answers.write(session, batch.answered)
    each(session, _NAME_GONE, ({"kind_": kind, "value_": value} for (kind, value), part in batch.names.items() if not part))


def _unite(session: Session, united: Mapping[str, str]) -> None:
    for old in united:
        new = last(old, united)
        for statement in _MOVE:
            session.execute(statement, {"old": old, "new": new})
        session.execute(_BASE_GONE, {"part_": old})


def _parts(session: Session, batch: Batch) -> None:
    spoken = {said.region for said in batch.said if said.region}
    each(session, _PUT_PART, ({"part": part, "state": b"", "due": inf} for part in sorted(spoken - batch.due.keys())))
    each(session, _BASE_GONE, ({"part_": part} for part, state in batch.base.items() if not state))
    each(session, _PUT_STATE, ({"part": part, "state": state, "due": None} for part, state in batch.base.items() if state))
    each(session, _PUT_DUE, ({"part": part, "state": b"", "due": due} for part, due in batch.due.items()))


def last(old: str, chain: Mapping[str, str]) -> str:
    """The end of a chain of joins made in one batch."""
    seen = {old}
    while (further := chain.get(old)) is not None and further not in seen:
        old = further
        seen.add(old)
    return old


def keys(session: Session) -> list[Received]:
    """Keys of reports that an older store kept, and that no reporter's row tells of yet; oldest first."""
    return [Received(**dict(zip(received.c.keys(), row, strict=True))) for row in session.execute(_ALL_RECEIVED)]


def heard_of(session: Session) -> list[Reporter]:
    """How far each reporter has come."""
    return [Reporter(**dict(zip(reporters.c.keys(), row, strict=True))) for row in session.execute(_ALL_REPORTERS)]


def said(session: Session) -> Sequence[Said]:
    """The journal that stands in no part of the site, in order of time."""
    return [_said(row) for row in session.execute(_UNPLACED)]


def states(session: Session) -> Mapping[str, bytes]:
    """State before the journal of the parts that are loaded at start."""
    return {part: state for part, state in session.execute(_WHOLE) if state}


def due(session: Session) -> Mapping[str, float]:
    """The parts that are loaded when they are needed, and when each is due."""
    return dict(session.execute(_DUE).fetchall())


def region(session: Session, part: str) -> RegionRows:
    """All that a part is rebuilt from. Raises NotFound."""
    row = session.execute(_STATE, {"part_": part}).fetchone()
    entries = [_said(each_one) for each_one in session.execute(_JOURNAL, {"part_": part})]
    if row is None and not entries:
        raise NotFound(f"no part {part} of the site", hint="it was united with another, or never was")
    return RegionRows(base=row[0] if row else b"", said=entries)


def regions_of(session: Session, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The parts that know the names."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for kind, value in wanted:
        by_kind[kind].append(value)
    found: dict[tuple[str, str], str] = {}
    for kind, values in by_kind.items():
        found |= {(kind, value): part for value, part in session.execute(_KNOWING, {"kind_": kind, "values_": listing(values)})}
    return found


def next_order(session: Session) -> int:
    """The first order that no journal entry ever had."""
    return counted(session, "journal") or 1


def counted(session: Session, name: str) -> int:
    """How far a counter has come."""
    row = session.execute(_COUNTED, {"name_": name}).fetchone()
    return int(row[0]) if row else 0


def count(session: Session, name: str, value: int) -> None:
    """Brings a counter to a value; it never goes back."""
    session.execute(_COUNT, {"name": name, "value": value})


def count_probe(session: Session) -> None:
    """Counts one more try to write."""
    session.execute(_BUMP, {"name": "probe", "value": 1})


def drop_told(session: Session) -> int:
    """Drops some keys of reports that an older store kept and that reporters' rows tell of; returns how many, 0 when none is left."""
    return session.execute(_TOLD_RECEIVED, {}).rowcount


def _said(row: Any) -> Said:
    number, at, arrived, kind, body, part = row
    return Said(order=number, at=at, received_at=arrived, kind=kind, body=body, region=part)


def _said_row(said: Said) -> dict[str, object]:
    return {"number": said.order, "at": said.at, "received_at": said.received_at, "kind": said.kind, "body": said.body, "region": said.region}
