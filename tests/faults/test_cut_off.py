# SPDX-License-Identifier: Apache-2.0
"""The way between a real agent and a real server is cut, each way that a network has, while another agent's is whole. Times are short: promises are three
seconds, and a cut lasts until silence is said. `test_partition` has ten minutes, an hour and a day, without processes and on clocks of its own.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.faults.agents import MACHINE
from tests.faults.counting import ENERGY, firmware_of
from tests.faults.site import Agent, Server, server, until
from tests.faults.voices import authority
from tests.faults.way import Cut, Way

from muster.wire.report import NodeDoc
from muster.wiring.authority import fingerprint
from muster.wiring.joining import join

CUTS = tuple(each for each in Cut if each is not Cut.OPEN)
JOULES = ENERGY / 1000


@dataclass
class Node:
    """An agent whose cards count their rounds, and its way to the server."""

    name: str
    agent: Agent
    way: Way
    serial: str
    source: str

    @property
    def spool(self) -> int:
        """Reports that wait on its disk."""
        return len(list((self.agent.folder / "state" / "spool").glob("*.report")))

    def stopped(self, site: Server) -> int:
        """Stops it where it is, and gives the number of the last round that the server has."""
        assert self.agent.process is not None
        os.killpg(self.agent.process.pid, signal.SIGSTOP)
        time.sleep(0.5)
        energy: float = site.get(f"cards/{self.serial}")["readings"]["energy.total"]["value"]
        return round(energy / JOULES)


def machine(folder: Path, number: int) -> tuple[NodeDoc, str, str]:
    """A machine like the recorded one, with names of its own; its node, the serial of its first card, and its source."""
    folder.mkdir(parents=True)
    node = NodeDoc(name=f"cut-{number}", machine_id=f"{number:04d}" + "5e1f" * 7)
    told = json.loads((MACHINE / "snapshot.json").read_text())
    for place, card in enumerate(told["gpus"]):
        card.update(serial=f"16549{number:03d}{place:05d}", uuid=f"GPU-{number:04x}{place:04x}" + card["uuid"][12:])
    (folder / "snapshot.json").write_text(json.dumps(told))
    capture = re.search(r"(?s)\[\[captures\]\].*?snapshot\.json\"", (MACHINE / "machine.toml").read_text())
    assert capture is not None
    (folder / "machine.toml").write_text(f'[node]\nname = "{node.name}"\nmachine_id = "{node.machine_id}"\n{capture[0]}\n')
    source = re.search(r'source = "(.*)"', capture[0])
    assert source is not None
    return node, told["gpus"][0]["serial"], source[1]


@contextmanager
def nodes(site: Server, folder: Path, count: int) -> Iterator[list[Node]]:
    """So many that have joined, each over a way of its own, and report."""
    found = list[Node]()
    with ExitStack() as held:
        for number in range(count):
            node, serial, source = machine(folder / f"m{number}", number)
            way = Way(site.port)
            held.callback(way.close)
            state = folder / f"a{number}" / "state"
            join(state, f"https://127.0.0.1:{way.port}", fingerprint(authority(site)), site.join_token(uses=1), node)
            program = ("-m", "tests.faults.counting", "--machine", str(folder / f"m{number}"), "--state", str(state))
            agent = Agent(folder / f"a{number}", {"MUSTER_CADENCE": "1"}, program)
            agent.start()
            held.callback(agent.kill)
            found.append(Node(node.name, agent, way, serial, source))
        until(lambda: len(site.all("cards")) == 8 * count, "all cards are there")
        yield found


def silent(site: Server) -> set[str]:
    """Nodes of which a source is said to be silent now."""
    return {each["node"] for each in site.all("findings") if each["kind"] == "source_silent" and each["closed_at"] is None}


def rounds(site: Server, node: Node) -> tuple[int, float]:
    """How many rounds the minutes of the card have of its source, and the sum of what they told."""
    points = site.get(f"cards/{node.serial}/series?key=temperature.core&since=-1h")["points"]
    mine = [each for each in points if each["source"] == node.source]
    return sum(each["count"] for each in mine), sum(each["count"] * each["mean"] for each in mine)


def whole(site: Server, node: Node, last: int) -> None:
    """All that was read up to that round is there, once, and in order."""
    count, total = rounds(site, node)
    assert count == last, f"{node.name}: {last} rounds were told, the server has {count}"
    assert total == pytest.approx(sum(20 + turn % 60 for turn in range(1, last + 1)))
    rows = sorted((each for each in site.all(f"cards/{node.serial}/history") if each["kind"] == "firmware_changed"), key=lambda each: each["number"])
    now = [each["detail"]["now"] for each in rows]
    assert now == [firmware_of(turn) for turn in range(3, last + 1, 3)], now
    assert [each["detail"]["was"] for each in rows] == [firmware_of(1), *now[:-1]]
    times = [each["at"] for each in rows]
    assert times == sorted(times)


def said(node: Node, site: Server) -> list[dict[str, Any]]:
    """What was ever said of the node's silence."""
    return [each for each in site.all("findings?closed=true") if each["kind"] == "source_silent" and each["node"] == node.name]


def doubles(site: Server) -> int:
    """How often the server heard a report that it had taken before."""
    status, text = site.ask("/metrics")
    assert status == 200
    return sum(int(float(line.split()[-1])) for line in text.splitlines() if line.startswith("muster_") and "same" in line.split()[0])


def handles(site: Server) -> int:
    """Files and connections that the server holds."""
    assert site.process is not None
    return len(os.listdir(f"/proc/{site.process.pid}/fd"))


@pytest.mark.slow
def test_a_way_that_is_cut_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    with server(tmp_path / "server", stale_floor="3", settle="2", tick="0.2") as site, nodes(site, tmp_path, 2) as (lost, other):
        had, told = handles(site), list[str]()
        for cut in CUTS:
            lost.way.set(cut)
            began = time.monotonic()
            until(lambda: silent(site) == {lost.name}, f"{cut.value}: who is cut off is said to be silent")
            took = time.monotonic() - began
            until(lambda: lost.spool >= 3, f"{cut.value}: reports wait at the agent")
            assert silent(site) == {lost.name}, f"{cut.value}: and nobody else is"
            lost.way.set(Cut.OPEN)
            began = time.monotonic()
            until(lambda: not silent(site), f"{cut.value}: it is taken back when it is heard again")
            until(lambda: lost.spool <= 1, f"{cut.value}: what waited is delivered")
            told.append(f"{cut.value}: silent after {took:.1f} s, heard {time.monotonic() - began:.1f} s after")
        for node in (lost, other):
            whole(site, node, node.stopped(site))
        assert said(other, site) == []
        closed = said(lost, site)
        assert len(closed) >= len(CUTS)
        assert all(each["closed_at"] for each in closed)
        assert lost.way.lost > 0, "answers did vanish"
        assert doubles(site) > 0, "and what they were about was told once more"
        assert "Traceback" not in lost.agent.log + other.agent.log + site.log
        assert handles(site) <= had + 4
        print("; ".join(told))
