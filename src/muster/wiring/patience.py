# SPDX-License-Identifier: Apache-2.0
"""HTTP for users on one connection, with patience that ends: for a handshake, a head, a body, and for what still comes when all is said."""

from __future__ import annotations

import asyncio
import logging
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muster.wiring.seats import Seat, Seats
from muster.wiring.seldom import Seldom

HEAD_TIME = 10.0
"""Seconds for a handshake; then for the head of a request, from the connection's begin or from its first byte."""
BODY_TIME = 60.0
"""Seconds from the end of a head to the end of its body."""
SLOW = 30.0
"""Seconds in which who is sent something must take some of it."""
LINGER = 2.0
"""Seconds for one who still sends when the answer is given to read it."""
HEAD = 64 * 1024
"""Bytes of a head."""
DRAIN = 64 * 1024
"""Bytes that are still read when the answer is given."""


class _Warnings(logging.Filter):
    """Lets a warning of the web server through once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._seldom = Seldom()

    def filter(self, record: logging.LogRecord) -> bool:
        """Errors always; warnings by their text."""
        return record.levelno != logging.WARNING or self._seldom.may(str(record.msg))


_log = logging.getLogger("uvicorn.error")
_log.addFilter(_Warnings())


class PatientHttp(HttpToolsProtocol):
    """The protocol of the web server, with a seat and a clock. `seats` is set by who makes it, `seat` by who has one already."""

    seats: Seats
    seat: Seat | None = None

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.logger = _log
        self._alarm: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._head = 0
        self._drain = -1
        self._whole = True

    def connection_made(self, transport: Any) -> None:
        """Takes a seat, or goes."""
        super().connection_made(transport)
        if self.seat is None:
            self.seat = self.seats.take(self.client[0] if self.client else "", transport.abort)
        else:
            self.seat.cut = transport.abort
        if self.seat is None:
            transport.abort()
        else:
            self._wait(HEAD_TIME)

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives the seat back."""
        self._free()
        self._flows()
        if self.seat is not None:
            self.seat.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes: of a head, of a body, or of what nobody reads any more."""
        if self.transport.is_closing():
            return
        if self._drain >= 0:
            self._drain -= len(data)
            if self._drain < 0:
                self.transport.close()
                return
        elif self._whole:
            self._head += len(data)
            if self._alarm is None and not self._busy:
                self._wait(HEAD_TIME)
        super().data_received(data)
        if self._whole and self._head > HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._wait(HEAD_TIME)

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self._head, self._whole = 0, False
        if self.seat is not None:
            self.seat.work()
        self._wait(BODY_TIME)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """It is whole: now the answer may take its time."""
        self._head, self._whole, self._drain = 0, True, -1
        self._free()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is given. What is still to come of the request is of no use."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if not self._whole:
            self._drain = DRAIN
            self._wait(LINGER)
        if self.seat is not None and not self.pipeline:
            self.seat.rest()

    def pause_writing(self) -> None:
        """More was sent than is read."""
        super().pause_writing()
        self._flows()
        self._stuck = self.loop.call_later(SLOW, self._overdue)

    def resume_writing(self) -> None:
        """What was sent is read."""
        self._flows()
        super().resume_writing()

    def _flows(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _wait(self, seconds: float) -> None:
        self._free()
        self._alarm = self.loop.call_later(seconds, self._overdue)

    def _free(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _overdue(self) -> None:
        self._alarm = None
        self.transport.abort()


class Handshake(asyncio.Protocol):
    """A connection that is to speak TLS: it has a seat from its first moment, so that who never shakes hands is counted too."""

    def __init__(self, make: Callable[[], PatientHttp], context: ssl.SSLContext, seats: Seats) -> None:
        self._make = make
        self._context = context
        self._seats = seats

    def connection_made(self, transport: Any) -> None:
        """Takes a seat, or goes; what comes next is TLS, and HTTP within."""
        peer = transport.get_extra_info("peername")
        seat = self._seats.take(str(peer[0]) if isinstance(peer, tuple) else "", transport.abort)
        if seat is None:
            transport.abort()
            return
        http = self._make()
        http.seat = seat
        loop = asyncio.get_running_loop()
        make: Any = _Sealed
        sealed = make(loop, http, self._context, None, server_side=True, ssl_handshake_timeout=HEAD_TIME, ssl_shutdown_timeout=LINGER)
        sealed.seat = seat
        transport.set_protocol(sealed)
        sealed.connection_made(transport)


class _Sealed(SSLProtocol):
    """TLS that gives the seat back when HTTP never came to be."""

    seat: Seat

    def connection_lost(self, exc: BaseException | None) -> None:
        """It has ended."""
        self.seat.leave()
        super().connection_lost(exc)
