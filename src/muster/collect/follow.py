# SPDX-License-Identifier: Apache-2.0
"""Follows the streams, each in a thread of its own, and keeps their cursors on disk, so that a restart goes on where it left off."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.collect.edge import Edge
from muster.domain.model.source import Capture, Outcome, Source, SourceId
from muster.spi.readers import Cursor, StreamReader

_log = logging.getLogger("muster.follow")

AGAIN_S = 30.0
"""Seconds until a stream that ended, or could not be opened, is opened again."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What came from a stream: the capture, and the cursors before and behind it."""

    source: Source
    capture: Capture
    before: str
    behind: str


class Cursors:
    """Cursors by source, one small file each. Without a folder they live as long as the process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._known: dict[SourceId, str] = {}

    def get(self, source: SourceId) -> Cursor | None:
        """Where the stream was left; None when it was never read."""
        if source not in self._known and self._folder is not None:
            try:
                self._known[source] = (self._folder / f"{source}.cursor").read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                return None
        text = self._known.get(source, "")
        return Cursor(text) if text else None

    def put(self, source: SourceId, text: str) -> None:
        """Remembers where the stream is, once what came before is safe."""
        self._known[source] = text
        if self._folder is None:
            return
        part = self._folder / f"{source}.part"
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.write_text(text + "\n", encoding="utf-8")
            part.replace(self._folder / f"{source}.cursor")
        except OSError as error:
            _log.warning("the cursor of %s is not kept: %s", source, error.strerror)


class Follower:
    """Runs the streams and hands over what came. Of a chain only the first that can be opened is followed."""

    def __init__(self, sources: Sequence[Source], reader: StreamReader, cursors: Cursors, again: float = AGAIN_S) -> None:
        self.came: Callable[[], None] = lambda: None
        """Called from the stream's thread when something came."""
        self._reader = reader
        self._cursors = cursors
        self._again = again
        self._came: queue.Queue[Piece] = queue.Queue(maxsize=64)
        self._closed = threading.Event()
        self._chains = _chains(sources)
        self.followed: set[SourceId] = set()
        """Streams that are open now."""
        self._threads = [threading.Thread(target=self._run, args=(chain,), name=f"follow-{chain[0].id}", daemon=True) for chain in self._chains]

    def start(self) -> None:
        """Begins to follow."""
        for thread in self._threads:
            thread.start()

    def take(self) -> list[Piece]:
        """What came since the last call, in order."""
        found: list[Piece] = []
        try:
            while True:
                found.append(self._came.get_nowait())
        except queue.Empty:
            return found

    def standing_by(self) -> list[Source]:
        """Streams that are not needed, because one before them in their chain is followed."""
        found: list[Source] = []
        for chain in self._chains:
            place = next((at for at, each in enumerate(chain) if each.id in self.followed), len(chain))
            found += chain[place + 1 :]
        return found

    def lost(self) -> str:
        """The name of a thread that ended though nobody closed this; empty when there is none."""
        ended = (each.name for each in self._threads if each.ident is not None and not each.is_alive())
        return "" if self._closed.is_set() else next(ended, "")

    def close(self) -> None:
        """Lets the threads end; who closes the reader ends what they wait for."""
        self._closed.set()

    def _run(self, chain: Sequence[Source]) -> None:
        while not self._closed.is_set():
            with Edge() as edge:
                for source in chain:
                    if self._follow(source):
                        break
            if edge.broke:
                _log.error("%s is opened again after a while: %s", chain[0].id, edge.broke)
            self._closed.wait(self._again)

    def _follow(self, source: Source) -> bool:
        """Follows until the stream ends. False when it could not be opened."""
        cursor = self._cursors.get(source.id)
        before = cursor.text if cursor else ""
        self.followed.add(source.id)
        opened = True
        try:
            for place, (capture, behind) in enumerate(self._reader.follow(source, cursor)):
                opened = place > 0 or capture.failure is None
                if not opened:
                    self.followed.discard(source.id)
                self._hand(Piece(source, capture, before, behind.text))
                before = behind.text
        except Exception as error:  # noqa: BLE001 - the edge of the worker: a stream that breaks must not end the agent
            opened = False
            self._hand(Piece(source, _broken(source, error), before, before))
        finally:
            self.followed.discard(source.id)
        return opened

    def _hand(self, piece: Piece) -> None:
        while not self._closed.is_set():
            try:
                self._came.put(piece, timeout=0.5)
            except queue.Full:
                continue
            self.came()
            return


def _broken(source: Source, error: Exception) -> Capture:
    read = source.reads[0]
    detail = f"the stream broke: {type(error).__name__}: {str(error)[:200]}"
    return Capture(source=source.id, locator=read.locator, format=read.format, failure=Outcome.UNREACHABLE, detail=detail)


def _chains(sources: Sequence[Source]) -> list[list[Source]]:
    """Sources by chain, leaders first."""
    ids = {each.id for each in sources}
    chains = [[each] for each in sources if each.after not in ids]
    for chain in chains:
        while (behind := next((each for each in sources if each.after == chain[-1].id and each not in chain), None)) is not None:
            chain.append(behind)
    return chains
