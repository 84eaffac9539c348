# SPDX-License-Identifier: Apache-2.0
"""Answers to requests that said under which key they may come again: kept in the commit of what they did, or by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from sqlalchemy import bindparam, select

from muster.spi.store import Answered
from muster.store.connections import Connections
from muster.store.schema import answered
from muster.store.statements import Session, adding, compiled, dropping, each

_ADD = compiled(adding(answered).on_conflict_do_nothing())
_DROP = dropping(answered, answered.c.at < bindparam("cut"))


def write(session: Session, rows: Sequence[Answered]) -> None:
    """Keeps answers; the first under a key stands."""
    each(session, _ADD, map(asdict, rows))


class KeptAnswers:
    """`Answers` over the store's connections. ``check`` refuses who may not write."""

    def __init__(self, connections: Connections, check: Callable[[Session], None]) -> None:
        self._connections = connections
        self._check = check

    def recall(self, key: str) -> Answered | None:
        """What was answered under the key."""
        (rows,) = self._connections.rows(select(answered).where(answered.c.key == key))
        return Answered(**rows[0]) if rows else None

    def keep(self, answered: Answered) -> None:
        """Keeps an answer."""
        with self._connections.transaction() as session:
            self._check(session)
            write(session, [answered])

    def drop_older(self, than: float) -> int:
        """Forgets some answers given before; returns how many, 0 when none is left."""
        with self._connections.transaction() as session:
            self._check(session)
            return session.execute(_DROP, {"cut": than}).rowcount
