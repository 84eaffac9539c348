# SPDX-License-Identifier: Apache-2.0
"""The whole site at once: `muster server` with its door in a process of its own, 12,500 nodes that report over TLS, and users who ask 50 times a second.

    python bench/site.py [--cards 100000] [--seconds 60] [--rate 50] [--door inside]

Prints what users waited, by kind of request, what the reports waited meanwhile, and what it cost; 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import api
import members
import peers

HERE = Path(__file__).resolve().parent
ACK_MS = 150.0
SETTLE = 20.0
"""Seconds of paced rounds before users come."""


class Reports:
    """The load of all nodes, and how far it is."""

    def __init__(self, peer: peers.Peer, nodes: int, period: float, rounds: int) -> None:
        words = ["--port", peer.port, "--nodes", nodes, "--cards", api.PER_NODE, "--period", period, "--connections", nodes, "--rounds", rounds, "--first", 2]
        words += ["--kind", peer.kind, "--tls", peer.tls, "--tokens", peer.tokens]
        self._load = subprocess.Popen([sys.executable, str(HERE / "load.py"), *map(str, words)], env=peers.environment(), stdout=subprocess.PIPE, text=True)
        self.paced = threading.Event()
        self.result: dict[str, Any] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._load.stdout is not None
        for line in self._load.stdout:
            told = json.loads(line)
            if told.get("begins") == "round 1":
                self.paced.set()
            self.result = told.get("result", self.result)
        self.paced.set()

    def ended(self) -> list[dict[str, Any]]:
        """The paced rounds, once the load is over."""
        self._reader.join()
        self._load.wait()
        return [each for each in self.result.get("rounds", []) if each["name"].startswith("round")]

    def stop(self) -> None:
        """Ends it."""
        self._load.terminate()
        self._load.wait()


def names(url: str, count: int) -> list[tuple[str, str]]:
    """Ids of some cards, and the names that people call them by."""
    with urllib.request.urlopen(f"{url}/api/v1/cards?limit=1000&fields=id,node,address", timeout=600) as answer:
        found = [(each["id"], f"{each['node']}/{each['address']}") for each in json.load(answer)["items"]]
    return random.Random(5).sample(found, min(count, len(found)))


def kinds(url: str, nodes: int) -> Iterator[tuple[str, str]]:
    """Requests of the mix, by kind, in even shares."""
    dice, known = random.Random(3), names(url, 500)
    while True:
        id_, name = dice.choice(known)
        few = f'memory.total >= 64Gi && node.startsWith("node-{dice.randrange(max(nodes // 1000, 1)):02}")'
        hot = f"temperature.core > {dice.randrange(60, 75)} && power.draw > {dice.randrange(200, 450)}"
        yield "page", api._path("cards", limit=50, fields=api.SLIM)
        yield "filter on facts", api._path("cards", limit=50, fields=api.SLIM, filter=few)
        yield "filter on gauges", api._path("cards", limit=50, fields=api.SLIM, filter=hot)
        yield "sort", api._path("cards", limit=50, fields=api.SLIM, sort=dice.choice(api.ORDERS))
        yield "detail", f"/api/v1/cards/{id_}"
        yield "detail by name", f"/api/v1/cards/{name}"


def started(folder: Path, told: argparse.Namespace) -> tuple[peers.Peer, str]:
    """The server with all nodes joined, and where users ask it."""
    port = peers.free_port()
    peer = peers.muster(folder, ["--door", told.door], {"MUSTER_INGEST_PORT": str(port)}, port)
    join, mark = peers.join_token(folder, told.nodes)
    peer.tls, peer.tokens = str(folder / "ca.pem"), str(folder / "tokens")
    Path(peer.tls).write_bytes(members.authority(port))
    took = members.join_all(port, peer.tls, mark, join, told.nodes, folder / "tokens")
    print(f"{told.nodes} nodes joined in {took:.0f} s", flush=True)
    return peer, json.loads((folder / "run" / "server.json").read_text())["url"]


def measure(folder: Path, told: argparse.Namespace) -> list[str]:
    """Runs it all; returns the limits that were missed."""
    peer, url = started(folder, told)
    missed: list[str] = []
    reports = Reports(peer, told.nodes, told.period, int((told.seconds + 2 * SETTLE) / told.period) + 1)
    try:
        reports.paced.wait()
        time.sleep(SETTLE)
        mix = kinds(url, told.nodes)
        port = urlsplit(url).port or 80
        asyncio.run(api.load(port, mix, told.rate, 10))  # what users ask for is at hand from now on
        before, began = peer.cpu(), time.monotonic()
        waited = asyncio.run(api.load(port, mix, told.rate, told.seconds))
        core = 100 * (peer.cpu() - before) / (time.monotonic() - began)
        together = [each for values in waited.values() for each in values]
        for kind, values in [*waited.items(), ("all", together)]:
            print(f"{kind:18} {len(values):6} requests   p50 {api.share(values, 0.5):7.1f} ms   p99 {api.share(values, 0.99):7.1f} ms")
        api._hold(missed, f"p99 of all at {told.rate:g} requests/s", api.share(together, 0.99), api.P99_MS, "ms")
        summaries = [api.fetch(port, "/api/v1/summary")[0] * 1000 for _ in range(100)]
        print(f"summary            p50 {api.share(summaries, 0.5):.1f} ms")
        api._hold(missed, "summary, p99", api.share(summaries, 0.99), api.SUMMARY_MS, "ms")
        print(f"the server, reports and users together: {core:.0f} % of a core, {peers.memory(peer.pids())[1]:.0f} MiB PSS")
        for each in reports.ended():
            away = {status: count for status, count in each["statuses"].items() if not status.startswith("2")}
            print(f"  reports, {each['name']:9} ack p50 {each['p50_ms']:.0f} p99 {each['p99_ms']:.0f} ms" + (f", not taken: {away}" if away else ""))
            if each["p99_ms"] > ACK_MS or away:
                missed.append(f"reports of {each['name']}")
    finally:
        reports.stop()
        peer.stop()
    return missed


def main() -> int:
    """The command."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--cards", type=int, default=100_000)
    asked.add_argument("--period", type=float, default=10.0, help="seconds of a round")
    asked.add_argument("--seconds", type=float, default=60.0, help="for which users ask")
    asked.add_argument("--rate", type=float, default=50.0, help="requests a second")
    asked.add_argument("--door", choices=("apart", "inside"), default="apart")
    told = asked.parse_args()
    told.nodes = told.cards // api.PER_NODE
    print(f"{told.cards} cards on {told.nodes} nodes, {told.nodes / told.period:g} reports/s, on {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as place:
        missed = measure(Path(place), told)
    print("missed: " + "; ".join(missed) if missed else "all limits kept")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
