# SPDX-License-Identifier: Apache-2.0
"""The scrape: what is permitted, what fails how, and servers that never finish."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest

from muster.domain.model.source import CAPTURE_LIMIT, Capture, Outcome, Source
from muster.readers.http import HttpReader, is_loopback


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.strip("/").partition("?")[0]
        getattr(self, f"do_{name}")()

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_metrics(self) -> None:
        self.answer(200, b"up 1\n")

    def do_denied(self) -> None:
        self.answer(403, b"who are you")

    def do_broken(self) -> None:
        self.answer(503, b"later")

    def do_large(self) -> None:
        try:
            self.answer(200, b"x" * (CAPTURE_LIMIT + 10))
        except (BrokenPipeError, ConnectionResetError):
            return

    def do_short(self) -> None:
        self.answer(200, b"up", Content_Length="100")

    def do_moved(self) -> None:
        self.answer(302, Location="/metrics")

    def do_away(self) -> None:
        self.answer(302, Location="http://192.0.2.7/metrics")

    def do_circle(self) -> None:
        self.answer(302, Location="/circle")

    def do_silent(self) -> None:
        time.sleep(2)

    def do_drip(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            for _ in range(30):
                self.wfile.write(b"x")
                time.sleep(0.1)
        except (BrokenPipeError, ConnectionResetError):
            return

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture
def get(clock: Callable[[], datetime], source: Callable[..., Source], port: int) -> Callable[..., Capture]:
    def get(path: str, seconds: float = 5, base: str = "") -> Capture:
        (capture,) = HttpReader(clock).read(source("http", ((base or f"http://127.0.0.1:{port}") + path,)), timedelta(seconds=seconds))
        return capture

    return get


def test_a_body_is_the_payload(get: Callable[..., Capture]) -> None:
    assert get("/metrics").payload == b"up 1\n"


def test_a_redirect_on_the_same_host_is_followed(get: Callable[..., Capture]) -> None:
    assert get("/moved").payload == b"up 1\n"


@pytest.mark.parametrize(
    ("path", "outcome", "detail"),
    [
        ("/denied", Outcome.NOT_PERMITTED, "HTTP 403"),
        ("/broken", Outcome.UNREACHABLE, "HTTP 503"),
        ("/away", Outcome.NOT_PERMITTED, "192.0.2.7 is neither this node"),
        ("/circle", Outcome.UNREACHABLE, "more than 3 redirects"),
        ("/silent", Outcome.TIMED_OUT, "did not answer in time"),
        ("/drip", Outcome.TIMED_OUT, "did not answer in time"),
    ],
)
def test_failures(get: Callable[..., Capture], path: str, outcome: Outcome, detail: str) -> None:
    started = time.monotonic()
    capture = get(path, seconds=0.5)

    assert capture.failure is outcome
    assert detail in capture.detail
    assert time.monotonic() - started < 1.5


def test_the_body_of_a_refusal_is_kept_beside(get: Callable[..., Capture]) -> None:
    assert (get("/broken").payload, get("/broken").stderr) == (b"", b"later")


def test_nobody_listens(get: Callable[..., Capture]) -> None:
    assert get("", base="http://127.0.0.1:9/metrics").failure is Outcome.UNREACHABLE


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://", "http://me:secret@127.0.0.1/x", "http://127.0.0.1:99999/x", "nonsense", "http://[::1/x"]
)
def test_other_urls_are_refused(get: Callable[..., Capture], url: str) -> None:
    capture = get("", base=url)

    assert capture.failure is Outcome.NOT_PERMITTED
    assert "secret" not in capture.detail


def test_a_large_body_is_cut(get: Callable[..., Capture]) -> None:
    capture = get("/large")

    assert (len(capture.payload), capture.cut) == (CAPTURE_LIMIT, True)


def test_a_body_shorter_than_promised_is_cut(get: Callable[..., Capture]) -> None:
    capture = get("/short")

    assert (capture.payload, capture.cut) == (b"up", True)


def test_loopback() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.0.0.9", "::1", "10.0.0.1", "example.org")] == [True, True, True, False, False]
