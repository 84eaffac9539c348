# SPDX-License-Identifier: Apache-2.0
"""Captures: packed, each kept once, within a budget of bytes. What nothing rests on goes first, the oldest of it before the rest."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, delete, func, literal_column, select

from muster.spi.store import CaptureRow
from muster.store import mapping
from muster.store.schema import captures, cards, current, findings, nodes
from muster.store.statements import Session, adding, compiled, each

_ROOM = 0.9
"""Share of the budget that is filled after captures were dropped, so that not every batch has to look for more."""
_LEVEL = 3
"""zlib: two thirds of the best packing for a fifth of its time on listings of tools."""

_ADD = compiled(adding(captures).on_conflict_do_nothing())
_DROP = compiled(delete(captures).where(captures.c.digest == bindparam("digest_")))
_SIZE = compiled(select(func.coalesce(func.sum(captures.c.size), literal_column("0"))))
_BY_AGE = compiled(select(captures.c.digest, captures.c.size, captures.c.taken_at).order_by(captures.c.taken_at, captures.c.digest))
_RESTS = tuple(compiled(select(column).distinct().where(column != bindparam("nothing"))) for column in (cards.c.captures, nodes.c.captures, current.c.capture))
_OPEN = compiled(select(findings.c.record).where(findings.c.closed_at.is_(None)))


def write(session: Session, rows: Sequence[CaptureRow], budget: int) -> None:
    """Keeps the captures, then makes room when all of them together are over the budget."""
    each(session, _ADD, (_row(row) for row in rows))
    (size,) = session.execute(_SIZE).fetchone()
    if size > budget:
        _make_room(session, size - int(budget * _ROOM))


def drop_older(session: Session, than: float) -> int:
    """Drops captures taken before ``than`` that nothing rests on; returns how many, 0 when none is left."""
    used = _used(session)
    old = [digest for digest, _, taken_at in session.execute(_BY_AGE) if taken_at < than and digest not in used]
    return each(session, _DROP, ({"digest_": digest} for digest in old)) if old else 0


def unpack(row: Any) -> CaptureRow:
    """The capture of a row as it was taken."""
    return mapping.capture_row(row, zlib.decompress(row["payload"]), zlib.decompress(row["stderr"]))


def _row(capture: CaptureRow) -> dict[str, Any]:
    payload, stderr = zlib.compress(capture.payload, _LEVEL), zlib.compress(capture.stderr, _LEVEL)
    return {
        "digest": capture.digest,
        "source": capture.source,
        "node": capture.node,
        "format": capture.format,
        "locator": mapping.text(capture.locator),
        "taken_at": capture.taken_at,
        "exit_status": capture.exit_status,
        "stderr": stderr,
        "cut": capture.cut,
        "size": len(payload) + len(stderr),
        "payload": payload,
    }


def _make_room(session: Session, excess: int) -> None:
    used = _used(session)
    by_age = [(digest, size) for digest, size, _ in session.execute(_BY_AGE)]
    dropped = []
    for digest, size in sorted(by_age, key=lambda each_one: each_one[0] in used):
        if excess <= 0:
            break
        dropped.append(digest)
        excess -= size
    each(session, _DROP, ({"digest_": digest} for digest in dropped))


def _used(session: Session) -> frozenset[str]:
    """Digests that words of today's records and open findings rest on."""
    kept = [digests for statement in _RESTS for (digests,) in session.execute(statement, {"nothing": ""})]
    told = [record for (record,) in session.execute(_OPEN)]
    return frozenset(" ".join(kept).split()) | frozenset('"'.join(told).split('"'))
