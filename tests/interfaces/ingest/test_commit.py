# SPDX-License-Identifier: Apache-2.0
"""Reports are gathered, committed together by one thread, and acknowledged after that; a writer that is slow, hangs or fails does no harm to what it took."""

from __future__ import annotations

import logging
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import msgspec
import pytest
from tests.interfaces.ingest.door import QUICK, Client, Outcome, Site, open_site, problem, report, request, sequence

from muster.domain.model.errors import Unavailable
from muster.interfaces.ingest.connection import Connection
from muster.interfaces.ingest.limits import Limits
from muster.wire.report import AnswerDoc


@contextmanager
def clients(site: Site, number: int) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        yield [stack.enter_context(site.client()) for _ in range(number)]


def numbers(site: Site) -> list[list[int]]:
    return [[sequence(body) for _, body in batch] for batch in site.intake.batches]


def in_order(site: Site) -> list[int]:
    return [number for batch in numbers(site) for number in batch]


def queued(site: Site, count: int) -> None:
    assert site.settled(lambda: site.ingest.meters.queue == count)


@pytest.mark.parametrize("rest", [0.0, 5.0])
def test_reports_are_gathered_into_one_commit(rest: float) -> None:
    with open_site(replace(QUICK, gather=0.3, rest=rest)) as site, clients(site, 20) as many:
        for number, client in enumerate(many):
            client.send(request(report(number)))
        assert {client.answer()[0] for client in many} == {200}
        assert len(numbers(site)) <= 2
        assert sorted(in_order(site)) == list(range(20))
        assert len(site.intake.threads) == 1
        meters = site.ingest.meters
        assert (meters.taken, meters.batches, meters.queue, meters.queue_bytes, meters.flight) == (20, len(numbers(site)), 0, 0, 0)
        assert meters.acknowledged.count == 20
        assert meters.acknowledged.longest >= (0.25 if not rest else 0.0)


RESTS = Limits(gather=0.05, rest=20.0)


def test_a_batch_ends_the_rest_when_it_is_due_and_an_answer_when_it_is_there() -> None:
    with open_site(RESTS) as site, clients(site, 3) as many:
        began = time.monotonic()
        assert many[0].ask(request(report(0)))[0] == 200
        site.intake.hold.clear()
        for number, client in enumerate(many, 1):  # one at work; the next is due while the writer is busy, and the third makes the listener rest without an end
            client.send(request(report(number)))
            time.sleep(0.2)
        site.intake.hold.set()
        assert {client.answer()[0] for client in many} == {200}
        assert time.monotonic() - began < 10
        assert in_order(site) == [0, 1, 2, 3]


def test_what_comes_during_the_rest_goes_with_the_batch_that_ends_it() -> None:
    with open_site(replace(RESTS, gather=0.4)) as site, clients(site, 6) as many:
        assert {client.ask(request(report(number)))[0] for number, client in enumerate(many)} == {200}
        site.intake.batches.clear()
        for number, client in enumerate(many, 10):
            client.send(request(report(number)))
            time.sleep(0.03)
        assert {client.answer()[0] for client in many} == {200}
        assert [sorted(batch) for batch in numbers(site)] == [[10, 11, 12, 13, 14, 15]]


def test_the_gate_ends_the_rest() -> None:
    with open_site(RESTS) as site, clients(site, 4) as many:
        assert many[0].ask(request(report(0)))[0] == 200
        site.intake.hold.clear()
        site.gate.wait.clear()
        many[3].send(request(report(9), token="nobody's"))
        time.sleep(0.2)
        for number, client in enumerate(many[:3], 1):
            client.send(request(report(number)))
            time.sleep(0.2)
        site.gate.wait.set()
        began = time.monotonic()
        assert many[3].answer()[0] == 401
        assert time.monotonic() - began < 5
        site.intake.hold.set()
        assert {client.answer()[0] for client in many[:3]} == {200}


