# SPDX-License-Identifier: Apache-2.0
"""What was written since a commit: its number stands on every card, and cards that are no more are remembered for a day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.sql import Executable

from muster.spi.store import Batch
from muster.store import intake
from muster.store.schema import cards, cards_gone, counters
from muster.store.statements import Session, compiled, dropping, each, replacing

COMMIT, VERSION, FLOOR = "commit", "version", "floor"
"""Counters: every commit; the last that changed a record; the last whose gone cards were forgotten."""
REMEMBERED = 86_400.0
"""Seconds for which a card that is no more is told of."""

_GONE = replacing(cards_gone, [cards_gone.c.id])
_BACK = compiled(delete(cards_gone).where(cards_gone.c.id == bindparam("id_")))
_OLDEST = compiled(select(func.max(cards_gone.c.written)).where(cards_gone.c.at < bindparam("cut")))
_DROP = dropping(cards_gone, cards_gone.c.at < bindparam("cut"))


def number(session: Session, batch: Batch) -> int:
    """Numbers this commit; one that changes a record is the version from now on."""
    now = intake.counted(session, COMMIT) + 1
    intake.count(session, COMMIT, now)
    if any((batch.cards, batch.gone, batch.vanished, batch.nodes, batch.nodes_gone, batch.sources, batch.sources_gone, batch.findings, batch.closed)):
        intake.count(session, VERSION, now)
    return now


def gone(session: Session, ids: Iterable[str], at: float, commit: int) -> None:
    """Remembers cards that are no more."""
    each(session, _GONE, ({"id": card, "written": commit, "at": at} for card in ids))


def back(session: Session, ids: Iterable[str]) -> None:
    """Cards that are there again were never gone."""
    each(session, _BACK, ({"id_": card} for card in ids))


def drop_older(session: Session, than: float) -> int:
    """Forgets some cards that were gone before ``than``; returns how many, 0 when none is left."""
    (newest,) = session.execute(_OLDEST, {"cut": than}).fetchone()
    if newest is None:
        return 0
    intake.count(session, FLOOR, int(newest))
    return session.execute(_DROP, {"cut": than}).rowcount


def asked(after: int) -> Sequence[Executable]:
    """Queries for the counters, the cards written and the cards gone after a commit."""
    rows = select(cards.c.id, cards.c.record).order_by(cards.c.created_at, cards.c.number)
    return (
        select(counters.c.name, counters.c.value).where(counters.c.name.in_((VERSION, FLOOR))),
        rows.where(cards.c.written > after) if after > 0 else rows.limit(0),
        select(cards_gone.c.id).where(cards_gone.c.written > after).order_by(cards_gone.c.written, cards_gone.c.id),
    )


def told(rows: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """Version and floor, of the rows of the first query."""
    found = {row["name"]: int(row["value"]) for row in rows}
    return found.get(VERSION, 0), found.get(FLOOR, 0)
