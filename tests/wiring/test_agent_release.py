# SPDX-License-Identifier: Apache-2.0
"""A real agent on a library of ours: it reports, keeps its state, and lets go of the library when it is asked to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.needs import lacks

from muster.collect.weigh import children
from muster.domain.model.errors import NotFound
from muster.wiring.release import release

SRC = Path(__file__).resolve().parents[2] / "src"
LIBRARY = r"""
int held_count(void) { return 1; }
"""
ADAPTER = """
from muster.domain.model.gather import Gather
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Outcome

def recognise(head):
    return None

def interpret(captures, models):
    gather = Gather()
    gather.card("one").named(serial="77x1")
    return Interpretation(outcome=Outcome.DEVICES, complete=True, observations=gather.observations())
"""
READ = """
import ctypes, os
lib = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libheld.so"))
def read():
    return {"cards": lib.held_count()}
"""
MANIFEST = 'name = "held"\ntitle = "Held"\ntier = "seen"\npci_vendors = []\nwords = []\n[formats]\nheld-json = "json"\n'
SOURCES = """
[[source]]
id = "held.library"
reader = "library"
reads = [{ locator = ["heldlib:read"], format = "held-json" }]
cadence_s = 1
deadline_s = 5
provides = ["power.draw"]
"""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """An agent with one library open, and its state folder."""
    if shutil.which("gcc") is None:
        lacks("no C compiler")
    place = tmp_path / "packages"
    for folder in (place / "held", place / "held-0.dist-info", tmp_path / "lib"):
        folder.mkdir(parents=True)
    (place / "held" / "__init__.py").write_text(ADAPTER)
    (place / "held" / "manifest.toml").write_text(MANIFEST)
    (place / "held" / "sources.toml").write_text(SOURCES)
    (place / "held-0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: held\nVersion: 0\n")
    (place / "held-0.dist-info" / "entry_points.txt").write_text("[muster.adapters]\nheld = held\n")
    (tmp_path / "lib" / "heldlib.py").write_text(READ)
    (tmp_path / "held.c").write_text(LIBRARY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "lib" / "libheld.so"), str(tmp_path / "held.c")], check=True)
    (tmp_path / "root" / "proc").mkdir(parents=True)
    state = tmp_path / "state"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{SRC}:{place}",
        "MUSTER_ADAPTERS": "held",
        "MUSTER_SEARCH": str(tmp_path / "lib"),
        "MUSTER_ROOT": str(tmp_path / "root"),
        "MUSTER_SERVER": "http://127.0.0.1:9",
    }
    process = subprocess.Popen([sys.executable, "-m", "muster.interfaces.agent", "--state", str(state)], env=environment)
    try:
        yield process, state
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)


def holders(pid: int) -> set[int]:
    """Processes of the agent that have the library open."""
    found = set()
    for each in (pid, *children(pid)):
        try:
            if "libheld.so" in Path(f"/proc/{each}/maps").read_text():
                found.add(each)
        except OSError:
            continue
    return found


def until(done: Callable[[], object], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if done():
            return True
        time.sleep(0.05)
    return False


def test_it_lets_go_on_demand_and_comes_back(agent: tuple[subprocess.Popen[bytes], Path]) -> None:
    process, state = agent
    assert until(lambda: holders(process.pid))
    before = holders(process.pid)

    assert "held" in release(state, 3)
    assert holders(process.pid) == set()
    time.sleep(1.5)
    assert holders(process.pid) == set()
    assert until(lambda: holders(process.pid))
    assert not before & holders(process.pid)
    os.kill(process.pid, signal.SIGUSR1)
    assert until(lambda: not holders(process.pid))
    assert process.poll() is None


def test_it_notes_how_delivery_stands_and_what_waits(agent: tuple[subprocess.Popen[bytes], Path]) -> None:
    _, state = agent
    assert until(lambda: (state / "delivery.json").exists() and json.loads((state / "delivery.json").read_text())["trouble"], 30)
    told = json.loads((state / "delivery.json").read_text())

    assert "127.0.0.1:9" in told["trouble"]
    assert told["spool_reports"] >= 1
    assert list((state / "spool").glob("*.report"))
    assert (state / "delivery.json").stat().st_mode & 0o077 == 0 or (state.stat().st_mode & 0o077 == 0)


def test_where_no_agent_runs_there_is_nothing_to_let_go(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no agent runs"):
        release(tmp_path, 1)
    (tmp_path / "lock").write_text("1\n")
    with pytest.raises(NotFound):
        release(tmp_path, 1)
