# SPDX-License-Identifier: Apache-2.0
"""One reporter whose reports are dear does not starve the others: it has a share of the writer, and a line of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

import pytest
from tests.interfaces.ingest.door import QUICK, T0, Client, Site, open_site, problem, report, request

from muster.domain.model.access import Reach, Scope, Speaker
from muster.domain.model.policy import Policy
from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.shares import MANY, Each, Shares
from muster.services.inventory import Inventory
from muster.store import open_store
from muster.wire.report import AnswerDoc, ListingDoc, ObservationDoc

KNOWN = ("rogue", "two", "three", "four")


@contextmanager
def many(limits: Limits, number: int) -> Iterator[tuple[Site, list[Client]]]:
    with open_site(limits) as site, ExitStack() as stack:
        site.gate.tokens |= {f"token-of-{who}": who for who in KNOWN}
        yield site, [stack.enter_context(site.client()) for _ in range(number)]


def waiting(site: Site, count: int) -> bool:
    return site.ingest.meters.queue + site.ingest.meters.held_back == count


def spin(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def dear(site: Site, seconds: float) -> None:
    """Reports that begin with ``rogue`` take so long of the writer, others nothing."""

    def says(body: bytes) -> AnswerDoc:
        spin(seconds if body.startswith(b"rogue") else 0.0)
        return AnswerDoc(answer="applied")

    site.intake.says = says


def test_who_took_its_share_waits_and_others_do_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with many(replace(QUICK, share=0.3, dear=10.0), 2) as (site, (rogue, other)):
        dear(site, 0.4)
        assert rogue.ask(request(b"rogue", token="token-of-rogue"))[0] == 200
        for _ in range(2):
            status, headers, body = rogue.ask(request(b"rogue", token="token-of-rogue"))
            assert (status, problem(body)["code"]) == (429, "busy")
            assert 15 <= int(headers["retry-after"]) <= 60
        assert other.ask(request(report()))[0] == 200

        meters = site.ingest.meters
        assert (meters.held_back, meters.sent_away, meters.taken) == (2, 0, 2)
        assert [record.message for record in caplog.records if "share" in record.message or "made to wait" in record.message] == [
            "rogue took 0 s of the writer within a minute, and is made to wait: what it reports is large, and new each time"
        ]


def test_one_who_comes_by_another_token_is_the_same() -> None:
    with many(replace(QUICK, share=0.2), 2) as (site, (rogue, again)):
        site.gate.tokens["other-token"] = "rogue"
        dear(site, 0.4)
        assert rogue.ask(request(b"rogue", token="token-of-rogue"))[0] == 200
        assert again.ask(request(b"rogue", token="other-token"))[0] == 429
        assert [len(batch) for batch in site.intake.batches] == [1]


def test_each_of_a_batch_pays_for_itself() -> None:
    with many(replace(QUICK, gather=0.3, share=0.2), 4) as (site, clients):
        dear(site, 0.4)
        bodies = [b"rogue", b"a", b"b", b"c"]
        for client, body, who in zip(clients, bodies, KNOWN, strict=True):
            client.send(request(body, token=f"token-of-{who}"))
        assert {client.answer()[0] for client in clients} == {200}
        assert [len(batch) for batch in site.intake.batches] == [4]
        for client, body, who in zip(clients, bodies, KNOWN, strict=True):
            assert client.ask(request(body, token=f"token-of-{who}"))[0] == (429 if who == "rogue" else 200)


def test_what_is_large_goes_alone_and_by_turns() -> None:
    with many(replace(QUICK, large=1000, large_each=3), 9) as (site, clients):
        site.intake.hold.clear()
        clients[0].send(request(b"first", token="token-of-two"))
        assert site.settled(lambda: bool(site.intake.batches))
        for place, client in enumerate(clients[1:5]):
            client.send(request(b"L" * 2000 + b"%d" % place, token="token-of-rogue"))
            assert site.settled(partial(waiting, site, 2 + place))
        for client in clients[5:]:
            client.send(request(b"small", token="token-of-two"))
        assert site.settled(lambda: site.ingest.meters.queue == 8)
        assert clients[4].answer()[0] == 429, "three wait already"
        site.intake.hold.set()
        assert {client.answer()[0] for client in (*clients[:4], *clients[5:])} == {200}
        assert [[body[:1] for _, body in batch] for batch in site.intake.batches] == [[b"f"], [b"L"], [b"s"] * 4, [b"L"], [b"L"]]
        assert site.ingest.meters.sent_away == 0


def test_who_was_dear_goes_alone_next() -> None:
    with many(replace(QUICK, gather=0.3, dear=0.05), 2) as (site, (rogue, other)):
        dear(site, 0.1)
        assert rogue.ask(request(b"rogue", token="token-of-rogue"))[0] == 200
        rogue.send(request(b"rogue", token="token-of-rogue"))
        other.send(request(b"a", token="token-of-two"))
        assert (rogue.answer()[0], other.answer()[0]) == (200, 200)
        assert [len(batch) for batch in site.intake.batches] == [1, 1, 1]


def test_waiting_behind_what_is_large_is_no_sign_of_too_much() -> None:
    with many(replace(QUICK, large=1000, patience=0.6, queue_age=30.0), 2) as (site, (first, large)):
        site.intake.hold.clear()
        first.send(request(b"L" * 2000, token="token-of-rogue"))
        assert site.settled(lambda: bool(site.intake.batches))
        large.send(request(b"L" * 2000, token="token-of-two"))
        assert large.answer()[0] == 429
        assert first.answer()[0] == 503
        assert (site.ingest.meters.held_back, site.ingest.meters.sent_away) == (1, 1)
        site.intake.hold.set()


def test_who_is_held_back_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    shares = Shares(Limits(share=15.0))
    for who in ("rogue", "rogue", "another"):
        shares.add(Speaker(reporter=who, scope=Scope(reach=Reach.NODE, nodes=frozenset({who})), until=T0), 100.0)

    assert ["rogue took 100 s" in each.getMessage() for each in caplog.records] == [True]


def test_what_was_taken_is_forgotten_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("muster.interfaces.ingest.shares.time.monotonic", lambda: now[0])
    shares = Shares(Limits(share=15.0, share_of_many=45.0))
    one = Speaker(reporter="one", scope=Scope(reach=Reach.NODE), until=2000)
    lists = Speaker(reporter="lists", scope=Scope(reach=Reach.LIST, nodes=frozenset({"a", "b"})), until=2000)

    shares.add(one, 25.0)
    shares.add(lists, 25.0)
    assert (shares.wait("one"), shares.wait("lists"), shares.wait("nobody")) == (40.0, 0.0, 0.0)
    now[0] += 39
    assert shares.wait("one") == pytest.approx(1.0)
    now[0] += 2
    assert shares.wait("one") == 0.0
    assert shares.dear("one")
    shares.add(one, 0.01)
    assert not shares.dear("one")
    now[0] += 600
    for number in range(2 * MANY):
        shares.add(replace(one, reporter=f"r{number}"), 0.0)
    assert len(shares._spent) <= MANY


def test_the_writer_takes_one_after_the_other() -> None:
    """What is timed is the real writer: it must ask for the next report when it is done with the one before."""
    rows = [ObservationDoc(level="card", ids=[("serial", f"SN{number}")]) for number in range(100)]
    large = ListingDoc(source="s", channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observed_at=T0, observations=rows)
    speaker = Speaker(reporter="node-a", scope=Scope(reach=Reach.NODE), until=T0 + 60)
    store = open_store(None)
    try:
        posts = Each([(speaker, report(1)), (speaker, report(2, listings=[large])), (speaker, report(3))])
        answers = Inventory(store.writer, Policy(), T0).take(posts, T0)
    finally:
        store.close()
    assert [answer.answer for answer in answers if isinstance(answer, AnswerDoc)] == ["applied"] * 3
    assert posts.spent[1] > 3 * max(posts.spent[0], posts.spent[2]) > 0


def test_one_reporter_does_not_fill_the_memory_for_bodies() -> None:
    with many(replace(QUICK, flight=100_000, flight_each=50_000), 4) as (site, (one, two, three, other)):
        site.gate.tokens["other-token"] = "rogue"
        for client, token in ((one, "token-of-rogue"), (two, "other-token")):
            assert client.ask(request(b"x", token=token))[0] == 200
        one.send(request(b"", token="token-of-rogue", Content_Length="30000"))
        assert site.settled(lambda: site.ingest.meters.flight == 30_000)
        status, headers, _ = two.ask(request(b"", token="other-token", Content_Length="30000"))
        assert (status, "retry-after" in headers) == (429, True)
        assert three.ask(request(b"y" * 30_000))[0] == 200
        assert other.ask(request(b"z" * 30_000, token="token-of-two"))[0] == 200
        assert (site.ingest.meters.held_back, site.ingest.meters.sent_away) == (1, 0)
        one.close()
        assert site.settled(lambda: site.ingest.meters.flight == 0)
        assert three.ask(request(b"x" * 30_000, token="other-token"))[0] == 200
        assert not site.ingest._reception._rooms if site.ingest._reception else False
