# SPDX-License-Identifier: Apache-2.0
"""The server: opens the store, makes the one writer, lets time pass, and serves a door on loopback and on a socket. Also embedded, by demo and tests.

The door (`muster.interfaces.api.app.build`) is handed in: what is above is not known here.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import structlog

from muster.domain.model.errors import MusterError
from muster.domain.model.policy import Policy
from muster.services.inventory import Inventory
from muster.services.users import Tokens
from muster.spi.store import RollWriter
from muster.store import open_store
from muster.wiring import holds, listening
from muster.wiring.adapters import adapters, known_vendors
from muster.wiring.authority import Authority
from muster.wiring.desk import Desk, Keeper
from muster.wiring.discovery import SOCKET, Found, announce, withdraw
from muster.wiring.settings import ServerSettings
from muster.wiring.web import PATIENCE, Web
from muster.wiring.whole import whole
from muster.wiring.written import Watched

Door: TypeAlias = Callable[[Desk], Any]
"""Makes an ASGI application on a desk."""
MakeKeeper: TypeAlias = Callable[[RollWriter, Policy, float], Keeper]
Ready: TypeAlias = "Callable[[Server], None] | threading.Event"
"""How the one who started a server is told that it answers."""
STORE = "roll.sqlite"
TIDY = 60.0
"""Seconds between two looks at certificates and at which tokens were used."""

log = structlog.get_logger("muster.server")


def running_version() -> str:
    """The version of this package."""
    try:
        return version("musterroll")
    except PackageNotFoundError:
        return "0+source"


def wall_clock() -> float:
    """Seconds since the epoch."""
    return time.time()  # noqa: TID251 - here the server's one clock is


class Server:
    """One server. `start` returns when it answers; `stop` when everything is closed. Not to be started twice."""

    def __init__(self, settings: ServerSettings, door: Door, *, clock: Callable[[], float] = wall_clock, keeper: MakeKeeper = Inventory) -> None:
        self.settings = settings
        self.url = ""
        self.socket = ""
        self._door = door
        self._clock = clock
        self._make_keeper = keeper
        self._held = ExitStack()
        self._ending = threading.Event()
        self._wrong: dict[str, str] = {}
        self.authority: Authority | None = None
        """The server's authority; None where it listens without TLS."""
        self._threads: dict[str, threading.Thread] = {}

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
        if not settings.in_memory:
            holds.folder(settings.state, "state", "--state", 0o700)
            self._held.enter_context(holds.hold(settings.state))
        unix = self._held.enter_context(holds.listen_here(runtime))
        self._held.callback((runtime / SOCKET).unlink, missing_ok=True)
        self._desk = self._open()
        self.url = listening.url(settings, tcp)
        self.socket = str(runtime / SOCKET)
        self.authority = listening.authority(settings, self._clock()) if listening.secure(settings) else None
        self._serve_on(tcp, unix)
        self._thread("time", self._pass_time)
        self._held.callback(self._end_time)
        announce(runtime, Found(url=self.url, socket=self.socket, pid=os.getpid(), state=self._store_name(), version=running_version()))
        self._held.callback(withdraw, runtime, os.getpid())

    def _store_name(self) -> str:
        return "memory" if self.settings.in_memory else str(self.settings.state)

    def _open(self) -> Desk:
        store = open_store(None if self.settings.in_memory else self.settings.state / STORE)
        self._held.callback(store.close)
        self._writer = Watched(store.writer, store.probe)
        self._unread = store.unread
        self.connections = store.connections
        known = adapters()
        words = frozenset(word.lower() for each in known for word in each.manifest.words)
        policy = self.settings.policy(frozenset(known_vendors(known)), words)
        self._tokens = Tokens(store.users, os.urandom, listening.issuer(self.settings, listening.outgoing(self.settings)))
        with whole(store.connections.name, store.writer):
            keeper = self._make_keeper(self._writer, policy, self._clock())
        return Desk(
            reader=store.reader,
            keeper=keeper,
            policy=policy,
            clock=self._clock,
            adapters=tuple(known),
            version=running_version(),
            well=self._not_well,
            notes=self._notes,
            entrance=listening.entrance(self.settings),
            users=self._tokens,
            verify=store.verify,
        )

    @property
    def desk(self) -> Desk:
        """The desk of a server that was started: for those who embed it."""
        return self._desk

    def _serve_on(self, tcp: socket.socket, unix: socket.socket) -> None:
        web = Web(self._door(self._desk), [(tcp, self.authority.context() if self.authority else None), (unix, None)])
        self._threads["web"] = web.thread
        web.start()
        self._held.callback(web.stop)

    def _thread(self, name: str, run: Callable[[], None]) -> None:
        self._threads[name] = threading.Thread(target=run, name=f"muster-{name}", daemon=True)
        self._threads[name].start()

    def _pass_time(self) -> None:
        trimmed = tidied = time.monotonic()
        while not self._ending.wait(self.settings.tick):
            trim = time.monotonic() - trimmed >= self.settings.trim
            try:
                self._desk.tick()
                if trim:
                    trimmed = time.monotonic()
                    with self._desk.lock:
                        self._writer.trim(self._clock(), self.settings.keep())
                if time.monotonic() - tidied >= TIDY:
                    tidied = time.monotonic()
                    self._tidy()
                self._wrong.pop("time", None)
            except MusterError as error:
                if "time" not in self._wrong:
                    log.warning("time does not pass", problem=error.message, hint=error.hint)
                self._wrong["time"] = error.message
            with self._desk.lock:
                self._writer.retry()

    def _tidy(self) -> None:
        """Certificates that end are made or taken anew, and it is written down which tokens were used."""
        if self.authority is not None:
            self.authority.refresh(self._clock())
        self._tokens.flush(self._clock())

    def _end_time(self) -> None:
        self._ending.set()
        self._threads["time"].join(PATIENCE)

    def _not_well(self) -> dict[str, str]:
        dead = {name: "has ended; restart the server" for name, thread in self._threads.items() if not thread.is_alive()}
        store = {"store": self._writer.trouble} if self._writer.trouble else {}
        return {**self._wrong, **store, **dead}

    def _notes(self) -> dict[str, str]:
        unread, certificate = self._unread.told(), self.authority.trouble if self.authority else ""
        return ({"store": unread} if unread else {}) | ({"certificate": certificate} if certificate else {})

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
        return any(not thread.is_alive() for thread in self._threads.values())


