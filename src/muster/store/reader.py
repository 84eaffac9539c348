# SPDX-License-Identifier: Apache-2.0
"""Every plain query, each of one state of the store. Safe to call from any thread."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, func, or_, select, union_all

from muster.domain.model.errors import NotFound, Unavailable
from muster.domain.model.roll import CardRecord, NodeRecord, SourceRecord, Word
from muster.spi.store import CaptureRow, ChangeRow, CurrentValue, EventRow, FindingRow, Fresh
from muster.store import essence, evidence, freshness, mapping
from muster.store.connections import Connections
from muster.store.mapping import Row
from muster.store.schema import aliases, audit, captures, card_versions, cards, changes, counters, current, events, findings, minutes, node_versions, nodes, sources
from muster.store.statements import among
from muster.store.unread import UNREADABLE, Unread

_ID, _NUMBER, _VERSION = ("id",), ("number",), ("id", "learnt_from")
"""What a row is called by, where it cannot be read."""
_VERSION_NOW = select(counters.c.value).where(counters.c.name == freshness.VERSION)


class Reader:
    """`RollReader` over connections of its own."""

    def __init__(self, connections: Connections, unread: Unread) -> None:
        self._connections = connections
        self._readable = unread.readable

    def version(self) -> int:
        """Number of the last commit that changed a record; 0 in an empty store."""
        return sum(row["value"] for row in self._rows(_VERSION_NOW))

    def fresh(self, after: int) -> Fresh:
        """Cards written since commit ``after``; 0 asks for all."""
        counted, written, gone = self._connections.rows(*freshness.asked(after))
        version, floor = freshness.told(counted)
        old = 0 < after < floor or after > version
        if old:
            counted, written, gone = self._connections.rows(*freshness.asked(0))
            version, _ = freshness.told(counted)
        found = self._readable("cards", _ID, written, lambda row: mapping.card(row["record"]), whole=old or not after)
        return Fresh(version=version, cards=found, gone=[row["id"] for row in gone] if after and not old else [], regrounded=old)

    def cards(self, at: float | None = None, ids: Iterable[str] | None = None) -> list[CardRecord]:
        """Cards believed at ``at``, in order of creation."""
        wanted = None if ids is None else list(ids)
        if at is None:
            return self._readable("cards", _ID, self._rows(_now(cards, wanted)), lambda row: mapping.card(row["record"]), whole=wanted is None)
        rows = self._rows(_then(cards, card_versions, at, wanted))
        return self._readable("cards", _VERSION, rows, lambda row: essence.card_then(mapping.card(row["record"]), at, row["updated_at"]))

    def resolve(self, card: str) -> str:
        """The card id that ``card`` stands for now. Raises NotFound."""
        itself = select(cards.c.id).where(cards.c.id == card)
        for row in self._rows(union_all(itself, select(aliases.c.new).where(aliases.c.old == card))):
            return str(row["id"])
        raise NotFound(f"no card {card}", hint="`muster get cards` lists the cards there are")

    def current(self, cards: Iterable[str] | None = None, at: float | None = None) -> list[CurrentValue]:
        """Gauges and counters; in the past, the last of the minute roll-ups at or before ``at``."""
        wanted = None if cards is None else list(cards)
        if at is None:
            rows = self._rows(_of(select(current).where(current.c.live), current.c.card, wanted).order_by(current.c.number))
            return self._readable("current", _NUMBER, rows, _value_now)
        return self._readable("current", _NUMBER, self._rows(_series_then(at, wanted)), lambda row: _value(row, _word_then(row, at)))

    def minutes(self, subject: str, key: str, since: float, until: float) -> list[Mapping[str, Any]]:
        """Roll-ups ``{minute, source, count, sum, low, high, last}`` of one gauge, ``since`` <= minute <= ``until``.

        Those of cards that were joined into it are its own. A minute without a number is left out.
        """
        columns = (minutes.c[name] for name in ("minute", "count", "sum", "low", "high", "last"))
        asked = select(*columns, current.c.source).select_from(minutes).join(current, current.c.number == minutes.c.series)
        asked = asked.where(_subject(current.c.subject, subject, None), current.c.key == key, minutes.c["count"] > 0)
        asked = asked.where(minutes.c.minute >= since, minutes.c.minute <= until)
        return [*self._rows(asked.order_by(minutes.c.minute, current.c.source))]

    def nodes(self, at: float | None = None) -> list[NodeRecord]:
        """Nodes, in order of creation."""
        if at is None:
            return self._readable("nodes", _ID, self._rows(_now(nodes, None)), lambda row: mapping.node(row["record"]), whole=True)
        rows = self._rows(_then(nodes, node_versions, at, None))
        return self._readable("nodes", _VERSION, rows, lambda row: essence.node_then(mapping.node(row["record"]), at, row["updated_at"]))

    def sources(self) -> list[SourceRecord]:
        """Sources, by node name and source."""
        asked = select(sources.c.node, sources.c.source, sources.c.record).order_by(sources.c.node_name, sources.c.node, sources.c.source)
        return self._readable("sources", ("node", "source"), self._rows(asked), lambda row: mapping.source(row["record"]), whole=True)

    def changes(self, subject: str | None = None, after: int = 0, limit: int = 500, at: float | None = None) -> list[ChangeRow]:
        """History by running number; of one subject (a card: also of those joined into it), or all. In the past: learnt by then and not yet superseded."""
        asked = select(changes).where(changes.c.number > after)
        if subject is not None:
            asked = asked.where(_subject(changes.c.subject, subject, at))
        if at is None:
            return self._readable("changes", _NUMBER, self._rows(asked.order_by(changes.c.number).limit(limit)), mapping.change_row)
        asked = asked.where(changes.c.learnt_at <= at, _not_by(changes.c.superseded_at, at))
        rows = self._rows(asked.order_by(changes.c.number).limit(limit))
        return self._readable("changes", _NUMBER, rows, lambda row: mapping.change_row({**row, "superseded_at": None}))

    def findings(self, *, closed: bool = False, at: float | None = None) -> list[FindingRow]:
        """Open findings, or closed ones too, newest first."""
        asked = select(findings).order_by(findings.c.opened_at.desc(), findings.c.number.desc())
        if at is not None:
            asked = asked.where(findings.c.learnt_at <= at)
        if not closed:
            asked = asked.where(findings.c.closed_at.is_(None) if at is None else _not_by(findings.c.closed_at, at))
        return self._readable("findings", _NUMBER, self._rows(asked), lambda row: mapping.finding_row(row if at is None else _finding_then(row, at)))

    def events(self, card: str | None = None, node: str | None = None, limit: int = 500) -> list[EventRow]:
        """Events, newest first."""
        asked = select(events).order_by(events.c.last_at.desc(), events.c.id).limit(limit)
        for column, wanted in ((events.c.card, card), (events.c.node, node)):
            if wanted is not None:
                asked = asked.where(column == wanted)
        return self._readable("events", _ID, self._rows(asked), mapping.event_row)

    def capture(self, digest: str) -> CaptureRow:
        """The capture with this digest. Raises NotFound when it was never kept or was dropped by the budget, Unavailable when it is damaged."""
        for row in self._rows(select(captures).where(captures.c.digest == digest)):
            try:
                return evidence.unpack(row)
            except (*UNREADABLE, zlib.error) as error:
                raise Unavailable(f"capture {digest} is damaged in the store ({error})", hint="a backup of the store may still have it") from error
        raise NotFound(f"no capture {digest}", hint="it was never sent, or made room for newer ones")

    def audit(self, limit: int = 500) -> list[Mapping[str, Any]]:
        """Operator acts, newest first."""
        asked = select(audit.c.number, audit.c.entry).order_by(audit.c.number.desc()).limit(limit)
        return self._readable("audit", _NUMBER, self._rows(asked), lambda row: mapping.entry(row["entry"]))

    def _rows(self, asked: Any) -> list[dict[str, Any]]:
        (rows,) = self._connections.rows(asked)
        return rows


def _of(asked: Select[Any], column: ColumnElement[Any], wanted: Sequence[str] | None) -> Select[Any]:
    return asked if wanted is None else asked.where(among(column, wanted))


def _not_by(column: ColumnElement[Any], at: float) -> ColumnElement[bool]:
    """Had not happened at ``at``."""
    return or_(column.is_(None), column > at)


def _now(table: Table, wanted: Sequence[str] | None) -> Select[Any]:
    return _of(select(table.c.id, table.c.record), table.c.id, wanted).order_by(table.c.created_at, table.c.number)


def _then(now: Table, then: Table, at: float, wanted: Sequence[str] | None) -> Any:
    names = ("id", "record", "updated_at", "learnt_from", "created_at", "number")
    still = _of(select(*(now.c[name] for name in names)).where(now.c.learnt_from <= at), now.c.id, wanted)
    past = _of(select(*(then.c[name] for name in names)).where(then.c.learnt_from <= at, then.c.learnt_to > at), then.c.id, wanted)
    both = union_all(still, past).subquery()
    return select(both).order_by(both.c.created_at, both.c.number)


def _series_then(at: float, wanted: Sequence[str] | None) -> Select[Any]:
    """Each series with its last roll-up that had begun by ``at``. A card that was joined since is found under its old id and its new one."""
    earlier = minutes.alias("earlier")
    last = select(func.max(earlier.c.minute)).where(
        earlier.c.series == current.c.number, earlier.c.minute <= at, or_(earlier.c.last_at <= at, earlier.c.first_at <= at)
    )
    rolled = (
        minutes.c.first,
        minutes.c.first_at,
        minutes.c.last,
        minutes.c.last_at,
        minutes.c.said.label("then_said"),
        minutes.c.value_at.label("then_value_at"),
    )
    asked = select(current, *rolled).select_from(current).join(minutes, and_(minutes.c.series == current.c.number, minutes.c.minute == last.scalar_subquery()))
    if wanted is not None:
        asked = asked.where(or_(among(current.c.card, wanted), current.c.card.in_(select(aliases.c.new).where(among(aliases.c.old, wanted)))))
    return asked.order_by(current.c.number)


def _subject(column: ColumnElement[Any], subject: str, at: float | None) -> ColumnElement[bool]:
    """The subject itself or what was joined into it by ``at``."""
    joined = select(aliases.c.old).where(aliases.c.new == subject)
    return or_(column == subject, column.in_(joined if at is None else joined.where(aliases.c.at <= at)))


def _value_now(row: Row) -> CurrentValue:
    return _value(row, mapping.word(row["said"], row["value_at"], row["why_at"], row["capture"]))


def _value(row: Row, word: Word) -> CurrentValue:
    return CurrentValue(subject=row["subject"], card=row["card"], node=row["node"], source=row["source"], key=row["key"], word=word)


def _number_of(row: Row, number: float) -> int | float:
    """A number of a roll-up, whole where the series is one of whole numbers."""
    return int(number) if type(mapping.word(row["said"], None, None).value) is int and number.is_integer() else number


def _word_then(row: Row, at: float) -> Word:
    """The word at the end of a roll-up. One without a number that has not changed since was said again until now, or until ``at``."""
    if row["last_at"] > at:
        return Word(value=_number_of(row, row["first"]), at=row["first_at"])
    if row["then_said"] is None:
        return Word(value=_number_of(row, row["last"]), at=row["last_at"])
    again = min(row["at"], at) if row["changed_at"] <= at else row["last_at"]
    word = mapping.word(row["then_said"], row["then_value_at"], None)
    if word.why is not None:
        return mapping.word(row["then_said"], row["then_value_at"], again)
    return mapping.word(row["then_said"], again, None)


def _finding_then(row: Row, at: float) -> Row:
    """The row without what came after ``at``."""
    seen = row["acknowledged_at"] is not None and row["acknowledged_at"] <= at
    shut = row["closed_at"] is not None and row["closed_at"] <= at
    return {
        **row,
        "last_seen_at": min(row["last_seen_at"], at),
        "acknowledged_at": row["acknowledged_at"] if seen else None,
        "acknowledged_by": row["acknowledged_by"] if seen else "",
        "closed_at": row["closed_at"] if shut else None,
    }
