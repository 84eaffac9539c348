# SPDX-License-Identifier: Apache-2.0
"""The servers of a benchmark as processes that it starts and ends itself, ours and others, and what they cost by /proc."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 60.0
POSTGRES = Path("/usr/lib/postgresql/15/bin")


def free_port() -> int:
    """A port on loopback that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def family(pid: int) -> list[int]:
    """The process and all below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents.setdefault(int((entry / "stat").read_text().rpartition(")")[2].split()[1]), []).append(int(entry.name))
            except (OSError, IndexError, ValueError):
                continue
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        left += parents.get(found[-1], [])
    return found


def seconds(pids: Sequence[int]) -> float:
    """Seconds of processor time of these processes, their ended children included."""
    total = 0
    for pid in pids:
        try:
            told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(each) for each in told[11:15])
    return total / TICKS


def memory(pids: Sequence[int]) -> tuple[float, float]:
    """Resident and proportional memory of these processes together, MiB."""
    resident = proportional = 0
    for pid in pids:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                name, _, rest = line.partition(":")
                if name == "Rss":
                    resident += int(rest.split()[0])
                elif name == "Pss":
                    proportional += int(rest.split()[0])
        except OSError:
            continue
    return resident / 1024, proportional / 1024


@dataclass
class Peer:
    """A server under load."""

    name: str
    port: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    kind: str = "reports"
    tls: str = ""
    tokens: str = ""
    log: str = ""
    beside: list[Peer] = field(default_factory=list)
    """Servers that it needs; what they cost is its cost."""

    def pids(self) -> list[int]:
        """All its processes."""
        return [each for peer in (self, *self.beside) for process in peer.processes for each in family(process.pid)]

    def cpu(self) -> float:
        """Seconds so far."""
        return seconds(self.pids())

    def parts(self) -> dict[str, Peer]:
        """It alone, and each of those beside it alone, by name."""
        return {name: Peer(name, each.port, each.processes) for name, each in (("server", self), *((each.name, each) for each in self.beside))}

    def stop(self) -> None:
        """Ends what was started here, and nothing else."""
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def environment(**more: str) -> dict[str, str]:
    """Of children: our code, with its bytecode kept."""
    return {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "PYTHONDONTWRITEBYTECODE": "", **more}


def _ready(peer: Peer, url: str) -> Peer:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if any(process.poll() is not None for process in peer.processes):
            break
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return peer
        except OSError:
            time.sleep(0.1)
    peer.stop()
    raise SystemExit(f"{peer.name} does not start; its log: {peer.log}")


def counting(certificate: str = "", authority: str = "") -> Peer:
    """Our listener with a writer that only counts."""
    port = free_port()
    command = [sys.executable, str(HERE / "listener.py"), "--port", str(port), *(["--certificate", certificate] if certificate else [])]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return Peer("listener alone", port, [process], tls=authority)


def victoria_metrics(folder: Path) -> Peer:
    """VictoriaMetrics with an empty store."""
    binary = shutil.which("victoria-metrics") or shutil.which("victoria-metrics-prod")
    if binary is None:
        raise SystemExit("victoria-metrics is not installed (Debian: victoria-metrics)")
    port, log = free_port(), folder / "victoria-metrics.log"
    command = [
        binary,
        f"-storageDataPath={folder / 'vm'}",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-retentionPeriod=1",
        "-http.idleConnTimeout=15m",
        "-http.connTimeout=24h",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    return _ready(Peer("VictoriaMetrics", port, [process], kind="prometheus", log=str(log)), f"http://127.0.0.1:{port}/health")


def muster(folder: Path, options: Sequence[str], settings: dict[str, str], port: int) -> Peer:
    """`muster server` with an empty store in the folder, as a user starts it; ``options`` are further words of its command line."""
    runtime, log = folder / "run", folder / "server.log"
    runtime.mkdir(mode=0o700)
    words = ["--state", str(folder / "state"), "--runtime", str(runtime), "--port", "0", *options]
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "muster", "server", *words], env=environment(**settings), stdout=out, stderr=out)
    peer = Peer("muster server", port, [process], log=str(log))
    until = time.monotonic() + PATIENCE
    while not (runtime / "server.json").exists():
        if process.poll() is not None or time.monotonic() > until:
            peer.stop()
            raise SystemExit(f"muster server does not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
    return peer


def join_token(folder: Path, uses: int) -> tuple[str, str]:
    """A token by which so many nodes may join the server in the folder, and the fingerprint of its authority."""
    command = [sys.executable, "-m", "muster", "agent", "token", "create", "--uses", str(uses), "-o", "json"]
    told = json.loads(subprocess.run(command, env=environment(MUSTER_RUNTIME=str(folder / "run")), check=True, stdout=subprocess.PIPE).stdout)
    return told["token"], told["authority"]


def postgresql(folder: Path) -> tuple[Peer, str]:
    """PostgreSQL with an empty cluster in the folder, as its own user where we are root, and the URL of its database."""
    data, port, log = folder / "postgres", free_port(), folder / "postgres.log"
    data.mkdir(mode=0o700)
    other = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if other:
        folder.chmod(0o755)
        shutil.chown(data, "postgres", "postgres")
    log.touch()
    subprocess.run([*other, POSTGRES / "initdb", "-D", data, "-A", "trust", "-U", "muster", "-E", "UTF8"], check=True, stdout=subprocess.DEVNULL)
    words = ["-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", "", "-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"]
    with log.open("wb") as out:
        process = subprocess.Popen([*other, POSTGRES / "postgres", *words], stdout=out, stderr=out)
    peer = Peer("PostgreSQL", port, [process], log=str(log))
    until = time.monotonic() + PATIENCE
    while subprocess.run([POSTGRES / "pg_isready", "-h", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, check=False).returncode:
        if process.poll() is not None or time.monotonic() > until:
            peer.stop()
            raise SystemExit(f"PostgreSQL does not start; its log: {log}")
        time.sleep(0.1)
    subprocess.run([POSTGRES / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "muster", "muster"], check=True)
    return peer, f"postgresql://muster@127.0.0.1:{port}/muster"
