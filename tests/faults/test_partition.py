# SPDX-License-Identifier: Apache-2.0
"""Ten minutes, an hour, a day without a way to the server, by calls of functions on clocks of ours: real spools, deliveries, inventory and store, no process,
no connection. Their spools keep it all, and it is taken in order when the way is free. `test_cut_off` cuts real connections, for seconds.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.faults.voices import fact
from tests.postgres import new_folder

from muster.collect.clock import Clock
from muster.collect.delivery import Delivery
from muster.collect.post import Fate, Posted
from muster.collect.spool import Spool
from muster.domain.model.access import Reach, Scope, Speaker
from muster.domain.model.errors import MusterError
from muster.domain.model.policy import Policy
from muster.services.inventory import Inventory
from muster.store import Store, open_store
from muster.wire.lanes import part
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc, pack

T0 = 1_790_000_040.0
SPEAKER = Speaker(reporter="test", scope=Scope(reach=Reach.CLUSTER, cluster="c"), until=1e12)


@dataclass
class World:
    """A server and its nodes, and the time of all of them."""

    store: Store
    inventory: Inventory
    folder: Path
    now: float = T0

    def tick(self) -> None:
        """Lets the server see that time passed."""
        self.inventory.tick(self.now)

    def open(self, kind: str) -> set[str]:
        """Nodes of which a finding of that kind is open."""
        return {row.finding.node for row in self.store.reader.findings() if row.finding.kind.value == kind and row.closed_at is None}


class Node:
    """An agent's spool and delivery, over a way that can be cut."""

    def __init__(self, world: World, number: int, cadence: float) -> None:
        self.world, self.number, self.cadence = world, number, cadence
        self.name = f"n{number}"
        self.cut = False
        self.sequence = 0
        self.arrived: list[int] = []
        clock = Clock(lambda: world.now, lambda: world.now - T0 + 1000)
        self.spool = Spool(world.folder / self.name)
        self.delivery = Delivery(self.spool, self.post, clock, boot_id="b", spread=lambda: number / 100, renew=lambda: None)

    def read(self) -> None:
        """One round: a fact that is new with each third, and numbers."""
        self.sequence += 1
        world, sequence = self.world, self.sequence
        readings: dict[str, dict[str, Any]] = {
            "firmware.version": {"v": fact(sequence)},
            "temperature.core": {"v": float(sequence % 90)},
            "power.draw": {"v": 100.0 + sequence % 7},
        }
        card = ObservationDoc(level="card", ids=[("serial", f"SN{self.number:05d}"), ("pci_address", "0000:3b:00.0")], readings=readings)
        told = ListingDoc(
            source="test.status",
            channel="in_band",
            witness="driver",
            cadence=self.cadence,
            outcome="devices",
            complete=True,
            observed_at=world.now,
            observed_mono=world.now - T0 + 1000,
            boot_id="b",
            adapter="test",
            counts={"card": 1},
            observations=[card],
        )
        node = NodeDoc(name=self.name, machine_id=f"m-{self.number}-{self.number * 7919}", system=f"s-{self.number}")
        self.spool.add(
            ReportDoc(
                reporter=self.name,
                incarnation="i",
                sequence=sequence,
                node=node,
                sent_at=world.now,
                sent_mono=world.now - T0 + 1000,
                boot_id="b",
                heard=[part(told)],
            )
        )

    def post(self, report: ReportDoc) -> Posted:
        """The way to the server."""
        if self.cut:
            return Posted(Fate.LATER, "cut off")
        (answer,) = self.world.inventory.take([(SPEAKER, pack(report))], self.world.now)
        if isinstance(answer, MusterError):
            return Posted(Fate.LATER, answer.message)
        assert answer.answer == "applied", answer
        self.arrived.append(report.sequence)
        return Posted(Fate.TAKEN, "", wanted=())

    def deliver(self) -> None:
        """All that may go now."""
        while self.delivery.step():
            pass


