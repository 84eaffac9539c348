# SPDX-License-Identifier: Apache-2.0
"""Gauges and counters: the newest word of every series (subject, node, source, attribute), and its roll-ups by minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, case, false, literal_column, null, or_, select, true, update
from sqlalchemy.dialects.postgresql import insert

from muster.domain.model.roll import Sample
from muster.store import mapping
from muster.store.schema import current, minutes
from muster.store.statements import Session, Statement, adding, compiled, dropping, each

MINUTE = 60

_SERIES = [current.c[name] for name in ("subject", "node", "source", "key")]
_MINE = and_(*(column == bindparam(column.name) for column in _SERIES))


def left(session: Session, samples: Sequence[Sample]) -> None:
    """Brings in the last numbers of sources that tell them no more. They moved without merge, which knows older ones."""
    each(session, _NEWEST, [_row(sample, light=True) for sample in samples])


def write(session: Session, samples: Sequence[Sample]) -> None:
    """Brings samples in, in any order of time: the newest is current, each counts in its own minute.

    Those that are no roll-up count in no minute: they did so before. A passing absence leaves a newer value standing than it came with.
    """
    each(session, _NEWEST, [_carried(session, sample) for sample in samples if not sample.rollup])
    rows = [_row(sample) for sample in samples if sample.rollup]
    numbers = [row for row in rows if row["value"] is not None]
    each(session, _NEWEST, numbers)
    each(session, _NUMBER, numbers)
    for sample in samples:
        if sample.rollup and sample.value is None:
            row = _carried(session, sample)
            session.execute(_NEWEST, row)
            session.execute(_NEWS, row)


def _carried(session: Session, sample: Sample) -> dict[str, Any]:
    """The row of the sample, with the value that the series has where its own is older and it is no absence for good: numbers move on without merge."""
    word = sample.word
    if word.why is not None and not word.why.passing:
        return _row(sample)
    known = session.execute(_KNOWN, {name: getattr(sample, name) for name in ("subject", "node", "source", "key")}).fetchone()
    if known is None or known[1] is None or (word.at is not None and word.at >= known[1]):
        return _row(sample)
    if known[1] > sample.at and (sample.rollup or not known[2]):
        return _row(sample)
    newer = replace(word, value=mapping.word(known[0], known[1], None).value, at=known[1])
    return _row(replace(sample, word=newer, at=max(sample.at, known[1])), light=bool(known[2]))


def silence(session: Session, cards: Iterable[str]) -> None:
    """Takes what was said of cards and their parts out of what is current; roll-ups stay."""
    each(session, _SILENCE, ({"card_": card} for card in cards))


def join(session: Session, gone: Mapping[str, str]) -> None:
    """Gives the newest words of cards that are no more to the cards they were joined into; roll-ups stay with the old subject."""
    rows = [{"old": old, "new": new} for old, new in gone.items()]
    each(session, _INHERIT, rows)
    each(session, _REHOME, rows)
    silence(session, gone)


def drop_older(session: Session, than: float) -> int:
    """Drops some roll-ups of minutes before ``than``; returns how many, 0 when none is left."""
    return session.execute(_DROP, {"cut": than}).rowcount


def _row(sample: Sample, *, light: bool = False) -> dict[str, Any]:
    word = sample.word
    return {
        "subject": sample.subject,
        "card": sample.card,
        "node": sample.node,
        "source": sample.source,
        "key": sample.key,
        "at": sample.at,
        "live": True,
        "light": light,
        "changed_at": sample.at,
        "minute": int(sample.at // MINUTE) * MINUTE,
        "value": sample.value,
        "said": mapping.said(word),
        "value_at": word.at,
        "why_at": word.why_at,
        "capture": word.capture,
    }


def _newest() -> Statement:
    statement = adding(current)
    new = statement.excluded
    taken: dict[str, Any] = {name: new[name] for name in ("card", "at", "live", "light", "said", "value_at", "why_at", "capture")}
    taken["changed_at"] = case((new.said == current.c.said, current.c.changed_at), else_=new.at)
    return compiled(statement.on_conflict_do_update(index_elements=_SERIES, set_=taken, where=or_(new.at >= current.c.at, current.c.live.is_(False))))


def _rolled(values: Mapping[str, ColumnElement[Any]], only: ColumnElement[bool]) -> Statement:
    """An insert into the minute of the series that the row belongs to; a second one in the same minute is added to it."""
    statement = insert(minutes).from_select(["series", *values], select(current.c.number, *values.values()).where(_MINE, only))
    new, old = statement.excluded, minutes.c
    newer = new.last_at >= old.last_at
    older = new.first_at < old.first_at
    taken = {
        "first": _kept_or(old.first_at, new.first, older, old.first),
        "first_at": _kept_or(old.first_at, new.first_at, older),
        "count": old["count"] + new["count"],
        "sum": old["sum"] + new["sum"],
        "low": _kept_or(old.low, new.low, new.low < old.low),
        "high": _kept_or(old.high, new.high, new.high > old.high),
        "last": case((newer, new.last), else_=old.last),
        "said": case((newer, new.said), else_=old.said),
        "value_at": case((newer, new.value_at), else_=old.value_at),
        "last_at": case((newer, new.last_at), else_=old.last_at),
    }
    return compiled(statement.on_conflict_do_update(index_elements=[old.series, old.minute], set_=taken))


def _kept_or(old: ColumnElement[Any], new: ColumnElement[Any], better: ColumnElement[bool], kept: ColumnElement[Any] | None = None) -> ColumnElement[Any]:
    return case((or_(old.is_(None), better), new), else_=old if kept is None else kept)


def _number() -> Statement:
    value: ColumnElement[Any] = bindparam("value")
    values = {"minute": bindparam("minute"), "count": literal_column("1"), "sum": value, "low": value, "high": value, "first": value, "last": value}
    return _rolled({**values, "first_at": bindparam("at"), "last_at": bindparam("at"), "said": null(), "value_at": null()}, true())


def _news() -> Statement:
    nothing = {"count": literal_column("0"), "sum": literal_column("0.0"), "low": null(), "high": null(), "first": null(), "first_at": null(), "last": null()}
    values = {"minute": bindparam("minute"), **nothing, "last_at": bindparam("at"), "said": bindparam("said"), "value_at": bindparam("value_at")}
    return _rolled(values, current.c.changed_at == bindparam("at"))


def _inherit() -> Statement:
    """The newest words of the old subject as the new one's, where it has none that is newer."""
    same = [c.name for c in current.columns if c.name not in {"number", "subject", "card"}]
    old = select(bindparam("new"), bindparam("new"), *(current.c[name] for name in same)).where(current.c.subject == bindparam("old"), current.c.live)
    statement = insert(current).from_select(["subject", "card", *same], old)
    new = statement.excluded
    taken = {name: new[name] for name in ("at", "live", "light", "changed_at", "said", "value_at", "why_at", "capture")}
    return compiled(statement.on_conflict_do_update(index_elements=_SERIES, set_=taken, where=or_(new.at > current.c.at, current.c.live.is_(False))))


def _drop() -> Statement:
    """Old roll-ups but the newest of each series, which still says what was so at the cut."""
    later = minutes.alias("later")
    superseded = select(later.c.series).where(later.c.series == minutes.c.series, later.c.minute > minutes.c.minute, later.c.minute <= bindparam("cut"))
    return dropping(minutes, and_(minutes.c.minute < bindparam("cut"), superseded.exists()))


_NEWEST = _newest()
_KNOWN = compiled(select(current.c.said, current.c.value_at, current.c.light).where(_MINE))
_NUMBER = _number()
_NEWS = _news()
_INHERIT = _inherit()
_REHOME = compiled(update(current).where(current.c.card == bindparam("old"), current.c.subject != bindparam("old")).values(card=bindparam("new")))
_SILENCE = compiled(update(current).where(current.c.card == bindparam("card_")).values(live=false()))
_DROP = _drop()
