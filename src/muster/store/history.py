# SPDX-License-Identifier: Apache-2.0
"""Changes, findings, events and the audit: what happened, what a person should know, and who did what about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Double, Text, and_, bindparam, case, delete, select, true, update
from sqlalchemy.dialects.postgresql import insert

from muster.domain.model.errors import Conflict, NotFound
from muster.domain.model.roll import Change, Finding
from muster.spi.store import Batch, EventRow, FindingRow
from muster.store import audit, mapping
from muster.store.schema import changes, events, finding_cards, findings, news
from muster.store.statements import Session, Statement, adding, compiled, dropping, each
from muster.store.unread import Unread

_BELIEVED = changes.c.superseded_at.is_(None)
_OPEN = findings.c.closed_at.is_(None)

_CHANGE = compiled(adding(changes, without=["superseded_at"]).on_conflict_do_nothing(index_elements=[changes.c.id], index_where=_BELIEVED))
_SUPERSEDE = compiled(update(changes).where(changes.c.id == bindparam("id_"), _BELIEVED).values(superseded_at=bindparam("superseded_at")))
_CLOSE = compiled(update(findings).where(findings.c.id == bindparam("id_"), _OPEN).values(closed_at=bindparam("closed_at")))
_ALL_OPEN = compiled(select(findings.c.number, findings.c.record).where(_OPEN).order_by(findings.c.number))
_FOUND = compiled(select(findings).where(findings.c.id == bindparam("id_")).order_by(findings.c.number.desc()))
_ACKNOWLEDGE = compiled(
    update(findings)
    .where(findings.c.number == bindparam("number_"))
    .values(acknowledged_at=bindparam("acknowledged_at"), acknowledged_by=bindparam("acknowledged_by"), reason=bindparam("reason"))
)
_REHOME = compiled(update(events).where(events.c.card == bindparam("old")).values(card=bindparam("new")))
_ABOUT_GONE = compiled(delete(finding_cards).where(finding_cards.c.number.in_(select(findings.c.number).where(findings.c.id == bindparam("id_"), _OPEN))))
_OLD_EVENTS = dropping(events, events.c.last_at < bindparam("cut"))
_OLD_NEWS = dropping(news, news.c.at < bindparam("cut"))


def _about() -> Statement:
    card: BindParameter[str] = bindparam("card", type_=Text())
    told = select(card, findings.c.number).where(findings.c.id == bindparam("id_"), _OPEN)
    return compiled(insert(finding_cards).from_select(["card", "number"], told).on_conflict_do_nothing())


def _news(only: ColumnElement[bool]) -> Statement:
    """An insert that says what becomes of the open finding of an id."""
    at: BindParameter[float] = bindparam("at_", type_=Double())
    what: BindParameter[str] = bindparam("what_", type_=Text())
    told = select(at, what, findings.c.number).where(findings.c.id == bindparam("id_"), _OPEN, only)
    return compiled(insert(news).from_select(["at", "what", "finding"], told))


def _new() -> ColumnElement[bool]:
    """The finding came with this batch and was not told of before."""
    told = select(news.c.number).where(news.c.finding == findings.c.number, news.c.what == bindparam("what_"))
    return and_(findings.c.learnt_at == bindparam("at_"), ~told.exists())


_ABOUT = _about()
_OPENED, _ENDED = _news(_new()), _news(true())


def _finding() -> Statement:
    """An insert that brings the open finding of the same id up to date; one that was closed stays as it was, and a new row opens."""
    statement = adding(findings, without=["acknowledged_at", "closed_at"])
    taken = {name: statement.excluded[name] for name in ("record", "opened_at", "last_seen_at", "kind", "node")}
    return compiled(statement.on_conflict_do_update(index_elements=[findings.c.id], index_where=_OPEN, set_=taken))


def _event() -> Statement:
    statement = adding(events)
    new, old = statement.excluded, events.c
    taken = {
        "repeats": case((new.repeats > old.repeats, new.repeats), else_=old.repeats),
        "first_at": case((new.first_at < old.first_at, new.first_at), else_=old.first_at),
        "last_at": case((new.last_at > old.last_at, new.last_at), else_=old.last_at),
        "card": case((new.card == bindparam("nothing", ""), old.card), else_=new.card),
    }
    return compiled(statement.on_conflict_do_update(index_elements=[old.id], set_=taken))


_FINDING = _finding()
_EVENT = _event()


def write(session: Session, batch: Batch) -> None:
    """Brings in the batch's changes, findings, events and audit. What is disproved or closed goes first, so that what the batch believes stands."""
    each(session, _SUPERSEDE, ({"id_": old, "superseded_at": batch.at} for old in batch.superseded))
    each(session, _CHANGE, (_change_row(change) for change in batch.changes))
    each(session, _ENDED, ({"id_": old, "at_": batch.at, "what_": "closed"} for old in batch.closed))
    each(session, _CLOSE, ({"id_": old, "closed_at": batch.at} for old in batch.closed))
    each(session, _FINDING, (_finding_row(finding, batch.at) for finding in batch.findings))
    each(session, _ABOUT_GONE, ({"id_": finding.id} for finding in batch.findings))
    each(session, _ABOUT, ({"id_": f.id, "card": card} for f in batch.findings for card in dict.fromkeys((*f.cards, f.subject))))
    each(session, _OPENED, ({"id_": finding.id, "at_": batch.at, "what_": "opened"} for finding in batch.findings))
    each(session, _EVENT, (_event_row(event, batch.at) for event in batch.events))
    audit.record(session, batch.audit, batch.at)


