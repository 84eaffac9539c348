# SPDX-License-Identifier: Apache-2.0
"""What the agent weighs on a node of eight cards: memory and processor time of all its processes, beside an exporter that reads the same stand-in for a driver.

``python bench/agent.py [--rounds 60] [--cadence 1]``. The stand-in is compiled with gcc; the exporter is installed into an environment of its own under /tmp.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SRC = HERE.parent / "src"
CARDS = 8
PEER_HOME = Path(tempfile.gettempdir()) / "muster-bench-peer"
PEER_PACKAGES = ("nvitop>=1.5", "nvitop-exporter>=1.5")
MEMORY_LIMIT, CPU_LIMIT, MEMORY_RATIO = 48.0, 6.0, 2.0
WARM = 12
"""Rounds that are not measured, as far as they do not take too long."""


@dataclass(frozen=True)
class Weight:
    """What one program took: MiB of all its processes, milliseconds of processor time per round, and its processes one by one."""

    memory: float
    cpu: float
    parts: list[tuple[str, float, float]]


def processes(pid: int) -> Iterator[int]:
    """The process and all its children."""
    yield pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from processes(int(child))


def proportion(pid: int) -> float:
    """MiB of a process, shared pages in part."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def named(pid: int) -> str:
    """What a process is, in a word."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        return next((word for word in reversed(words) if word and not word.startswith("-")), "?").rpartition("/")[2]
    return "gone"


def own(pid: int) -> float:
    """Seconds of processor time of one process by its own clock."""
    with contextlib.suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2)
    return 0.0


def spent(pid: int) -> float:
    """Seconds of processor time of all processes: their own clocks, and what the system says of children that ended."""
    total = 0.0
    for each in processes(pid):
        with contextlib.suppress(OSError):
            total += own(each)
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return total


def stand_in(folder: Path) -> None:
    """Compiles the library, and writes a tool and the node's files."""
    library = folder / "lib"
    library.mkdir()
    command = ["gcc", "-shared", "-fPIC", "-O2", "-Wl,-soname,libnvidia-ml.so.1", "-o", str(library / "libnvidia-ml.so.1"), str(HERE / "stub" / "library.c")]
    subprocess.run(command, check=True)
    tool = library / "stub-board"
    tool.write_text("#!/bin/sh\necho stub-board SB0047 31.5\n")
    tool.chmod(0o755)
    packages = folder / "packages"
    (packages / "stub_board-0.dist-info").mkdir(parents=True)
    (packages / "stub_board-0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: stub-board\nVersion: 0\n")
    (packages / "stub_board-0.dist-info" / "entry_points.txt").write_text("[muster.adapters]\nstub_board = stub_board\n")
    shutil.copytree(HERE / "stub" / "board", packages / "stub_board")
    node_files(folder / "root")