def test_a_full_batch_does_not_wait() -> None:
    with open_site(replace(QUICK, gather=20.0, batch=5)) as site, clients(site, 5) as many:
        began = time.monotonic()
        for number, client in enumerate(many):
            client.send(request(report(number)))
        assert {client.answer()[0] for client in many} == {200}
        assert time.monotonic() - began < 5
        assert [len(batch) for batch in numbers(site)] == [5]


def test_a_batch_is_bounded_in_bytes() -> None:
    with open_site(replace(QUICK, gather=20.0, batch_bytes=50_000)) as site, clients(site, 4) as many:
        site.intake.hold.clear()
        for number, client in enumerate(many):
            client.send(request(bytes([number]) * 60_000))
            queued(site, number + 1)
        site.intake.hold.set()
        assert {client.answer()[0] for client in many} == {200}
        assert [[body[0] for _, body in batch] for batch in site.intake.batches] == [[0], [1], [2], [3]]


def test_nothing_is_acknowledged_before_it_is_taken(site: Site) -> None:
    site.intake.hold.clear()
    with site.client() as client:
        client.send(request(report()))
        assert site.settled(lambda: bool(site.intake.batches))
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.answer()
        client.socket.settimeout(5)
        assert site.intake.taken == []
        site.intake.hold.set()
        assert client.answer()[0] == 200
        assert site.intake.taken == [report()]


@pytest.mark.parametrize("dies", [True, False])
def test_a_client_that_left_is_committed_all_the_same(site: Site, *, dies: bool) -> None:
    site.intake.hold.clear()
    with site.client() as client:
        client.send(request(report(1)))
        assert site.settled(lambda: bool(site.intake.batches))
        if dies:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert not dies or site.settled(lambda: site.ingest.meters.connections == 0)
    site.intake.hold.set()
    assert site.settled(lambda: site.ingest.meters.queue == 0 and site.ingest.meters.connections == 0)
    assert site.ingest.meters.flight == 0
    assert numbers(site) == [[1]]


def test_a_report_that_breaks_the_writer_breaks_alone(caplog: pytest.LogCaptureFixture) -> None:
    def says(body: bytes) -> Outcome:
        if sequence(body) == 3:
            raise ZeroDivisionError("in the depths")
        return AnswerDoc(answer="applied")

    with caplog.at_level(logging.CRITICAL + 1, "muster.ingest"), open_site(replace(QUICK, gather=0.2)) as site, clients(site, 6) as many:
        site.intake.says = says
        for number, client in enumerate(many):
            client.send(request(report(number)))
        answers = [client.answer() for client in many]
        assert [status for status, _, _ in answers] == [200, 200, 200, 500, 200, 200]
        assert problem(answers[3][2])["code"] == "unexpected"
        assert b"depths" not in answers[3][2]
        assert {sequence(body) for body in site.intake.taken} == {0, 1, 2, 4, 5}
        assert site.ingest.meters.poisoned >= 1
        assert many[3].ask(request(report(9)))[0] == 200


def test_a_store_that_is_away_is_said_to_be_away() -> None:
    def says(_body: bytes) -> Outcome:
        raise Unavailable("the disk is full", hint="make room")

    with open_site(replace(QUICK, gather=0.2)) as site, clients(site, 3) as many:
        site.intake.says = says
        for client in many:
            client.send(request(report()))
        answers = [client.answer() for client in many]
        assert {status for status, _, _ in answers} == {503}
        assert problem(answers[0][2])["hint"] == "make room"
        assert {headers["retry-after"] for _, headers, _ in answers} != {"1"}
        assert len(numbers(site)) <= 2, "what the writer said of all is not tried one by one"
        site.intake.says = lambda _: AnswerDoc(answer="applied")
        assert many[0].ask(request(report()))[0] == 200


HANGS = Limits(gather=0.002, rest=0.0, patience=0.5, queue_age=60.0)


