# SPDX-License-Identifier: Apache-2.0
"""One HTTP connection to the server, kept open between reports, over TCP, TLS or a local socket, with the standard library alone."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl

ANSWER_LIMIT = 1024 * 1024
"""Bytes read of one answer; a server that says more is not heard out."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


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
            connection.request(method, path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            said = answer.read(ANSWER_LIMIT)
            if not answer.isclosed():
                self.close()
            return Answered(answer.status, {name.lower(): value for name, value in answer.getheaders()}, said)
        except (OSError, http.client.HTTPException):
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