@contextmanager
def world() -> Iterator[World]:
    """A server with an empty store, in memory where there is room."""
    folder = new_folder()
    store = open_store(folder / "roll.sqlite")
    try:
        yield World(store, Inventory(store.writer, Policy(), T0, quiet=0.0), folder)
    finally:
        store.close()
        shutil.rmtree(folder)


def run(there: World, nodes: list[Node], seconds: float, cadence: float) -> None:
    """Time passes: every node reads and delivers at its pace, and the server looks at its clock."""
    end = there.now + seconds
    while there.now < end:
        for node in nodes:
            node.read()
            node.deliver()
        there.now += cadence / 2
        there.tick()
        there.now += cadence / 2


def card_of(there: World, node: Node) -> str:
    """The id of the node's card."""
    (found,) = [card.id for card in there.store.reader.cards() if f"SN{node.number:05d}" in card.ids["serial"]]
    return found


def minutes(there: World, node: Node, since: float, until: float) -> set[int]:
    """The minutes of which there is a number of the node's card."""
    rows = there.store.reader.minutes(card_of(there, node), "temperature.core", since, until)
    return {int(row["minute"] // 60) for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize(("cut", "cadence", "count"), [(600.0, 10.0, 20), (3600.0, 60.0, 20), (86_400.0, 300.0, 10)], ids=["ten-minutes", "an-hour", "a-day"])
def test_spool_and_roll_over_a_partition_of_virtual_time(cut: float, cadence: float, count: int) -> None:
    with world() as there:
        nodes = [Node(there, number, cadence) for number in range(count)]
        lost = nodes[: count // 2]
        run(there, nodes, 6 * cadence, cadence)
        for node in lost:
            node.cut = True
        began = there.now
        run(there, nodes, cut, cadence)
        ids = {node.name: node.id for node in there.store.reader.nodes()}
        assert there.open("source_silent") == {ids[node.name] for node in lost}, "who is cut off is said to be silent, and nobody else"
        for node in lost:
            node.cut = False
        ended, wall, queue = there.now, time.monotonic(), sum(len(node.spool) for node in lost)
        run(there, nodes, max(4 * cadence, 130.0), cadence)
        took = time.monotonic() - wall
        for node in nodes:
            node.deliver()
            assert len(node.spool) == 0
            assert node.arrived == sorted(node.arrived)
            assert node.spool.dropped <= 1 + 1200 / cadence if cut >= 86_400 else node.spool.dropped == 0
            assert len(node.arrived) == node.sequence - node.spool.dropped
        assert there.open("source_silent") == set()
        dropped = sum(node.spool.dropped for node in nodes)
        for node in (lost[0], nodes[-1]):
            versions(there, node)
            want = {int((began + step * cadence) // 60) for step in range(int((ended - began) / cadence) - node.spool.dropped - 2)}
            want = {minute for minute in want if minute * 60 > began + node.spool.dropped * cadence + 60}
            assert len(want) >= min(cut / 60, cut / cadence) - 5
            missing = want - minutes(there, node, began - 60, ended + 60)
            assert not missing, f"{len(missing)} of {len(want)} minutes are missing"
        print(
            f"{count // 2} of {count} nodes cut off for {cut:.0f} s: {queue} reports waited, {dropped} grew too old, taken in order within {took:.1f} s of work"
        )


def versions(there: World, node: Node) -> None:
    """The history of the card's firmware is as it was, in order."""
    rows = [
        row.change
        for row in there.store.reader.changes(card_of(there, node), limit=5000)
        if row.superseded_at is None and row.change.kind.value == "firmware_changed"
    ]
    rows.sort(key=lambda change: change.at)
    now = [change.detail["now"] for change in rows]
    assert [change.detail["was"] for change in rows] == ["v1", *now[:-1]]
    numbers = [int(text[1:]) for text in now]
    assert numbers == sorted(set(numbers))
    if not node.spool.dropped:
        assert now == [f"v{number}" for number in range(2, (node.sequence + 2) // 3 + 1)]
