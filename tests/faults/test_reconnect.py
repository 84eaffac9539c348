# SPDX-License-Identifier: Apache-2.0
"""1,250 agents whose server comes back connect at once, each with what it has waiting, while the writer is held up: all are taken in, none at once."""

from __future__ import annotations

import asyncio
import sqlite3
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from tests.faults.site import Server, server, until
from tests.faults.voices import Voice, Way, authority

from muster.wire.report import AnswerDoc, pack

AGENTS = 1250
WAITING = 3
"""Reports that each has."""
WITHIN = 90.0
HELD = 9.0
"""Seconds for which the writer cannot write at first."""


@dataclass
class Flood:
    """All of them, and what they were answered."""

    port: int
    context: ssl.SSLContext
    statuses: Counter[str] = field(default_factory=Counter)
    honoured: int = 0
    early: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)

    async def one(self, bodies: Sequence[bytes], token: str) -> None:
        """One agent: delivers what it has, and waits for as long as it is asked to."""
        began, left, link = time.monotonic(), list(bodies), None
        while left:
            try:
                link = link or await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context, server_hostname="127.0.0.1")
                status, wait, answer = await self._exchanged(*link, left[0], token)
            except (OSError, asyncio.IncompleteReadError) as error:
                self.statuses[type(error).__name__] += 1
                link = None
                await asyncio.sleep(1)
                continue
            self.statuses[f"{status} {answer}".strip()] += 1
            if status == 200:
                left.pop(0)
            else:
                assert status in (429, 503), status
                assert wait > 0, "who is sent away is told when to come back"
                self.honoured += 1
                await asyncio.sleep(wait)
        self.took.append(time.monotonic() - began)
        if link is not None:
            link[1].close()
            with suppress(OSError):
                await link[1].wait_closed()

    async def _exchanged(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes, token: str) -> tuple[int, float, str]:
        lines = ["POST /v1/reports HTTP/1.1", "Host: here", "Content-Type: application/msgpack", f"Authorization: {token}", f"Content-Length: {len(body)}"]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        told = await reader.readuntil(b"\r\n\r\n")
        lines = told.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        payload = await reader.readexactly(int(headers["content-length"]))
        status = int(lines[0].split()[1])
        answer = msgspec.msgpack.decode(payload, type=AnswerDoc).answer if status == 200 else ""
        return status, float(headers.get("retry-after", 0)), answer

    async def all(self, agents: Sequence[tuple[Sequence[bytes], str]]) -> None:
        """All at once."""
        await asyncio.gather(*(self.one(bodies, token) for bodies, token in agents))


@contextmanager
def held(store: Path) -> Iterator[None]:
    """Another program holds the store for a while, so that the writer gets behind."""
    connection = sqlite3.connect(store, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(HELD, lambda: connection.execute("ROLLBACK"))
    timer.start()
    try:
        yield
    finally:
        timer.join()
        connection.close()


def joined(site: Server) -> list[tuple[list[bytes], str]]:
    """The reports that each agent has waiting, and its token. They have joined one after the other, long before."""
    pem, token = authority(site), site.join_token(uses=AGENTS)
    context = ssl.create_default_context(cadata=pem.decode())
    way, found = Way(site.port, context), []
    for number in range(AGENTS):
        voice = Voice(f"n-{number}", pem, site.port, given=way)
        voice.join(token)
        bodies = [pack(voice.report(sequence)) for sequence in range(1, WAITING + 1)]
        found.append((bodies, voice.headers["Authorization"]))
    way.close()
    return found


@pytest.mark.slow
def test_1250_agents_at_once(tmp_path: Path) -> None:
    with server(tmp_path) as site:
        agents = joined(site)
        context = ssl.create_default_context(cadata=authority(site).decode())
        site.kill()
        flood = Flood(site.port, context)
        site.start()
        before, began = site.cpu(), time.monotonic()
        with held(site.store / "roll.sqlite"):
            asyncio.run(asyncio.wait_for(flood.all(agents), WITHIN))
        took, spent = time.monotonic() - began, site.cpu() - before
        until(lambda: not site.ready(), "it is well")
        assert flood.statuses["200 applied"] + flood.statuses["200 duplicate"] == AGENTS * WAITING
        assert flood.honoured > 0
        assert any(each.startswith("429") for each in flood.statuses), flood.statuses
        assert spent < 0.5 * took + 10, "it does not spin while it waits"
        assert len(site.all("nodes")) == AGENTS
        assert len(site.all("cards")) == AGENTS
        ordered = sorted(flood.took)
        print(f"{AGENTS} agents with {WAITING} reports each: {dict(flood.statuses)} in {took:.1f} s, {spent:.1f} s of processor time;")
        print(f"an agent was done after {ordered[len(ordered) // 2]:.1f} s (middle) to {ordered[-1]:.1f} s; {flood.honoured} waited as they were told")
