# SPDX-License-Identifier: Apache-2.0
"""What answers mean: only a document of a server of Muster takes a report over, or refuses it. Anything else is told, in one line, and the report stays."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from tests.collect.test_delivery import report
from tests.collect.world import Hands

from muster.collect.agent import deliver
from muster.collect.answer import Fate, Posted, judged
from muster.collect.clock import Clock
from muster.collect.delivery import Delivery
from muster.collect.post import Poster, address
from muster.collect.spool import Spool
from muster.collect.words import LINE, LONGEST, OneLine, plain
from muster.wire.report import AnswerDoc, ReportDoc

JSON, PROBLEM, MSGPACK = "application/json", "application/problem+json", "application/msgpack"
APPLIED = b'{"answer":"applied"}'
DEEP = b"[" * 200_000


def fate(status: int, body: object = None, kind: str = JSON) -> Posted:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    return judged(status, {"Content-Type": kind}, raw)


def problem(code: str, **more: object) -> dict[str, object]:
    """A problem document as our servers write it."""
    return {"type": f"urn:muster:problem:{code}", "code": code, **more}


def test_what_a_server_of_ours_says() -> None:
    assert fate(200, {"answer": "applied", "wanted": ["d1"]}) == Posted(Fate.TAKEN, "applied", wanted=("d1",))
    assert fate(200, {"answer": "duplicate"}, "Application/JSON; charset=utf-8").fate is Fate.TAKEN
    assert fate(200, msgspec.msgpack.encode(AnswerDoc("applied")), MSGPACK) == Posted(Fate.TAKEN, "applied")
    assert fate(200, {"answer": "refused", "detail": "x"}) == Posted(Fate.REFUSED, "refused: x", renew=True)
    assert fate(409, problem("refused", detail="used"), PROBLEM) == Posted(Fate.REFUSED, "HTTP 409: used", renew=True)
    assert fate(409, {"answer": "refused", "detail": "used"}).fate is Fate.REFUSED
    for status in (400, 415, 422):
        assert fate(status, problem("invalid_input", title="bad"), PROBLEM) == Posted(Fate.REFUSED, f"HTTP {status}: bad")
    assert fate(413, problem("too_large", detail="split"), PROBLEM) == Posted(Fate.TOO_LARGE, "HTTP 413: split")
    for status in (401, 403, 404, 411, 421, 429, 500, 503):
        posted = fate(status, problem("a_code", detail="why"), PROBLEM)
        assert posted == Posted(Fate.LATER, f"HTTP {status}: why", broke=status == 500)
    assert judged(503, {"Retry-After": "7"}, b"").wait == 7


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>maintenance</html>", "text/html"),
        (b"", ""),
        (b"", JSON),
        (b'{"answer":"banana"}', JSON),
        (b'{"answer":5}', JSON),
        (b'{"answer":"applied","wanted":"all"}', JSON),
        (APPLIED, "text/html"),
        (APPLIED, MSGPACK),
        (APPLIED[:-1], JSON),
        (b"[]", JSON),
        (DEEP, JSON),
        (b'{"answer":"applied","more":' + DEEP, JSON),
        (b"\x91" * 200_000, MSGPACK),
        (b"\xff\xfe", JSON),
    ],
)
def test_what_is_no_acknowledgement(body: bytes, kind: str) -> None:
    for status in (200, 201, 202, 204):
        posted = fate(status, body, kind)
        assert (posted.fate, posted.broke) == (Fate.LATER, False)
        assert posted.detail.startswith(f"HTTP {status}: an answer (")
        assert "proxy" in posted.detail
    for status in (400, 409, 415, 422):
        assert fate(status, body, kind).fate is Fate.LATER, "nobody of ours refused it"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", ""),
        (b"<html><h1>413 Request Entity Too Large</h1></html>", "text/html"),
        ({"code": "too_large", "detail": "the gateway's"}, PROBLEM),
        ({"type": "https://gateway.example/too_large", "code": "too_large"}, PROBLEM),
        ({"type": "urn:muster:problem:", "detail": "no code"}, PROBLEM),
        ({"code": 413, "reason": "RequestEntityTooLarge"}, JSON),
        ({"answer": "applied"}, JSON),
    ],
)
def test_a_stranger_refuses_no_report_whatever_its_status(body: object, kind: str) -> None:
    for status in (302, 400, 401, 403, 404, 405, 408, 409, 411, 413, 414, 415, 417, 422, 429, 431, 451, 500, 501, 502, 503, 504):
        posted = fate(status, body, kind)
        assert (posted.fate, posted.broke, posted.renew) == (Fate.LATER, False, False), status
        assert posted.detail.startswith(f"HTTP {status}: an answer (")
        assert "none of a server of Muster" in posted.detail
        assert ("client_max_body_size" in posted.detail) is (status == 413)


def test_a_report_that_a_proxy_finds_too_large_waits_until_it_gets_through(tmp_path: Path) -> None:
    hands, spool, parted = Hands(), Spool(tmp_path), list[ReportDoc]()
    way = [fate(413, b"<html>too large</html>", "text/html"), fate(501, b"no", "text/plain"), fate(200, {"answer": "applied"})]

    def part(told: ReportDoc) -> list[ReportDoc]:
        parted.append(told)
        return []

    delivery = Delivery(
        spool,
        lambda _: way.pop(0),
        hands.clock(),
        boot_id="b",
        spread=lambda: 0.5,
        renew=lambda: None,
        well=lambda: True,
        smaller=part,
    )
    spool.add(report(hands))
    for left in (2, 1):
        assert not delivery.step()
        assert (len(way), len(spool), delivery.refused, parted) == (left, 1, 0, [])
        assert "proxy" in delivery.trouble
        hands.pass_(100)
    assert delivery.step()
    assert (len(spool), delivery.delivered, delivery.refused) == (0, 1, 0)


def test_an_answer_that_was_cut_acknowledges_nothing() -> None:
    assert judged(200, {"Content-Type": JSON}, APPLIED, whole=False).fate is Fate.LATER
    assert judged(409, {"Content-Type": PROBLEM}, json.dumps(problem("refused")).encode(), whole=False).fate is Fate.REFUSED, "a whole document within is one"


@pytest.mark.parametrize("after", ["\u00b2\u00b2", "Wed, 11 Feb 99999999999999999999 08:41:37 GMT", "9" * 400, "-5", "1e9", "\x00"])
def test_waits_that_are_none(after: str) -> None:
    assert 0 <= judged(503, {"Retry-After": after, "Date": after}, b"").wait <= 3600


def test_words_of_others_are_one_line_and_short() -> None:
    forged = fate(503, {"detail": "\u001b[2Jevil\nINFO forged line\u202e"}).detail
    assert forged.startswith("HTTP 503: an answer (application/json) that is none of a server of Muster; what stands before it, a proxy say?")
    assert forged.endswith(" It says: \\x1b[2Jevil\\nINFO forged line\\u202e")
    for found in (fate(503, {"detail": "x" * 100_000}), fate(200, {"answer": "applied", "detail": "\x1b" * 100_000}), fate(502, b"\x1b\n" * 9999, "text/html")):
        assert found.detail.isprintable()
        assert len(found.detail) <= LONGEST + 10
    assert plain("a\tb") == "a\\tb"
    assert plain("x" * 301).endswith("...")
    assert plain("x" * 300) == "x" * 300


def test_a_record_of_the_log_is_one_line() -> None:
    error = ValueError("one\nINFO forged\x1b[2J" * 500)
    raised = (ValueError, error, None)
    made = OneLine("%(levelname)s %(name)s: %(message)s").format(logging.LogRecord("m", logging.WARNING, "", 0, "%s", ("a\nINFO b\r\x1b",), raised))
    assert made.startswith("WARNING m: a\\nINFO b\\r\\x1b\\nValueError: one\\nINFO forged")
    assert made.isprintable()
    assert len(made) == LINE


Talk = Callable[[socket.socket], object]


class Odd:
    """Whoever stands at the address: gives ``first`` to each request until it is well, then takes reports."""

    def __init__(self, first: Talk) -> None:
        self.first, self.well, self.posts = first, threading.Event(), 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._talk, args=(self.socket.accept()[0],), daemon=True).start()

    def _talk(self, to: socket.socket) -> None:
        with suppress(OSError, ValueError), to, to.makefile("rb") as asked:
            while line := asked.readline():
                length = 0
                while (head := asked.readline()).strip():
                    name, _, value = head.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                asked.read(length)
                self.posts += line.startswith(b"POST") and self.well.is_set()
                if self.well.is_set():
                    to.sendall(http(200, APPLIED))
                elif self.first(to) == "close":
                    return


def http(status: int, body: bytes, kind: str = JSON, more: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


def always(answer: bytes) -> Talk:
    return lambda to: to.sendall(answer)


def endless(to: socket.socket) -> str:
    to.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(40):
        to.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
    return "close"


def cut(to: socket.socket) -> str:
    to.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n" + APPLIED)
    return "close"


def junk(to: socket.socket) -> str:
    to.sendall(bytes(range(256)) * 9)
    return "close"


def trickle(to: socket.socket) -> str:
    for sign in http(200, APPLIED):
        to.sendall(bytes([sign]))
        time.sleep(0.2)
    return "close"


def continues(to: socket.socket) -> str:
    while True:
        to.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 20)
        time.sleep(0.01)


def endless_heads(to: socket.socket) -> str:
    to.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        to.sendall(b"X-A: " + b"y" * 1000 + b"\r\n")


@pytest.fixture
def odd() -> Iterator[Callable[[Talk], Odd]]:
    made: list[Odd] = []

    def make(first: Talk) -> Odd:
        made.append(Odd(first))
        return made[-1]

    yield make
    for each in made:
        each.socket.close()


@pytest.mark.parametrize(
    "first",
    [
        always(http(200, DEEP)),
        always(http(503, b'{"a":' + DEEP)),
        always(http(200, b"<html>", "text/html")),
        always(b"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n"),
        always(http(302, b"", more="Location: http://127.0.0.1:9/\r\n")),
        always(http(503, b"", more="Retry-After: \xb2\xb2\r\n")),
        always(http(200, json.dumps({"answer": "applied", "wanted": ["f" * 64] * 30_000}).encode())),
        endless,
        cut,
        junk,
        trickle,
        continues,
        endless_heads,
    ],
)
def test_whatever_comes_the_thread_goes_on_and_the_report_waits(odd: Callable[[Talk], Odd], first: Talk, tmp_path: Path) -> None:
    server, spool, clock = odd(first), Spool(tmp_path), Clock(time.time, time.monotonic)
    post = Poster(lambda: address(server.url), timeout=1)
    delivery = Delivery(spool, post, clock, boot_id="", spread=lambda: 0.0, renew=lambda: None, longest=0.2, well=post.well)
    spool.add(report(Hands(wall=time.time()), 1))
    stop = threading.Event()
    thread = threading.Thread(target=deliver, args=(delivery, clock, stop))
    thread.start()
    try:
        end = time.monotonic() + 20
        while not delivery.trouble and time.monotonic() < end:
            time.sleep(0.02)
        assert delivery.trouble
        assert delivery.trouble.isprintable()
        assert (len(spool), delivery.delivered, thread.is_alive()) == (1, 0, True)
        server.well.set()
        while (len(spool) or not delivery.delivered) and time.monotonic() < end:
            time.sleep(0.02)
        assert (len(spool), delivery.delivered, delivery.trouble, server.posts) == (0, 1, "", 1)
    finally:
        stop.set()
        delivery.wake()
        thread.join(5)
        post.close()
