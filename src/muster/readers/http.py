# SPDX-License-Identifier: Apache-2.0
"""Scrapes an exporter: one GET to the node itself or to a host that the source names, with a size cap and a deadline that holds for the whole answer."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from datetime import timedelta

from muster.domain.model.source import CAPTURE_LIMIT, Capture, Outcome, Source
from muster.readers.outcomes import STDERR_LIMIT, Clock, Taking

REDIRECTS = 3
"""Redirects followed, each to a permitted host only."""

_CHUNK = 64 * 1024
_MOVED = frozenset({301, 302, 303, 307, 308})
_DENIED = frozenset({401, 403, 407})


class _RefusedError(Exception):
    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail


class HttpReader:
    """Scrapes. No proxy, no cookies, no names and passwords in a URL."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def read(self, source: Source, deadline: timedelta) -> Iterable[Capture]:
        """One capture per read of the source, in order; ``deadline`` holds for each GET.

        An answer other than 2xx is a failure whose body stands in ``stderr``.
        """
        named = frozenset(_host("".join(read.locator[:1])) for read in source.reads)
        for read in source.reads:
            taking = Taking.begin(source, read, self._clock)
            try:
                yield _get(taking, "".join(read.locator[:1]), named, time.monotonic() + deadline.total_seconds())
            except _RefusedError as refused:
                yield taking.failed(refused.outcome, refused.detail)


def _host(url: str) -> str:
    try:
        return (urllib.parse.urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """True for ``localhost`` and addresses of the node itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _permitted(url: str, named: frozenset[str]) -> urllib.parse.SplitResult:
    try:
        parts = urllib.parse.urlsplit(url)
        parts.port  # noqa: B018 - the port is parsed, and refused, here
    except ValueError as error:
        raise _RefusedError(Outcome.NOT_PERMITTED, f"{url}: {error}") from error
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("http", "https") or not host:
        raise _RefusedError(Outcome.NOT_PERMITTED, f"{url}: only http and https are read")
    if parts.username is not None or parts.password is not None:
        raise _RefusedError(Outcome.NOT_PERMITTED, "a name or password in a URL is not used")
    if not is_loopback(host) and host not in named:
        raise _RefusedError(Outcome.NOT_PERMITTED, f"{host} is neither this node nor named by the source")
    return parts


def _get(taking: Taking, url: str, named: frozenset[str], until: float) -> Capture:
    for _ in range(REDIRECTS + 1):
        parts = _permitted(url, named)
        connection = _connection(parts, until)
        try:
            with _watched(connection, until):
                response = _asked(connection, parts)
                if response.status in _MOVED and response.headers["location"]:
                    url = urllib.parse.urljoin(url, response.headers["location"])
                    continue
                return _taken(taking, response, until)
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = isinstance(error, TimeoutError) or time.monotonic() >= until
            detail = "did not answer in time" if late else str(error) or type(error).__name__
            raise _RefusedError(Outcome.TIMED_OUT if late else Outcome.UNREACHABLE, f"{parts.netloc}: {detail}") from error
        finally:
            connection.close()
    raise _RefusedError(Outcome.UNREACHABLE, f"{url}: more than {REDIRECTS} redirects")


def _connection(parts: urllib.parse.SplitResult, until: float) -> http.client.HTTPConnection:
    seconds = max(until - time.monotonic(), 0.001)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=seconds)


def _asked(connection: http.client.HTTPConnection, parts: urllib.parse.SplitResult) -> http.client.HTTPResponse:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.request("GET", path, headers={"Accept": "*/*", "Connection": "close"})
    return connection.getresponse()


@contextlib.contextmanager
def _watched(connection: http.client.HTTPConnection, until: float) -> Iterator[None]:
    """Connects, and shuts the socket at the deadline: a server that drips bytes never runs into a socket's own timeout."""
    connection.connect()
    watch = threading.Timer(max(until - time.monotonic(), 0), _shut, (connection.sock,))
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _taken(taking: Taking, response: http.client.HTTPResponse, until: float) -> Capture:
    body = bytearray()
    while len(body) <= CAPTURE_LIMIT and (data := response.read1(_CHUNK)):
        body += data
    if time.monotonic() >= until:
        raise TimeoutError
    if 200 <= response.status < 300:
        return taking.brought(bytes(body), cut=bool(response.length))
    outcome = Outcome.NOT_PERMITTED if response.status in _DENIED else Outcome.UNREACHABLE
    return taking.failed(outcome, f"HTTP {response.status} {response.reason}", stderr=bytes(body[:STDERR_LIMIT]))
