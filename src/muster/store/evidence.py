# SPDX-License-Identifier: Apache-2.0
"""Captures: packed, each kept once, within a budget of bytes that nodes share. What nothing rests on goes first, of those who have most, the oldest first."""

from __future__ import annotations

import heapq
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, delete, func, literal_column, select

from muster.spi.store import CaptureRow
from muster.store import mapping
from muster.store.schema import captures, cards, current, findings, nodes
from muster.store.statements import Session, adding, compiled, each

_ROOM = 0.9
"""Share of the budget that is filled after captures were dropped, so that not every batch has to look for more."""
_FAR = 4
"""So many times its even share a node may keep, and half of the budget at most, before it makes room for others with what it rests on itself."""
_LEVEL = 3
"""zlib: two thirds of the best packing for a fifth of its time on listings of tools."""

_ADD = compiled(adding(captures).on_conflict_do_nothing())
_DROP = compiled(delete(captures).where(captures.c.digest == bindparam("digest_")))
_HELD = compiled(select(captures.c.digest).where(captures.c.digest == bindparam("digest_")))
_SIZE = compiled(select(func.coalesce(func.sum(captures.c.size), literal_column("0"))))
_BY_AGE = compiled(select(captures.c.digest, captures.c.size, captures.c.taken_at, captures.c.node).order_by(captures.c.taken_at, captures.c.digest))
_RESTS = tuple(compiled(select(column).distinct().where(column != bindparam("nothing"))) for column in (cards.c.captures, nodes.c.captures, current.c.capture))
_OPEN = compiled(select(findings.c.record).where(findings.c.closed_at.is_(None)))


def write(session: Session, rows: Sequence[CaptureRow], budget: int, now: float) -> None:
    """Keeps the captures, taken ``now`` at the latest, then makes room when all of them together are over the budget."""
    each(session, _ADD, ({**_row(row), "taken_at": min(row.taken_at, now)} for row in rows))
    (size,) = session.execute(_SIZE).fetchone()
    if size > budget:
        _make_room(session, size - int(budget * _ROOM), budget)


def lacking(session: Session, digests: Sequence[str], budget: int) -> list[str]:
    """Those of these captures that are not kept here and would be; none where nothing is kept."""
    return [each for each in digests if session.execute(_HELD, {"digest_": each}).fetchone() is None] if budget > 0 else []


def drop_older(session: Session, than: float) -> int:
    """Drops captures taken before ``than`` that nothing rests on; returns how many, 0 when none is left."""
    used = _used(session)
    old = [digest for digest, _, taken_at, _ in session.execute(_BY_AGE) if taken_at < than and digest not in used]
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


@dataclass(slots=True)
class _Room:
    """What is kept, and how much of it must go."""

    excess: int
    heaps: tuple[dict[str, deque[tuple[str, int]]], dict[str, deque[tuple[str, int]]]]
    """Captures by node, the oldest first: those that nothing rests on, and the others."""
    sizes: tuple[Counter[str], Counter[str]]
    dropped: list[str] = field(default_factory=list)

    def drop(self, heap: int, node: str) -> None:
        """Drops the oldest of a node."""
        digest, size = self.heaps[heap][node].popleft()
        self.dropped.append(digest)
        self.excess -= size
        self.sizes[heap][node] -= size

    def cap(self, most: int) -> None:
        """No node keeps more than ``most``."""
        for node in {*self.sizes[0], *self.sizes[1]}:
            for heap in (0, 1):
                while self.excess > 0 and self.heaps[heap][node] and self.sizes[0][node] + self.sizes[1][node] > most:
                    self.drop(heap, node)

    def share(self, heap: int) -> None:
        """Of those who keep most one goes after the other."""
        order = [(-size, node) for node, size in self.sizes[heap].items() if self.heaps[heap][node]]
        heapq.heapify(order)
        while self.excess > 0 and order:
            node = heapq.heappop(order)[1]
            self.drop(heap, node)
            if self.heaps[heap][node]:
                heapq.heappush(order, (-self.sizes[heap][node], node))


def _make_room(session: Session, excess: int, budget: int) -> None:
    """Drops captures, so that no node's push out those of others: first what a node has far beyond its share, then what nothing rests on, then the rest."""
    used = _used(session)
    heaps: tuple[Any, Any] = defaultdict(deque), defaultdict(deque)
    sizes: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for digest, size, _, node in session.execute(_BY_AGE):
        heap = int(digest in used)
        heaps[heap][node].append((digest, size))
        sizes[heap][node] += size
    room = _Room(excess, heaps, sizes)
    nodes = len(sizes[0].keys() | sizes[1].keys())
    if nodes > 1:
        room.cap(int(budget * min(1 / 2, _FAR / nodes)))
    room.share(0)
    room.share(1)
    each(session, _DROP, ({"digest_": digest} for digest in room.dropped))


def _used(session: Session) -> frozenset[str]:
    """Digests that words of today's records and open findings rest on."""
    kept = [digests for statement in _RESTS for (digests,) in session.execute(statement, {"nothing": ""})]
    told = [record for (record,) in session.execute(_OPEN)]
    return frozenset(" ".join(kept).split()) | frozenset('"'.join(told).split('"'))
