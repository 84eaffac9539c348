# SPDX-License-Identifier: Apache-2.0
"""One version back and one forward: an older agent with this server, this agent with an older server, and an agent of a version that is still to come."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.faults.agents import NODE, agent_of
from tests.faults.site import server, until
from tests.faults.voices import Voice, replayed, voices, whole

from muster.wire.lanes import older
from muster.wire.report import AnswerDoc, ListingDoc, NodeDoc, pack


def say(voice: Voice, body: bytes) -> None:
    """Has a report acknowledged."""
    said = voice.post(body)
    assert (said.status, said.answer) == (200, "applied"), said
    voice.sequence += 1
    voice.said[voice.sequence] = body


def newer(voice: Voice, number: int) -> bytes:
    """What an agent of schema 3 might say: as we do, with keys that we do not know, at every level."""
    told: dict[str, Any] = msgspec.msgpack.decode(pack(voice.report(number)))
    told |= {"schema": 3, "trace": {"id": b"x" * 16}, "lanes": [1, 2, 3]}
    told["node"]["rack"] = "r1"
    for heard in told["heard"]:
        facts = msgspec.msgpack.decode(heard["facts"])
        facts["confidence"] = 0.9
        facts["observations"][0]["shape"] = {"slots": [1, 2]}
        facts["observations"][0]["readings"]["flux.capacity"] = {"v": 1.21}
        heard |= {"facts": msgspec.msgpack.encode(facts), "clock": "tai"}
    for event in told.get("events", []):
        event["severity"] = "high"
    return msgspec.msgpack.encode(told)


@pytest.mark.slow
def test_agents_of_three_versions_report_to_one_server(tmp_path: Path) -> None:
    with server(tmp_path) as site:
        old, now, new = voices(site, 3)
        for number in range(1, 13):
            say(old, pack(older(old.report(number))))
            say(now, pack(now.report(number)))
            say(new, newer(new, number))
        for voice in (old, now, new):
            whole(site, voice)
            replayed(voice)
        assert site.ready() == ""


class Old(msgspec.Struct, forbid_unknown_fields=True):
    """A report as a server of schema 1 took it: nothing else."""

    reporter: str
    incarnation: str
    sequence: int
    node: NodeDoc
    sent_at: float
    schema: int = 1
    sent_mono: float = 0.0
    boot_id: str = ""
    agent_version: str = ""
    adapters: dict[str, str] = {}
    listings: list[ListingDoc] = []
    events: list[Any] = []
    captures: list[Any] = []


@contextmanager
def last_years(taken: list[Old], wrong: list[str]) -> Iterator[str]:
    """A server of schema 1: says so, and takes nothing else."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._tell(200, "application/json", json.dumps({"version": "0.0.1", "api": "v1", "report_schema": 1}).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                report = msgspec.msgpack.decode(body, type=Old)
                assert report.schema == 1, report.schema
            except (msgspec.DecodeError, AssertionError) as error:
                wrong.append(str(error))
                self._tell(400, "application/problem+json", b'{"detail": "no report of schema 1"}')
                return
            taken.append(report)
            self._tell(200, "application/msgpack", msgspec.msgpack.encode(AnswerDoc(answer="applied")))

        def _tell(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_address[1]}"
    finally:
        made.shutdown()
        made.server_close()
        thread.join()


@pytest.mark.slow
def test_this_agent_reports_to_a_server_of_the_last_version(tmp_path: Path) -> None:
    taken: list[Old] = []
    wrong: list[str] = []
    with last_years(taken, wrong) as url:
        agent = agent_of(tmp_path / "agent", MUSTER_CADENCE="1", MUSTER_SERVER=url)
        agent.start()
        try:
            until(lambda: wrong or sum(len(each.listings) for each in taken) >= 6, "rounds arrive")
            time.sleep(1)
        finally:
            agent.kill()
    assert not wrong, wrong
    told = [listing for report in taken for listing in report.listings]
    assert {report.node.name for report in taken} == {NODE.name}
    assert any(len(listing.observations) >= 8 for listing in told)
    assert all("n" not in reading for each in told for row in each.observations for reading in row.readings.values())
    numbers = [report.sequence for report in taken]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
