# SPDX-License-Identifier: Apache-2.0
"""The users' door in a process of its own. It reads the store by itself; what changes something is handed to the writer.

The process is parted from the server's before that has threads, and ends with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any

from muster.domain.model.errors import MusterError, Unavailable
from muster.services.users import Tokens
from muster.services.users_near import NearTokens
from muster.wiring import listening
from muster.wiring.adapters import adapters
from muster.wiring.authority import Authority
from muster.wiring.desk import Desk
from muster.wiring.handed import Handed
from muster.wiring.settings import ServerSettings
from muster.wiring.web import Web
from muster.wiring.writing import opened, policy_of

PATIENCE = 60.0
"""Seconds in which the door opens."""
SWITCH = 0.0005
"""Seconds after which a thread lets another go on: an answer must not wait for a refresh of columns."""
SWEEP = (1_000, 5, 4_000)
"""When the collector looks: at what is new for less than a millisecond, and hardly ever at all that is kept, which would hold up every request."""
_PARENT_DIES = 1
"""prctl's PR_SET_PDEATHSIG."""


class Apart:
    """The door's process, as the server's process holds it."""

    def __init__(self, pid: int, begun: Connection) -> None:
        self.pid = pid
        self._begun = begun
        self._ended: int | None = None

    def begin(self, secure: bool) -> None:
        """Lets it open, and returns when it answers. Raises Unavailable with what it said when it does not."""
        self._begun.send(secure)
        try:
            why = self._begun.recv() if self._begun.poll(PATIENCE) else "it takes too long"
        except (EOFError, OSError):
            why = "it ended at once; the log says more"
        if why:
            raise Unavailable(f"the door does not open: {why}", hint='the log says more; `door = "inside"` does without a process of its own')

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        if self._ended is None:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self._ended = status if pid else None
        return self._ended is None

    def stop(self) -> None:
        """Ends it. One that still waits to be let open sees that nobody will."""
        self._begun.close()
        until = time.monotonic() + 20
        with contextlib.suppress(ProcessLookupError):
            if self.alive:
                os.kill(self.pid, signal.SIGTERM)
            while self.alive and time.monotonic() < until:
                time.sleep(0.02)
            if self.alive:
                os.kill(self.pid, signal.SIGKILL)


def part(
    settings: ServerSettings, door: Callable[[Desk], Any], tcp: socket.socket, unix: socket.socket, version: str, clock: Callable[[], float]
) -> tuple[Apart, Connection]:
    """Parts the door's process, which goes by ``clock``. Returns what holds it, and the writer's end of the line."""
    mine, theirs = Pipe()
    line, call = Pipe()
    pid = os.fork()
    if pid:
        theirs.close()
        call.close()
        return Apart(pid, mine), line
    mine.close()
    line.close()
    code = 1
    try:
        code = _run(settings, door, (tcp, unix), version, clock, theirs, call)
    finally:
        os._exit(code)


def _run(
    settings: ServerSettings,
    door: Callable[[Desk], Any],
    sockets: tuple[socket.socket, socket.socket],
    version: str,
    clock: Callable[[], float],
    begun: Connection,
    call: Connection,
) -> int:
    """The life of the door's process."""
    ctypes.CDLL(None).prctl(_PARENT_DIES, signal.SIGTERM)
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    try:
        secure = begun.recv()
    except EOFError:
        return 0
    sys.setswitchinterval(SWITCH)
    try:
        store = opened(settings, alone=False)
        handed = Handed(call)
        made = listening.authority(settings, clock()) if secure else None
        desk = _desk(settings, store, handed, version, clock)
        web = Web(door(desk), [(sockets[0], made.context() if made else None), (sockets[1], None)])
        web.start()
    except Exception as error:  # noqa: BLE001 - whatever it is must be told to the process that waits for us
        begun.send(f"{type(error).__name__}: {error}")
        return 1
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SWEEP)
    begun.send("")
    refreshed = time.monotonic()
    while not ending.wait(1.0) and web.thread.is_alive():
        if time.monotonic() - refreshed > PATIENCE:
            refreshed = time.monotonic()
            _tidy(made, desk, clock())
    web.stop()
    store.close()
    return 0 if ending.is_set() else 1


def _tidy(made: Authority | None, desk: Desk, now: float) -> None:
    """A certificate that was renewed is taken, and the writer is told which tokens were used."""
    if made is not None:
        made.refresh(now)
    if isinstance(desk.users, NearTokens):
        with contextlib.suppress(MusterError):
            desk.users.flush(now)


def _desk(settings: ServerSettings, store: Any, handed: Handed, version: str, clock: Callable[[], float]) -> Desk:
    known = tuple(adapters())
    server = handed.object("server")
    return Desk(
        reader=store.reader,
        keeper=handed.object("keeping"),
        policy=policy_of(settings, known),
        clock=clock,
        adapters=known,
        version=version,
        well=server.not_well,
        notes=server.notes,
        entrance=listening.entrance(settings),
        users=NearTokens(Tokens(store.users, os.urandom, listening.issuer(settings, listening.outgoing(settings))), handed.object("tokens")),
        verify=store.verify,
        enrolment=handed.object("enrolment"),
        numbers=store.numbers,
        answers=store.answers,
        meters=server.meters,
    )
