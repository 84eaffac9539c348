# SPDX-License-Identifier: Apache-2.0
"""Records as believed now, and what was believed before: cards and nodes are kept alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import BindParameter, Table, Text, bindparam, case, delete, literal_column, select, update
from sqlalchemy.dialects.postgresql import Insert, insert

from muster.domain.model.roll import CardRecord, NodeRecord
from muster.store import essence, mapping
from muster.store.schema import card_versions, cards, node_versions, nodes
from muster.store.statements import Session, adding, among, compiled, each, listing

R = TypeVar("R", CardRecord, NodeRecord)

_NEW_WITH_A_VERSION = {"digest", "learnt_from"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the records of one commit have in common."""

    at: float
    number: int
    """Of the commit."""
    regions: Mapping[str, str]
    """Ids to parts of the site; a record that is not among them stays in its own."""


class Kept(Generic[R]):
    """Writes the records of one kind. A version is closed when the essence of its record changes or the record goes."""

    def __init__(self, now: Table, then: Table, extra: Callable[[R], Mapping[str, Any]]) -> None:
        self._extra: Callable[[R], Mapping[str, Any]] = extra
        mine = now.c.id == bindparam("id_")
        fresh: dict[str, Any] = {c.name: bindparam(c.name) for c in now.columns if c.name not in {"number", "id", "region", *_NEW_WITH_A_VERSION}}
        region = bindparam("region", type_=Text())
        fresh["region"] = case((region == literal_column("''"), now.c.region), else_=region)
        later = case((now.c.learnt_from < bindparam("learnt_from"), bindparam("learnt_from")), else_=now.c.learnt_from)
        self._digests = compiled(select(now.c.id, now.c.digest).where(among(now.c.id, "ids")))
        self._add = compiled(adding(now))
        self._refresh = compiled(update(now).where(mine).values(fresh))
        self._turn = compiled(update(now).where(mine).values(fresh | {"digest": bindparam("digest"), "learnt_from": later}))
        self._close = compiled(_closing(now, then))
        self._drop = compiled(delete(now).where(mine))

    def write(self, session: Session, records: Sequence[R], step: Step) -> list[str]:
        """Brings the records in, believed from the time of the step; returns ids that were not there."""
        if not records:
            return []
        last = {record.id: record for record in records}
        known = dict(session.execute(self._digests, {"ids": listing(last)}).fetchall())
        new: list[dict[str, Any]] = []
        turned: list[dict[str, Any]] = []
        same: list[dict[str, Any]] = []
        for record in last.values():
            row = self._row(record, step)
            digest = known.get(record.id)
            (new if digest is None else same if digest == row["digest"] else turned).append(row)
        each(session, self._close, turned)
        each(session, self._turn, turned)
        each(session, self._refresh, same)
        each(session, self._add, new)
        return [row["id"] for row in new]

    def drop(self, session: Session, ids: Iterable[str], at: float) -> None:
        """Closes the last version of records that are no more."""
        gone = [{"id_": old, "learnt_to": at} for old in ids]
        each(session, self._close, gone)
        each(session, self._drop, gone)

    def _row(self, record: R, step: Step) -> dict[str, Any]:
        at = step.at
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
            "region": step.regions.get(record.id, ""),
            "written": step.number,
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
