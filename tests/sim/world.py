# SPDX-License-Identifier: Apache-2.0
"""The hardware of a synthetic site: boards in slots of machines, and what befalls them. It knows what is true; what is said of it is `speech`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

START = 1_760_000_000.0
CADENCE = 300.0
DRIVER, BUS, TOOL, BMC = "driver", "bus", "tool", "bmc"
SHARED_SERIAL = "7700000099"
"""The serial that a lot of boards was printed with."""
SHARED_BY = 4
"""So many boards have it."""


@dataclass
class Board:
    """A card as it physically is. ``been`` is where it has been, in order; ``cut`` how many partitions it is in; ``said`` an operator's last word on it;
    ``followed``: another was in its place since."""

    number: int
    serial: str
    slot: int = -1
    node: int | None = None
    last: int = -1
    """The machine that it is or was in."""
    cut: int = 0
    said: str = ""
    followed: bool = False
    been: list[int] = field(default_factory=list)

    @property
    def uuid(self) -> str:
        return f"GPU-{self.number:08x}-5100-4000-8000-{self.number * 7919:012x}"

    def put(self, node: int | None, slot: int = -1) -> None:
        if node is None:
            self.node = None
            return
        self.node, self.slot, self.last, self.said, self.followed = node, slot, node, "", False
        if not self.been or self.been[-1] != node:
            self.been.append(node)


@dataclass
class Machine:
    """A node with slots. ``version`` counts changes of what is in it; ``boots`` its boots, ``lives`` those of its agent. Times are until when."""

    number: int
    slots: int
    has_bmc: bool
    has_tool: bool
    schema: int = 2
    boots: int = 1
    booted: float = START - 1.0
    lives: int = 1
    version: int = 0
    changed: float = START
    driver: str = "570.1"
    name: str = ""
    machine_id: str = ""
    clock_off: float = 0.0
    clock_until: float = 0.0
    down_until: float = 0.0
    cut_until: float = 0.0
    full_until: float = 0.0
    hung: bool = False
    hung_until: float = 0.0
    standing_in: float = 0.0
    mute: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name, self.machine_id = self.own_name, self.own_id

    @property
    def own_name(self) -> str:
        return f"m{self.number}"

    @property
    def own_id(self) -> str:
        return f"{self.number + 1:032x}"  # zeros alone name nothing

    @property
    def system(self) -> str:
        return f"SYS{self.number:05d}"

    @property
    def reporter(self) -> str:
        """The name that it was given when it joined: whatever it calls itself later."""
        return f"agent@{self.own_name}"

    def sources(self) -> tuple[str, ...]:
        """What its agent reads."""
        return (DRIVER, BUS, TOOL) if self.has_tool else (DRIVER, BUS)

    def change(self, now: float) -> None:
        """Something that is said of it is other from now on."""
        self.version += 1
        self.changed = now


class World:
    """Boards and machines, all from one seed."""

    def __init__(self, seed: int, machines: int, cards: int, *, bmc: float = 1.0, tool: float = 0.25, older: float = 0.2) -> None:
        self.random = random.Random(seed)
        dice = self.random
        self.machines = [
            Machine(i, cards, dice.random() < bmc, dice.random() < tool, schema=1 if dice.random() < older else 2) for i in range(machines)
        ]  # fmt: skip
        self.boards: list[Board] = []
        self.shelf: list[Board] = []
        self.inside: list[dict[int, Board]] = [{} for _ in range(machines)]
        self.touched: set[int] = set()
        """Boards that were moved since somebody last took this."""
        self.retiring: list[Board] = []
        """Boards that an operator is going to speak of."""
        for machine in self.machines:
            for slot in range(cards):
                self.put(self._made(), machine, slot)

    def _made(self) -> Board:
        number = len(self.boards)
        spread = max(1, len(self.machines) * self.machines[0].slots // (SHARED_BY * 2))
        shared = number % spread == 1 and number // spread < SHARED_BY
        board = Board(number, SHARED_SERIAL if shared else f"77{number:08d}31")
        self.boards.append(board)
        return board

    def at(self, machine: Machine) -> list[Board]:
        """Boards in a machine, by slot."""
        inside = self.inside[machine.number]
        return [inside[slot] for slot in sorted(inside)]

    def put(self, board: Board, machine: Machine, slot: int) -> None:
        """Puts a board into a slot, from wherever it is."""
        self.take(board)
        for other in self.boards:
            other.followed = other.followed or (other.node is None and (other.last, other.slot) == (machine.number, slot))
        board.put(machine.number, slot)
        self.inside[machine.number][slot] = board

    def take(self, board: Board) -> None:
        """Takes a board out."""
        self.touched.add(board.number)
        if board.node is not None:
            self.inside[board.node].pop(board.slot, None)
        board.put(None)

    def boot(self, now: float, *machines: Machine, off: float = 0.0) -> None:
        """Machines go off and on. Their clocks are right after that, and nothing hangs."""
        for machine in machines:
            machine.boots += 1
            machine.lives += 1
            machine.booted = now + off
            machine.down_until = max(machine.down_until, now + off)
            machine.hung, machine.hung_until, machine.clock_off, machine.clock_until = False, 0.0, 0.0, 0.0
            machine.change(now)

    def free(self, machine: Machine) -> list[int]:
        """Empty slots."""
        return [slot for slot in range(machine.slots) if slot not in self.inside[machine.number]]

    def move(self, machine: Machine, now: float) -> None:
        here, there = self.at(machine), self.random.choice(self.machines)
        if here and there is not machine and self.free(there):
            self.put(self.random.choice(here), there, self.free(there)[0])
            self.boot(now, machine, there)

    def swap(self, machine: Machine, now: float) -> None:
        other = self.random.choice(self.machines)
        mine, theirs = self.at(machine), self.at(other)
        if other is not machine and mine and theirs:
            one, two = self.random.choice(mine), self.random.choice(theirs)
            slots = one.slot, two.slot
            self.take(one)
            self.take(two)
            self.put(one, other, slots[1])
            self.put(two, machine, slots[0])
            self.boot(now, machine, other)

    def replace(self, machine: Machine, now: float, retired: float) -> None:
        """A faulty board goes back to its maker; another comes in its place."""
        here = self.at(machine)
        if not here:
            return
        old = self.random.choice(here)
        slot = old.slot
        self.take(old)
        self.put(self._made(), machine, slot)
        self.boot(now, machine)
        if self.random.random() < retired:
            old.said = "retire"
            self.retiring.append(old)

    def shelve(self, machine: Machine, now: float) -> None:
        here, stored = self.at(machine), [b for b in self.shelf if b.said != "retire"]
        if len(here) > 1 and (not stored or not self.free(machine) or self.random.random() < 0.5):
            board = self.random.choice(here)
            self.take(board)
            self.shelf.append(board)
            if self.random.random() < 0.5:
                board.said = "store"
                self.retiring.append(board)
            self.boot(now, machine)
        elif stored and self.free(machine):
            self.shelf.remove(stored[0])
            self.put(stored[0], machine, self.free(machine)[0])
            self.boot(now, machine)

    def recut(self, machine: Machine, now: float) -> None:
        here = self.at(machine)
        if here:
            board = self.random.choice(here)
            board.cut = self.random.choice([n for n in (0, 2, 3, 7) if n != board.cut])
            machine.change(now)

    def rename(self, machine: Machine, now: float) -> None:
        """It boots under another's name, or from another's image; the next time as itself."""
        other = self.random.choice(self.machines)
        if (machine.name, machine.machine_id) != (machine.own_name, machine.own_id):
            machine.name, machine.machine_id = machine.own_name, machine.own_id
        elif other is machine:
            return
        elif self.random.random() < 0.5:
            machine.name = other.own_name
        else:
            machine.machine_id = other.own_id
        self.boot(now, machine)
