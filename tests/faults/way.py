# SPDX-License-Identifier: Apache-2.0
"""A way between agents and a server that can be cut as networks cut it: nobody listens, a reset, bytes that vanish, answers that vanish, one end closed."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from enum import Enum

from tests.faults.site import free_port

_RESET = struct.pack("ii", 1, 0)
_STEP = 65536


class Cut(Enum):
    """How it is cut."""

    OPEN = "open"
    REFUSED = "refused"
    """Nobody listens: a machine that is there, and a port that is not."""
    RESET = "reset"
    """What stands is reset, and what comes is reset."""
    SILENT = "silent"
    """Connections are made and stand, and no byte goes either way: a cable that was pulled. What was on the way arrives when it is put back."""
    ANSWERS_LOST = "answers lost"
    """What the agent says arrives; what it is told does not."""
    HALF_CLOSED = "half closed"
    """What the agent says arrives, and before the answer it is told that the other end will say no more."""


class Way:
    """A proxy on a port of loopback, which goes on until it is closed. TLS goes through it as it is."""

    def __init__(self, to: int) -> None:
        self.to, self.port = to, free_port()
        self.cut = Cut.OPEN
        self.connections = 0
        self.lost = 0
        """Bytes that vanished on the way."""
        self._ended = threading.Event()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listens: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="way", daemon=True)
        self._thread.start()

    def set(self, cut: Cut) -> None:
        """Cuts it, or lets it be whole again: a connection that lost bytes is gone then."""
        self.cut = cut

    def close(self) -> None:
        """Ends it."""
        self._ended.set()
        self._thread.join(10)

    def _run(self) -> None:
        was = Cut.OPEN
        while not self._ended.is_set():
            cut = self.cut
            if cut is not was and (cut in (Cut.REFUSED, Cut.RESET) or was in (Cut.ANSWERS_LOST, Cut.HALF_CLOSED)):
                self._drop(reset=cut is Cut.RESET)
            was = cut
            self._listen(wanted=cut is not Cut.REFUSED)
            self._step(cut)
        self._drop(reset=False)
        self._listen(wanted=False)

    def _listen(self, *, wanted: bool) -> None:
        if wanted and self._listens is None:
            self._listens = socket.create_server(("127.0.0.1", self.port), backlog=16)
        elif not wanted and self._listens is not None:
            self._listens.close()
            self._listens = None

    def _drop(self, *, reset: bool) -> None:
        for pair in self._pairs:
            for each in pair:
                _ended(each, reset=reset)
        self._pairs.clear()

    def _step(self, cut: Cut) -> None:
        ends = {} if cut is Cut.SILENT else {each: (pair, place) for pair in self._pairs for place, each in enumerate(pair)}
        watched = [*ends, *([self._listens] if self._listens is not None else [])]
        ready = select.select(watched, [], [], 0.05)[0] if watched else []
        if not watched:
            self._ended.wait(0.05)
        for each in ready:
            if each is self._listens:
                self._come(each, cut)
            elif ends[each][0] in self._pairs:
                self._carry(*ends[each], cut)

    def _come(self, listens: socket.socket, cut: Cut) -> None:
        agent, _ = listens.accept()
        self.connections += 1
        if cut is Cut.RESET:
            _ended(agent, reset=True)
            return
        try:
            self._pairs.append((agent, socket.create_connection(("127.0.0.1", self.to), timeout=5)))
        except OSError:
            _ended(agent, reset=True)

    def _carry(self, pair: tuple[socket.socket, socket.socket], place: int, cut: Cut) -> None:
        """Bytes of one end to the other: place 0 is the agent's."""
        try:
            told = pair[place].recv(_STEP)
            if told and place == 1 and cut is Cut.ANSWERS_LOST:
                self.lost += len(told)
                return
            if told and place == 1 and cut is Cut.HALF_CLOSED:
                self.lost += len(told)
                pair[0].shutdown(socket.SHUT_WR)
                return
            if told:
                pair[1 - place].sendall(told)
                return
        except OSError:
            pass
        self._pairs.remove(pair)
        for each in pair:
            _ended(each, reset=False)


def _ended(each: socket.socket, *, reset: bool) -> None:
    with contextlib.suppress(OSError):
        if reset:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        each.close()
