# SPDX-License-Identifier: Apache-2.0
"""A node leaves while its agent runs: the process reports no more at once, also when the server could not be told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.wiring.gatehouse import gatehouse

from muster.wire.report import NodeDoc
from muster.wiring.joining import join, leave, status

MACHINE = """
about = "one"
[node]
name = "n1"
[[captures]]
source = "node.files"
format = "node-files"
file = "node.txt"
[[captures]]
source = "kernel_log.kmsg"
format = "kernel-log"
file = "log.txt"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    folder = tmp_path / "machine"
    folder.mkdir()
    (folder / "machine.toml").write_text(MACHINE)
    (folder / "node.txt").write_text("/proc/sys/kernel/hostname: n1\n")
    (folder / "log.txt").write_text("[   12.345678] pcieport 0000:5d:01.0: pciehp: Slot(23): Link Down\n")
    return folder


def until(done: Callable[[], object], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(done())


def test_it_reports_no_more_and_says_so(tmp_path: Path, machine: Path) -> None:
    state = tmp_path / "state"
    with gatehouse(tmp_path / "gate") as house:
        join(state, house.url, house.authority.fingerprint, house.mint(), NodeDoc(name="n1"))
        command = [sys.executable, "-m", "muster.interfaces.agent", "--machine", str(machine), "--state", str(state)]
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "src", "MUSTER_CADENCE": "1"}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as agent:
            try:
                assert until(lambda: status(state)["delivered_at"])
                assert status(state)["process"] == agent.pid
                house.lose = "/v1/leave"
                assert "does not answer" in str(leave(state, tell=True)[1])
                assert until(lambda: status(state)["wrong"])
                told = status(state)
                assert (told["joined"], told["process"], told["wrong"]) == (False, agent.pid, [f"this node has left {house.url}"])
                delivered = told["delivered_at"]
                assert until(lambda: len(list((state / "spool").glob("*.report"))) > 1), "it reads on, and what it reads waits"
                assert json.loads((state / "delivery.json").read_text())["delivered_at"] == delivered
            finally:
                agent.send_signal(signal.SIGTERM)
                said = agent.communicate(timeout=20)[1]
    assert agent.returncode == 0
    assert said.count("nothing is reported any more: this node has left") == 1
    assert "stop the agent; or join again" in said
    assert "Traceback" not in said
