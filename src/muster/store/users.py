# SPDX-License-Identifier: Apache-2.0
"""Tokens of users as they are kept: by the digest of their secret. Each change is one commit with its entry of the audit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import and_, bindparam, delete, func, or_, select, update

from muster.domain.model.access import Grade, Part
from muster.domain.model.errors import Conflict
from muster.spi.users import TokenRow
from muster.store import audit
from muster.store.connections import Connections
from muster.store.leasing import WriterLease
from muster.store.schema_access import tokens
from muster.store.statements import Session, adding, compiled, each

_ADD = compiled(adding(tokens))
_TAKEN = compiled(select(tokens.c.id).where(tokens.c.origin == bindparam("origin_")))
_REVOKE = compiled(
    update(tokens)
    .where(tokens.c.id == bindparam("id_"), tokens.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("revoked_at"), revoked_by=bindparam("revoked_by"))
)
_USED = compiled(update(tokens).where(tokens.c.id == bindparam("id_")).values(used_at=bindparam("used_at")))
_ENDED = or_(tokens.c.revoked_at < bindparam("before_"), tokens.c.expires_at < bindparam("before_"))
_DROP = compiled(delete(tokens).where(_ENDED))
_ANY_ENDED = select(func.count().label("count")).select_from(tokens).where(_ENDED)


class UserRows:
    """The tokens of one store. Safe for several threads."""

    def __init__(self, connections: Connections, lease: WriterLease) -> None:
        self._connections = connections
        self._lease = lease

    @contextmanager
    def _change(self) -> Iterator[Session]:
        """A transaction of the one who may write. Raises Unavailable, and then nothing was written."""
        with self._connections.transaction() as session:
            self._lease.check(session)
            yield session

    def by_digest(self, digest: str) -> TokenRow | None:
        """The token whose secret has this digest."""
        (rows,) = self._connections.rows(select(tokens).where(tokens.c.digest == digest))
        return token_of(rows[0]) if rows else None

    def tokens(self, ended_after: float | None = None) -> list[TokenRow]:
        """Tokens by time of making: those that live, and those that ended after that time; all when None."""
        asked = select(tokens).order_by(tokens.c.created_at, tokens.c.id)
        if ended_after is not None:
            revoked = or_(tokens.c.revoked_at.is_(None), tokens.c.revoked_at > ended_after)
            asked = asked.where(and_(revoked, or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > ended_after)))
        (rows,) = self._connections.rows(asked)
        return [token_of(row) for row in rows]

    def add(self, row: TokenRow, entry: Mapping[str, Any]) -> None:
        """Keeps a new token, with its entry of the audit. Raises Conflict for an origin that was used."""
        with self._change() as session:
            if row.origin is not None and session.execute(_TAKEN, {"origin_": row.origin}).fetchone() is not None:
                raise Conflict("the proof was used before")
            session.execute(_ADD, _row(row))
            audit.record(session, [entry], row.created_at)

    def revoke(self, ids: Sequence[str], at: float, by: str, entry: Mapping[str, Any]) -> int:
        """Ends tokens, with the entry of the audit; how many there were to end."""
        with self._change() as session:
            ended = each(session, _REVOKE, ({"id_": id_, "revoked_at": at, "revoked_by": by} for id_ in ids))
            audit.record(session, [entry], at)
            return ended

    def used(self, at: Mapping[str, float]) -> None:
        """Notes when tokens were used last."""
        with self._change() as session:
            each(session, _USED, ({"id_": id_, "used_at": when} for id_, when in at.items()))

    def drop_ended(self, before: float) -> int:
        """Forgets tokens that ended before that time; how many. Looks first, and writes only when there are some."""
        (rows,) = self._connections.rows(_ANY_ENDED.params(before_=before))
        if not rows[0]["count"]:
            return 0
        with self._change() as session:
            return session.execute(_DROP, {"before_": before}).rowcount


def token_of(row: Mapping[str, Any]) -> TokenRow:
    """The token of a row."""
    told = dict(row)
    told |= {"grade": Grade(row["grade"]), "nodes": tuple(json.loads(row["nodes"])), "reads": frozenset(Part(each) for each in json.loads(row["reads"]))}
    return TokenRow(**told)


def _row(token: TokenRow) -> dict[str, Any]:
    return {name: getattr(token, name) for name in TokenRow.__dataclass_fields__} | {
        "grade": token.grade.value,
        "nodes": json.dumps(list(token.nodes)),
        "reads": json.dumps(sorted(token.reads)),
    }
