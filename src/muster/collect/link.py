# SPDX-License-Identifier: Apache-2.0
"""One HTTP connection to the server, kept open between reports, over TCP, TLS or a local socket, with the standard library alone."""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl

ANSWER_LIMIT = 1024 * 1024
"""Bytes read of one answer; a server that says more is not heard out."""

TIMEOUT_S = 20.0
"""Seconds for an answer where nothing else is said."""
TLS_S = 3.0
"""Seconds in which a server says whether it speaks TLS."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool = True
    """False where it was longer than is read."""


class _Until(io.RawIOBase):
    """What a socket says until a time has come: one that goes on saying a little is not listened to for ever."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, until: float) -> None:
        self._raw = raw
        self._sock = sock
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer has no end")
        self._sock.settimeout(left)
        return self._raw.readinto(into)

    def close(self) -> None:
        self._raw.close()
        super().close()


class Response(http.client.HTTPResponse):
    """An answer that must have come, all of it, within the time of its socket, from the moment at which it is waited for."""

    def __init__(self, sock: socket.socket, *words: Any, **more: Any) -> None:
        super().__init__(sock, *words, **more)
        whole: Any = self.fp
        self.fp = io.BufferedReader(_Until(whole.detach(), sock, time.monotonic() + (sock.gettimeout() or TIMEOUT_S)))


class Link:
    """The connection. ``context`` gives the TLS context of an https address; left out, the system's authorities are trusted. For one thread."""

    def __init__(self, timeout: float, context: Callable[[], ssl.SSLContext] | None = None) -> None:
        self._timeout = timeout
        self._context = context
        self._to: tuple[str, str] = ("", "")
        self._connection: http.client.HTTPConnection | None = None
        self.opened = 0
        """How often a connection was opened."""

    def open(self, url: str, path: str = "") -> bool:
        """Connects to ``url``, over the socket ``path`` where there is one. True when that was needed, False when the connection stands. Raises OSError."""
        if self._connection is not None and self._connection.sock is not None and self._to == (url, path):
            return False
        self.close()
        connection = self._made(url, path)
        connection.response_class = Response
        connection.connect()
        self._to, self._connection = (url, path), connection
        self.opened += 1
        return True

    def ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answered:
        """One request over the connection that stands. Raises OSError or HTTPException; the connection is closed then."""
        connection = self._connection
        if connection is None:
            raise ConnectionError("not connected")
        try:
            if connection.sock is not None:
                connection.sock.settimeout(self._timeout)
            connection.request(method, path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            said = answer.read(ANSWER_LIMIT)
            whole = answer.isclosed() or (len(said) < ANSWER_LIMIT and not answer.length)
            if not answer.isclosed():
                self.close()
            return Answered(answer.status, {name.lower(): value for name, value in answer.getheaders()}, said, whole)
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Closes the connection; the next `open` makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _made(self, url: str, path: str) -> http.client.HTTPConnection:
        if path:
            return _SocketConnection(path, self._timeout)
        parts = urlsplit(url)
        host = parts.hostname or "localhost"
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, parts.port, timeout=self._timeout, context=self._context() if self._context else None)
        return http.client.HTTPConnection(host, parts.port, timeout=self._timeout)


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.close()
            raise


def speaks_tls(url: str, error: Exception) -> bool:
    """True when a server that ended a connection of plain HTTP with ``error`` would speak TLS at that port: it is asked."""
    import ssl

    parts = urlsplit(url)
    if parts.scheme != "http" or not isinstance(error, ConnectionError | http.client.BadStatusLine) or isinstance(error, ConnectionRefusedError):
        return False
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((parts.hostname or "localhost", parts.port or 80), TLS_S) as plain, asking.wrap_socket(plain):
            return True
    except (OSError, ValueError):
        return False
