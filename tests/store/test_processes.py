# SPDX-License-Identifier: Apache-2.0
"""Of a process that took something it is known whether it still is, where that can be known at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.store import processes

ROOT = Path(__file__).resolve().parents[2]
TELL = "import sys; from muster.store.processes import mark; print(mark(), flush=True); sys.stdin.read()"


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """A process that tells its mark and stays."""
    words = [sys.executable, "-c", TELL]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT / "src")}) as process:
        yield process
        process.kill()


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_process_is_gone_once_it_was_killed_and_not_before(other: subprocess.Popen[str]) -> None:
    mark = told(other)
    assert mark.split()[2] == str(other.pid)
    assert not processes.gone(mark)
    assert not processes.gone(processes.mark())

    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert processes.gone(mark), "it has ended, though nobody has fetched it"
    other.wait()
    assert processes.gone(mark)


def test_its_number_may_be_anothers_by_now() -> None:
    here = processes.mark().split()
    assert processes.gone(" ".join([*here[:3], "1"]))


@pytest.mark.parametrize("place", [0, 1])
def test_nothing_is_known_of_another_machine_or_another_space_of_processes(other: subprocess.Popen[str], place: int) -> None:
    words = told(other).split()
    other.kill()
    other.wait()
    words[place] += "0"
    assert not processes.gone(" ".join(words))


@pytest.mark.parametrize("mark", ["", " ", "a b", "a b c d", "process 5 on vm", f"{10**30} 7"])
def test_what_is_no_mark_says_nothing(mark: str) -> None:
    assert not processes.gone(mark)
    here = processes.mark().split()
    assert not processes.gone(" ".join([*here[:2], mark]))


def test_somebody_elses_process_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(number: int, signal: int) -> None:
        del number, signal
        raise PermissionError

    here = processes.mark().split()
    monkeypatch.setattr(os, "kill", kill)
    assert not processes.gone(" ".join([*here[:3], "1"]))
