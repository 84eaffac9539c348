# SPDX-License-Identifier: Apache-2.0
"""How an agent starts on a state folder that it cannot use, and how it ends: real processes, with the documented exit codes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collect.test_delivery import report
from tests.collect.world import Hands
from tests.interfaces.agent.test_agent import Listener

from muster.interfaces.cli.exits import CONFLICT, OK, UNREACHABLE
from muster.wire.report import SCHEMA, pack

NOWHERE = "127.0.0.1:9"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A recorded machine that tells its name."""
    folder = tmp_path / "machine"
    folder.mkdir()
    (folder / "machine.toml").write_text('about = "one"\n[node]\nname = "n1"\n[[captures]]\nsource = "node.files"\nformat = "node-files"\nfile = "node.txt"\n')
    (folder / "node.txt").write_text("/proc/sys/kernel/hostname: n1\n")
    return folder


@pytest.fixture
def once(tmp_path: Path, machine: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs an agent once on the folder ``state``."""

    def run(*before: str, server: str = NOWHERE) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "muster.interfaces.agent", "--once", "--machine", str(machine), "--state", str(tmp_path / "state"), "--server", server]
        return subprocess.run([*before, *command], capture_output=True, text=True, timeout=60, check=False)

    return run


def newer(folder: Path) -> None:
    """A report that a newer Muster left."""
    made = report(Hands(), 1)
    made.schema = SCHEMA + 1
    folder.mkdir(parents=True)
    (folder / "0000000000000001-l.report").write_bytes(pack(made))


def test_a_spool_of_a_newer_muster(tmp_path: Path, once: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    newer(tmp_path / "state" / "spool")
    done = once()

    assert done.returncode == CONFLICT
    assert f"muster: {tmp_path}/state/spool holds reports of a newer Muster (schema {SCHEMA + 1}; this one writes {SCHEMA})\n" in done.stderr
    assert "move them away" in done.stderr
    assert [each.name for each in (tmp_path / "state" / "spool").iterdir()] == ["0000000000000001-l.report"]
    assert "Traceback" not in done.stderr


def test_a_state_folder_that_another_agent_holds(tmp_path: Path, once: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    (tmp_path / "state").mkdir()
    with (tmp_path / "state" / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = once()

    assert (done.returncode, done.stdout) == (CONFLICT, "")
    assert done.stderr.startswith(f"muster: another agent uses {tmp_path}/state\n  stop it, ")


@pytest.mark.parametrize("which", ["state", "state/spool"])
def test_a_folder_that_is_none(tmp_path: Path, once: Callable[..., subprocess.CompletedProcess[str]], which: str) -> None:
    (tmp_path / which).parent.mkdir(exist_ok=True)
    (tmp_path / which).write_text("")
    done = once()

    assert done.returncode == UNREACHABLE
    assert f"muster: {tmp_path / which}: it is no folder\n  name another folder with --state or MUSTER_STATE" in done.stderr


def test_a_disk_that_takes_nothing(tmp_path: Path, once: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    full = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")
    done = once(*full)

    assert done.returncode == UNREACHABLE
    assert f"reports cannot be written to {tmp_path}/state/spool" in done.stderr
    assert f"muster: reports are lost: {tmp_path}/state/spool cannot be written, and the server did not take them: " in done.stderr
    assert "make room there" in done.stderr
    assert not list((tmp_path / "state").rglob("*.part"))

    server = Listener(tmp_path / "muster.sock")
    done = once(*full, server=str(tmp_path / "muster.sock"))
    server.shutdown()
    server.server_close()
    assert done.returncode == OK, "a server that answers gets them all the same"
    assert server.got


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_agent_that_waits_at_once(tmp_path: Path, machine: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "muster.interfaces.agent", "--machine", str(machine), "--state", str(tmp_path / "state"), "--server", NOWHERE]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as agent:
        end = time.monotonic() + 20
        while not list((tmp_path / "state").rglob("*.report")) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.5)
        began = time.monotonic()
        os.kill(agent.pid, number)
        code = agent.wait(10)
        took = time.monotonic() - began

    assert code == 0
    assert took < 1.5, "it does not sleep on"
    assert list((tmp_path / "state" / "spool").glob("*.report")), "what waits is kept"
