# SPDX-License-Identifier: Apache-2.0
"""What is too large, too slow, too many: sent away early, in words, and the others go on."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.interfaces.ingest.door import GOOD, QUICK, Client, Site, open_site, problem, report, request, sequence

BODY = 200_000
TIGHT = replace(QUICK, body=BODY, head_time=0.3, body_time=0.5, idle=1.0)


def drip(client: Client, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        client.send(b"x")
        time.sleep(0.05)


def flood(client: Client, data: bytes, times: int) -> None:
    for _ in range(times):
        client.send(data)


@pytest.fixture
def tight() -> Iterator[Site]:
    with open_site(TIGHT) as found:
        yield found


def test_a_large_body_is_refused_before_it_is_read(tight: Site) -> None:
    with tight.client() as client:
        client.send(request(report(), Content_Length=str(BODY + 1)).partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        status, headers, body = client.answer()
        assert (status, headers["connection"], problem(body)["code"]) == (413, "close", "too_large")
        client.send(b"x" * 100_000)  # what is still on its way does no harm
        assert client.closed
    assert tight.intake.taken == []


@pytest.mark.parametrize("size", [BODY, BODY + 1])
def test_a_body_in_chunks_is_bounded_too(tight: Site, size: int) -> None:
    with tight.client() as client:
        client.send(request(Content_Length=None, Transfer_Encoding="chunked"))
        for start in range(0, size, 50_000):
            piece = b"y" * min(50_000, size - start)
            client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        client.send(b"0\r\n\r\n")
        assert client.answer()[0] == (200 if size <= BODY else 413)
    assert tight.settled(lambda: tight.ingest.meters.flight == 0)


def test_chunks_of_one_byte_are_mostly_frame() -> None:
    with open_site(replace(QUICK, body=10_000)) as site, site.client() as client:
        client.send(request(Content_Length=None, Transfer_Encoding="chunked"))
        client.send(b"1;%b\r\nz\r\n" % (b"e" * 200) * 9_000)
        assert client.answer()[0] == 413


def test_a_bomb_does_not_go_off(tight: Site) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < BODY
    with tight.client() as client:
        status, _, body = client.ask(request(bomb, Content_Encoding="gzip"))
        assert (status, problem(body)["code"]) == (413, "too_large")
        assert client.ask(request(report()))[0] == 200
    assert tight.ingest.meters.flight == 0


def test_requests_to_join_are_small(site: Site) -> None:
    with site.client() as client:
        assert client.ask(request(b"x" * 70_000, path="/v1/enrol"))[0] == 413


@pytest.mark.parametrize("whole", [True, False])
def test_a_huge_head_is_refused(tight: Site, *, whole: bool) -> None:
    with tight.client() as client:
        head = b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 20_000
        assert client.ask(head + (b"\r\n\r\n" if whole else b""))[0] == 431
        assert client.closed


def test_a_slow_head_is_cut_off(tight: Site) -> None:
    with tight.client() as client:
        client.send(b"POST /v1/rep")
        began = time.monotonic()
        status, _, body = client.answer()
        assert (status, problem(body)["code"]) == (408, "too_slow")
        assert 0.2 < time.monotonic() - began < 3
        assert client.closed
    assert tight.ingest.meters.cut_off == 1


def test_a_slow_body_is_cut_off_however_steadily_it_drips(tight: Site) -> None:
    with tight.client() as client:
        client.send(request(report(), Content_Length="5000"))
        began = time.monotonic()
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            drip(client, 8)
        assert time.monotonic() - began < 6
    assert tight.settled(lambda: tight.ingest.meters.flight == 0)
    assert tight.intake.taken == []


def test_a_quiet_connection_ends_in_the_end(tight: Site) -> None:
    with tight.client() as client:
        assert client.ask(request(report()))[0] == 200
        time.sleep(0.6)
        assert client.ask(request(report()))[0] == 200
        began = time.monotonic()
        assert client.closed
        assert 0.7 < time.monotonic() - began < 4


def test_a_stranger_is_not_waited_for_as_long() -> None:
    with open_site(replace(QUICK, idle=30.0, stranger=0.3)) as site, site.client() as never, site.client() as stranger, site.client() as known:
        assert known.ask(request(report()))[0] == 200
        assert stranger.ask(request(report(), token="wrong"))[0] == 401
        began = time.monotonic()
        assert stranger.closed
        assert never.closed
        assert time.monotonic() - began < 4
        assert known.ask(request(report()))[0] == 200


def test_connections_over_the_bound_are_sent_away(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "muster.ingest"), open_site(replace(QUICK, connections=3)) as site:
        clients = [site.client() for _ in range(3)]
        assert all(client.ask(request(report()))[0] == 200 for client in clients)
        with site.client() as other:
            status, headers, body = other.answer()
            assert (status, headers["connection"], problem(body)["code"]) == (503, "close", "unavailable")
            assert int(headers["retry-after"]) >= 1
            assert other.closed
        with site.client() as other:
            assert other.answer()[0] == 503
        assert [each.getMessage()[:22] for each in caplog.records] == ["3 connections are open"], "it is said once, not for each"
        clients.pop().close()
        assert site.settled(lambda: site.ingest.meters.connections == 2)
        with site.client() as other:
            assert other.ask(request(report()))[0] == 200
        for client in clients:
            client.close()
        assert site.ingest.meters.turned_away == 2


def test_bytes_in_memory_are_bounded() -> None:
    with open_site(replace(QUICK, flight=100_000)) as site, site.client() as slow, site.client() as other:
        slow.send(request(b"x" * 60_000, Content_Length="90000"))
        assert site.settled(lambda: site.ingest.meters.flight == 90_000)
        status, headers, body = other.ask(request(b"y" * 20_000))
        assert (status, problem(body)["code"]) == (429, "busy")
        assert int(headers["retry-after"]) >= 1
        slow.send(b"x" * 30_000)
        assert slow.answer()[0] == 200
        assert other.ask(request(b"y" * 20_000))[0] == 200


def test_room_is_given_back_when_a_client_goes_away() -> None:
    with open_site(replace(QUICK, flight=100_000)) as site:
        with site.client() as gone:
            gone.send(request(b"x", Content_Length="90000"))
            assert site.settled(lambda: site.ingest.meters.flight == 90_000)
        assert site.settled(lambda: site.ingest.meters.flight == 0)


def test_a_second_request_before_the_first_is_answered_is_not_read(site: Site) -> None:
    site.intake.hold.clear()
    with site.client() as client:
        client.send(request(report(1)) + request(report(2)))
        assert site.settled(lambda: bool(site.intake.batches))
        client.send(request(report(3)))
        site.intake.hold.set()
        status, headers, _ = client.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert client.closed
    assert [sequence(each) for each in site.intake.taken] == [1]


def test_what_floods_behind_a_request_is_left_in_the_network(site: Site) -> None:
    site.intake.hold.clear()
    with site.client() as client:
        client.send(request(report()))
        client.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):  # the kernel's buffers are full: nobody reads
            flood(client, b"POST /v1/reports HTTP/1.1\r\n" + b"x" * 60_000, 2000)
        assert site.ingest.meters.flight == len(report())
        site.intake.hold.set()
    assert site.settled(lambda: site.ingest.meters.connections == 0)


def test_a_client_that_reads_no_answers_is_not_read_either() -> None:
    with open_site(replace(QUICK, idle=1.0)) as site:
        client = Client(site.ingest.port)
        client.socket.settimeout(0.5)
        with pytest.raises((TimeoutError, ConnectionError)):
            flood(client, request(method="GET", path="/version") * 50, 200_000)
        client.close()
        assert site.settled(lambda: site.ingest.meters.connections == 0)


def test_a_gate_that_hangs_is_said_to_do_so() -> None:
    with open_site(replace(QUICK, patience=0.4)) as site, site.client() as client, site.client() as other:
        assert other.ask(request(report(1)))[0] == 200
        site.gate.wait.clear()
        status, headers, _ = client.ask(request(b"\x82\xa4body\xc4\x01b\xa5proof\xc4\x01p", path="/v1/token"))
        assert (status, "retry-after" in headers) == (503, True)
        site.gate.tokens["new"] = "node-b"
        assert client.ask(request(report(2), token="new"))[0] == 503
        site.gate.wait.set()
        assert client.ask(request(report(3), token="new"))[0] == 200
        assert client.ask(request(report(4), token=GOOD))[0] == 200
    assert [sequence(each) for each in site.intake.taken] == [1, 3, 4]
