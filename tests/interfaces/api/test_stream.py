# SPDX-License-Identifier: Apache-2.0
"""Changes and findings as they happen, over a real socket: nothing lost, nothing twice, whoever goes and comes back."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import uvicorn
from tests.interfaces.api.fleet import Clock, app, client, fleet, get, small

from muster.interfaces.api import feed, streams
from muster.wiring.desk import Desk

STREAM = "/api/v1/changes/stream"


@dataclass
class Running:
    """A server on a real socket, and the desk behind it."""

    port: int
    desk: Desk
    clock: Clock

    def happen(self, number: int) -> None:
        """Something changes: a node that was never seen reports a card."""
        self.desk.report(small(f"node-new-{number}", 40 + number % 9))


@pytest.fixture
def running() -> Iterator[Running]:
    clock = Clock()
    with fleet(clock) as desk, socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        small_desk = replace(desk, streams=3)
        web = uvicorn.Server(uvicorn.Config(app(small_desk), log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=lambda: web.run(sockets=[here]), daemon=True)
        thread.start()
        while not web.started:
            time.sleep(0.01)
        yield Running(here.getsockname()[1], small_desk, clock)
        web.should_exit = True
        thread.join(10)


@dataclass
class Reader:
    """A client of a stream."""

    connection: http.client.HTTPConnection
    answer: http.client.HTTPResponse
    last: str = ""

    def events(self, count: int) -> list[tuple[str, str, Any]]:
        """The next events: id, event, data."""
        found: list[tuple[str, str, Any]] = []
        said: dict[str, str] = {}
        while len(found) < count:
            line = self.answer.readline().decode().rstrip("\n")
            if not line and "data" in said:
                found.append((said.get("id", ""), said.get("event", ""), json.loads(said["data"])))
            if not line:
                self.last = said.get("id", self.last)
                said = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                said[name] = value
        return found

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def follow(running: Running, query: str = "", last: str = "") -> Reader:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    connection.request("GET", f"{STREAM}{query}", headers={"last-event-id": last} if last else {})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    assert answer.headers["content-type"].startswith("text/event-stream")
    return Reader(connection, answer)


def test_what_happens_is_told(running: Running) -> None:
    reader = follow(running)
    running.happen(1)
    (id_, event, data), *_ = reader.events(1)
    change = get(client(running.desk), f"/api/v1/changes/{data['number']}")

    assert (event, data) == ("change", change)
    assert id_.partition("-")[0] == str(data["number"])
    reader.close()


def test_findings_open_and_close(running: Running) -> None:
    reader = follow(running, "?what=finding&kinds=source_silent")
    running.clock.now += 1000
    running.desk.tick()
    opened = {data["finding"]["id"]: data["what"] for _, event, data in reader.events(3) if event == "finding"}
    running.desk.report(replace_at(small("node-b", 50), running.clock.now))
    (_, _, closed), *_ = reader.events(1)

    assert set(opened.values()) == {"opened"}
    assert (closed["what"], closed["finding"]["id"] in opened, closed["finding"]["closed_at"] is None) == ("closed", True, False)
    reader.close()


def replace_at(report: Any, at: float) -> Any:
    report.sequence, report.sent_at = 2, at
    for each in report.listings:
        each.observed_at = at
    return report


def numbers(events: list[tuple[str, str, Any]]) -> list[int]:
    return [data["number"] for _, event, data in events if event == "change"]


@pytest.mark.parametrize("held", [feed.HELD, 3])
def test_who_comes_back_misses_nothing_and_reads_nothing_twice(running: Running, monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(feed, "HELD", held)
    reader = follow(running, "?what=change")
    running.happen(0)
    told = numbers(reader.events(1))
    for step in range(1, 12):
        if step % 3 == 0:
            reader.close()
            running.happen(step)
            running.happen(100 + step)
            reader = follow(running, "?what=change", last=reader.last)
        else:
            running.happen(step)
        told += numbers(reader.events(1))
    wanted = [each["number"] for each in get(client(running.desk), "/api/v1/changes", limit=1000, filter=f"number >= {told[0]}")["items"]]
    told += numbers(reader.events(len(wanted) - len(told)))

    assert told == wanted
    reader.close()


def test_what_there_was_is_told_after_a_number(running: Running) -> None:
    wanted = [each["number"] for each in get(client(running.desk), "/api/v1/changes", limit=1000)["items"]]
    reader = follow(running, "?after=0-0&wait=0&what=change")
    told = reader.events(len(wanted) + 1)

    assert numbers(told) == wanted
    assert told[-1][1:] == ("end", {"reason": "the time that was asked for is over", "last": f"{wanted[-1]}-{told[-1][2]['last'].partition('-')[2]}"})
    reader.close()


def test_only_what_was_asked_for(running: Running) -> None:
    card = get(client(running.desk), "/api/v1/cards/node-b/card0")["id"]
    reader = follow(running, "?after=0-0&wait=0&subject=node-b/card0&kinds=installed")
    told = [each for each in reader.events(2) if each[1] == "change"]

    assert {(data["subject"], data["kind"]) for _, _, data in told} == {(card, "installed")}
    reader.close()


def test_more_streams_than_are_served_are_refused(running: Running) -> None:
    readers = [follow(running) for _ in range(3)]
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    connection.request("GET", STREAM)
    refused = connection.getresponse()

    assert (refused.status, json.loads(refused.read())["code"]) == (503, "unavailable")
    for each in readers:
        each.close()
    until, status = time.monotonic() + 10, 503
    while status != 200 and time.monotonic() < until:
        running.happen(int(time.monotonic() * 1000))
        connection.request("GET", f"{STREAM}?wait=0")
        answer = connection.getresponse()
        answer.read()
        status = answer.status
        time.sleep(0.1)
    connection.close()
    assert status == 200, "streams whose readers went make room"


def test_what_is_no_stream(running: Running) -> None:
    api = client(running.desk)

    assert get(api, STREAM, 400, kinds="exploded")["hint"]
    assert get(api, STREAM, 400, after="x")["code"] == "invalid_input"
    assert get(api, STREAM, 400, what="gauge")["code"] == "invalid_input"
    assert get(api, STREAM, 404, subject="node-zz/0")["code"] == "not_found"


def test_silence_is_broken_by_a_comment(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.1)
    reader = follow(running)
    lines = [reader.answer.readline() for _ in range(8)]

    assert any(line.startswith(b": ") for line in lines)
    reader.close()


def test_a_reader_that_does_not_read_is_let_go(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SLOW", 0.2)
    served = app(running.desk)
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.Event().wait()

    async def stuck(message: Any) -> None:
        sent.append(message)
        if len(sent) > 2:
            await asyncio.Event().wait()

    scope = {
        "type": "http", "method": "GET", "path": STREAM, "raw_path": STREAM.encode(), "query_string": b"after=0-0", "http_version": "1.1",
        "headers": [(b"host", b"127.0.0.1")], "scheme": "http", "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        "asgi": {"version": "3.0"},
    }  # fmt: skip
    asyncio.run(asyncio.wait_for(served(scope, never, stuck), 10))

    assert served.state.rooms.feed.open == 0
