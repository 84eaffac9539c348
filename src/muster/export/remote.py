# SPDX-License-Identifier: Apache-2.0
"""Points as Prometheus remote write 1.0: each sample at the time of its reading, and a mark of staleness where a series ends."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence

from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.export.fleet import seconds
from muster.export.labels import Pairs
from muster.export.protobuf import block, text, whole
from muster.export.series import Point
from muster.export.snappy import packed

CONTENT_TYPE = "application/x-protobuf"
HEADERS = {"Content-Type": CONTENT_TYPE, "Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0"}
STALE = struct.pack("<Q", 0x7FF0000000000002)
"""The not-a-number by which a store of metrics knows that a series has ended."""
REMEMBERED_MS = 3_600_000
"""How long the end of a series is remembered: what comes back late must not stand before it."""
_STILL = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is Kind.FACT)
"""Attributes that hold for as long as they are believed, however rarely they are read."""


def named(name: str, pairs: Pairs) -> bytes:
    """The labels of a series, in order of their names."""
    return b"".join(block(1, text(1, key) + text(2, value)) for key, value in sorted((*pairs, ("__name__", name))))


def sealed(series: Sequence[bytes], pack: Callable[[bytes], bytes] = packed) -> bytes:
    """A write request of these series, as a block of snappy by ``pack``."""
    return pack(b"".join(block(1, each) for each in series))


class _Line:
    """One series: its labels as bytes, the time of its last sample, and in which round it was last told."""

    __slots__ = ("ended", "head", "last", "round")

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.last = 0
        self.round = 0
        self.ended = False

    def sample(self, value: bytes, at: int) -> bytes:
        self.last = at
        return self.head + block(2, b"\x09" + value + whole(2, at))


class Lines:
    """Which series there are, from round to round: only what is new is told, and an end is told once."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], _Line] = {}
        self._round = 0

    def told(self, points: Iterable[Point], at: float) -> Iterator[bytes]:
        """The series that have a new sample in this round, read at ``at``, then the ends of those that are there no longer."""
        now = round(at * 1000)
        self._round += 1
        for point in points:
            key = (point.family.name, point.labels.text)
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = _Line(named(point.family.name, point.labels.pairs))
            line.round = self._round
            moment = min(_moment(point, now), now)
            if moment > line.last:
                line.ended = False
                yield line.sample(struct.pack("<d", point.value), moment)
        yield from self._ends(now)

    def _ends(self, now: int) -> Iterator[bytes]:
        for key, line in list(self._lines.items()):
            if line.round == self._round:
                continue
            if not line.ended:
                line.ended = True
                yield line.sample(STALE, max(now, line.last + 1))
            elif now - line.last > REMEMBERED_MS:
                del self._lines[key]


def _moment(point: Point, now: int) -> int:
    """When it was so, in milliseconds."""
    if point.told is None or point.family.key in _STILL:
        return now
    at = seconds(point.told.observed_at)
    return now if at is None else round(at * 1000)
