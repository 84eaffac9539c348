# SPDX-License-Identifier: Apache-2.0
"""What befalls the site, and when: each kind comes by chance at its own rate, on a machine or card by chance."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence

from tests.sim.rates import DAY, HOUR, Rates
from tests.sim.server import Server
from tests.sim.world import BUS, DRIVER, Machine, World

MINUTE = 60.0
PER_CARD = ("replace", "hang", "recut")
PER_SITE = ("site_cut", "server_full", "server_dies", "server_clock", "upgrade", "hang_all")
PER_NODE = (
    "crash", "agent_dies", "move", "swap", "shelve", "mute", "disk_full", "clock", "renamed", "stand_in", "cut_10m", "cut_1h", "cut_1d",
)  # fmt: skip
LEAPS = (HOUR, -HOUR, 10 * 365 * DAY, 0.0)
"""By how much a clock leaps; 0: to the beginning of its time."""
UPGRADES = 10 * MINUTE
"""Seconds between two machines of a rolling upgrade, at most."""


class Faults:
    """Chance, by one seed. ``seen`` counts what happened. ``planned`` are kinds that come in any case, each at its seconds after the start, or as
    soon as it can change something."""

    def __init__(self, world: World, server: Server, rates: Rates, now: float, planned: Sequence[tuple[float, str]] = ()) -> None:
        self.world, self.server, self.rates = world, server, rates
        self.seen: Counter[str] = Counter()
        self.site_cut_until = self.server_full_until = self.server_clock_until = 0.0
        self._upgrades: list[tuple[float, int, str]] = []
        self._next: list[tuple[float, str]] = []
        for kind in (*PER_CARD, *PER_NODE, *PER_SITE):
            self._again(kind, now)
        self._planned = sorted((now + after, kind) for after, kind in planned)

    def _again(self, kind: str, now: float) -> None:
        many = {"card": len(self.world.machines) * self.world.machines[0].slots, "node": len(self.world.machines), "site": 1}
        rate = getattr(self.rates, kind) * many["card" if kind in PER_CARD else "site" if kind in PER_SITE else "node"] / HOUR
        if rate > 0:
            heapq.heappush(self._next, (now + self.world.random.expovariate(rate), kind))

    def happen(self, until: float) -> None:
        """All that happens up to then."""
        while self._next and self._next[0][0] <= until:
            at, kind = heapq.heappop(self._next)
            if self._befall(kind, at):
                self.seen[kind] += 1
            self._again(kind, at)
        while self._planned and self._planned[0][0] <= until:
            at, kind = heapq.heappop(self._planned)
            before = self.state()
            if self._befall(kind, at) and self.state() != before:
                self.seen[kind] += 1
            else:
                heapq.heappush(self._planned, (at + MINUTE, kind))
        self._end(until)
        while self._upgrades and self._upgrades[0][0] <= until:
            at, number, version = heapq.heappop(self._upgrades)
            machine = self.world.machines[number]
            if not self._open(machine):
                heapq.heappush(self._upgrades, (at + UPGRADES, number, version))
                continue
            machine.driver = version
            self.world.boot(at, machine, off=2 * MINUTE)

    def _befall(self, kind: str, at: float) -> bool:
        """True when it could happen."""
        act: Callable[..., None]
        if kind in PER_SITE:
            act = getattr(self, f"_{kind}")
            act(at)
            return True
        machine = self.world.random.choice(self.world.machines)
        if not self._open(machine):
            return False
        if kind in ("move", "swap", "shelve", "recut"):
            if kind in ("move", "swap") and not all(map(self._open, self.world.machines)):
                return False
            act = getattr(self.world, kind)
        else:
            act = getattr(self, f"_{kind}")
        act(machine, at)
        return True

    def state(self) -> str:
        """All that a fault could change."""
        mine = {name: value for name, value in vars(self).items() if name not in ("world", "server", "rates", "seen")}
        server = (self.server.full, self.server.deaths, self.server.wall_off, self.server.writer.doomed)
        return repr((self.world.machines, self.world.boards, mine, server))

    def _open(self, machine: Machine) -> bool:
        """True when its clock is right: what is spooled by a wrong one, and delivered after a boot, has no time that anybody could know."""
        return machine.clock_off == 0.0

    def _end(self, now: float) -> None:
        """What has lasted its time is over."""
        for machine in self.world.machines:
            if machine.clock_off and machine.clock_until <= now:
                machine.clock_off = 0.0
            if machine.hung and machine.hung_until <= now:
                self.world.boot(now, machine, off=3 * MINUTE)
        if self.server.full and self.server_full_until <= now:
            self.server.set_full(full=False)
        if self.server.wall_off and self.server_clock_until <= now:
            self.server.wall_off = 0.0

    def _for(self, least: float, most: float) -> float:
        return self.world.random.uniform(least, most)

    def _replace(self, machine: Machine, at: float) -> None:
        self.world.replace(machine, at, self.rates.retired)

    def _hang(self, machine: Machine, at: float) -> None:
        machine.hung, machine.hung_until = True, at + self._for(10 * MINUTE, 3 * HOUR)
        machine.change(at)

    def _hang_all(self, at: float) -> None:
        for machine in self.world.machines:
            if self._open(machine):
                self._hang(machine, at)

    def _crash(self, machine: Machine, at: float) -> None:
        self.world.boot(at, machine, off=self._for(2 * MINUTE, HOUR))

    def _agent_dies(self, machine: Machine, at: float) -> None:
        machine.lives += 1
        machine.down_until = max(machine.down_until, at + self._for(1, 10 * MINUTE))

    def _mute(self, machine: Machine, at: float) -> None:
        machine.mute[self.world.random.choice((DRIVER, BUS))] = at + self._for(MINUTE, HOUR)

    def _disk_full(self, machine: Machine, at: float) -> None:
        machine.full_until = at + self._for(10 * MINUTE, 3 * HOUR)

    def _clock(self, machine: Machine, at: float) -> None:
        if machine.cut_until > at or machine.down_until > at:
            return
        leap = self.world.random.choice(LEAPS)
        machine.clock_off = leap or 1000.0 - at
        machine.clock_until = at + self._for(10 * MINUTE, 3 * HOUR)

    def _renamed(self, machine: Machine, at: float) -> None:
        self.world.rename(machine, at)

    def _stand_in(self, machine: Machine, at: float) -> None:
        if machine.has_tool:
            machine.standing_in = at + self._for(10 * MINUTE, 3 * HOUR)

    def _cut_10m(self, machine: Machine, at: float) -> None:
        machine.cut_until = max(machine.cut_until, at + 10 * MINUTE)

    def _cut_1h(self, machine: Machine, at: float) -> None:
        machine.cut_until = max(machine.cut_until, at + HOUR)

    def _cut_1d(self, machine: Machine, at: float) -> None:
        machine.cut_until = max(machine.cut_until, at + DAY)

    def _site_cut(self, at: float) -> None:
        self.site_cut_until = at + self._for(5 * MINUTE, HOUR)

    def _server_full(self, at: float) -> None:
        self.server_full_until = at + self._for(MINUTE, 10 * MINUTE)
        self.server.set_full(full=True)

    def _server_dies(self, at: float) -> None:
        if self.world.random.random() < 0.5:
            self.server.kill()
        else:
            self.server.doom()

    def _server_clock(self, at: float) -> None:
        leap = self.world.random.choice(LEAPS)
        self.server.wall_off = leap or 1000.0 - at
        self.server_clock_until = at + self._for(MINUTE, 10 * MINUTE)

    def _upgrade(self, at: float) -> None:
        self._upgrades.clear()
        version = f"570.{int(self.seen['upgrade']) + 2}"
        order = list(range(len(self.world.machines)))
        self.world.random.shuffle(order)
        every = min(UPGRADES, DAY / len(order))
        for place, number in enumerate(order):
            heapq.heappush(self._upgrades, (at + place * every, number, version))
