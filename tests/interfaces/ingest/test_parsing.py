# SPDX-License-Identifier: Apache-2.0
"""The way from bytes to a request, fed in pieces of every size and with what nobody should send. No network: the bytes go straight in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st
from tests.interfaces.ingest.door import GOOD, QUICK, T0, Gate, Intake, report, request

from muster.interfaces.ingest.connection import Connection
from muster.interfaces.ingest.reception import Reception

T = TypeVar("T")


class Wire(asyncio.Transport):
    """A transport that remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.ended = False
        self.paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended, "nothing is sent after the end"
        self.sent += bytes(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.ended = True

    def abort(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.ended

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


async def _fed(pieces: Sequence[bytes]) -> tuple[bytes, bool, list[bytes]]:
    """What was sent back, whether it ended, and what the writer got; pieces that come while nothing is read wait, as in a network."""
    gate, intake = Gate(), Intake()
    reception = Reception(gate, intake, lambda: T0, QUICK, asyncio.get_running_loop(), "1")
    wire, connection = Wire(), Connection(reception)
    connection.connection_made(wire)
    for piece in pieces:
        for _ in range(3000):
            if not wire.paused or wire.ended:
                break
            await asyncio.sleep(0.0005)
        connection.data_received(piece)
    for _ in range(3000):
        if reception.meters.queue == 0 and (wire.ended or not wire.paused):
            break
        await asyncio.sleep(0.0005)
    connection.connection_lost(None)
    assert reception.meters.flight == 0
    assert reception.meters.connections == 0
    await reception.close()
    return wire.sent, wire.ended, intake.taken


def fed(*pieces: bytes) -> tuple[bytes, bool, list[bytes]]:
    return asyncio.run(_fed(pieces))


def statuses(sent: bytes) -> list[int]:
    """The statuses of all answers, each whole."""
    found = []
    while sent:
        head, _, rest = sent.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 ")
        found.append(int(head[9:12]))
        lengths = [int(line.split(b": ")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
        sent = rest[lengths[0] :] if lengths else rest
        assert not lengths or len(rest) >= lengths[0], "an answer is cut"
    return found


def torn(data: bytes, at: Sequence[int]) -> list[bytes]:
    places = sorted({place % (len(data) + 1) for place in at} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places)]


def chunked(body: bytes, sizes: Sequence[int], extension: bytes = b"") -> bytes:
    left, framed = body, b""
    for size in sizes:
        piece, left = left[:size], left[size:]
        if piece:
            framed += b"%x%b\r\n%b\r\n" % (len(piece), extension, piece)
    if left:
        framed += b"%X\r\n%b\r\n" % (len(left), left)
    return request(Content_Length=None, Transfer_Encoding="chunked") + framed + b"0\r\n\r\n"


def test_a_request_may_be_torn_at_any_byte() -> None:
    whole = request(report(1))
    for place in range(1, len(whole)):
        sent, ended, taken = fed(whole[:place], whole[place:])
        assert (statuses(sent), ended, taken) == ([200], False, [report(1)]), place


@given(st.lists(st.integers(0, 5000), max_size=40), st.lists(st.integers(1, 60), max_size=20), st.binary(min_size=1, max_size=300))
def test_however_it_is_torn_and_framed_the_body_is_the_same(places: list[int], sizes: list[int], body: bytes) -> None:
    for asked in (request(body), chunked(body, sizes), chunked(body, sizes, b";ext=1")):
        sent, ended, taken = fed(*torn(asked, places))
        assert (statuses(sent), ended, taken) == ([200], False, [body])


@given(st.lists(st.integers(0, 5000), max_size=12), st.integers(1, 4))
def test_requests_that_wait_for_their_answer_are_all_served(places: list[int], count: int) -> None:
    pieces = [piece for number in range(count) for piece in torn(request(method="GET", path="/version") if number % 2 else request(report(number)), places)]
    sent, ended, taken = asyncio.run(_patient(pieces, count))
    assert statuses(sent) == [200] * count
    assert not ended
    assert taken == [report(number) for number in range(0, count, 2)]


async def _patient(pieces: Sequence[bytes], count: int) -> tuple[bytes, bool, list[bytes]]:
    """As `_fed`, but a request begins only after the answer to the one before."""
    del count
    gate, intake = Gate(), Intake()
    reception = Reception(gate, intake, lambda: T0, QUICK, asyncio.get_running_loop(), "1")
    wire, connection = Wire(), Connection(reception)
    connection.connection_made(wire)

    async def until(condition: Callable[[], bool]) -> None:
        for _ in range(3000):
            if condition():
                return
            await asyncio.sleep(0.0005)

    for piece in pieces:
        await until(lambda: not wire.paused and reception.meters.queue == 0)
        connection.data_received(piece)
    await until(lambda: not wire.paused and reception.meters.queue == 0)
    connection.connection_lost(None)
    await reception.close()
    return wire.sent, wire.ended, intake.taken


TOKENS = st.sampled_from(
    [
        b"POST ", b"GET ", b"/v1/reports", b"/version", b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b" HTTP/2.0\r\n", b"\r\n", b"\n", b"\r", b"\0", b"Host: x\r\n",
        b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Transfer-Encoding: chunked, identity\r\n", b"Expect: 100-continue\r\n",
        b"Upgrade: h2c\r\nConnection: Upgrade\r\n", b"Connection: close\r\n", b"Content-Encoding: gzip\r\n", b"Content-Type: application/msgpack\r\n",
        b"Authorization: Bearer " + GOOD.encode() + b"\r\n", b"Authorization: Bearer x\r\n", b"hello", b"5\r\nhello\r\n", b"0\r\n\r\n", b"ffffffffffffffff\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b": x\r\n", b" folded\r\n", b"\xff\xfe: \xff\r\n",
    ]
)  # fmt: skip


@given(st.lists(TOKENS, max_size=30), st.lists(st.integers(0, 5000), max_size=10))
def test_whatever_comes_answers_are_whole_and_nothing_breaks(tokens: list[bytes], places: list[int]) -> None:
    sent, _, _ = fed(*torn(b"".join(tokens), places))
    assert 500 not in statuses(sent)


@given(st.binary(max_size=400), st.lists(st.integers(0, 5000), max_size=10))
def test_garbage_is_turned_away(garbage: bytes, places: list[int]) -> None:
    sent, _, taken = fed(*torn(garbage, places))
    assert set(statuses(sent)) <= {400, 431}
    assert taken == []


@given(st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_a_damaged_request_is_served_or_turned_away_once(place: int, damage: bytes) -> None:
    whole = request(report(1))
    place %= len(whole)
    sent, _, taken = fed(whole[:place] + damage + whole[place + len(damage) :])
    assert 500 not in statuses(sent)
    assert len(taken) <= 1
    assert statuses(sent).count(200) <= 1


def test_two_lengths_are_none() -> None:
    for asked in (
        request(report(), Transfer_Encoding="chunked"),
        request(report()).replace(b"Host", b"Content-Length: 3\r\nHost"),
        request(report()).replace(b"Host", b"Host: a\r\nHost"),
        request(report()).replace(b"Authorization", b"Authorization: Bearer x\r\nAuthorization"),
        request(report(), Transfer_Encoding="identity", Content_Length=None),
    ):
        sent, ended, taken = fed(asked)
        assert (statuses(sent), ended, taken) == ([400], True, [])


def test_garbage_after_a_request_does_not_take_its_answer_away() -> None:
    sent, ended, taken = fed(request(report(1)) + b"\x16\x03\x01garbage\r\n\r\n")
    assert (statuses(sent), ended, taken) == ([200], True, [report(1)])
    assert b"Connection: close" in sent


def test_blank_lines_between_requests_are_passed_over() -> None:
    sent, ended, taken = fed(b"\r\n" + request(report(1)) + b"\r\n")
    assert (statuses(sent), ended, taken) == ([200], False, [report(1)])


def test_answers_that_need_nobody_come_in_order_even_when_asked_together() -> None:
    sent, ended, _ = fed(request(method="GET", path="/version") * 3 + request(method="GET", path="/nope"))
    assert (statuses(sent), ended) == ([200, 200, 200, 404], False)