def test_a_writer_that_hangs_is_said_to_do_so_and_order_is_kept() -> None:
    with open_site(HANGS) as site, clients(site, 5) as many:
        site.intake.hold.clear()
        many[0].send(request(report(1)))
        assert site.settled(lambda: bool(site.intake.batches))
        for number, client in enumerate(many[1:4], 2):
            client.send(request(report(number)))
            queued(site, number)
        answers = [client.answer() for client in many[:4]]
        assert [status for status, _, _ in answers] == [503] * 4
        assert all("retry-after" in headers for _, headers, _ in answers)
        assert many[4].ask(request(method="GET", path="/healthz"))[0] == 503
        assert (site.ingest.meters.late, site.ingest.meters.queue, site.ingest.meters.flight) == (4, 0, 0)
        for number, client in enumerate(many[1:4], 2):  # they send again, in their order, while the writer still hangs
            client.send(request(report(number)))
            queued(site, number - 1)
        site.intake.hold.set()
        assert [client.answer()[0] for client in many[1:4]] == [200] * 3
        assert in_order(site) == [1, 2, 3, 4]
        assert many[0].ask(request(report(1)))[0] == 200
        assert many[4].ask(request(method="GET", path="/healthz"))[0] == 200


@pytest.mark.parametrize(
    "limits",
    [Limits(gather=0.002, rest=0.0, queue=2), Limits(gather=0.002, rest=0.0, queue_bytes=len(report(1)) + 1), Limits(gather=0.002, rest=0.0, queue_age=0.3)],
    ids=["count", "bytes", "age"],
)
def test_when_the_writer_is_behind_reports_are_sent_away_at_their_head(limits: Limits) -> None:
    with open_site(limits) as site, clients(site, 3) as many, site.client() as other:
        site.intake.hold.clear()
        for client in many[:2]:
            client.send(request(report(1)))
        assert site.settled(lambda: site.ingest.meters.queue == 2)
        time.sleep(limits.queue_age if limits.queue_age < 1 else 0)
        other.send(request(report(2)).partition(b"\r\n\r\n")[0] + b"\r\n\r\n")  # no body yet
        status, headers, body = other.answer()
        assert (status, problem(body)["code"]) == (429, "busy")
        assert "connection" not in headers
        other.send(report(2))
        waits = {int(other.ask(request(report(2)))[1]["retry-after"]) for _ in range(30)}
        assert min(waits) >= 1
        assert max(waits) <= 1 + limits.retry
        assert len(waits) > 5, "they are not to come back together"
        assert other.ask(request(method="GET", path="/version"))[0] == 200
        site.intake.hold.set()
        assert [client.answer()[0] for client in many[:2]] == [200, 200]
        assert other.ask(request(report(3)))[0] == 200
        assert 2 not in in_order(site)


def test_nothing_is_lost_or_doubled_under_many_hands(site: Site) -> None:
    got: list[tuple[int, int]] = []

    def speak(who: int) -> None:
        with site.client() as client:
            for number in range(50):
                status, _, body = client.ask(request(report(who * 1000 + number)))
                if status == 200 and msgspec.msgpack.decode(body, type=AnswerDoc).answer == "applied":
                    got.append((who, number))

    threads = [threading.Thread(target=speak, args=(who,)) for who in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    taken = [sequence(body) for body in site.intake.taken]
    assert sorted(got) == [(who, number) for who in range(12) for number in range(50)]
    assert sorted(taken) == [who * 1000 + number for who, number in sorted(got)]
    for who in range(12):
        assert [each % 1000 for each in taken if each // 1000 == who] == list(range(50)), "each in its order"


def test_an_answer_that_cannot_be_sent_keeps_no_other_back(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    really = Connection.answered
    broken: list[Outcome] = []

    def answered(self: Connection, outcome: Outcome) -> None:
        if not broken:
            broken.append(outcome)
            raise ZeroDivisionError("in the depths")
        really(self, outcome)

    monkeypatch.setattr(Connection, "answered", answered)
    with caplog.at_level(logging.CRITICAL + 1, "muster.ingest"), open_site(replace(QUICK, gather=0.2, grace=0.5)) as site, clients(site, 4) as many:
        for number, client in enumerate(many):
            client.send(request(report(number)))
            queued(site, number + 1)
        assert [client.answer()[0] for client in many[1:]] == [200] * 3
        assert many[1].ask(request(report(9)))[0] == 200
