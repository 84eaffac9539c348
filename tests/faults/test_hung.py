# SPDX-License-Identifier: Apache-2.0
"""A call into a driver hangs on every node at once: the rest is read on, it is said, nothing piles up, and it ends with the hang."""

from __future__ import annotations

import os
import shutil
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.site import Agent, Server, server, until

from muster.wiring.adapters import TREE

NODES = 6


def machines() -> tuple[Path, Path]:
    """Two recorded machines of eight cards, each of another vendor."""
    found = sorted(TREE.glob("*/machines/*-8/machine.toml"))
    return found[0].parent, found[-1].parent


def both(folder: Path, number: int) -> tuple[str, str, int]:
    """Makes a machine that has the cards of both; gives the source that is to hang, one of the other vendor, and how many cards there are."""
    folder.mkdir(parents=True)
    lines = [f'[node]\nname = "hung-{number}"\nmachine_id = "{number:04d}a7c2be1d44f09d3b6a5c{number:012d}"[:32]\n'.replace("[:32]", "")]
    sources = []
    for place, machine in enumerate(machines()):
        told = tomllib.loads((machine / "machine.toml").read_text(encoding="utf-8"))["captures"][0]
        shutil.copy(machine / told["file"], folder / f"{place}.bin")
        lines.append(f'[[captures]]\nsource = "{told["source"]}"\nlocator = {told["locator"]}\nformat = "{told["format"]}"\nfile = "{place}.bin"\n')
        sources.append(told["source"])
    (folder / "machine.toml").write_text("\n".join(lines).replace("'", '"'))
    return sources[0], sources[1], 16


@dataclass
class Weight:
    """Threads and processes of an agent."""

    threads: int
    children: int


def weight(agent: Agent) -> Weight:
    """What it weighs now."""
    assert agent.process is not None
    tasks = list(Path(f"/proc/{agent.process.pid}/task").iterdir())
    return Weight(len(tasks), sum(len((task / "children").read_text().split()) for task in tasks))


def let_go(pipe: Path) -> bool:
    """Lets those who wait for the pipe at this moment go on."""
    with pipe.open("r+b", buffering=0):
        time.sleep(0.1)
    return True


def hung(site: Server) -> set[str]:
    """Nodes of which it is said that a source hangs."""
    return {each["node"] for each in site.all("findings") if each["kind"] == "source_hung" and each["closed_at"] is None}


def ages(site: Server, source: str) -> list[float]:
    """Seconds since each node's source was last heard."""
    return [each["age"] for each in site.all("sources") if each["source"] == source]


@pytest.mark.slow
def test_a_driver_that_hangs_on_every_node_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    with server(tmp_path / "server", settle="2") as site:
        agents, hangs, reads, cards = list[Agent](), "", "", 0
        for number in range(NODES):
            hangs, reads, cards = both(tmp_path / f"m{number}", number)
            told = {"MUSTER_CADENCE": "2", "MUSTER_SERVER": str(site.runtime / "muster.sock"), "HANG_AT": str(pipe), "HANG_SOURCE": hangs}
            words = ("-m", "tests.faults.hanging", "--machine", str(tmp_path / f"m{number}"), "--state", str(tmp_path / f"s{number}"))
            agents.append(Agent(tmp_path / f"a{number}", told, words))
        try:
            for agent in agents:
                agent.start()
            until(lambda: len(site.all("cards")) == NODES * cards, f"all cards are there: {len(site.all('cards'))}; {agents[0].log[-500:]}")
            before = [weight(agent) for agent in agents]
            os.mkfifo(pipe)
            began = time.monotonic()
            until(lambda: len(hung(site)) == NODES, "it is said of every node")
            took = time.monotonic() - began
            time.sleep(6)
            assert hung(site) == {f"hung-{number}" for number in range(NODES)}
            until(lambda: max(ages(site, reads)) < 8, "the other source is read on")
            assert len(hung(site)) == NODES
            states = {each["state"] for each in site.all("sources") if each["source"] == hangs}
            assert states == {"hung"}, states
            after = [weight(agent) for agent in agents]
            for was, now in zip(before, after, strict=True):
                assert now.threads <= was.threads + 1
                assert now.children <= was.children
            assert len(site.all("cards")) == NODES * cards
            pipe.rename(tmp_path / "gone")
            until(lambda: let_go(tmp_path / "gone") and not hung(site) and max(ages(site, hangs)) < 8, "it is over, and the source is read again", every=0.2)
            for agent in agents:
                assert agent.process is not None
                assert agent.process.poll() is None
                assert "Traceback" not in agent.log
            print(f"{NODES} nodes hung: said of all after {took:.1f} s; threads {before[0].threads} -> {after[0].threads}, processes {after[0].children}")
        finally:
            for agent in agents:
                agent.kill()
