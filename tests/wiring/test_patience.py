# SPDX-License-Identifier: Apache-2.0
"""The door of users: nobody sits there for ever, or on all seats; who asks something is served meanwhile, and the socket has seats of its own."""

from __future__ import annotations

import logging
import resource
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.wiring.certificates import authority

from muster.wiring import patience, seats
from muster.wiring.web import Web

MUCH = 64 * 2**20
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers at once; ``/read`` reads the body before, ``/slow`` waits for its reader to go."""
    if scope["path"] == "/read":
        while (await receive()).get("more_body"):
            pass
    status = 401 if scope["path"] == "/refuse" else 200
    size = MUCH if scope["path"] == "/much" else 2
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"%d" % size)]})
    if scope["path"] == "/much":
        for _ in range(MUCH // 2**20):
            await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return
    if scope["path"] == "/slow":
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    await send({"type": "http.response.body", "body": b"ok"})


class Door:
    """The web server on a port and on a socket."""

    def __init__(self, folder: Path, context: ssl.SSLContext | None, trust: ssl.SSLContext | None) -> None:
        self.trust = trust
        self.path = str(folder / "s")
        tcp = socket.create_server(("127.0.0.1", 0))
        self.address = tcp.getsockname()
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(self.path)
        unix.listen(64)
        self.web = Web(app, [(tcp, context), (unix, None)])
        self.web.start()

    def plain(self) -> socket.socket:
        return socket.create_connection(self.address, 10)

    def connect(self) -> socket.socket:
        found = self.plain()
        return self.trust.wrap_socket(found, server_hostname="localhost") if self.trust is not None else found

    def local(self) -> socket.socket:
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(10)
        found.connect(self.path)
        return found


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    made = authority(tmp_path_factory.mktemp("tls"), "localhost")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made.chain, made.key)
    return server, ssl.create_default_context(cafile=str(made.ca))


@pytest.fixture(params=["plain", "tls"])
def door(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sealed: tuple[ssl.SSLContext, ssl.SSLContext]) -> Iterator[Door]:
    monkeypatch.setattr(patience, "HEAD_TIME", 0.6)
    monkeypatch.setattr(patience, "BODY_TIME", 0.8)
    monkeypatch.setattr(patience, "LINGER", 0.4)
    monkeypatch.setattr(patience, "SLOW", 0.5)
    monkeypatch.setattr(seats, "MOST", 12)
    made = Door(tmp_path, *(sealed if request.param == "tls" else (None, None)))
    yield made
    made.web.stop()


def status(sock: socket.socket, data: bytes = GET) -> int:
    sock.sendall(data)
    told = b""
    while b"ok" not in told:
        more = sock.recv(4096)
        if not more:
            break
        told += more
    return int(told.split()[1]) if told else 0


def ends(sock: socket.socket, within: float) -> bool:
    """True when the server ends it in this time."""
    sock.settimeout(within)
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


@pytest.mark.parametrize("said", [b"", b"G", b"\r\n", b"GET / HTTP/1.1\r\nHost: loc"])
def test_who_does_not_go_on_is_cut_off(door: Door, said: bytes) -> None:
    with door.connect() as idle:
        idle.sendall(said)
        assert ends(idle, 2.0)


def drips(sock: socket.socket, data: bytes, most: int, pause: float = 0.0) -> int:
    """How often it could be sent before the server ended it; ``most`` where it did not."""
    for sent in range(most):
        try:
            sock.sendall(data)
        except OSError:
            return sent
        time.sleep(pause)
    return most


def test_a_drip_is_no_way_to_stay(door: Door) -> None:
    with door.connect() as drip:
        assert drips(drip, b"\r\n", 40, 0.1) < 20


def test_half_a_head_after_an_answer_is_cut_off_too(door: Door) -> None:
    with door.connect() as client:
        assert status(client) == 200
        assert status(client) == 200
        client.sendall(b"GET / HT")
        assert ends(client, 2.0)


def test_a_body_that_does_not_come_is_not_waited_for(door: Door) -> None:
    with door.connect() as client:
        client.sendall(b"POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n1")
        assert ends(client, 2.0)


def test_an_endless_head_ends(door: Door) -> None:
    with door.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert drips(client, b"X: " + b"y" * 10_000 + b"\r\n", 10_000) < 1_000


def test_an_endless_body_ends_with_its_answer(door: Door) -> None:
    with door.connect() as client:
        assert status(client, b"POST /refuse HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n") == 401
        assert drips(client, b"8000\r\n" + b"x" * 0x8000 + b"\r\n", 10_000) < 1_000


def test_a_small_body_that_comes_late_keeps_its_connection(door: Door) -> None:
    with door.connect() as client:
        assert status(client, b"POST /refuse HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n") == 401
        client.sendall(b"12345")
        assert status(client) == 200


def test_who_reads_nothing_is_let_go(door: Door) -> None:
    with door.connect() as client:
        client.sendall(GET.replace(b"/", b"/much", 1))
        time.sleep(1.5)
        taken = 0
        with suppress(OSError):
            while more := client.recv(1 << 20):
                taken += len(more)
        assert 0 < taken < MUCH


def test_an_answer_may_take_its_time(door: Door) -> None:
    with door.connect() as client:
        client.sendall(GET.replace(b"/", b"/slow", 1))
        assert not ends(client, 2.0)


def test_strangers_do_not_hold_all_seats(door: Door, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "HEAD_TIME", 60.0)
    caplog.set_level(logging.WARNING)
    with ExitStack() as stack:
        idle = [stack.enter_context(door.plain()) for _ in range(30)]
        with door.connect() as client, door.local() as local:
            assert (status(client), status(local)) == (200, 200)
        assert all(ends(each, 2.0) for each in idle[:15])
        assert sum(ends(each, 0.05) for each in idle[-8:]) <= 1
    said = [record.message for record in caplog.records if "connections are open" in record.message]
    assert said == ["the API: 12 connections are open, and others are closed or turned away: those first that say nothing"]


def test_garbage_is_said_once(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(5):
        with door.connect() as client:
            assert status(client, b"\x16\x03 rubbish\r\n\r\n") == 400
            assert ends(client, 2.0)
    assert len(caplog.records) <= 1


def test_who_is_served_is_not_sent_away_for_another(door: Door) -> None:
    with ExitStack() as stack:
        busy = [stack.enter_context(door.connect()) for _ in range(12)]
        for each in busy:
            each.sendall(GET.replace(b"/", b"/slow", 1))
            assert b"200" in each.recv(100)
        with door.plain() as late:
            assert ends(late, 2.0)
        assert not any(ends(each, 0.05) for each in busy)
        busy.pop().close()
        until = time.monotonic() + 5
        while (found := _tried(door)) != 200:
            assert time.monotonic() < until, found


def _tried(door: Door) -> int:
    try:
        with door.connect() as client:
            return status(client)
    except OSError:
        return 0


def seated(kept: seats.Seats, *hosts: str) -> list[seats.Seat | None]:
    return [kept.take(host, lambda: None) for host in hosts]


def test_one_address_has_a_part_of_the_seats() -> None:
    kept = seats.Seats("the API", most=10, each=3)
    gone: list[str] = []
    first = kept.take("192.0.2.1", lambda: gone.append("first"))
    second, third = seated(kept, "::ffff:192.0.2.1", "192.0.2.1")
    assert first
    assert second
    assert third
    first.work()
    assert kept.take("192.0.2.1", lambda: None)
    assert len(kept) == 3, "the second, which said nothing, went"
    assert not gone
    assert all(seated(kept, "2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"))
    assert len(kept) == 7
    second.rest()
    second.leave()
    assert len(kept) == 7, "who has gone has gone"


def test_nobody_at_work_goes_for_another() -> None:
    kept = seats.Seats("the API", most=4, each=4)
    for seat in seated(kept, "192.0.2.1", "192.0.2.1", "192.0.2.1"):
        assert seat
        seat.work()
    (other,) = seated(kept, "192.0.2.2")
    (third,) = seated(kept, "192.0.2.3")
    assert other
    assert third
    third.work()
    assert len(kept) == 4, "the one that was idle went, though its address has few"
    assert seated(kept, "192.0.2.4") == [None]


def test_seats_are_fewer_where_files_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (40, 40))
    kept = seats.Seats("the API", most=400, each=200)
    for number in range(30):
        assert seated(kept, f"192.0.2.{number}") != [None]
    assert len(kept) == 10
