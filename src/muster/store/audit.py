# SPDX-License-Identifier: Apache-2.0
"""The audit log: only added to, each row chained to the one before by its digest. Whoever writes because of an act calls `record` in the same transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import bindparam, func, select

from muster.spi.store import AuditCheck
from muster.store import mapping
from muster.store.connections import Connections
from muster.store.schema import audit, audit_head
from muster.store.statements import Session, adding, compiled, each, replacing

START = "0" * 64
"""What stands for the digest before the first row."""
_NAME = "audit"
_AT_ONCE = 10_000

_ADD = compiled(adding(audit))
_HEAD = compiled(select(audit_head.c.number, audit_head.c.digest).where(audit_head.c.name == bindparam("name_")))
_PUT_HEAD = replacing(audit_head, [audit_head.c.name])


def record(session: Session, entries: Iterable[Mapping[str, Any]], at: float) -> None:
    """Adds entries to the log; each at its own ``at`` where it has one."""
    rows: list[dict[str, Any]] = [{"at": float(entry.get("at", at)), "entry": mapping.text(entry)} for entry in entries]
    if not rows:
        return
    number, last = session.execute(_HEAD, {"name_": _NAME}).fetchone() or (0, START)
    for row in rows:
        number += 1
        last = digest(last, number, row["at"], row["entry"])
        row |= {"number": number, "digest": last}
    each(session, _ADD, rows)
    session.execute(_PUT_HEAD, {"name": _NAME, "number": number, "digest": last})


def digest(before: str, number: int, at: float, entry: str) -> str:
    """The digest of a row over its own bytes and the digest of the one before it."""
    return hashlib.sha256("\n".join((before, str(number), repr(float(at)), entry)).encode("utf-8", "backslashreplace")).hexdigest()


def verify(connections: Connections) -> AuditCheck:
    """Goes over the whole log and names the first row that is not as it was written."""
    number, last = 0, START
    while True:
        some = select(audit).where(audit.c.number > number).order_by(audit.c.number).limit(_AT_ONCE)
        rows, head, count = connections.rows(some, select(audit_head), select(func.count().label("count")).select_from(audit))
        for row in rows:
            if row["number"] != number + 1:
                return AuditCheck(rows=number, broken=number + 1, why="is missing")
            number = row["number"]
            last, before = row["digest"], last
            if last != digest(before, number, row["at"], row["entry"]):
                return AuditCheck(rows=number - 1, broken=number, why="is not as it was written")
        if len(rows) < _AT_ONCE:
            return _ended(number, last, head, count[0]["count"])


def head(connections: Connections) -> tuple[int, str]:
    """How many entries there are by the log's own word, and the digest of the last."""
    (rows,) = connections.rows(select(audit_head).where(audit_head.c.name == _NAME))
    return (rows[0]["number"], rows[0]["digest"]) if rows else (0, START)


def _ended(number: int, last: str, head: list[dict[str, Any]], count: int) -> AuditCheck:
    told, told_digest = (head[0]["number"], head[0]["digest"]) if head else (0, START)
    if told > number:
        return AuditCheck(rows=number, broken=number + 1, why="is missing at the end of the log")
    if count != number:
        return AuditCheck(rows=number, broken=0, why="stands before the first of the log")
    if (told, told_digest) != (number, last):
        return AuditCheck(rows=number, broken=number, why="is not the one that was written last")
    return AuditCheck(rows=number, head=last)
