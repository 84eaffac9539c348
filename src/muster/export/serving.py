# SPDX-License-Identifier: Apache-2.0
"""`/metrics` over HTTP: the page of the last reading as it lies, and what is told of the export itself. Old pages are not served."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import ClassVar

from muster.export import families as f
from muster.export.exposition import CONTENT_TYPE, text
from muster.export.labels import labels
from muster.export.series import Point
from muster.export.shards import Shard

PATIENCE_S = 10.0
"""Seconds that a client may take for a request."""


class Pages:
    """The last page, for many readers at once. Times are those of a clock that never jumps."""

    def __init__(self, shard: Shard, hold: float) -> None:
        self._shard = shard
        self._hold = hold
        self._lock = threading.Lock()
        self._page, self._packed = b"", b""
        self._told_at: float | None = None
        self._read_at, self._took, self._series, self._failed = 0.0, 0.0, 0, 0

    def put(self, points: Iterable[Point], *, at: float, took: float, now: float) -> int:
        """Keeps the page of these points, read at ``at`` (seconds since the epoch) in ``took`` seconds, and returns how many series it has."""
        page, series = text(points)
        body = page.encode("utf-8", "replace")
        packed = gzip.compress(body, 1, mtime=0)
        with self._lock:
            self._page, self._packed, self._series = body, packed, series
            self._told_at, self._read_at, self._took = now, at, took
        return series

    def failed(self) -> None:
        """Notes that the server could not be read."""
        with self._lock:
            self._failed += 1

    def get(self, now: float, *, packed: bool) -> bytes:
        """The page as it may be told at ``now``; two members of gzip make one stream."""
        with self._lock:
            fresh = self._told_at is not None and now - self._told_at <= self._hold
            page = (self._packed if packed else self._page) if fresh else b""
            mine = text(self._own(fresh))[0].encode()
        return page + (gzip.compress(mine, 1, mtime=0) if packed else mine)

    def _own(self, fresh: bool) -> Iterable[Point]:
        mine = labels((("shard", str(self._shard.number)),))
        yield Point(f.EXPORT_SHARD, mine.more("shards", str(self._shard.of)), 1)
        yield Point(f.EXPORT_FRESH, mine, int(fresh))
        yield Point(f.EXPORT_FAILED, mine, self._failed)
        if self._told_at is not None:
            yield Point(f.EXPORT_READ, mine, self._read_at)
            yield Point(f.EXPORT_TIME, mine, self._took)
        if fresh:
            yield Point(f.EXPORT_SERIES, mine, self._series)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "muster-export", ""
    timeout = PATIENCE_S
    pages: ClassVar[Pages]
    clock: ClassVar[Callable[[], float]]

    def do_GET(self) -> None:
        """`/metrics`, and nothing else."""
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND, b"metrics are at /metrics\n", "text/plain; charset=utf-8")
            return
        packed = "gzip" in self.headers.get("Accept-Encoding", "")
        body = self.pages.get(type(self).clock(), packed=packed)
        self._answer(HTTPStatus.OK, body, CONTENT_TYPE, {"Content-Encoding": "gzip"} if packed else {})

    def do_HEAD(self) -> None:
        """What `/metrics` would answer, without it."""
        self.do_GET()

    def _answer(self, status: HTTPStatus, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *told: object, **more: object) -> None:
        """Says nothing: a scrape is no news."""


class Listener(ThreadingTCPServer):
    """Serves the pages at an address until it is closed. Raises OSError when the address cannot be had."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], pages: Pages, clock: Callable[[], float]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, type("_Bound", (_Handler,), {"pages": pages, "clock": staticmethod(clock)}))

    def start(self) -> None:
        """Serves in a thread of its own."""
        threading.Thread(target=self.serve_forever, name="export", daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes in the middle of an answer is no fault of ours."""
