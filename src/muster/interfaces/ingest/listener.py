# SPDX-License-Identifier: Apache-2.0
"""The listener of reporters as a whole: a loop in a thread of its own, from start to stop."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

from muster.domain.model.errors import InputError, Unavailable
from muster.interfaces.ingest.connection import Connection
from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.meters import Meters
from muster.interfaces.ingest.reception import Reception
from muster.interfaces.ingest.tls import Sealed
from muster.spi.access import Gate, Intake

log = logging.getLogger("muster.ingest")
BACKLOG = 4096
"""Connections that the kernel keeps until they are taken; a site's agents may come back all at once."""
SPARE = 512
"""Files for everything else that the server does."""
ROOM = 1_000
"""Connections for nodes that join later."""
PATIENCE = 10.0
"""Seconds in which the loop begins."""


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Ingest:
    """The door of reporters. `start` returns when it listens, `stop` when all is answered and closed. Not to be started twice.

    Without a ``context`` it speaks plain HTTP, and only on loopback, unless ``unprotected`` says that it may do so anywhere. ``likely`` are connections that
    may well come: it is said when this process may not open files for so many.
    """

    def __init__(
        self,
        gate: Gate,
        intake: Intake,
        clock: Callable[[], float],
        context: ssl.SSLContext | None = None,
        limits: Limits | None = None,
        *,
        version: str = "",
        unprotected: bool = False,
        likely: int = ROOM,
    ) -> None:
        self._gate = gate
        self._intake = intake
        self._clock = clock
        self._context = context
        self._limits = limits or Limits()
        self._version = version
        self._unprotected = unprotected
        self._likely = likely
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reception: Reception | None = None
        self._stop: asyncio.Event | None = None
        self.host = ""
        self.port = 0

    @property
    def meters(self) -> Meters:
        """What it counts; all zero before the start."""
        return self._reception.meters if self._reception is not None else Meters()

    @property
    def sent_away(self) -> int:
        """Reports that could not be taken because the server was too busy."""
        return self.meters.sent_away

    @property
    def alive(self) -> bool:
        """True while its loop runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listens. Port 0 is any that is free; `port` says which. Raises InputError or Unavailable with what stands in the way."""
        if self._context is None and not self._unprotected and not _loopback(host):
            raise InputError(
                f"{host} is not this machine alone, and plain HTTP would show tokens to the network",
                hint="give a certificate, or say that plain HTTP may leave this machine",
            )
        self._limits = replace(self._limits, connections=_that_fit(self._limits.connections, self._likely))
        listening = _listen(host, port)
        begun: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(listening, begun), name="muster-ingest", daemon=True)
        self._thread.start()
        begun.result(PATIENCE)
        self.host, self.port = listening.getsockname()[:2]

    def stop(self) -> None:
        """Takes no more requests, answers those it has, and ends. What was not started is left as it is."""
        if self._loop is None or self._stop is None or self._thread is None:
            return
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(2 * self._limits.grace + PATIENCE)

    def _run(self, listening: socket.socket, begun: Future[None]) -> None:
        loop = self._loop = _new_loop()
        try:
            loop.run_until_complete(self._serve(listening, begun))
        except Exception as error:
            log.exception("the listener of reporters has ended")
            if not begun.done():
                begun.set_exception(error)
        finally:
            listening.close()
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    async def _serve(self, listening: socket.socket, begun: Future[None]) -> None:
        loop = asyncio.get_running_loop()
        stop = self._stop = asyncio.Event()
        reception = self._reception = Reception(self._gate, self._intake, self._clock, self._limits, loop, self._version)
        server = await loop.create_server(self._maker(reception), sock=listening, backlog=BACKLOG)
        begun.set_result(None)
        await stop.wait()
        server.close()
        await reception.close()

    def _maker(self, reception: Reception) -> Callable[[], asyncio.Protocol]:
        context = self._context
        if context is None:
            return lambda: Connection(reception)
        return lambda: Sealed(Connection(reception), context)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _that_fit(connections: int, likely: int) -> int:
    """So many connections as this process may have files for; it takes all that it may have. Says so when they are fewer than are likely to come."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    fitting = connections if most >= wanted else max(most - SPARE, most // 2)
    if fitting < min(connections, likely):
        log.warning("this process may open %d files, so that %d connections are taken, not %d; raise the limit of open files", most, fitting, connections)
    return fitting


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, kind, proto)
    except OSError as error:
        raise Unavailable(f"cannot listen on {host}: {error.strerror or error}", hint="give an address of this machine") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise Unavailable(f"cannot listen on {host} port {port}: {error.strerror or error}", hint="is another server running? Give another port") from error
    return listening
