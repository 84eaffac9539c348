# SPDX-License-Identifier: Apache-2.0
"""One seeded run: the world speaks, the network loses, doubles, delays and reorders, the server dies; a checker looks at the whole history.

By hand: ``python -m tests.sim.run --seed 7 --machines 200 --hours 24``.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from muster.domain.model.errors import Unavailable
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Presence
from muster.services.inventory import Inventory
from muster.spi.store import Batch, FindingRow, Loaded, RollWriter
from muster.store import Store, open_store
from muster.wire.report import ReportDoc
from tests.sim.world import START, Rates, World

STEP = 30.0
POLICY = Policy(known_vendors=frozenset({"10de"}))


class Killed(Exception):
    """The server died here."""


class Mortal:
    """A writer whose process dies at some commits: before anything was written, or after all was, without telling."""

    def __init__(self, writer: RollWriter, seed: int, rate: float) -> None:
        import random

        self._writer, self._random, self._rate = writer, random.Random(seed), rate

    def load(self) -> Loaded:
        return self._writer.load()

    def commit(self, batch: Batch) -> None:
        dice = self._random.random()
        if dice < self._rate / 2:
            raise Killed("before the commit")
        self._writer.commit(batch)
        if dice < self._rate:
            raise Killed("after the commit")

    def acknowledge(self, finding: str, by: str, at: float, reason: str) -> FindingRow:
        return self._writer.acknowledge(finding, by, at, reason)

    def trim(self, now: float, keep: Mapping[str, float]) -> int:
        return self._writer.trim(now, keep)


@dataclass
class Server:
    """The service on a store, started anew whenever it died."""

    store: Store
    writer: RollWriter
    policy: Policy
    deaths: int = 0

    def __post_init__(self) -> None:
        self.inventory = self._start(START)

    def _start(self, now: float) -> Inventory:
        while True:
            try:
                return Inventory(self.writer, self.policy, now)
            except Killed:
                self.deaths += 1

    def report(self, doc: ReportDoc, now: float) -> str:
        try:
            return self.inventory.report(doc, now).answer
        except (Killed, Unavailable):
            self.deaths += 1
            self.inventory = self._start(now)
            return "died"

    def tick(self, now: float) -> None:
        try:
            self.inventory.tick(now)
        except Killed:
            self.deaths += 1
            self.inventory = self._start(now)


@dataclass
class Outcome:
    """What a run showed."""

    faults: list[str]
    reports: int
    deliveries: int
    deaths: int
    cards: int


def run(seed: int, machines: int, cards: int, hours: float, rates: Rates, deaths: float = 0.002, progress: bool = False) -> Outcome:
    """Runs one seed and checks it."""
    world = World(seed, machines, cards, rates)
    store = open_store(None)
    server = Server(store, Mortal(store.writer, seed, deaths), POLICY)
    kept: list[ReportDoc] = []
    queue: list[tuple[float, int, ReportDoc]] = []
    count = itertools.count()
    now, end = START, START + hours * 3600
    deliveries = 0
    while now < end + 900:
        if now < end:
            world.happen(now, STEP)
        for doc in world.speak(now, STEP):
            if world.random.random() < rates.lost:
                continue
            kept.append(doc)
            for arrival in _arrivals(world, doc, now, end, rates):
                heapq.heappush(queue, (arrival, next(count), doc))
        now += STEP
        while queue and queue[0][0] <= now:
            at, _, doc = heapq.heappop(queue)
            deliveries += 1
            if server.report(_sent(doc, at), at) == "died":
                heapq.heappush(queue, (at + 5.0, next(count), doc))
        server.tick(now)
        if progress and int((now - START) // 600) != int((now - STEP - START) // 600):
            print(f"{(now - START) / 3600:6.2f} h  {deliveries} deliveries, {server.deaths} deaths", file=sys.stderr)
    faults = check(world, store, now) + compare(store, ordered(kept, now), now)
    store.close()
    return Outcome(faults, len(kept), deliveries, server.deaths, len(world.boards))


def _arrivals(world: World, doc: ReportDoc, now: float, end: float, rates: Rates) -> list[float]:
    """When copies of a report arrive: soon, or up to an hour late, or twice; near the end all arrive in time to be seen."""
    soon = doc.sent_at + world.random.uniform(0.01, 2.0)
    late = now < end and world.random.random() < rates.late
    first = doc.sent_at + world.random.uniform(10, 3600) if late else soon
    first = min(first, end + 600) if first > end else first
    first = max(first, doc.sent_at)
    again = [first + world.random.uniform(0.1, 300)] if world.random.random() < rates.doubled else []
    return [first, *again]


def _sent(doc: ReportDoc, at: float) -> ReportDoc:
    """The report as its reporter sends it at ``at``: the clocks of sending are new, what it says is not."""
    return msgspec.structs.replace(doc, sent_at=at, sent_mono=doc.sent_mono + (at - doc.sent_at))


def ordered(kept: Sequence[ReportDoc], now: float) -> Store:
    """The same reports delivered one by one in the order of seeing."""
    store = open_store(None)
    inventory = Inventory(store.writer, POLICY, START)
    for doc in sorted(kept, key=lambda d: d.sent_at):
        inventory.report(doc, doc.sent_at)
    inventory.tick(now)
    return store


def check(world: World, store: Store, now: float) -> list[str]:
    """Nothing invented, nothing lost, no history on the wrong card."""
    faults: list[str] = []
    cards = store.reader.cards()
    by_uuid: dict[str, list[str]] = {}
    for card in cards:
        for uuid in card.ids.get("vendor_uuid", ()):
            by_uuid.setdefault(uuid, []).append(card.id)
    known = {b.uuid: b for b in world.boards}
    faults += [f"invented {uuid}" for uuid in by_uuid if uuid not in known]
    records = {c.id: c for c in cards}
    for uuid, board in known.items():
        ids = by_uuid.get(uuid, [])
        if len(ids) > 1:
            faults.append(f"board {board.number} is {len(ids)} cards")
        elif not ids and board.node is not None:
            faults.append(f"board {board.number} in m{board.node} is lost")
        elif ids:
            card = records[ids[0]]
            if board.node is not None and (card.presence is not Presence.PRESENT or card.node_name != f"m{board.node}"):
                faults.append(f"board {board.number} is in m{board.node}, the roll says {card.presence} {card.node_name}")
            if board.node is None and card.presence is Presence.PRESENT:
                faults.append(f"board {board.number} is on the shelf, the roll says present in {card.node_name}")
            faults += _biography(store, card.id, board.number, board.been)
    return faults


def _biography(store: Store, card: str, number: int, been: list[int]) -> list[str]:
    nodes = {n.id: n.name for n in store.reader.nodes()}
    rows = sorted((r.change for r in store.reader.changes(card, limit=100_000) if r.superseded_at is None), key=lambda c: c.at)
    told = [nodes.get(str(c.detail.get("node")), "") for c in rows if c.kind.value in ("installed", "moved", "returned") and c.detail.get("node")]
    truth = iter(f"m{n}" for n in been)
    shorter = [t for i, t in enumerate(told) if i == 0 or t != told[i - 1]]
    if not all(any(t == each for each in truth) for t in shorter):
        return [f"board {number} was in {been}, its history says {told}"]
    installed = sum(1 for c in rows if c.kind.value == "installed")
    return [f"board {number} was installed {installed} times"] if installed != 1 else []


def compare(store: Store, other: Store, now: float) -> list[str]:
    """State and history equal those of ordered delivery."""
    del now
    mine, theirs = _snapshot(store), _snapshot(other)
    other.close()
    return [f"ordered delivery says {theirs.get(k)}, this says {mine.get(k)}" for k in sorted(mine.keys() | theirs.keys()) if mine.get(k) != theirs.get(k)]


def _snapshot(store: Store) -> dict[str, object]:
    found: dict[str, object] = {}
    nodes = {n.id: n.name for n in store.reader.nodes()}
    for card in store.reader.cards():
        rows = [r.change for r in store.reader.changes(card.id, limit=100_000) if r.superseded_at is None]
        history = sorted((round(c.at - START, 2), c.kind.value, nodes.get(str(c.detail.get("node")), "")) for c in rows)
        ids = sorted((k, tuple(sorted(v))) for k, v in card.ids.items())
        state = (card.presence.value, card.node_name, card.slot, card.address, card.rung.value, dict(card.increase), history)
        key = repr(ids)
        found[key if key not in found else f"{key} {card.created_at}"] = state
    return found


def main(args: Sequence[str] | None = None) -> int:
    """A run by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--machines", type=int, default=40)
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--hours", type=float, default=2)
    parser.add_argument("--deaths", type=float, default=0.0005, help="share of commits at which the server dies")
    o = parser.parse_args(args)
    began = time.perf_counter()
    outcome = run(o.seed, o.machines, o.cards, o.hours, Rates(), deaths=o.deaths, progress=True)
    print("\n".join(outcome.faults[:20]))
    took = time.perf_counter() - began
    print(
        f"seed {o.seed}: {o.machines} machines, {outcome.cards} boards, {o.hours:g} h, {outcome.reports} reports, {outcome.deliveries} deliveries, "
        f"{outcome.deaths} deaths of the server, {len(outcome.faults)} faults, {took:.1f} s"
    )
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
