# SPDX-License-Identifier: Apache-2.0
"""One seeded run: the world speaks, the network loses, doubles, delays and reorders, agents and server die; the model looks at the roll every hour.

By hand, a week of a site of 500 nodes: ``python -m tests.sim.run --seed 7 --machines 500 --hours 168``.
"""

from __future__ import annotations

import argparse
import logging
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from muster.services.inventory import Inventory
from muster.store import Store, open_store
from tests.sim import checks
from tests.sim.agents import FULL
from tests.sim.rates import BUSY, CALM, EVERY, EVERY_HOURS, NOISE, PUBLISHED, Rates
from tests.sim.server import POLICY
from tests.sim.site import STEP, Site
from tests.sim.world import START, World

AFTER = 7200.0
"""Seconds after the end in which nothing befalls the site any more: what is spooled is delivered, and all settles."""
MEMORY = Path("/dev/shm")


@dataclass
class Outcome:
    """What a run showed."""

    faults: list[str]
    seen: dict[str, int]
    answers: dict[str, int]
    deaths: int
    lost: int
    cards: int


def run(
    seed: int, machines: int, cards: int, hours: float, rates: Rates, *, deaths: float = 0.0005, on_disk: bool = False, bmc: float = 1.0,
    oracle: bool = False, progress: bool = False, planned: Sequence[tuple[float, str]] = (),
) -> Outcome:  # fmt: skip
    """Runs one seed and checks it. ``planned`` are faults that come in any case: seconds after the start, and the kind."""
    logging.getLogger("muster").setLevel(logging.CRITICAL)
    world = World(seed, machines, cards, bmc=bmc, older=0.2 if machines < 50 else 0.05)
    if planned:
        world.machines[0].has_tool = True  # one has to be there that can stand in
    with tempfile.TemporaryDirectory(prefix="muster-sim-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        site = Site(seed, world, rates, Path(folder), on_disk=on_disk, deaths=deaths, oracle=oracle, planned=planned)
        try:
            _play(site, hours, progress=progress)
            _end(site, oracle=oracle)
        finally:
            site.server.close()
            FULL.clear()
        lost = sum(agent.lost for agent in site.agents)
        return Outcome(site.found, dict(site.faults.seen), dict(site.tally), site.server.deaths, lost, len(world.boards))


def _play(site: Site, hours: float, *, progress: bool) -> None:
    end = START + hours * 3600
    began, told = time.perf_counter(), 0
    while site.now < end + AFTER:
        site.step(quiet=site.now >= end)
        if (site.now - START) % 3600 < STEP:
            faults = site.look()
            if progress:
                taken = site.tally["applied"]
                wall = time.perf_counter() - began
                print(
                    f"{(site.now - START) / 3600:6.1f} h  {taken} taken, {(taken - told) / max(wall, 1e-9):.0f} a second, {site.server.deaths} deaths, "
                    f"{len(faults)} faults, {_memory():.0f} MiB",
                    file=sys.stderr,
                )
                began, told = time.perf_counter(), taken


def _end(site: Site, *, oracle: bool) -> None:
    """The last look, and that a server which starts anew, and one that heard all in order, say the same."""
    site.look(deep=True)
    before = checks.snapshot(site.server.store)
    site.server._rate = 0.0
    site.server.again()
    site.server.tick()
    site.found += checks.apart(checks.snapshot(site.server.store), before, "the server before its restart")
    if oracle:
        other = ordered(site)
        site.found += checks.apart(checks.snapshot(site.server.store, counters=False), checks.snapshot(other, counters=False), "ordered delivery")
        other.close()


def ordered(site: Site) -> Store:
    """The same words, each heard at once and in its turn by a server that never dies."""
    store = open_store(None)
    inventory = Inventory(store.writer, POLICY, START)
    words = [(at, n, doc, None) for at, n, doc in site.model.history] + [(at, -1, None, act) for at, act in site.acts]
    for at, _, doc, act in sorted(words, key=lambda each: each[:2]):
        if doc is not None:
            first = doc.heard[0]
            said = msgspec.structs.replace(doc, sent_at=at, sent_mono=first.observed_mono, boot_id=first.boot_id)
            inventory.report(said, at)
        elif act is not None:
            inventory.act(act, at)
    inventory.tick(site.now)
    return store


def _memory() -> float:
    """The most memory that this process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(args: Sequence[str] | None = None) -> int:
    """A run by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--machines", type=int, default=40)
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--hours", type=float, default=6)
    parser.add_argument("--rates", choices=("published", "busy", "calm"), default="published")
    parser.add_argument("--times", type=float, default=1.0, help="so many times as often")
    parser.add_argument("--bmc", type=float, default=0.2, help="share of machines with a management controller")
    parser.add_argument("--deaths", type=float, default=0.0, help="share of commits at which the server dies, on top of the rates")
    parser.add_argument("--disk", action="store_true", help="the store in files; they are in memory where the system has such a place")
    parser.add_argument("--oracle", action="store_true", help="the same words once more in order, and the same must come of it; not with cuts of hours")
    parser.add_argument("--every", action="store_true", help="each kind of fault once, an hour apart, on a bad network, in place of rates and hours")
    o = parser.parse_args(args)
    rates = {"published": PUBLISHED, "busy": BUSY, "calm": CALM}[o.rates].times(o.times)
    if o.every:
        rates, o.hours = NOISE, EVERY_HOURS
    began, used = time.perf_counter(), time.process_time()
    outcome = run(
        o.seed,
        o.machines,
        o.cards,
        o.hours,
        rates,
        deaths=o.deaths,
        on_disk=o.disk,
        bmc=o.bmc,
        oracle=o.oracle,
        progress=True,
        planned=EVERY if o.every else (),
    )
    took, cpu = time.perf_counter() - began, time.process_time() - used
    print("\n".join(outcome.faults[:30]))
    print(", ".join(f"{kind} {count}" for kind, count in sorted(outcome.seen.items())))
    applied = outcome.answers.get("applied", 0)
    print(
        f"seed {o.seed}: {o.machines} machines, {outcome.cards} boards, {o.hours:g} h; {outcome.answers}, {outcome.deaths} deaths of the server, "
        f"{outcome.lost} reports given up by full or old spools; {len(outcome.faults)} faults; {took:.1f} s, {cpu:.1f} s of CPU, "
        f"{applied / took:.0f} reports a second, {_memory():.0f} MiB at most"
    )
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
