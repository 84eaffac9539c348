# SPDX-License-Identifier: Apache-2.0
"""What tests began ends with them, however they are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEST = """
import subprocess, sys, time
from pathlib import Path

def test_it():
    here = Path(__file__).parent
    sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
    plain, bare = subprocess.Popen(sleep), subprocess.Popen(sleep, env={"PATH": "/usr/bin:/bin"}, start_new_session=True)
    (here / "pids").write_text(f"{plain.pid} {bare.pid}")
    time.sleep(300)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_processes_of_tests_end_with_the_tests(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_configure as pytest_configure\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider", str(tmp_path / "test_it.py")]
    outer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path)
    told = until(lambda: (tmp_path / "pids").read_text() if (tmp_path / "pids").exists() else "")
    pids = [int(each) for each in told.split()]
    assert len(pids) == 2
    assert all(alive(each) for each in pids)
    outer.send_signal(number)
    outer.wait(20)
    until(lambda: "" if any(alive(each) for each in pids) else "ended")
    assert [each for each in pids if alive(each)] == []


def until(done: Callable[[], str]) -> str:
    end = time.monotonic() + 20
    while not (told := done()) and time.monotonic() < end:
        time.sleep(0.05)
    return told


def alive(pid: int) -> bool:
    """True while the process runs; one that only waits to be collected has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
