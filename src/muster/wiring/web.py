# SPDX-License-Identifier: Apache-2.0
"""Serves an application on sockets, with TLS or without, in a thread of its own; and tells it who is at the other end of a local socket."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import uvicorn

from muster.domain.model.errors import Unavailable
from muster.wiring import seats
from muster.wiring.entrance import PEER
from muster.wiring.patience import Handshake, PatientHttp
from muster.wiring.seats import Seats

PATIENCE = 15.0
"""Seconds in which it starts or stops."""
GRACE = 5
"""Seconds that requests which run are given at the end."""
_CREDENTIALS = struct.Struct("3i")


class PeerHttp(PatientHttp):
    """HTTP that knows the user id at the other end of a local socket, by the kernel's word; it stands where the address of a client by TCP would."""

    def connection_made(self, transport: Any) -> None:
        """Asks the kernel, once for each connection."""
        super().connection_made(transport)
        found = peer(transport.get_extra_info("socket"))
        if found is not None:
            self.client = (PEER, found)


def peer(told: Any) -> int | None:
    """The user id at the other end; None for a socket that is not local."""
    if told is None or told.family != socket.AF_UNIX:
        return None
    with socket.socket(fileno=os.dup(told.fileno())) as own:
        uid: int = _CREDENTIALS.unpack(own.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
    return uid


class Web:
    """The application on its sockets. Not to be started twice."""

    def __init__(self, app: Any, listeners: Sequence[tuple[socket.socket, ssl.SSLContext | None]]) -> None:
        self._app = app
        self._servers = [(uvicorn.Server(_config(app, _protocol(listener, context))), listener) for listener, context in listeners]
        self.thread = threading.Thread(target=self._run, name="muster-web", daemon=True)

    def start(self) -> None:
        """Returns when every socket is served. Raises Unavailable."""
        self.thread.start()
        until = time.monotonic() + PATIENCE
        while not all(server.started for server, _ in self._servers):
            if not self.thread.is_alive() or time.monotonic() > until:
                raise Unavailable("the web server does not start", hint="the log says more")
            time.sleep(0.01)

    def stop(self) -> None:
        """Ends requests that run, then the thread."""
        for server, _ in self._servers:
            server.should_exit = True
        self.thread.join(PATIENCE)
        rooms = getattr(getattr(self._app, "state", None), "rooms", None)
        if rooms is not None:
            rooms.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=self._servers[0][0].config.get_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        await asyncio.gather(*(server.serve(sockets=[listener]) for server, listener in self._servers))


def _protocol(listener: socket.socket, context: ssl.SSLContext | None) -> Any:
    """Makes what speaks with one who connects. TLS is ours to begin, so that the handshake has its seat and its time too."""
    local = listener.family == socket.AF_UNIX
    here = Seats("the socket", seats.LOCAL, seats.LOCAL) if local else Seats("the API", seats.MOST, seats.EACH)

    def make(*args: Any, **more: Any) -> PeerHttp:
        http = PeerHttp(*args, **more)
        http.seats = here
        return http

    if context is None:
        return make
    return lambda *args, **more: Handshake(partial(make, *args, **more), context, here)


def _config(app: Any, protocol: Any) -> uvicorn.Config:
    """As we serve: headers that tell of a proxy are not believed, for they could name any client."""
    return uvicorn.Config(
        app,
        http=protocol,
        proxy_headers=False,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        backlog=128,
    )
