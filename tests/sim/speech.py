# SPDX-License-Identifier: Apache-2.0
"""What the sources of a machine say of the boards in it. Facts change with the machine's version and are packed once; numbers are new each round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from muster.wire.lanes import part
from muster.wire.report import HeardDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from tests.sim.world import BMC, BUS, CADENCE, DRIVER, SHARED_SERIAL, START, TOOL, Board, Machine, World

KEYS = ("clock.core", "energy.total", "memory.used", "power.draw", "temperature.core", "utilization.core")
"""Numbers of a card that the driver tells, in the order of the lane."""
ENERGY = KEYS.index("energy.total")
_WITNESS = {DRIVER: ("in_band", "driver"), TOOL: ("in_band", "driver"), BUS: ("in_band", "pci"), BMC: ("out_of_band", "bmc")}


@dataclass
class _Said:
    """What a source says while nothing changes. ``seen`` are the boards that its numbers are of."""

    version: tuple[int, bool, bool, int]
    heard: HeardDoc
    uuids: tuple[str, ...]
    energy: NDArray[np.float64]
    places: NDArray[np.float64]


@dataclass
class Round:
    """One round as it was told: what the model holds the roll against."""

    heard: HeardDoc
    source: str
    at: float
    version: int
    stuck: bool
    failed: bool
    standing_by: bool
    uuids: tuple[str, ...]
    values: NDArray[np.float64]


class Speech:
    """All that is said of a site."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._said: dict[tuple[int, str], _Said] = {}
        self._bmc: dict[int, int] = {}

    def round(self, machine: Machine, source: str, at: float, wall: float) -> Round:
        """A round of a source at the true time ``at``, at which the machine's own clock shows ``wall``."""
        speaking = source != TOOL or machine.standing_in > at
        hung = source == DRIVER and machine.hung
        said = self._current(machine, source, speaking=speaking, hung=hung)
        values = self._values(said, source, at)
        heard = msgspec.structs.replace(said.heard, observed_at=wall, observed_mono=at - machine.booted, boot_id=boot(machine), numbers=values.tobytes())
        return Round(heard, source, at, machine.version, hung, hung, not speaking, said.uuids, values)

    def bmc(self, machine: Machine, at: float) -> tuple[ReportDoc, Round]:
        """A report of the management controller, which has a clock and a numbering of its own."""
        told = self.round(machine, BMC, at, at)
        told.heard.boot_id, told.heard.observed_mono = "bmc", at - START + 1
        number = self._bmc[machine.number] = self._bmc.get(machine.number, 0) + 1
        node = NodeDoc(name=machine.name, system=machine.system)
        return ReportDoc(
            reporter=f"bmc@{machine.own_name}", incarnation="b", sequence=number, node=node, sent_at=at, sent_mono=at - START + 1, boot_id="bmc",
            heard=[told.heard],
        ), told  # fmt: skip

    def _current(self, machine: Machine, source: str, *, speaking: bool, hung: bool) -> _Said:
        version = (machine.version, speaking, hung, machine.boots)
        known = self._said.get((machine.number, source))
        if known is not None and known.version == version:
            return known
        boards = self._world.at(machine) if speaking and not hung else []
        rows = [row(board, machine, source, place) for place, board in enumerate(boards)]
        rows += [each for board in boards for each in (partitions(board) if source in (DRIVER, TOOL) else [])]
        heard = part(self._listing(source, rows, speaking=speaking, hung=hung))
        goes_on = known is not None and known.version[3] == machine.boots and len(known.energy) == len(boards)
        energy = known.energy if known is not None and goes_on else np.zeros(len(boards))
        numbers = np.array([board.number for board in boards], dtype=np.float64)
        made = self._said[machine.number, source] = _Said(version, heard, tuple(board.uuid for board in boards), energy, numbers)
        return made

    @staticmethod
    def _listing(source: str, rows: list[ObservationDoc], *, speaking: bool, hung: bool) -> ListingDoc:
        channel, witness = _WITNESS[source]
        listing = ListingDoc(
            source=source, channel=channel, witness=witness, cadence=CADENCE, outcome="devices" if rows else "no_devices", complete=True, observed_at=0.0,
            observations=rows,
        )  # fmt: skip
        if hung:
            listing.outcome, listing.complete, listing.stuck, listing.detail = "timed_out", False, True, "the read has not come back"
        if not speaking:
            listing.complete, listing.standing_by, listing.detail = False, True, "the driver speaks"
        return listing

    def _values(self, said: _Said, source: str, at: float) -> NDArray[np.float64]:
        size = len(said.uuids)
        if source == BUS:
            return np.zeros(0)
        turn = (at - START) // 60
        if source == BMC:
            return np.full(size, 80.0 + turn % 7)
        power = 100.0 + (said.places * 7 + turn * 13) % 500
        said.energy = said.energy + power * 300
        found = np.empty((size, len(KEYS)))
        found[:, 0] = 1200 + (said.places + turn) % 700
        found[:, ENERGY] = said.energy
        found[:, 2] = 1e9 + (said.places * 31 + turn * 17) % 4096 * 1e6
        found[:, 3] = power
        found[:, 4] = 30.0 + (said.places + turn) % 40
        found[:, 5] = ((said.places + turn * 3) % 101) / 100
        return found


def boot(machine: Machine) -> str:
    """The boot id."""
    return f"boot-{machine.number}-{machine.boots}"


def row(board: Board, machine: Machine, source: str, index: int) -> ObservationDoc:
    """A board as a source tells it."""
    address = f"0000:{0x10 + board.slot * 8:02x}:00.0"
    if source == BUS:
        bus = {"pci.vendor_id": {"v": "10de"}, "pci.device_id": {"v": "2330"}, "pci.class": {"v": "030200"}}
        return ObservationDoc(level="card", ids=[("pci_address", address), ("chassis_slot", f"S{board.slot}")], ordinal=index, readings=bus)
    if source == BMC:
        serial = [] if board.serial == SHARED_SERIAL else [("serial", board.serial)]
        return ObservationDoc(level="card", ids=[*serial, ("chassis_slot", f"S{board.slot}")], ordinal=index, readings={"power.draw": {"v": 80}})
    readings: dict[str, dict[str, Any]] = {key: {"v": 0} for key in KEYS}
    readings |= {"product.name": {"v": "Model 80"}, "memory.total": {"v": 85520809984}, "driver.version": {"v": machine.driver}}
    readings["partition.mode"] = {"v": "mig" if board.cut else "none"}
    ids = [("vendor_uuid", board.uuid), ("serial", board.serial), ("pci_address", address), ("index", str(index))]
    return ObservationDoc(level="card", ids=ids, ordinal=index, readings=readings)


def partitions(board: Board) -> list[ObservationDoc]:
    """The partitions that a board is cut into."""
    profile = {"partition.profile": {"v": f"{7 // board.cut if board.cut else 7}g"}}
    return [
        ObservationDoc(level="partition", ids=[("gpu_instance_id", str(n + 1))], parent=[("vendor_uuid", board.uuid)], ordinal=n, readings=profile)
        for n in range(board.cut)
    ]
