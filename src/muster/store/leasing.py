# SPDX-License-Identifier: Apache-2.0
"""The right to write, kept as one row. A holder that does not renew it for a while has lost it to whoever takes it next, and its writes are refused."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from muster.domain.model.errors import Unavailable
from muster.spi.store import Holder
from muster.store import processes
from muster.store.connections import Connections
from muster.store.schema import lease
from muster.store.statements import POSTGRES, Session, compiled, replacing

NAME = "writer"
PROCESS = "process"
"""The row beside it: which process took it, under the token of that taking."""

_ROW = compiled(select(lease.c.holder, lease.c.token, lease.c.until).where(lease.c.name == bindparam("name_")))
_LOCKED = compiled(select(lease.c.holder, lease.c.token, lease.c.until).where(lease.c.name == bindparam("name_")).with_for_update())
_PUT = replacing(lease, [lease.c.name])


class WriterLease:
    """`Lease` over the writer's connection.

    Whether another holder is gone is judged by our own clock alone: its row has not changed for as long as it may take to renew it. Only of a process of
    this machine it can be known at once.
    """

    def __init__(self, connections: Connections, span: float) -> None:
        self._connections = connections
        self.span = span
        self._token: int | None = None
        self._holder = ""
        self._seen: tuple[Holder, float] | None = None

    def acquire(self, holder: str, now: float, *, certain: bool = False) -> bool:
        """Takes the lease, or says that another holds it. ``certain``: the caller knows that the other is gone. Raises Unavailable."""
        with self._connections.transaction() as session:
            found = _row(session)
            if not certain and not self._free(found, now) and not _died(session, found):
                return False
            token = (found.token if found else 0) + 1
            _put(session, Holder(holder=holder, token=token, until=now + self.span))
            _put(session, Holder(holder=processes.mark(), token=token, until=0.0), PROCESS)
        self._token, self._holder, self._seen = token, holder, None
        return True

    def _free(self, found: Holder | None, now: float) -> bool:
        if found is None or not found.holder or found.token == self._token:
            return True
        if self._seen is None or self._seen[0] != found or now < self._seen[1]:
            self._seen = (found, now)
        return now - self._seen[1] >= self.span

    def renew(self, now: float) -> bool:
        """Says that the holder is alive. False when the lease is another's by now. Raises Unavailable."""
        with self._connections.transaction() as session:
            found = _row(session)
            if self._token is None or found is None or found.token != self._token or not found.holder:
                return False
            _put(session, Holder(holder=self._holder, token=self._token, until=now + self.span))
        return True

    def release(self) -> None:
        """Gives it back: the next may take it at once. One that is another's by now is left alone. Raises Unavailable."""
        with self._connections.transaction() as session:
            found = _row(session)
            if found is not None and found.token == self._token:
                _put(session, Holder(holder="", token=found.token, until=0.0))
        self._token = None

    def begin_after(self, token: int) -> None:
        """Nobody has it, and whoever had it up to ``token`` never will again: for rows that came from elsewhere."""
        with self._connections.transaction() as session:
            found = _row(session)
            _put(session, Holder(holder="", token=max(token, found.token if found else 0) + 1, until=0.0))

    def holder(self) -> Holder | None:
        """Who has it now; None when it is free. Raises Unavailable."""
        (rows,) = self._connections.rows(select(lease.c.holder, lease.c.token, lease.c.until).where(lease.c.name == NAME, lease.c.holder != ""))
        return Holder(**rows[0]) if rows else None

    def check(self, session: Session) -> None:
        """Called within every transaction that writes: it holds the row until the commit. Raises Unavailable when the lease is not ours."""
        found = _row(session)
        ours = self._token is not None and found is not None and found.token == self._token and bool(found.holder)
        nobody = self._token is None and (found is None or not found.holder)
        if not (ours or nobody):
            who = found.holder if found and found.holder else "another server"
            raise Unavailable(f"{self._connections.name} is written by {who}", hint="this server only reads until that one is gone; write there")


def _died(session: Session, found: Holder | None) -> bool:
    """True when the process that took the lease can be seen to be no more."""
    taken = _row(session, PROCESS)
    return found is not None and taken is not None and taken.token == found.token and processes.gone(taken.holder)


def _row(session: Session, name: str = NAME) -> Holder | None:
    row = session.execute(_LOCKED if session.kind == POSTGRES else _ROW, {"name_": name}).fetchone()
    return None if row is None else Holder(holder=row[0], token=row[1], until=row[2])


def _put(session: Session, row: Holder, name: str = NAME) -> None:
    session.execute(_PUT, {"name": name, "holder": row.holder, "token": row.token, "until": row.until})
