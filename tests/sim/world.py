# SPDX-License-Identifier: Apache-2.0
"""A synthetic site on a virtual clock: cards are pulled, put in, swapped and replaced, and reporters speak of them over a bad network."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc

START = 1_760_000_000.0
DRIVER_CADENCE, BUS_CADENCE, BMC_CADENCE = 60.0, 300.0, 120.0


@dataclass
class Board:
    """A card as it physically is. ``been`` is where it has been, in order."""

    number: int
    slot: int = -1
    node: int | None = None
    energy: float = 0.0
    been: list[int] = field(default_factory=list)

    @property
    def uuid(self) -> str:
        return f"GPU-{self.number:08x}-5100-4000-8000-{self.number * 7919:012x}"

    @property
    def serial(self) -> str:
        return f"77{self.number:08d}31"

    def put(self, node: int | None, slot: int = -1) -> None:
        self.node, self.slot = node, slot
        if node is not None and (not self.been or self.been[-1] != node):
            self.been.append(node)


@dataclass
class Machine:
    """A node with slots; each source may be silent for a while, and the agent starts anew with a boot."""

    number: int
    slots: int
    boots: int = 1
    quiet: dict[str, float] = field(default_factory=dict)
    sequence: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Rates:
    """How often things happen, per machine and hour, and how bad the network is, per report."""

    move: float = 0.05
    swap: float = 0.02
    replace: float = 0.02
    shelve: float = 0.02
    silence: float = 0.1
    late: float = 0.05
    doubled: float = 0.05
    lost: float = 0.02


class World:
    """Boards, machines and what their reporters say, all from one seed."""

    def __init__(self, seed: int, machines: int, cards: int, rates: Rates) -> None:
        self.random = random.Random(seed)
        self.rates = rates
        self.machines = [Machine(i, cards) for i in range(machines)]
        self.boards = [Board(i) for i in range(machines * cards)]
        self.shelf: list[Board] = []
        for board in self.boards:
            board.put(board.number // cards, board.number % cards)

    def at(self, node: int) -> list[Board]:
        """Boards in a machine, by slot."""
        return sorted((b for b in self.boards if b.node == node), key=lambda b: b.slot)

    def happen(self, now: float, step: float) -> None:
        """What befalls the hardware in the next ``step`` seconds. A machine is opened only while it is off, so that its agent starts anew."""
        for machine in self.machines:
            for name in ("move", "swap", "replace", "shelve"):
                if self.random.random() < getattr(self.rates, name) * step / 3600:
                    getattr(self, f"_{name}")(machine)
            if self.random.random() < self.rates.silence * step / 3600:
                machine.quiet[self.random.choice(["driver", "bus", "bmc"])] = now + self.random.uniform(60, 1800)

    def _boot(self, *machines: Machine) -> None:
        for machine in machines:
            machine.boots += 1

    def _free(self, machine: Machine) -> list[int]:
        taken = {b.slot for b in self.at(machine.number)}
        return [s for s in range(machine.slots) if s not in taken]

    def _move(self, machine: Machine) -> None:
        here, there = self.at(machine.number), self.random.choice(self.machines)
        if here and there is not machine and self._free(there):
            self.random.choice(here).put(there.number, self._free(there)[0])
            self._boot(machine, there)

    def _swap(self, machine: Machine) -> None:
        there = self.random.choice(self.machines)
        here, other = self.at(machine.number), self.at(there.number)
        if here and other and there is not machine:
            one, two = self.random.choice(here), self.random.choice(other)
            spots = (one.node, one.slot), (two.node, two.slot)
            one.put(*spots[1])
            two.put(*spots[0])
            self._boot(machine, there)

    def _replace(self, machine: Machine) -> None:
        here = self.at(machine.number)
        if here:
            old = self.random.choice(here)
            new = Board(len(self.boards))
            self.boards.append(new)
            slot = old.slot
            old.put(None)
            self.shelf.append(old)
            new.put(machine.number, slot)
            self._boot(machine)

    def _shelve(self, machine: Machine) -> None:
        here = self.at(machine.number)
        if len(here) > 1 and self.random.random() < 0.5:
            board = self.random.choice(here)
            board.put(None)
            self.shelf.append(board)
            self._boot(machine)
        elif self.shelf and self._free(machine):
            self.shelf.pop(0).put(machine.number, self._free(machine)[0])
            self._boot(machine)

    def speak(self, now: float, step: float) -> Iterator[ReportDoc]:
        """Reports of this step: each source at its own phase of its cadence."""
        for machine in self.machines:
            for source, cadence in (("driver", DRIVER_CADENCE), ("bus", BUS_CADENCE), ("bmc", BMC_CADENCE)):
                phase = (machine.number * 7.3 + {"driver": 0.0, "bus": 2.1, "bmc": 4.7}[source]) % cadence
                due = list(_ticks(phase, cadence, now - START, step))
                for each in due:
                    if machine.quiet.get(source, 0.0) < START + each:
                        yield self._report(machine, source, cadence, START + each)

    def _report(self, machine: Machine, source: str, cadence: float, at: float) -> ReportDoc:
        bmc = source == "bmc"
        reporter = f"{'bmc' if bmc else 'agent'}@m{machine.number}"
        incarnation = "b" if bmc else f"i{machine.boots}"
        number = machine.sequence.get((reporter, incarnation), 0) + 1
        machine.sequence[reporter, incarnation] = number
        rows = [self._row(b, source, i) for i, b in enumerate(self.at(machine.number))]
        channel, witness = {"driver": ("in_band", "driver"), "bus": ("in_band", "pci"), "bmc": ("out_of_band", "bmc")}[source]
        listing = ListingDoc(
            source=source,
            channel=channel,
            witness=witness,
            cadence=cadence,
            outcome="devices" if rows else "no_devices",
            complete=True,
            observed_at=at,
            observed_mono=at - START + 1,
            boot_id="x",
            observations=rows,
        )
        return ReportDoc(
            reporter=reporter,
            incarnation=incarnation,
            sequence=number,
            node=NodeDoc(name=f"m{machine.number}", system=f"SYS{machine.number:05d}"),
            sent_at=at,
            sent_mono=at - START + 1,
            boot_id="x",
            listings=[listing],
        )

    def _row(self, board: Board, source: str, index: int) -> ObservationDoc:
        address = f"0000:{0x10 + board.slot * 8:02x}:00.0"
        if source == "bus":
            bus = {"pci.vendor_id": {"v": "10de"}, "pci.device_id": {"v": "2330"}, "pci.class": {"v": "030200"}}
            return ObservationDoc(level="card", ids=[("pci_address", address), ("chassis_slot", f"S{board.slot}")], ordinal=index, readings=bus)
        if source == "bmc":
            return ObservationDoc(
                level="card", ids=[("serial", board.serial), ("chassis_slot", f"S{board.slot}")], ordinal=index, readings={"power.draw": {"v": 80}}
            )
        board.energy += 1000.0
        readings: dict[str, dict[str, object]] = {
            "energy.total": {"v": board.energy},
            "memory.total": {"v": 85520809984},
            "temperature.core": {"v": 30 + board.number % 40},
        }
        ids = [("vendor_uuid", board.uuid), ("serial", board.serial), ("pci_address", address), ("index", str(index))]
        return ObservationDoc(level="card", ids=ids, ordinal=index, readings=readings)


def _ticks(phase: float, cadence: float, since: float, step: float) -> Iterator[float]:
    first = int((since - phase) // cadence)
    for n in range(max(first, 0), first + int(step // cadence) + 2):
        at = phase + n * cadence
        if since <= at < since + step:
            yield at
