# SPDX-License-Identifier: Apache-2.0
"""Two made-up vendors with a library each, built in C, for agents that read them by worker processes as they read a driver's.

While the file that HANG_AT names is there, a call into the first one does not come back: it pauses for ever, and one of two ways ignores TERM.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.site import ROOT, Agent
from tests.needs import lacks

from muster.collect.weigh import children

LIBRARY = r"""
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int board_count(void) { return 2; }
int board_read(const char *at, int deaf) {
    static char *kept;
    if (access(at, F_OK) == 0) {
        kept = realloc(kept, 8 << 20);
        for (int each = 0; each < 8 << 20; each += 4096) kept[each] = 1;
        if (deaf) signal(SIGTERM, SIG_IGN);
        for (;;) pause();
    }
    return 0;
}
"""
READ = """
import ctypes, os
lib = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libboard.so"))
def read(serial, at="", deaf=""):
    lib.board_read(at.encode(), int(deaf or 0))
    return {"serials": [f"{serial}-{each}" for each in range(lib.board_count())]}
"""
ADAPTER = """
import json
from muster.domain.model.gather import Gather
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Outcome

def recognise(head):
    return None

def interpret(captures, models):
    failed = [each for each in captures if each.failure]
    if failed:
        return Interpretation(outcome=failed[0].failure, detail=failed[0].detail)
    gather = Gather()
    for each in captures:
        for serial in json.loads(each.payload)["serials"]:
            gather.card(serial).named(serial=serial)
    return Interpretation(outcome=Outcome.DEVICES, complete=True, observations=gather.observations())
"""
_TRACER = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
SEIZE = 0x4206
for pid in sys.argv[1:]:
    if libc.ptrace(SEIZE, ctypes.c_long(int(pid)), ctypes.c_void_p(), ctypes.c_void_p()):
        sys.exit(print(os.strerror(ctypes.get_errno()), flush=True))
print("held", flush=True)
signal.pause()
"""
MANIFEST = 'name = "{name}"\ntitle = "{name}"\ntier = "seen"\npci_vendors = []\nwords = []\n[formats]\n{name}-json = "json"\n'
SOURCE = """
[[source]]
id = "{name}.library"
reader = "library"
reads = [{{ locator = ["boardlib:read", {words}], format = "{name}-json" }}]
cadence_s = 1
deadline_s = 1
provides = ["product.name"]
"""
HANGS, READS = "hanging.library", "reading.library"


@dataclass
class Boards:
    """What the agents read: the library, and the file at whose being there calls hang."""

    folder: Path

    @property
    def at(self) -> Path:
        """While this is there, the calls of the first vendor hang."""
        return self.folder / "hang"

    def build(self) -> Boards:
        """Builds the library."""
        if shutil.which("gcc") is None:
            lacks("no C compiler")
        (self.folder / "lib").mkdir(parents=True)
        (self.folder / "board.c").write_text(LIBRARY)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(self.folder / "lib" / "libboard.so"), str(self.folder / "board.c")], check=True)
        (self.folder / "lib" / "boardlib.py").write_text(READ)
        return self

    def agent(self, number: int, server: str, *, deaf: bool) -> Agent:
        """The agent of a machine that has boards of both vendors and nothing else."""
        own = self.folder / f"n{number}"
        for name, words in (("hanging", f'"H{number}", "{self.at}", "{int(deaf)}"'), ("reading", f'"R{number}"')):
            _installed(own / "packages", name, words)
        kernel = own / "root" / "proc" / "sys" / "kernel"
        kernel.mkdir(parents=True)
        (kernel / "hostname").write_text(f"boards-{number}\n")
        (own / "root" / "etc").mkdir()
        (own / "root" / "etc" / "machine-id").write_text(f"{number:032x}\n")
        told = {
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT, own / "packages"))),
            "MUSTER_ADAPTERS": "hanging reading",
            "MUSTER_SEARCH": str(self.folder / "lib"),
            "MUSTER_ROOT": str(own / "root"),
            "MUSTER_SERVER": server,
        }
        return Agent(own, told, ("-m", "muster.interfaces.agent", "--state", str(own / "state")))


def _installed(place: Path, name: str, words: str) -> None:
    """An adapter as one that was installed from outside."""
    for folder in (place / name, place / f"{name}-0.dist-info"):
        folder.mkdir(parents=True)
    (place / name / "__init__.py").write_text(ADAPTER)
    (place / name / "manifest.toml").write_text(MANIFEST.format(name=name))
    (place / name / "sources.toml").write_text(SOURCE.format(name=name, words=words))
    (place / f"{name}-0.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n")
    (place / f"{name}-0.dist-info" / "entry_points.txt").write_text(f"[muster.adapters]\n{name} = {name}\n")


def workers(agent: Agent) -> dict[int, int]:
    """The processes that the agent started and that have the library open, and the bytes that each has in memory."""
    assert agent.process is not None
    found = {}
    for each in children(agent.process.pid):
        try:
            if "libboard.so" in Path(f"/proc/{each}/maps").read_text():
                found[each] = int(Path(f"/proc/{each}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
    return found


@contextmanager
def unkillable(pids: Iterable[int]) -> Iterator[None]:
    """While this holds, nobody sees these processes end, not even by KILL: as those look that wait within a driver. Their numbers are held by a tracer."""
    held = subprocess.Popen([sys.executable, "-c", _TRACER, *map(str, pids)], stdout=subprocess.PIPE)
    assert held.stdout is not None
    try:
        said = held.stdout.readline().strip()
        if said != b"held":
            lacks(f"processes cannot be held here: {said.decode()}")
        yield
    finally:
        held.kill()
        held.wait(10)
        held.stdout.close()


def resident(agent: Agent) -> int:
    """Bytes that the agent itself has in memory."""
    assert agent.process is not None
    return int(Path(f"/proc/{agent.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