def serve(
    settings: ServerSettings, door: Door, *, ready: Callable[[Server], None] | threading.Event | None = None, until: threading.Event | None = None
) -> int:
    """Serves until SIGTERM or SIGINT (or ``until`` is set), then stops in order. ``ready`` is told once it answers. Returns 1 when a part broke, else 0."""
    ending = until or threading.Event()
    server = Server(settings, door)
    server.start()
    before = _on_signals(ending)
    try:
        log.info("serving", url=server.url, socket=server.socket, store=server._store_name(), version=running_version(), **_authority(server))
        if settings.plain_http_beyond_loopback:
            log.warning("no TLS beyond loopback: whoever is on the way reads every token and every answer", setting="plain_http_beyond_loopback")
        if isinstance(ready, threading.Event):
            ready.set()
        elif ready is not None:
            ready(server)
        while not ending.wait(1.0) and not server.broken:
            pass
    finally:
        log.info("stopping")
        broken = server.broken
        server.stop()
        for number, handler in before.items():
            signal.signal(number, handler)
    return 1 if broken else 0


def _authority(server: Server) -> dict[str, str]:
    return {"authority": server.authority.fingerprint} if server.authority else {}


def _on_signals(ending: threading.Event) -> dict[int, Any]:
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, lambda *_: ending.set()) for number in (signal.SIGTERM, signal.SIGINT)}


def configure_logs(settings: ServerSettings) -> None:
    """Logs of this process to stderr, in the form that was asked for."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    last: list[Any] = (
        [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
        if settings.log_format == "json"
        else [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)]
    )
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    structlog.configure(
        processors=[structlog.processors.add_log_level, stamp, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=max(level, logging.WARNING), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
