# SPDX-License-Identifier: Apache-2.0
"""What minute roll-ups cost: bytes of a day, processor time of taking rounds in and of packing, time to read a card's day, and columns of a whole site.

``python bench/segments.py [--nodes 64] [--hours 24] [--folder DIR]``. A real run: rounds of nodes with eight cards of sixteen numbers, every ten seconds
of a clock of its own, through the writer into a store in a file, packed as it goes. Figures for 100,000 cards are those of the run times 12,500 nodes by
its nodes.

The numbers are walks, not dice: a card is busy or idle for an hour; its load wanders and jitters, power and temperatures follow the load, clocks step with
it, memory moves rarely, energy is the sum of the power, bandwidth is the load with a tenth of noise, errors are rare. Steps are those of tools: a percent,
0.1 W, 1 C, MiB, 15 MHz.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from muster.spi.store import Batch, Heard, Layout
from muster.store import Store, open_store

KEYS = [
    "utilization.core",
    "utilization.memory_bandwidth",
    "memory.used",
    "power.draw",
    "energy.total",
    "temperature.core",
    "temperature.hotspot",
    "temperature.memory",
    "fan.speed",
    "clock.core",
    "clock.memory",
    "pci.bandwidth.receive",
    "pci.bandwidth.transmit",
    "errors.memory.corrected",
    "pci.replays",
    "voltage.core",
]
CARDS, CADENCE, SITE, HOUR = 8, 10, 12_500, 3600
BEGIN = 1_800_000_000 - 1_800_000_000 % HOUR
DAY_LIMIT, READ_LIMIT = 8.0, 100.0


@dataclass
class Walk:
    """Numbers of some cards, hour after hour."""

    cards: int
    dice: np.random.Generator
    drift: np.ndarray | None = None
    energy: np.ndarray | None = None
    errors: np.ndarray | None = None

    def hour(self) -> np.ndarray:
        """(round, card, key)."""
        rounds, dice = HOUR // CADENCE, self.dice
        shape = (rounds, self.cards)
        drift = np.zeros(self.cards) if self.drift is None else self.drift
        energy = dice.random(self.cards) * 1e9 if self.energy is None else self.energy
        errors = np.zeros(self.cards) if self.errors is None else self.errors
        busy = dice.random(self.cards) < 0.7
        wander = drift + np.cumsum(dice.normal(size=shape) * 0.003, axis=0)
        self.drift = np.clip(wander[-1], -0.2, 0.2)
        load = np.clip(np.where(busy, 0.9, 0.02) + wander + dice.normal(size=shape) * 0.03, 0, 1).round(2)
        power = (load * 500 + 90 + dice.normal(size=shape) * 8).round(1).clip(50, 700)
        heat = 35 + load * 30 + wander * 10
        total = energy + np.cumsum(power * CADENCE, axis=0)
        bad = errors + np.cumsum(dice.random(shape) < 1e-4, axis=0)
        self.energy, self.errors = total[-1], bad[-1]
        noise = [1 + dice.normal(size=shape) * 0.1 for _ in range(2)]
        made = (
            load,
            (load * 0.6 + dice.normal(size=shape) * 0.02).clip(0, 1).round(2),
            np.where(busy, 70 * 2**30, 2**29) + np.cumsum(dice.random(shape) < 0.01, axis=0) * 2**21,
            power,
            total.round(0),
            heat.round(0),
            (heat + 8 + dice.normal(size=shape) * 0.5).round(0),
            (heat + 5 + dice.normal(size=shape) * 0.5).round(0),
            (0.3 + load * 0.3).round(2),
            (np.where(load > 0.5, 1755, 1980) - dice.integers(0, 5, shape) * 15) * 1e6,
            np.full(shape, 2619e6),
            (load * 2e9 * noise[0]).clip(0).round(0),
            (load * 1.5e9 * noise[1]).clip(0).round(0),
            bad,
            np.full(shape, 3.0),
            (0.75 + load * 0.2 + dice.normal(size=shape) * 0.004).round(3),
        )
        return np.stack(made, axis=-1).astype("<f8")


@dataclass
class Spent:
    """Seconds of processor time, and rounds of a source."""

    write: float = 0.0
    seal: float = 0.0
    heard: int = 0


def layouts(nodes: int) -> list[Layout]:
    """One source a node."""
    made = []
    for node in range(nodes):
        columns = [(f"card-{node}-{card}", f"card-{node}-{card}", key, card * len(KEYS) + place) for card in range(CARDS) for place, key in enumerate(KEYS)]
        made.append(Layout(slot=node + 1, node=f"n{node}", source="acme.smi", reporter=f"agent@n{node}", since=BEGIN, columns=columns, width=len(columns)))
    return made


def run(store: Store, nodes: int, hours: int) -> Spent:
    """Writes hours of rounds and packs them behind."""
    spent, walk = Spent(), Walk(nodes * CARDS, np.random.default_rng(4))
    store.writer.commit(Batch(at=BEGIN, layouts=layouts(nodes)))
    for hour in range(hours):
        told = walk.hour().reshape(HOUR // CADENCE, nodes, CARDS * len(KEYS))
        for number, now in enumerate(range(BEGIN + hour * HOUR, BEGIN + (hour + 1) * HOUR, CADENCE)):
            heard = [_heard(node, now, number, told[number, node].tobytes()) for node in range(nodes)]
            begun = time.process_time()
            store.writer.commit(Batch(at=now, heard=heard))
            written = time.process_time()
            while store.seal(now):
                pass
            spent.write, spent.seal, spent.heard = spent.write + written - begun, spent.seal + time.process_time() - written, spent.heard + nodes
        print(f"  hour {hour + 1} of {hours}", end="\r", flush=True)
    begun = time.process_time()
    while store.seal(BEGIN + hours * HOUR + HOUR):
        pass
    spent.seal += time.process_time() - begun
    return spent


def _heard(node: int, now: int, number: int, numbers: bytes) -> Heard:
    at = now + node % 64 * 0.15
    return Heard(slot=node + 1, at=at, received_at=now + 1.0, numbers=numbers, sequence=number, again=True, facts=b"f" * 16)


def reading(store: Store, hours: int) -> tuple[list[float], float]:
    """Milliseconds to read the day of a card, key after key; and of processor time, the mean."""
    found, used = [], time.process_time()
    for node in (1, 7, 31):
        for key in ("power.draw", "temperature.core", "energy.total"):
            begun = time.perf_counter()
            rows = store.reader.minutes(f"card-{node}-3", key, BEGIN, BEGIN + hours * HOUR)
            found.append((time.perf_counter() - begun) * 1e3)
            assert len(rows) == hours * 60, (key, len(rows))
    return sorted(found), (time.process_time() - used) / len(found) * 1e3


def columns(folder: Path) -> tuple[float, float, float]:
    """A site of 12,500 nodes: seconds to make its columns, milliseconds of one after that, milliseconds with a filter and a sort on top."""
    store = open_store(folder / "site.db")
    some, dice = layouts(SITE), np.random.default_rng(5)
    heard = [Heard(slot=each.slot, at=BEGIN, received_at=BEGIN, numbers=dice.random(each.width).tobytes()) for each in some]
    store.writer.commit(Batch(at=BEGIN, layouts=some, heard=heard))
    store.close()
    store = open_store(folder / "site.db")  # as another process sees it: by the file
    begun = time.perf_counter()
    store.numbers.column("power.draw")
    made = time.perf_counter() - begun
    times, sorts = [], []
    for _ in range(20):
        begun = time.perf_counter()
        column = store.numbers.column("power.draw")
        times.append((time.perf_counter() - begun) * 1e3)
        over = np.flatnonzero(column.values > 0.5)
        over[np.argpartition(column.values[over], 100)[:100]]
        sorts.append((time.perf_counter() - begun) * 1e3)
        assert len(column.values) == SITE * CARDS
    store.close()
    return made, sorted(times)[10], sorted(sorts)[10]


def main() -> int:
    """Prints figures beside their limits; 1 when one is missed."""
    asked = argparse.ArgumentParser(description="bytes and time of minute roll-ups")
    asked.add_argument("--nodes", type=int, default=64)
    asked.add_argument("--hours", type=int, default=24)
    asked.add_argument("--folder", type=Path)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        store = open_store(folder / "roll.db")
        spent = run(store, given.nodes, given.hours)
        size = sum(path.stat().st_size for path in (folder / "roll.db-minutes").iterdir())
        scale, day = SITE / given.nodes, 24 / given.hours
        waiting = SITE * 23 * (22 * CARDS * len(KEYS) + 80) / 1e9
        times, used = reading(store, given.hours)
        store.close()
        rate, numbers = SITE / CADENCE, CARDS * len(KEYS)
        per_number, each = size / given.nodes / numbers * day, spent.write / spent.heard
        print(f"nodes {given.nodes}, hours {given.hours}, rounds of a source {spent.heard:,}, numbers {spent.heard * numbers:,}")
        print(f"packed, 100,000 cards, 24 h     {size * scale * day / 1e9:8.2f} GB   limit {DAY_LIMIT} GB   ({per_number:.0f} B a number)")
        print(f"waiting to be packed, at most   {waiting:8.2f} GB   (rows of 23 minutes in the main file)")
        print(f"taking in, 1,250 rounds/s       {each * rate * 100:8.1f} % of a core   ({each * 1e6:.0f} us a round of {numbers} numbers)")
        print(f"packing                         {spent.seal / spent.heard * rate * 100:8.2f} % of a core")
        print(
            f"a card's day, one number        {times[len(times) // 2]:8.1f} ms, worst {times[-1]:.1f}   limit {READ_LIMIT:.0f} ms   ({used:.1f} ms of a core)"
        )
        made, one, sort = columns(folder)
        print(f"columns of 100,000 cards        {made:8.2f} s to make, {one:.2f} ms to read one, {sort:.2f} ms with filter and sort")
    return int(size * scale * day / 1e9 + waiting > DAY_LIMIT or times[-1] > READ_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
