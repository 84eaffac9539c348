# SPDX-License-Identifier: Apache-2.0
"""Records as believed now, and what was believed before: cards and nodes are kept alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import BindParameter, Table, bindparam, case, delete, select, update
from sqlalchemy.dialects.sqlite import Insert, insert

from muster.domain.model.roll import CardRecord, NodeRecord
from muster.store import essence, mapping
from muster.store.schema import card_versions, cards, node_versions, nodes
from muster.store.statements import adding, compiled, each

R = TypeVar("R", CardRecord, NodeRecord)

_NEW_WITH_A_VERSION = {"digest", "learnt_from"}


class Kept(Generic[R]):
    """Writes the records of one kind. A version is closed when the essence of its record changes or the record goes."""

    def __init__(self, now: Table, then: Table, extra: Callable[[R], Mapping[str, Any]]) -> None:
        self._extra: Callable[[R], Mapping[str, Any]] = extra
        mine = now.c.id == bindparam("id_")
        fresh: dict[str, Any] = {c.name: bindparam(c.name) for c in now.columns if c.name not in {"number", "id", *_NEW_WITH_A_VERSION}}
        later = case((now.c.learnt_from < bindparam("learnt_from"), bindparam("learnt_from")), else_=now.c.learnt_from)
        self._digest = compiled(select(now.c.digest).where(mine))
        self._add = compiled(adding(now))
        self._refresh = compiled(update(now).where(mine).values(fresh))
        self._turn = compiled(update(now).where(mine).values(fresh | {"digest": bindparam("digest"), "learnt_from": later}))
        self._close = compiled(_closing(now, then))
        self._drop = compiled(delete(now).where(mine))

    def write(self, connection: sqlite3.Connection, records: Sequence[R], at: float) -> list[str]:
        """Brings the records in, believed from ``at``; returns ids that were not there."""
        new: list[dict[str, Any]] = []
        turned: list[dict[str, Any]] = []
        same: list[dict[str, Any]] = []
        for record in {record.id: record for record in records}.values():
            row = self._row(record, at)
            known = connection.execute(self._digest, row).fetchone()
            (new if known is None else same if known[0] == row["digest"] else turned).append(row)
        each(connection, self._close, turned)
        each(connection, self._turn, turned)
        each(connection, self._refresh, same)
        each(connection, self._add, new)
        return [row["id"] for row in new]

    def drop(self, connection: sqlite3.Connection, ids: Iterable[str], at: float) -> None:
        """Closes the last version of records that are no more."""
        gone = [{"id_": old, "learnt_to": at} for old in ids]
        each(connection, self._close, gone)
        each(connection, self._drop, gone)

    def _row(self, record: R, at: float) -> dict[str, Any]:
        return {
            "id": record.id,
            "id_": record.id,
            "created_at": record.created_at,
            "digest": essence.digest(record),
            "learnt_from": at,
            "learnt_to": at,
            "updated_at": at,
            "captures": " ".join(essence.captures(record)),
            "record": mapping.text(record),
            **self._extra(record),
        }


def _closing(now: Table, then: Table) -> Insert:
    """The present row as a version that ends; one that began at the same moment was never seen and leaves none."""
    names = ["id", "learnt_from", "updated_at", "number", "created_at", "record"]
    end: BindParameter[float] = bindparam("learnt_to")
    old = select(*(now.c[name] for name in names), end).where(now.c.id == bindparam("id_"), now.c.learnt_from < end)
    return insert(then).from_select([*names, "learnt_to"], old).on_conflict_do_nothing()


CARDS: Kept[CardRecord] = Kept(cards, card_versions, lambda card: {"node": card.node or "", "presence": card.presence.value})
NODES: Kept[NodeRecord] = Kept(nodes, node_versions, lambda _: {})
