# SPDX-License-Identifier: Apache-2.0
"""The server: the writer's half, a door for users on TCP and on a socket, and one for reporters. Also embedded, by demo and tests.

The doors are handed in: what is above is not known here. On a large site the users' door has a process of its own (`apart`).
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeAlias

import structlog

from muster.domain.model.access import Reach, Scope
from muster.domain.model.errors import MusterError
from muster.services.users_near import HANDED
from muster.spi.access import Gate, Intake
from muster.wiring import holds, listening
from muster.wiring.apart import Apart, part
from muster.wiring.authority import Authority, join_line
from muster.wiring.desk import Desk
from muster.wiring.discovery import SOCKET, Found, announce, withdraw
from muster.wiring.handed import Handing
from muster.wiring.settings import INGEST_PORT, ServerSettings
from muster.wiring.web import Web
from muster.wiring.writing import MakeKeeper, Writing, store_name

Door: TypeAlias = Callable[[Desk], Any]
"""Makes an ASGI application on a desk."""
Ready: TypeAlias = "Callable[[Server], None] | threading.Event"
"""How the one who started a server is told that it answers."""
JOIN_FOR = 3600.0
"""Seconds for which the token is good that a server prints at its start."""

log = structlog.get_logger("muster.server")


class Ingest(Protocol):
    """The door of reporters."""

    port: int

    @property
    def alive(self) -> bool:
        """True while it listens."""

    @property
    def sent_away(self) -> int:
        """Reports that could not be taken because the server was too busy."""

    def start(self, host: str, port: int) -> None:
        """Listens."""

    def stop(self) -> None:
        """Answers what it has, and ends."""

    def figures(self) -> Mapping[str, float]:
        """What it counts, by name."""


MakeIngest: TypeAlias = Callable[[Gate, Intake, Callable[[], float], Any, ServerSettings], Ingest]
"""Makes a door of reporters on a gate, an intake, a clock, a TLS context and the settings."""


def running_version() -> str:
    """The version of this package."""
    try:
        return version("musterroll")
    except PackageNotFoundError:
        return "0+source"


class Server:
    """One server. `start` returns when it answers; `stop` when everything is closed. Not to be started twice."""

    def __init__(
        self,
        settings: ServerSettings,
        door: Door,
        ingest: MakeIngest | None = None,
        *,
        clock: Callable[[], float] | None = None,
        keeper: MakeKeeper | None = None,
    ) -> None:
        self.settings = settings
        self.url = self.socket = ""
        self.writing = Writing(settings, clock, keeper)
        self.ingest: Ingest | None = None
        self._door = door
        self._make_ingest = ingest
        self._held = ExitStack()
        self._alive: dict[str, Callable[[], bool]] = {}

    def start(self) -> None:
        """Starts everything. Raises MusterError with what stands in the way; nothing is left behind then."""
        with ExitStack() as held:
            self._held = held
            self._start()
            self._held = held.pop_all()

    def _start(self) -> None:
        settings = self.settings
        listening.check(settings)
        runtime = holds.folder(settings.runtime, "runtime", "--runtime", 0o755 if os.geteuid() == 0 else 0o700)
        tcp = self._held.enter_context(holds.listen(settings.host, settings.port))
        unix = self._held.enter_context(holds.listen_here(runtime))
        self._held.callback((runtime / SOCKET).unlink, missing_ok=True)
        apart = self._part(tcp, unix) if settings.door == "apart" else None
        self._held.callback(self.writing.stop)
        self.writing.start()
        self.url, self.socket = listening.url(settings, tcp), str(runtime / SOCKET)
        self._open_ingest()
        if apart is None:
            self._serve_on(tcp, unix)
        else:
            self._hand(*apart)
        announce(runtime, Found(url=self.url, socket=self.socket, pid=os.getpid(), state=store_name(settings), version=running_version()))
        self._held.callback(withdraw, runtime, os.getpid())

    def _part(self, tcp: socket.socket, unix: socket.socket) -> tuple[Apart, Connection]:
        """Parts the door's process from this one, before there are threads."""
        child, line = part(self.settings, self._door, tcp, unix, running_version(), self.writing.told)
        self._held.callback(child.stop)
        self._alive["door"] = lambda: child.alive
        return child, line

    def _hand(self, child: Apart, line: Connection) -> None:
        """Hands the door what it may ask of the writer."""
        writing = self.writing
        handing = Handing(line, {name: (made, methods) for name, (made, methods) in self._handed().items() if made is not None})
        handing.start()
        self._held.callback(handing.close)
        child.begin(writing.authority is not None and listening.secure(self.settings))

    def _handed(self) -> dict[str, tuple[Any, tuple[str, ...]]]:
        writing = self.writing
        return {
            "keeping": (writing.keeping, ("report", "act", "acknowledge")),
            "tokens": (writing.tokens, HANDED),
            "enrolment": (writing.enrolment, ("mint", "tokens", "drop", "members", "revoke", "reenrol", "where")),
            "answers": (writing.store.answers, ("keep", "drop_older")),
            "server": (self, ("not_well", "notes", "meters")),
        }

    def not_well(self) -> dict[str, str]:
        """What is not well with the server, by check."""
        dead = {name: "has ended; restart the server" for name, alive in self._alive.items() if not alive()}
        return {**self.writing.not_well(), **dead}

    def notes(self) -> dict[str, str]:
        """What a person should know of a server that does its work all the same."""
        return self.writing.notes()

    def meters(self) -> dict[str, float]:
        """Figures of its work, by name."""
        return {**self.writing.meters(), **(self.ingest.figures() if self.ingest is not None else {})}

    def _open_ingest(self) -> None:
        writing, settings = self.writing, self.settings
        if self._make_ingest is None or not writing.listens or writing.enrolment is None or writing.authority is None:
            return
        made = self.ingest = self._make_ingest(writing.enrolment, writing.keeping, writing.clock, writing.authority.context(), settings)
        made.start(settings.host, INGEST_PORT if settings.ingest_port is None else settings.ingest_port)
        self._held.callback(made.stop)
        writing.sent_away = lambda: made.sent_away
        self._alive["reporters"] = lambda: made.alive
        name = next(iter(listening.names(settings)), "") if holds.address_of(settings.host).is_unspecified else str(holds.address_of(settings.host))
        writing.address = f"https://[{name}]:{made.port}" if ":" in name else f"https://{name or 'localhost'}:{made.port}"

    def desk_of(self, door: Mapping[str, Any]) -> Desk:
        """A desk on this process' own parts, with ``door`` in the place of some."""
        writing = self.writing
        parts: dict[str, Any] = {
            "reader": writing.store.reader,
            "keeper": writing.keeping,
            "policy": writing.policy,
            "clock": writing.clock,
            "adapters": writing.adapters,
            "version": running_version(),
            "well": self.not_well,
            "notes": self.notes,
            "entrance": listening.entrance(self.settings),
            "users": writing.tokens,
            "verify": writing.store.verify,
            "enrolment": writing.enrolment,
            "numbers": writing.store.numbers,
            "answers": writing.store.answers,
            "meters": self.meters,
        }
        return Desk(**{**parts, **door})

    @property
    def desk(self) -> Desk:
        """The desk of a server that was started: for those who embed it."""
        return self._desk

    @property
    def authority(self) -> Authority | None:
        """The server's authority; None where it needs none."""
        return self.writing.authority

    def _serve_on(self, tcp: socket.socket, unix: socket.socket) -> None:
        self._desk = self.desk_of({})
        secure = self.writing.authority if listening.secure(self.settings) else None
        web = Web(self._door(self._desk), [(tcp, secure.context() if secure else None), (unix, None)])
        web.start()
        self._alive["web"] = web.thread.is_alive
        self._held.callback(web.stop)

    def join_line(self) -> str:
        """The line that joins the first node, with a token for any node that is good once, for an hour.

        Empty where reporters cannot come in, and where one has joined: who is to come after that, an admin says.
        """
        enrolment = self.writing.enrolment
        if self.ingest is None or enrolment is None or self.writing.authority is None or not self.writing.keeping.begun or enrolment.members():
            return ""
        _, text = enrolment.mint(Scope(reach=Reach.NODE), 1, JOIN_FOR, "the server's start", self.writing.clock())
        return join_line(self.writing.address, self.writing.authority.fingerprint, text)

    def stop(self) -> None:
        """Ends requests that run, time, and the store, in that order. A server that was not started is left as it is."""
        self._held.close()

    def __enter__(self) -> Server:
        """Starts it."""
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stops it."""
        self.stop()

    @property
    def broken(self) -> bool:
        """True when a part of it ended by itself."""
        threads = self.writing.threads.values()
        return any(not alive() for alive in self._alive.values()) or any(not thread.is_alive() for thread in threads)


def serve(
    settings: ServerSettings,
    door: Door,
    ingest: MakeIngest | None = None,
    *,
    ready: Ready | None = None,
    until: threading.Event | None = None,
) -> int:
    """Serves until SIGTERM or SIGINT (or ``until`` is set), then stops in order. ``ready`` is told once it answers. Returns 1 when a part broke, else 0.

    Who is told to end while it starts does so as soon as it has: the right to write, once taken, is given back.
    """
    ending = until or threading.Event()
    server = Server(settings, door, ingest)
    with _signals(ending):
        server.start()
        _tidy_seldom()
        try:
            _say(server, ready)
            while not ending.wait(1.0) and not server.broken:
                pass
        finally:
            log.info("stopping")
            _tell_audit(server, "the audit log as this server leaves it")
            broken = server.broken
            server.stop()
    return 1 if broken else 0


def _say(server: Server, ready: Ready | None) -> None:
    """That it serves, to whoever wants to know."""
    settings = server.settings
    log.info("serving", url=server.url, socket=server.socket, store=store_name(settings), version=running_version(), **_authority(server))
    if settings.plain_http_beyond_loopback:
        log.warning("no TLS beyond loopback: whoever is on the way reads every token and every answer", setting="plain_http_beyond_loopback")
    if isinstance(ready, threading.Event):
        ready.set()
    elif ready is not None:
        ready(server)
    _tell_audit(server, "the audit log as this server found it")
    _say_join(server)


def _tell_audit(server: Server, what: str) -> None:
    """Its length and its last digest, for a log that is kept elsewhere: what is cut off its end later is missed there."""
    try:
        entries, digest = server.writing.store.audit_head()
    except MusterError as error:
        log.warning(what, problem=error.message)
    else:
        log.info(what, entries=entries, head=digest)


def _tidy_seldom() -> None:
    """Merge makes many short-lived objects and few cycles: what stands since the start is looked at no more, and the rest seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _say_join(server: Server) -> None:
    """How a node joins. The token is a secret: it goes to a terminal, and into no journal."""
    if server.ingest is None:
        return
    try:
        line = server.join_line() if sys.stderr.isatty() else ""
    except MusterError as error:
        log.warning("no token to join by was made", problem=error.message)
        line = ""
    told = (
        f"muster: a node joins by\n  {line}"
        if line
        else f"muster: reporters come in at {server.writing.address}; `muster agent token create` prints the line that joins"
    )
    sys.stderr.write(f"{told}\n")
    sys.stderr.flush()


def _authority(server: Server) -> dict[str, str]:
    return {"authority": server.authority.fingerprint} if server.authority else {}


@contextmanager
def _signals(ending: threading.Event) -> Iterator[None]:
    """Signals that say to end set ``ending`` while this lasts; for the thread that gets them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: ending.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
