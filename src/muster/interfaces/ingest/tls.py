# SPDX-License-Identifier: Apache-2.0
"""TLS between a transport and what speaks in the clear, with little memory for connections that are quiet most of the time.

The loop's own TLS keeps large buffers for each connection; here OpenSSL works on two small ones, and what is plain is handed on at once.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Protocol, cast

RECORD = 16 * 1024
"""The most that one record holds."""
SLICE = 4 * 1024
"""So much is given to OpenSSL at once: its buffer keeps the size that it once had."""


class Inner(Protocol):
    """What speaks in the clear."""

    def came(self, transport: asyncio.Transport) -> bool:
        """A connection came; False when it may not stay."""

    def ready(self) -> None:
        """It may be used."""

    def insecure(self) -> None:
        """Its handshake failed."""

    def data_received(self, data: bytes) -> None:
        """Bytes came in."""

    def eof_received(self) -> bool | None:
        """The other side sends no more."""

    def pause_writing(self) -> None:
        """The way out is full."""

    def resume_writing(self) -> None:
        """The way out is free again."""

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""


class Sealed(asyncio.Protocol, asyncio.Transport):
    """Protocol of a transport, and transport of what is inside."""

    __slots__ = ("_closing", "_inner", "_open", "_paused", "_received", "_tls", "_to_send", "_under")

    def __init__(self, inner: Inner, context: ssl.SSLContext) -> None:
        super().__init__()
        self._inner = inner
        self._received = ssl.MemoryBIO()
        self._to_send = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_side=True)
        self._under: asyncio.Transport | None = None
        self._open = False
        self._paused = False
        self._closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is still to come; who may not stay is spared it."""
        self._under = cast(asyncio.Transport, transport)
        if not self._inner.came(self):
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of TLS."""
        if self._closing:
            return
        try:
            if len(data) <= SLICE:
                self._received.write(data)
                self._advance()
            else:
                view = memoryview(data)
                for start in range(0, len(data), SLICE):
                    self._received.write(view[start : start + SLICE])
                    self._advance()
        except ssl.SSLError:
            self._broken()

    def _advance(self) -> None:
        if not self._open and not self._shake():
            return
        self._read()
        if self._to_send.pending:
            self._flush()

    def _shake(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        self._flush()
        self._open = True
        self._inner.ready()
        return True

    def _read(self) -> None:
        """Hands on what can be read. Nothing is left behind but parts of a record."""
        while not self._paused and not self._closing:
            try:
                plain = self._tls.read(RECORD)
            except ssl.SSLWantReadError:
                return
            except ssl.SSLZeroReturnError:
                plain = b""
            if not plain:
                self._inner.eof_received()
                self.close()
                return
            self._inner.data_received(plain)
            if not self._received.pending and not self._tls.pending():
                return

    def _flush(self) -> None:
        if self._under is not None and self._to_send.pending:
            self._under.write(self._to_send.read())

    def _broken(self) -> None:
        """What is no TLS, or not for us: the alert is sent, then it ends."""
        if not self._open:
            self._inner.insecure()
        self._flush()
        self._closing = True
        if self._under is not None:
            self._under.close()

    def eof_received(self) -> bool | None:
        """An end without goodbye is an end."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Handed on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Handed on."""
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handed on."""
        self._closing = True
        self._under = None
        self._inner.connection_lost(exc)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends sealed. Before the handshake and after the end nothing is sent."""
        if not self._open or self._closing:
            return
        try:
            self._tls.write(data)
        except ssl.SSLError:
            self._broken()
            return
        self._flush()

    def get_extra_info(self, name: str, default: object = None) -> object:
        """As the transport below has it."""
        return self._under.get_extra_info(name, default) if self._under is not None else default

    def can_write_eof(self) -> bool:
        """Nothing more can be said while the other side still speaks."""
        return True

    def write_eof(self) -> None:
        """Says goodbye; what still comes is thrown away until the other side ends."""
        if self._closing:
            return
        self._say_goodbye()
        if self._under is not None:
            if self._paused:
                self._under.resume_reading()
            self._under.write_eof()

    def is_closing(self) -> bool:
        """True from `close` on."""
        return self._closing

    def close(self) -> None:
        """Says goodbye and ends once all is sent."""
        if self._closing:
            return
        self._say_goodbye()
        if self._under is not None:
            self._under.close()

    def _say_goodbye(self) -> None:
        self._closing = True
        if self._open:
            with suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()

    def abort(self) -> None:
        """Ends at once."""
        self._closing = True
        if self._under is not None:
            self._under.abort()

    def pause_reading(self) -> None:
        """Nothing is handed on until `resume_reading`."""
        self._paused = True
        if self._under is not None and not self._under.is_closing():
            self._under.pause_reading()

    def resume_reading(self) -> None:
        """What came meanwhile is handed on soon."""
        if not self._paused:
            return
        self._paused = False
        if self._under is not None and not self._under.is_closing():
            self._under.resume_reading()
            asyncio.get_running_loop().call_soon(self.data_received, b"")