def join(session: Session, gone: Mapping[str, str]) -> None:
    """Gives the events of cards that are no more to the cards they were joined into."""
    each(session, _REHOME, ({"old": old, "new": new} for old, new in gone.items()))


def open_findings(session: Session, unread: Unread) -> Sequence[Finding]:
    """Findings that stand and can be read, in the order in which they were found."""
    rows = ({"number": number, "record": record} for number, record in session.execute(_ALL_OPEN))
    return unread.readable("findings", ("number",), rows, lambda row: mapping.finding(row["record"]))


def acknowledge(session: Session, finding: str, by: str, at: float, reason: str) -> FindingRow:
    """Marks the open finding as seen, and says so in the audit. Raises NotFound or Conflict."""
    row = _found(session, finding)
    if row is None:
        raise NotFound(f"no finding {finding}", hint="`muster get findings` lists those that are open")
    if row["closed_at"] is not None:
        raise Conflict(f"finding {finding} is closed already", hint="nothing is left to acknowledge")
    session.execute(_ACKNOWLEDGE, {"number_": row["number"], "acknowledged_at": at, "acknowledged_by": by, "reason": reason})
    session.execute(_ENDED, {"id_": finding, "at_": at, "what_": "acknowledged"})
    entry = {"at": at, "by": by, "what": "acknowledge", "finding": finding, "reason": reason}
    audit.record(session, [entry], at)
    return mapping.finding_row({**row, "acknowledged_at": at, "acknowledged_by": by})


def drop_older(session: Session, than: float) -> int:
    """Drops some events that last happened, and some news told, before ``than``; returns how many, 0 when none is left."""
    return session.execute(_OLD_EVENTS, {"cut": than}).rowcount + session.execute(_OLD_NEWS, {"cut": than}).rowcount


def _found(session: Session, finding: str) -> dict[str, Any] | None:
    row = session.execute(_FOUND, {"id_": finding}).fetchone()
    return None if row is None else dict(zip(findings.c.keys(), row, strict=True))


def _change_row(change: Change) -> dict[str, Any]:
    row = {name: getattr(change, name) for name in ("id", "subject", "at", "learnt_at")}
    return {**row, "kind": change.kind.value, "detail": mapping.text(change.detail)}


def _finding_row(finding: Finding, at: float) -> dict[str, Any]:
    return {
        "id": finding.id,
        "record": mapping.text(finding),
        "opened_at": finding.opened_at,
        "learnt_at": at,
        "last_seen_at": at,
        "acknowledged_by": "",
        "reason": "",
        "kind": finding.kind.value,
        "node": finding.node,
    }


def _event_row(event: EventRow, now: float) -> dict[str, Any]:
    """The event as it is kept. What is told now has not happened later, whatever a clock says."""
    last = min(event.last_at, now)
    return {**asdict(event), "first_at": min(event.first_at, last), "last_at": last, "nothing": ""}
