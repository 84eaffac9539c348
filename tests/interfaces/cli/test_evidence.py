# SPDX-License-Identifier: Apache-2.0
"""Evidence on its whole way: an agent's ring, a fact that changes, a server that asks for the bytes behind it, the upload, and the bytes behind the value."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.collect.world import Hands, Lines, Told, source
from tests.interfaces.cli.conftest import Muster

from muster.collect.agent import Agent
from muster.collect.collector import Collector
from muster.collect.delivery import Delivery
from muster.collect.evidence import Evidence
from muster.collect.post import Address, Posted, Poster
from muster.collect.reports import Identity, Reports
from muster.collect.ring import Ring
from muster.collect.spool import Spool
from muster.collect.tell import Teller
from muster.domain.model.source import ReaderKind
from muster.interfaces.api.app import build
from muster.wire.report import NodeDoc, ReportDoc
from muster.wiring.server import Server
from muster.wiring.settings import load_settings

CADENCE = 60.0
FACT, NEW = b"SN-77 memory.total=2048", b"SN-77 memory.total=4096"
MOVED = b"SN-77 memory.total=4096 power.draw=81"


class Node:
    """An agent of one made-up source, with its ring on disk, on a clock that is set by hand, and the way to whoever serves at the socket."""

    def __init__(self, folder: Path, told: Told, socket: Path, per_hour: int) -> None:
        self.hands = Hands(wall=time.time())
        clock = self.hands.clock()
        self.post = Poster(lambda: Address("http://localhost", str(socket)))
        self.posts: list[tuple[ReportDoc, Posted]] = []
        self.spool = Spool(folder / "spool")
        reports = Reports(Identity(node=NodeDoc(name="n1", machine_id="m1")), clock, lambda: "life-1")
        evidence = Evidence(Ring(folder / "ring"), per_hour, clock)
        collector = Collector([Lines("acme", [source("acme.list", cadence=CADENCE)])], {ReaderKind.TOOL: told}, clock, {})
        self.agent = Agent(collector, Teller("b", evidence), reports, self.spool, clock)
        self.delivery = Delivery(self.spool, self._posted, clock, boot_id="b", spread=lambda: 0.0, renew=self.agent.renew, wanted=self.agent.wanted)

    def _posted(self, report: ReportDoc) -> Posted:
        posted = self.post(report)
        self.posts.append((report, posted))
        return posted

    def round(self) -> None:
        """Time for a round, which is read and written."""
        self.hands.pass_(CADENCE)
        self._until_written()

    def _until_written(self) -> None:
        had, end = len(self.spool), time.monotonic() + 10
        while len(self.spool) == had:
            assert time.monotonic() < end, "nothing was written"
            self.agent.step(0.01)

    def deliver(self) -> list[tuple[ReportDoc, Posted]]:
        """All that waits goes, and what is asked for with it; gives what went now."""
        before = len(self.posts)
        self.hands.pass_(1.5)
        while self.delivery.step():
            if self.posts[-1][1].wanted:
                self.agent.step(0.01)
                self.hands.pass_(3.0)
                self.agent.step(0.01)
        assert not self.delivery.trouble, self.delivery.trouble
        return self.posts[before:]


def sent(posts: list[tuple[ReportDoc, Posted]]) -> list[bytes]:
    """The bytes of the captures that went."""
    return [each.payload for report, _ in posts for each in report.captures]


def asked(posts: list[tuple[ReportDoc, Posted]]) -> list[str]:
    """The digests that the server asked for."""
    return [each for _, posted in posts for each in posted.wanted]


@dataclass
class Place:
    """A node, and where its servers run."""

    folder: Path
    told: Told
    node: Node

    @contextmanager
    def server(self, state: str, **more: Any) -> Iterator[Server]:
        """A server with a store of this name."""
        settings = load_settings(host="127.0.0.1", port=0, state=self.folder / state, runtime=self.folder / "run", **more)
        with Server(settings, build) as running:
            yield running


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Place]:
    told = Told({"acme.list": FACT})
    monkeypatch.setenv("MUSTER_RUNTIME", str(tmp_path / "run"))
    with ExitStack() as held:
        node = Node(tmp_path / "agent", told, tmp_path / "run" / "muster.sock", getattr(request, "param", 2**20))
        held.callback(node.post.close)
        yield Place(tmp_path, told, node)


def digest_of(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def behind(muster: Muster) -> tuple[float, str]:
    """The memory of the card as `describe` tells it, and the digest of what it rests on."""
    told = muster("describe", "card", "SN-77", "-o", "json")
    assert told.code == 0, told.err
    reading = json.loads(told.out)["readings"]["memory.total"]
    return reading["value"], reading["capture"]


def raw(server: Server, digest: str) -> httpx2.Response:
    """The answer to who asks for the bytes."""
    return httpx2.get(f"{server.url}/api/v1/captures/{digest}", params={"raw": "true"})


def test_the_bytes_come_with_a_fact_that_changes(place: Place, alone: Muster) -> None:
    with place.server("one") as server:
        place.node.round()
        first = place.node.deliver()
        assert behind(alone) == (2048, digest_of(FACT))
        place.told.by["acme.list"] = NEW
        place.node.round()
        second = place.node.deliver()

        assert (sent(first), sent(second)) == ([FACT], [NEW])
        assert asked(first) == asked(second) == [], "what comes along is not asked for"
        assert behind(alone) == (4096, digest_of(NEW))
        shown = alone("describe", "card", "SN-77", "-o", "wide").out
        assert re.search(rf"EVIDENCE .*\n.*\n +{digest_of(NEW)} +acme\.list +.*memory\.total", shown), shown
        assert "EVIDENCE" not in alone("describe", "card", "SN-77").out
        assert raw(server, digest_of(NEW)).content == NEW
        assert json.loads(alone("capture", digest_of(NEW), "--info").out)["locator"] == ["acme.list"]


def test_equal_facts_send_and_ask_for_nothing(place: Place, alone: Muster) -> None:
    with place.server("one") as server:
        for payload in (NEW, MOVED, MOVED.replace(b"81", b"82")):
            place.told.by["acme.list"] = payload
            place.node.round()
        first = place.node.deliver()
        place.node.round()
        again = place.node.deliver()

        assert sent(first) == [NEW], "numbers that move are no reason to send bytes"
        assert (sent(again), asked(first), asked(again)) == ([], [], [])
        assert behind(alone) == (4096, digest_of(NEW))
        assert raw(server, digest_of(NEW)).content == NEW


def test_a_server_that_lost_its_store_asks_for_what_its_values_rest_on(place: Place, alone: Muster) -> None:
    with place.server("one"):
        place.node.round()
        place.node.deliver()
    with place.server("two") as server:
        place.node.round()
        posts = place.node.deliver()

        assert posts[0][0].captures == [], "to the agent nothing has changed"
        assert asked(posts) == [digest_of(FACT)]
        assert [sent([each]) for each in posts[1:]] == [[FACT]], "out of the ring, once"
        assert behind(alone) == (2048, digest_of(FACT))
        assert raw(server, digest_of(FACT)).content == FACT
        place.node.round()
        assert asked(place.node.deliver()) == []


@pytest.mark.parametrize("place", [len(FACT) + 5], indirect=True)
def test_evidence_over_the_budget_of_an_hour_is_asked_for_when_there_is_room(place: Place, alone: Muster) -> None:
    """The agent may send no more within this hour, while nobody listens; the report is taken after it, and the server asks for what it names."""
    place.node.round()
    place.told.by["acme.list"] = NEW
    place.node.round()
    place.node.hands.pass_(3700.0)
    with place.server("one") as server:
        posts = place.node.deliver()

        assert [sent([each]) for each in posts[:2]] == [[FACT], []]
        assert asked(posts) == [digest_of(NEW)]
        assert sent(posts[2:]) == [NEW]
        assert raw(server, digest_of(NEW)).content == NEW
        assert behind(alone) == (4096, digest_of(NEW))


@pytest.mark.parametrize("place", [len(FACT) + 5], indirect=True)
def test_what_the_hour_had_no_room_for_is_said(place: Place, alone: Muster, caplog: pytest.LogCaptureFixture) -> None:
    with place.server("one") as server:
        place.node.round()
        place.node.deliver()
        place.told.by["acme.list"] = NEW
        with caplog.at_level("WARNING", "muster.evidence"):
            place.node.round()
        posts = place.node.deliver()

        assert (asked(posts), sent(posts)) == ([digest_of(NEW)], [])
        assert "the evidence of this hour is used up" in caplog.text
        assert behind(alone) == (4096, digest_of(NEW)), "the value names what it rests on all the same"
        answer = raw(server, digest_of(NEW))
        assert (answer.status_code, answer.json()["hint"]) == (404, "it was never sent, or made room for newer ones")
        told = alone("capture", digest_of(NEW))
        assert (told.code, "made room for newer ones" in told.err) == (3, True)


def test_a_capture_that_the_server_had_no_room_for_is_said_to_have_made_room(place: Place, alone: Muster) -> None:
    large = [b"".join((b"SN-77 memory.total=%d firmware.version=" % size, os.urandom(50).hex().encode())) for size in (1024, 2048, 4096)]
    with place.server("one", captures_bytes=250) as server:
        for payload in large:
            place.told.by["acme.list"] = payload
            place.node.round()
            place.node.deliver()

        assert behind(alone) == (4096, digest_of(large[-1]))
        assert raw(server, digest_of(large[-1])).content == large[-1]
        answer = raw(server, digest_of(large[0]))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert "made room for newer ones" in answer.json()["hint"]
