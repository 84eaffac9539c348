# SPDX-License-Identifier: Apache-2.0
"""Queries of history, findings and events: each filter and each place to go on from stands on an index."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select

from muster.store.schema import aliases, finding_cards
from muster.store.schema import changes as history
from muster.store.schema import events as happened
from muster.store.schema import findings as found
from muster.store.schema import news as told
from muster.store.statements import among


def subject_of(column: ColumnElement[Any], subject: str, at: float | None) -> ColumnElement[bool]:
    """The subject itself or what was joined into it by ``at``."""
    joined = select(aliases.c.old).where(aliases.c.new == subject)
    return or_(column == subject, column.in_(joined if at is None else joined.where(aliases.c.at <= at)))


def changes(subject: str | None, after: int, limit: int, at: float | None, *, before: int | None, kinds: Collection[str] | None, newest: bool) -> Select[Any]:
    """History between two running numbers."""
    asked = select(history).where(history.c.number > after)
    if before is not None:
        asked = asked.where(history.c.number < before)
    if subject is not None:
        asked = asked.where(subject_of(history.c.subject, subject, at))
    if kinds is not None:
        asked = asked.where(history.c.kind.in_(sorted(kinds)))
    if at is not None:
        asked = asked.where(history.c.learnt_at <= at, _not_by(history.c.superseded_at, at))
    return asked.order_by(history.c.number.desc() if newest else history.c.number).limit(limit)


def findings(
    *,
    closed: bool,
    at: float | None,
    cards: Iterable[str] | None,
    kinds: Collection[str] | None,
    node: str | None,
    limit: int | None,
    before: tuple[float, str] | None,
) -> Select[Any]:
    """Findings, the one that opened last first."""
    asked = select(found).order_by(found.c.opened_at.desc(), found.c.id.desc(), found.c.number.desc())
    if at is not None:
        asked = asked.where(found.c.learnt_at <= at)
    if not closed:
        asked = asked.where(found.c.closed_at.is_(None) if at is None else _not_by(found.c.closed_at, at))
    if cards is not None:
        asked = asked.where(found.c.number.in_(select(finding_cards.c.number).where(among(finding_cards.c.card, cards))))
    if kinds is not None:
        asked = asked.where(found.c.kind.in_(sorted(kinds)))
    if node is not None:
        asked = asked.where(found.c.node == node)
    if before is not None:
        asked = asked.where(found.c.opened_at <= before[0], or_(found.c.opened_at < before[0], found.c.id < before[1]))
    return asked if limit is None else asked.limit(limit)


def standing() -> Select[Any]:
    """Of each open finding its row and when it was found last, the one that opened last first."""
    asked = select(found.c.number, found.c.last_seen_at).where(found.c.closed_at.is_(None))
    return asked.order_by(found.c.opened_at.desc(), found.c.id.desc(), found.c.number.desc())


def news(after: int, limit: int) -> Select[Any]:
    """What became of findings, each with its row as it is now."""
    about = (told.c.number.label("news_number"), told.c.at.label("news_at"), told.c.what.label("news_what"))
    asked = select(*about, found).join(found, found.c.number == told.c.finding).where(told.c.number > after)
    return asked.order_by(told.c.number).limit(limit)


def events(card: str | None, node: str | None, limit: int, *, kinds: Collection[str] | None, before: tuple[float, str] | None) -> Select[Any]:
    """Events, the one that happened last first."""
    asked = select(happened).order_by(happened.c.last_at.desc(), happened.c.id).limit(limit)
    for column, wanted in ((happened.c.card, card), (happened.c.node, node)):
        if wanted is not None:
            asked = asked.where(column == wanted)
    if kinds is not None:
        asked = asked.where(happened.c.kind.in_(sorted(kinds)))
    if before is not None:
        later = and_(happened.c.last_at == before[0], happened.c.id > before[1])
        asked = asked.where(happened.c.last_at <= before[0], or_(happened.c.last_at < before[0], later))
    return asked


def _not_by(column: ColumnElement[Any], at: float) -> ColumnElement[bool]:
    """Had not happened at ``at``."""
    return or_(column.is_(None), column > at)
