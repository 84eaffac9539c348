# SPDX-License-Identifier: Apache-2.0
"""A driver's library hangs in the worker processes of several agents at once: that is said, workers are ended, the other library is read on, nothing grows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.faults.libraries import HANGS, READS, Boards, resident, unkillable, workers
from tests.faults.site import Agent, Server, server, until

from muster.collect.weigh import children

NODES = 4
MIB = 2**20


@contextmanager
def agents(site: Server, boards: Boards) -> Iterator[list[Agent]]:
    """As many as there are nodes; in every second one the call that hangs is deaf to TERM."""
    with ExitStack() as held:
        found = [boards.agent(number, str(site.runtime / "muster.sock"), deaf=number % 2 == 1) for number in range(NODES)]
        for each in found:
            held.callback(each.kill)
            each.start()
        until(lambda: len(site.all("cards")) == 4 * NODES, f"all cards are there: {found[0].log[-500:] if found[0].log else ''}")
        until(lambda: all(len(workers(each)) == 2 for each in found), "each agent has a worker for each library")
        yield found


def sources(site: Server, source: str) -> dict[str, dict[str, Any]]:
    """That source of every node, by the node's name."""
    return {each["node"]: each for each in site.all("sources") if each["source"] == source}


def failed(site: Server) -> set[tuple[str, str]]:
    """Nodes of which it is said that one of the two libraries fails, and which. The machines have no bus, which is another matter."""
    kinds, ours = ("source_failed", "source_hung", "source_silent"), (HANGS, READS)
    found = ((each["node"], each["source"]) for each in site.all("findings") if each["kind"] in kinds and each["closed_at"] is None)
    return {(node, source) for node, source in found if source in ours}


@pytest.mark.slow
def test_a_library_that_hangs_in_the_workers_of_all_agents(tmp_path: Path) -> None:
    boards = Boards(tmp_path / "boards").build()
    names = {f"boards-{number}" for number in range(NODES)}
    with server(tmp_path / "server", settle="2", stale_floor="20") as site, agents(site, boards) as all_:
        before, weights = [workers(each) for each in all_], [weight(each) for each in all_]
        boards.at.touch()
        began = time.monotonic()
        until(lambda: failed(site) == {(name, HANGS) for name in names}, "it is said of that source of every node, and of no other")
        took = time.monotonic() - began
        told = sources(site, HANGS)
        assert {each["outcome"] for each in told.values()} == {"timed_out"}, told
        assert all("boardlib:read" in each["detail"] for each in told.values()), told

        seen: list[dict[int, int]] = []
        for _ in range(16):
            time.sleep(0.5)
            seen += [workers(each) for each in all_]
            assert failed(site) == {(name, HANGS) for name in names}
            assert max(each["age"] for each in sources(site, READS).values()) < 15, "the other library is read on"
        calm(all_, seen, weights)
        kept = [set(was) & set(now) for was, now in zip(before, seen[-NODES:], strict=True)]
        assert [len(each) for each in kept] == [1] * NODES, "the workers that hung were ended, and those of the other library were left alone"

        boards.at.unlink()
        until(lambda: not failed(site), "it is over")
        assert {each["outcome"] for each in sources(site, HANGS).values()} == {"devices"}
        assert len(site.all("cards")) == 4 * NODES
        assert all("Traceback" not in each.log for each in all_)
        print(
            f"{NODES} agents: said of all after {took:.1f} s; agents {max(map(resident, all_)) / MIB:.1f} MiB, workers {heaviest(seen) / MIB:.1f} MiB at most"
        )


def heaviest(seen: list[dict[int, int]]) -> int:
    """The most memory that a worker was seen to have."""
    return max(size for each in seen for size in each.values())


def weight(agent: Agent) -> tuple[int, int]:
    """Bytes of an agent, and how many processes it has."""
    assert agent.process is not None
    return resident(agent), len(list(children(agent.process.pid)))


def calm(all_: list[Agent], seen: list[dict[int, int]], weights: list[tuple[int, int]]) -> None:
    """Agents and workers are as few and as small as they were, but for the 8 MiB that each hanging call takes."""
    assert max(len(each) for each in seen) <= 2, "never a second worker beside one that hangs"
    assert heaviest(seen) < 40 * MIB
    for agent, (size, processes) in zip(all_, weights, strict=True):
        assert agent.process is not None
        assert agent.process.poll() is None
        assert resident(agent) < size + 8 * MIB
        assert weight(agent)[1] <= processes, "no processes are left behind"


@pytest.mark.slow
def test_workers_that_not_even_kill_ends(tmp_path: Path) -> None:
    """As when a call waits within the driver: the source is said to hang, no second worker is started, and it ends with the hang."""
    boards = Boards(tmp_path / "boards").build()
    names = {f"boards-{number}" for number in range(NODES)}
    with server(tmp_path / "server", settle="2", stale_floor="20") as site, agents(site, boards) as all_:
        before, weights, seen = [workers(each) for each in all_], [weight(each) for each in all_], list[dict[int, int]]()
        with unkillable(pid for each in before for pid in each):
            boards.at.touch()
            until(lambda: {each["state"] for each in sources(site, HANGS).values()} == {"hung"}, "that source of every node is said to hang")
            assert failed(site) == {(name, HANGS) for name in names}
            for _ in range(16):
                time.sleep(0.5)
                seen += [workers(each) for each in all_]
                assert max(each["age"] for each in sources(site, READS).values()) < 15, "the other library is read on"
            calm(all_, seen, weights)
            assert {each["state"] for each in sources(site, HANGS).values()} == {"hung"}
            boards.at.unlink()
        until(lambda: not failed(site), "it is over when the processes are gone at last")
        assert {each["state"] for each in sources(site, HANGS).values()} == {"ok"}
        assert all("Traceback" not in each.log for each in all_)
