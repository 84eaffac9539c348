# SPDX-License-Identifier: Apache-2.0
"""The load of a site, in a process of its own: reports of many nodes over many kept-alive connections, paced in open loop or as fast as they are taken.

    python bench/load.py --port 7461 --nodes 12500 --connections 12500 --rounds 3

All bodies are built before the first is sent; what moves is patched in place just before sending, so that the load costs little. Latency counts from the
moment at which a report was due, not from when it could be sent. A line of JSON on stdout marks the beginning of each round; the last line is the result.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

import bodies
import numpy as np
import uvloop

TICK = 0.0007
"""Seconds between two looks at what is due."""
DRAIN = 20.0
"""Seconds in which answers still count after the last report."""
AGAIN = 1.0
"""Seconds until one who was sent away comes back."""
WIDE = 8
"""So many times more requests at a time where a server is to be saturated."""
GROUPS = 8
"""Groups of nodes in which a site is taken in for the first time."""
OPENING = 64
"""Handshakes at a time."""


class Line(asyncio.Protocol):
    """One connection; over it one request after the other."""

    def __init__(self, load: Load, number: int, context: ssl.SSLContext | None) -> None:
        self.load = load
        self.number = number
        self.waiting: deque[tuple[int, float]] = deque()
        self.node, self.due = 0, 0.0
        self.busy = self.open = self.opening = False
        self._ready: asyncio.Future[None] = load.loop.create_future()
        self._transport: Any = None
        self._seen = b""
        self._tls: ssl.SSLObject | None = None
        if context is not None:
            self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")

    async def ready(self) -> None:
        """Waits for the connection, handshake and all."""
        await self._ready

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if self._tls is None:
            self._opened()
        else:
            self._shake()

    def _opened(self) -> None:
        self.open = True
        if not self._ready.done():
            self._ready.set_result(None)

    def _shake(self) -> None:
        assert self._tls is not None
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._transport.write(self._out.read())
            return
        self._transport.write(self._out.read())
        self._opened()

    def connection_lost(self, exc: Exception | None) -> None:
        was, self.open = self.open, False
        if not self._ready.done():
            self._ready.set_exception(exc if isinstance(exc, OSError) else ConnectionError("closed while it was opened"))
            self._ready.exception()
            return
        self.load.lost += was
        if self.busy:
            self.busy = False
            self.load.answered(self, 0)
        if self.waiting:
            self.load.again(self)

    def send(self, node: int, due: float) -> None:
        """Sends the report of a node that was due at that time."""
        request = self.load.fleet.request(node)
        self.busy, self.node, self.due = True, node, due
        if self._tls is None:
            self._transport.write(request)
        else:
            self._tls.write(request)
            self._transport.write(self._out.read())

    def data_received(self, data: bytes) -> None:
        if self._tls is not None:
            self._in.write(data)
            if not self.open:
                self._shake()
            data = self._plain()
        data = self._seen + data if self._seen else data
        while data:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                break
            at = data.find(b"Content-Length: ", 0, end)
            whole = end + 4 + (int(data[at + 16 : data.find(b"\r\n", at)]) if at >= 0 else 0)
            if len(data) < whole:
                break
            status, data = int(data[9:12]), data[whole:]
            self.busy = False
            self.load.answered(self, status)
        self._seen = data

    def _plain(self) -> bytes:
        assert self._tls is not None
        found = b""
        while True:
            try:
                piece = self._tls.read(16384)
            except ssl.SSLWantReadError:
                return found
            except ssl.SSLZeroReturnError:
                return found
            if not piece:
                return found
            found += piece


class Load:
    """All of it. Node ``i`` speaks over connection ``i`` modulo their number."""

    def __init__(self, told: argparse.Namespace, fleet: bodies.Fleet) -> None:
        self.told = told
        self.fleet = fleet
        self.loop = asyncio.get_running_loop()
        context = ssl.create_default_context(cafile=told.tls) if told.tls else None
        self.lines = [Line(self, number, context) for number in range(told.connections)]
        self.context = context
        self.tasks: set[asyncio.Task[None]] = set()
        self.statuses: Counter[int] = Counter()
        self.times: list[float] = []
        self.last_times: list[float] = []
        self.rounds: list[dict[str, Any]] = []
        self.lost = 0
        self.outstanding = 0
        self.next: deque[int] = deque()
        self.taken = 0
        self.closed = False

    async def open(self) -> None:
        """Opens all connections, a few at a time."""
        gate = asyncio.Semaphore(OPENING)

        async def one(line: Line) -> None:
            async with gate:
                await self.loop.create_connection(lambda: line, self.told.host, self.told.port)
                await line.ready()

        await asyncio.gather(*(one(line) for line in self.lines))

    def answered(self, line: Line, status: int) -> None:
        """One answer; 0 is none."""
        now = time.monotonic()
        self.statuses[status] += 1
        self.times.append(now - line.due)
        self.outstanding -= 1
        if self.closed:
            if 200 <= status < 300:
                self.taken += 1
            else:
                self.loop.call_later(AGAIN, self.next.append, line.node)
        if line.waiting and line.open:
            node, due = line.waiting.popleft()
            line.send(node, due)
        if self.closed and self.next:
            self._pull()

    def post(self, node: int, due: float) -> None:
        """One report that is due."""
        line = self.lines[node % len(self.lines)]
        self.outstanding += 1
        if line.open and not line.busy:
            line.send(node, due)
            return
        line.waiting.append((node, due))
        if not line.open and not line.opening:
            self.again(line)

    def again(self, old: Line) -> None:
        """Opens a connection, the first time or after the server has closed it; what is due on it waits."""
        new = self.lines[old.number] = Line(self, old.number, self.context)
        new.waiting, new.opening = old.waiting, True
        task = self.loop.create_task(self._reopened(new))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _reopened(self, line: Line) -> None:
        try:
            await self.loop.create_connection(lambda: line, self.told.host, self.told.port)
            await line.ready()
        except OSError:
            await asyncio.sleep(AGAIN)
            self.again(line)
            return
        line.opening = False
        if line.waiting:
            node, due = line.waiting.popleft()
            line.send(node, due)

    def _pull(self) -> None:
        self.post(self.next.popleft(), time.monotonic())

    async def first(self, name: str) -> None:
        """A round as fast as it is taken, with few requests at a time: who has not seen these cards has more to do than later. Connections open on the way.

        Nodes come in groups. While the next group is taken in, those that are known go on reporting, as agents do.
        """
        self._mark(name)
        known = 0
        for group in np.array_split(np.arange(self.fleet.nodes), GROUPS if name == "first" else 1):
            await self._taken(int(group[0]), int(group[-1]) + 1)
            if known:
                await self._taken(0, known)
            known = int(group[-1]) + 1
        self._end()

    async def _taken(self, start: int, end: int) -> None:
        """A report of each of these nodes, until all are taken."""
        self.fleet.move(start, end)
        self.closed, self.taken = True, 0
        self.next.extend(range(start, end))
        while self.taken < end - start:
            while self.next and self.outstanding < self.told.abreast:
                self._pull()
            await asyncio.sleep(0.005)
        self.closed = False

    async def saturated(self, seconds: float) -> None:
        """As fast as it is taken, for so long."""
        self._mark("saturated")
        self.closed = True
        until, start, block = time.monotonic() + seconds, 0, max(self.fleet.nodes // 8, 1)
        abreast = WIDE * self.told.abreast
        while time.monotonic() < until:
            if len(self.next) < abreast:
                end = min(start + block, self.fleet.nodes)
                self.fleet.move(start, end)
                self.next.extend(range(start, end))
                start = end % self.fleet.nodes
            while self.next and self.outstanding < abreast:
                self._pull()
            await asyncio.sleep(0.001)
        self.next.clear()
        while self.outstanding:
            await asyncio.sleep(0.005)
        self.next.clear()
        self.closed = False
        self._end()

    async def paced(self, number: int) -> None:
        """One round, each report at its moment."""
        self._mark(f"round {number}")
        began, sent = time.monotonic(), 0
        rate = self.fleet.nodes / self.told.period
        while sent < self.fleet.nodes:
            upto = min(int((time.monotonic() - began) * rate) + 1, self.fleet.nodes)
            if upto > sent:
                self.fleet.move(sent, upto)
            while sent < upto:
                self.post(sent, began + sent / rate)
                sent += 1
            await asyncio.sleep(TICK)
        await asyncio.sleep(max(0.0, began + self.told.period - time.monotonic()))
        self._end()

    async def silent(self, seconds: float) -> None:
        """Nobody says a word."""
        self._mark("silence")
        await asyncio.sleep(seconds)
        self._end()

    def _mark(self, name: str) -> None:
        self.rounds.append({"name": name, "wall": time.monotonic(), "cpu": time.process_time()})
        print(json.dumps({"begins": name}), flush=True)

    def _end(self) -> None:
        last = self.rounds[-1]
        last.update(
            wall=time.monotonic() - last["wall"],
            cpu=time.process_time() - last["cpu"],
            answers=len(self.times),
            statuses={str(status): count for status, count in sorted(self.statuses.items())},
            waiting=self.outstanding,
            **_delays(self.times),
        )
        self.last_times, self.times, self.statuses = self.times, [], Counter()

    async def drain(self) -> None:
        """Waits for the last answers; they belong to the last round."""
        until = time.monotonic() + DRAIN
        last = self.rounds[-1]
        while self.outstanding and time.monotonic() < until:
            await asyncio.sleep(0.02)
        if self.times:
            last.update(_delays([*self.last_times, *self.times]))
            last["answers"] += len(self.times)
            for status, count in self.statuses.items():
                last["statuses"][str(status)] = last["statuses"].get(str(status), 0) + count
        last["unanswered"] = self.outstanding


def _delays(seconds: list[float]) -> dict[str, float]:
    """How long answers took, in ms."""
    times = np.array(seconds or [0.0]) * 1000
    return {"p50_ms": float(np.percentile(times, 50)), "p99_ms": float(np.percentile(times, 99)), "max_ms": float(times.max())}


async def _run(told: argparse.Namespace) -> dict[str, Any]:
    fleet = bodies.fleet(told)
    load = Load(told, fleet)
    print(json.dumps({"begins": "opening", "bytes": fleet.length}), flush=True)
    began = time.monotonic()
    if not told.first:
        await load.open()
    opened = time.monotonic() - began
    for number in range(told.first):
        await load.first(("first", "second")[number] if number < 2 else f"before {number + 1}")
    if told.saturate:
        await load.saturated(told.saturate)
    for number in range(1, told.rounds + 1):
        await load.paced(number)
    if told.silence:
        await load.silent(told.silence)
        await load.first("return")
        await load.paced(told.rounds + 1)
    print(json.dumps({"begins": "draining"}), flush=True)
    if load.rounds:
        await load.drain()
    return {
        "nodes": told.nodes,
        "connections": told.connections,
        "tls": bool(told.tls),
        "body_bytes": fleet.length,
        "opening_s": opened,
        "lost": load.lost,
        "rounds": load.rounds,
        "cpu": time.process_time(),
    }


def parser() -> argparse.ArgumentParser:
    """What can be said."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--host", default="127.0.0.1")
    found.add_argument("--port", type=int, required=True)
    found.add_argument("--kind", choices=("reports", "prometheus"), default="reports", help="what is sent")
    found.add_argument("--nodes", type=int, default=12_500)
    found.add_argument("--cards", type=int, default=8, help="cards of a node")
    found.add_argument("--period", type=float, default=10.0, help="seconds of a round")
    found.add_argument("--rounds", type=int, default=3, help="paced rounds")
    found.add_argument("--first", type=int, default=0, metavar="N", help="rounds before them, as fast as they are taken: until nothing is news any more")
    found.add_argument("--abreast", type=int, default=64, help="requests at a time where nothing is paced")
    found.add_argument("--saturate", type=float, default=0.0, metavar="SECONDS", help="as fast as it is taken, for so long")
    found.add_argument("--silence", type=float, default=0.0, metavar="SECONDS", help="nobody speaks after them for so long; then all at once, and a round more")
    found.add_argument("--connections", type=int, default=1250)
    found.add_argument("--tls", metavar="CA", help="PEM of the authority to trust; the name is localhost")
    found.add_argument("--tokens", type=Path, help="one line per node: reporter, access token, node name; else all are made up")
    found.add_argument("--seed", type=int, default=1)
    return found


def main() -> int:
    """Runs the load and prints the result."""
    told = parser().parse_args()
    told.connections = min(told.connections, told.nodes)
    result = uvloop.run(_run(told))
    print(json.dumps({"result": result}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
