# SPDX-License-Identifier: Apache-2.0
"""Follows sources that never end: the kernel's own log device, and tools that print lines as they come.

A cursor is ``boot-id:sequence``; the sequence is the kernel's record number, or the monotonic microseconds that a tool prints before each line.
After a restart what was seen is passed over; after a reboot everything is new.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from muster.domain.model.source import CAPTURE_LIMIT, Capture, Outcome, Source
from muster.readers.feeds import Feed, Line, open_feed
from muster.readers.outcomes import Clock, Taking
from muster.readers.processes import Custody
from muster.spi.readers import Cursor

BATCH = 256 * 1024
"""Bytes after which what has come is handed on, though more is there."""

BATCH_S = 1.0
"""Seconds after which what has come is handed on, though more is coming."""

FIRST_S = 2.0
"""Seconds that a tool has for its first line, when only what is there now is asked for."""

QUIET_S = 0.2
"""Seconds without a line after which what has come is handed on."""

BOOT_CONTEXT = "boot_id"
BOOTED_CONTEXT = "booted_at"
"""Keys of `Capture.context`: the boot that the lines are of, and when it began (ISO 8601), by which seconds since boot can be dated."""

_DENIED = frozenset({errno.EACCES, errno.EPERM})


class KernelStream:
    """Reads and follows streams. ``read`` brings what is there now; ``follow`` goes on until it is closed."""

    def __init__(self, clock: Clock, custody: Custody, proc: Path = Path("/proc")) -> None:
        self._clock = clock
        self._custody = custody
        self._proc = proc
        self._lock = threading.Lock()
        self._closed = False
        self._bells: set[int] = set()
        """Writing ends of pipes, one per stream that is followed: a byte there ends its wait."""

    def read(self, source: Source, deadline: timedelta) -> Iterable[Capture]:
        """One capture per read of the source: all lines that are there now, oldest first."""
        for read in source.reads:
            taking = Taking.begin(source, read, self._clock)
            until = time.monotonic() + deadline.total_seconds()
            feed = self._open(taking)
            if isinstance(feed, Capture):
                yield feed
                continue
            try:
                lines = _gather(feed, until, CAPTURE_LIMIT, 0 if feed.prompt else FIRST_S)
                yield self._capture(taking, feed, lines)
            finally:
                self._end(source, feed)

    def follow(self, source: Source, cursor: Cursor | None) -> Iterator[tuple[Capture, Cursor]]:
        """Captures of lines as they come, each with the cursor behind it. A stream that cannot be opened, or that ends, says so in its last capture."""
        read = source.reads[0]
        taking = Taking.begin(source, read, self._clock)
        boot = _text(self._proc / "sys/kernel/random/boot_id")
        seen = resume = sequence_after(cursor, boot)
        with self._bell() as bell:
            feed = self._open(taking)
            if isinstance(feed, Capture):
                yield feed, Cursor(f"{boot}:{seen}")
                return
            try:
                while _waited(feed, bell):
                    first = feed.lines(0)
                    taking = Taking.begin(source, read, self._clock)
                    fresh = [line for line in (*first, *(_gather(feed, time.monotonic() + BATCH_S, BATCH, QUIET_S) if first else ())) if line.sequence > resume]
                    if fresh:
                        seen = max(line.sequence for line in fresh)
                        yield self._capture(taking, feed, fresh), Cursor(f"{boot}:{seen}")
                    if feed.ended:
                        yield taking.failed(Outcome.UNREACHABLE, f"{read.locator[0]} ended: {feed.ending()}"), Cursor(f"{boot}:{seen}")
                        return
            finally:
                self._end(source, feed)

    def close(self) -> None:
        """Ends every stream that is followed, at once."""
        with self._lock:
            self._closed = True
            for each in self._bells:
                os.write(each, b"x")

    @contextlib.contextmanager
    def _bell(self) -> Iterator[int]:
        """What is ready to be read once the streams are to end."""
        bell, ring = os.pipe()
        try:
            with self._lock:
                self._bells.add(ring)
                if self._closed:
                    os.write(ring, b"x")
            yield bell
        finally:
            with self._lock:
                self._bells.discard(ring)
            os.close(bell)
            os.close(ring)

    def _open(self, taking: Taking) -> Feed | Capture:
        stuck = self._custody.stuck(taking.source.adapter)
        if stuck is not None:
            return taking.failed(Outcome.TIMED_OUT, f"not started: {stuck}")
        try:
            return open_feed(taking.read.locator, taking.source.search)
        except OSError as error:
            outcome = Outcome.NOT_PERMITTED if error.errno in _DENIED else Outcome.TOOL_MISSING
            return taking.failed(outcome, f"{' '.join(taking.read.locator[:1])}: {error.strerror or error}")

    def _end(self, source: Source, feed: Feed) -> None:
        process = feed.close()
        if process is not None:
            self._custody.keep(source.adapter, process, " ".join(source.reads[0].locator[:1]))

    def _capture(self, taking: Taking, feed: Feed, lines: Iterable[Line]) -> Capture:
        context = {BOOT_CONTEXT: _text(self._proc / "sys/kernel/random/boot_id"), BOOTED_CONTEXT: _booted(self._proc)}
        detail = f"{feed.lost} times records were overwritten before they were read" if feed.lost else ""
        return taking.brought(b"".join(line.text + b"\n" for line in lines), context={k: v for k, v in context.items() if v}, detail=detail)


def _waited(feed: Feed, bell: int) -> bool:
    """Waits until the feed has something, however long that is. False once the bell was rung."""
    return bell not in select.select([feed.fileno(), bell], [], [])[0]


def sequence_after(cursor: Cursor | None, boot: str) -> int:
    """The last sequence that was seen in this boot; -1 when nothing was, or when the cursor is of another boot."""
    told, _, sequence = cursor.text.rpartition(":") if cursor else ("", "", "")
    return int(sequence) if told == boot and sequence.lstrip("-").isdecimal() else -1


def _gather(feed: Feed, until: float, limit: int, first: float) -> list[Line]:
    """Lines until none came for `QUIET_S` (at once, where all is there at once), or ``until``, or ``limit`` bytes.

    The first is waited for ``first`` seconds.
    """
    lines: list[Line] = []
    size = 0
    while size < limit and not feed.ended:
        left = until - time.monotonic()
        more = feed.lines(min(first if not lines else 0 if feed.prompt else QUIET_S, left)) if left > 0 else []
        if not more:
            break
        lines += more
        size += sum(len(line.text) + 1 for line in more)
    return lines


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _booted(proc: Path) -> str:
    for line in _text(proc / "stat").splitlines():
        word, _, seconds = line.partition(" ")
        if word == "btime" and seconds.isdecimal():
            return datetime.fromtimestamp(int(seconds), UTC).isoformat()
    return ""