def node_files(root: Path) -> None:
    """A small tree of a node with eight cards on its bus; device and maker are those that the stand-in tells."""
    found = re.search(r"into->id = 0x([0-9a-f]{4})([0-9a-f]{4})", (HERE / "stub" / "library.c").read_text())
    assert found is not None
    device, vendor = found.groups()
    for path, text in {
        "proc/sys/kernel/hostname": "bench-1", "proc/sys/kernel/osrelease": "6.1.0", "etc/machine-id": "5ac0ffee" * 4,
        "proc/meminfo": "MemTotal:       1056000000 kB", "sys/devices/system/cpu/online": "0-127",
    }.items():  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")
    for place in range(CARDS):
        card = root / f"sys/bus/pci/devices/0000:{0x1A + place:02x}:00.0"
        card.mkdir(parents=True)
        values = {"class": "0x030200", "vendor": f"0x{vendor}", "device": f"0x{device}", "subsystem_vendor": f"0x{vendor}", "subsystem_device": "0x16c1"}
        more = {"revision": "0xa1", "numa_node": str(place // 4), "current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe"}
        for name, text in {**values, **more, "current_link_width": "16", "max_link_width": "16"}.items():
            (card / name).write_text(text + "\n")


def until(path: Path, seconds: float = 20.0) -> str:
    """The text of a file, once it is there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if text := path.read_text():
                return text
        time.sleep(0.05)
    raise SystemExit(f"{path} did not come")


def ours(folder: Path, cadence: float, rounds: int) -> tuple[Weight, dict[str, object]]:
    """The agent, after it is warm, for so many rounds; and what the server got meanwhile."""
    base = {**os.environ, "PYTHONPATH": f"{SRC}:{folder / 'packages'}"}
    sink = subprocess.Popen([sys.executable, str(HERE / "stub" / "sink.py"), str(folder / "port"), str(folder / "count")], env=base)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("MUSTER_", "PYTHONDONT"))},
        "PYTHONPATH": f"{SRC}:{folder / 'packages'}", "MUSTER_ROOT": str(folder / "root"), "MUSTER_SEARCH": str(folder / "lib"),
        "MUSTER_ADAPTERS": "stub_board", "MUSTER_CADENCE": str(cadence), "MUSTER_STATE": str(folder / "state"),
        "MUSTER_SERVER": f"http://127.0.0.1:{until(folder / 'port')}",
    }  # fmt: skip
    agent = subprocess.Popen([sys.executable, "-m", "muster.interfaces.agent"], env=environment)
    try:
        time.sleep(warming(cadence))
        before, first, ones = read(folder), spent(agent.pid), {pid: own(pid) for pid in processes(agent.pid)}
        time.sleep(rounds * cadence)
        after, last = read(folder), spent(agent.pid)
        parts = [(named(pid), proportion(pid), (own(pid) - ones.get(pid, 0.0)) * 1000 / rounds) for pid in processes(agent.pid)]
        done = library_rounds(after) - library_rounds(before)
        if done < rounds * 0.9:
            raise SystemExit(f"only {done} of {rounds} rounds arrived: {after}")
        return Weight(sum(part[1] for part in parts), (last - first) / done * 1000, parts), after
    finally:
        for process in (agent, sink):
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def warming(cadence: float) -> float:
    """Seconds that are not measured: the first rounds import and register."""
    return max(min(WARM * cadence, 40.0), 8.0)


def read(folder: Path) -> dict[str, object]:
    """What the server counted so far."""
    while True:
        with contextlib.suppress(ValueError):
            return dict(json.loads(until(folder / "count")))


def library_rounds(count: dict[str, object]) -> int:
    """Rounds of the source that lists the eight cards by the library."""
    rounds, cards = count["rounds"], count["cards"]
    assert isinstance(rounds, dict)
    assert isinstance(cards, dict)
    return max((rounds[source] for source, number in cards.items() if number == CARDS and "sysfs" not in source), default=0)


def peer(folder: Path, cadence: float, rounds: int) -> Weight:
    """The exporter on the same library, scraped once a round."""
    python = PEER_HOME / "bin" / "python"
    if not python.exists():
        venv.create(PEER_HOME, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PEER_PACKAGES], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder / "lib")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [str(PEER_HOME / "bin" / "nvitop-exporter"), "--bind-address", "127.0.0.1", "--port", str(port), "--interval", str(cadence)]
    exporter = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        scrapes, first = 0, 0.0
        warm = round(warming(cadence) / cadence)
        for number in range(warm + rounds):
            time.sleep(cadence)
            if number == warm:
                scrapes, first = 0, spent(exporter.pid)
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                scrapes += answer.read().count(b"Stand-in") > CARDS
        if scrapes < rounds * 0.9:
            raise SystemExit(f"the exporter answered {scrapes} of {rounds} times")
        parts = [(named(pid), proportion(pid), 0.0) for pid in processes(exporter.pid)]
        return Weight(sum(part[1] for part in parts), (spent(exporter.pid) - first) / scrapes * 1000, parts)
    finally:
        exporter.send_signal(signal.SIGTERM)
        exporter.wait(10)


def main() -> int:
    """Prints each figure beside its limit; 1 when one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--cadence", type=float, default=1.0, help="seconds between two rounds")
    parser.add_argument("--alone", action="store_true", help="leave the exporter out")
    told = parser.parse_args()
    if shutil.which("gcc") is None:
        print("skipped: no C compiler for the stand-in of the driver")
        return 0
    compileall.compile_dir(str(SRC), quiet=1)
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name:
        folder = Path(name)
        stand_in(folder)
        weight, count = ours(folder, told.cadence, told.rounds)
        print(f"agent, {CARDS} cards, a round each {told.cadence:g} s, {told.rounds} rounds after {warming(told.cadence):g} s of warming up")
        for part, size, cpu in weight.parts:
            print(f"  {part:40} {size:6.1f} MiB {cpu:6.2f} ms a round")
        print(f"  reports {count['reports']}, connections {count['connections']}, rounds {count['rounds']}, times that facts differed {count['changed']}")
        figures = [("memory, MiB PSS", weight.memory, MEMORY_LIMIT), ("processor, ms a round", weight.cpu, CPU_LIMIT)]
        if not told.alone:
            other = peer(folder, told.cadence, told.rounds)
            print(f"exporter (peer): {other.memory:.1f} MiB PSS, {other.cpu:.1f} ms a round")
            figures += [("memory, times the peer's", weight.memory / other.memory, MEMORY_RATIO), ("processor, times the peer's", weight.cpu / other.cpu, 1.0)]
    missed = 0
    for what, value, limit in figures:
        missed += value > limit
        print(f"{what:30} {value:7.2f}  limit {limit:6.2f}  {'ok' if value <= limit else 'MISSED'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
