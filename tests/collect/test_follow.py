# SPDX-License-Identifier: Apache-2.0
"""Streams: one of a chain is followed, cursors survive, a stream that breaks is opened again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.collect.world import source

from muster.collect.follow import Cursors, Follower, Piece
from muster.domain.model.source import Capture, Outcome, ReaderKind, Source, SourceId
from muster.spi.readers import Cursor

LOG = source("log", reader=ReaderKind.STREAM, form="log")
SPARE = source("spare", after="log", reader=ReaderKind.STREAM, form="log")


class Stream:
    """Gives the lines behind the cursor, then waits until it is closed."""

    def __init__(self, **lines: list[bytes] | Outcome | Exception) -> None:
        self.lines = lines
        self.closed = threading.Event()
        self.opened: list[str] = []

    def follow(self, source: Source, cursor: Cursor | None) -> Iterator[tuple[Capture, Cursor]]:
        self.opened.append(str(source.id))
        what = self.lines.get(source.id, Outcome.TOOL_MISSING)
        read = source.reads[0]
        if isinstance(what, Exception):
            raise what
        if isinstance(what, Outcome):
            yield Capture(source=source.id, locator=read.locator, format=read.format, failure=what), Cursor("")
            return
        start = int(cursor.text) if cursor else 0
        for place, line in enumerate(what[start:], start):
            yield Capture(source=source.id, locator=read.locator, format=read.format, payload=line), Cursor(str(place + 1))
        self.closed.wait(5)


def pieces(follower: Follower, count: int, until: Callable[[], bool] = lambda: True) -> list[Piece]:
    found: list[Piece] = []
    end = time.monotonic() + 3
    while (len(found) < count or not until()) and time.monotonic() < end:
        found += follower.take()
        time.sleep(0.005)
    return found


def test_lines_come_with_their_cursors(tmp_path: Path) -> None:
    stream, cursors = Stream(log=[b"one", b"two"]), Cursors(tmp_path)
    follower = Follower([LOG, SPARE], stream, cursors)
    follower.start()
    found = pieces(follower, 2)
    standing = [str(each.id) for each in follower.standing_by()]
    cursors.put(LOG.id, found[0].behind)
    follower.close()
    stream.closed.set()

    assert [(each.capture.payload, each.before, each.behind) for each in found] == [(b"one", "", "1"), (b"two", "1", "2")]
    assert standing == ["spare"]
    assert stream.opened == ["log"]
    assert Cursors(tmp_path).get(SourceId("log")) == Cursor("1")

    again = Stream(log=[b"one", b"two"])
    follower = Follower([LOG], again, Cursors(tmp_path))
    follower.start()
    assert [each.capture.payload for each in pieces(follower, 1)] == [b"two"]
    follower.close()
    again.closed.set()


def test_the_next_of_the_chain_is_followed_when_the_first_cannot_be(tmp_path: Path) -> None:
    stream = Stream(log=Outcome.NOT_PERMITTED, spare=[b"one"])
    follower = Follower([LOG, SPARE], stream, Cursors(None))
    follower.start()
    found = pieces(follower, 2)
    followed = set(follower.followed)
    follower.close()
    stream.closed.set()

    assert [each.capture.failure for each in found] == [Outcome.NOT_PERMITTED, None]
    assert followed == {"spare"}
    assert follower.standing_by() == []


def test_a_stream_that_breaks_is_told_and_opened_again() -> None:
    stream = Stream(log=RuntimeError("snap"))
    follower = Follower([LOG], stream, Cursors(None), again=0.01)
    follower.start()
    found = pieces(follower, 2)
    follower.close()

    assert found[0].capture.failure is Outcome.UNREACHABLE
    assert "RuntimeError" in found[0].capture.detail
    assert len(stream.opened) >= 2


def test_a_cursor_file_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    (tmp_path / "log.cursor").write_bytes(b"\xff\xfe")

    assert Cursors(tmp_path).get(SourceId("log")) is None
