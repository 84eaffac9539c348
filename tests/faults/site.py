# SPDX-License-Identifier: Apache-2.0
"""A site for tests that break it: servers and agents as processes of their own, which can be killed, stopped and started again, and a way to ask them."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.store.looking import Looked, look

ROOT = Path(__file__).resolve().parents[2]
RUNS = max(1, int(os.environ.get("MUSTER_FAULT_RUNS") or 20))
"""How often something is killed; 200 by hand."""
PATIENCE = 60.0


def few(share: int, least: int = 2) -> int:
    """A part of the runs, where each takes longer."""
    return max(least, RUNS // share)


def until(holds: Callable[[], Any], what: str, patience: float = PATIENCE, every: float = 0.05) -> Any:
    """Waits for something to hold, and gives it."""
    end = time.monotonic() + patience
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < end, f"not within {patience:g} s: {what}"
        time.sleep(every)


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def plain(**more: str) -> dict[str, str]:
    """This environment without what Muster goes by."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "XDG_"))}
    return {**kept, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **more}


@dataclass
class Server:
    """One server of a site, as a process. ``settings`` are environment variables without their prefix."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    state: Path | None = None
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    program: Sequence[str] = ("-m", "muster")
    after: list[Callable[[], None]] = field(default_factory=list)
    """Done when it has ended."""

    @property
    def runtime(self) -> Path:
        """Where it says that it is there."""
        return self.folder / "run"

    @property
    def store(self) -> Path:
        """Its state folder."""
        return self.state or self.folder / "state"

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self.folder / "log").read_text(errors="replace")

    def begin(self) -> None:
        """Starts it, and does not wait."""
        self.folder.mkdir(parents=True, exist_ok=True)
        told = [*self.program, "server", "--port", "0", "--ingest-port", str(self.port), "--state", str(self.store), "--runtime", str(self.runtime)]
        environment = plain(HOME=str(self.folder), **{f"MUSTER_{name.upper()}": value for name, value in self.settings.items()})
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([sys.executable, *told], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)

    def start(self) -> Server:
        """Starts it, and returns when it answers."""
        self.begin()
        until(self._found, "the server says that it is there")
        return self

    def _found(self) -> dict[str, Any] | None:
        process = self.process
        assert process is not None
        assert process.poll() is None, f"the server ended with {process.returncode}: {self.log[-3000:]}"
        try:
            found: dict[str, Any] = json.loads((self.runtime / "server.json").read_text())
        except (OSError, ValueError):
            return None
        return found if found["pid"] == process.pid else None

    def kill(self) -> None:
        """Ends it as a power cut does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self) -> None:
        """Ends it in order."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
        while self.after:
            self.after.pop()()

    def ask(self, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None, timeout: float = 30) -> tuple[int, Any]:
        """Asks its API, as an admin, by the socket."""
        connection = http.client.HTTPConnection("muster", timeout=timeout)
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.settimeout(timeout)
            connection.sock.connect(str(self.runtime / "muster.sock"))
            raw = None if body is None else json.dumps(body).encode()
            connection.request("GET" if body is None else "POST", path, raw, {"content-type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            told = answer.read()
            found = json.loads(told) if told[:1] in (b"{", b"[") else told.decode()
            return answer.status, found
        finally:
            connection.close()

    def post(self, body: bytes) -> tuple[int, bytes]:
        """Posts a report as an agent of this machine does."""
        connection = http.client.HTTPConnection("muster", timeout=30)
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(str(self.runtime / "muster.sock"))
            connection.request("POST", "/api/v1/reports", body, {"content-type": "application/msgpack"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """What it answers; it must."""
        status, found = self.ask(f"/api/v1/{path}")
        assert status == 200, f"{path}: {status} {found}"
        return found

    def all(self, path: str) -> list[Any]:
        """All items of a list, page by page."""
        found: list[Any] = []
        after, sign = "", "&" if "?" in path else "?"
        while True:
            page = self.get(f"{path}{sign}limit=1000{f'&cursor={after}' if after else ''}")
            found += page["items"]
            after = page.get("next") or ""
            if not after:
                return found

    def ready(self) -> str:
        """What is not well; empty when it is ready. What is only noted is left out."""
        status, found = self.ask("/readyz")
        return "" if status == 200 else str(found.get("detail") or found)

    def join_token(self, uses: int = 50) -> str:
        """A token to join by, for any node."""
        status, found = self.ask("/api/v1/join-tokens", {"uses": uses, "lasts": 3600})
        assert status in (200, 201), found
        text: str = found["token"]
        return text

    def checked(self) -> Looked:
        """The store looked over, as `muster server check` does."""
        return look(self.settings.get("database") or self.store / "roll.sqlite")

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        assert self.process is not None
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def threads(self) -> int:
        """Its threads now."""
        assert self.process is not None
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))


@contextmanager
def server(folder: Path, state: Path | None = None, **settings: str) -> Iterator[Server]:
    """A server that runs, and is gone afterwards."""
    made = Server(folder, settings, state)
    try:
        yield made.start()
    finally:
        made.end()


@dataclass
class Agent:
    """An agent as a process; ``program`` is what is run."""

    folder: Path
    environment: Mapping[str, str]
    program: Sequence[str] = ("-m", "muster", "agent")
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it in a group of its own."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.program],
                env=plain(HOME=str(self.folder), **self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Ends it and all its processes as a power cut does."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self.folder / "log").read_text(errors="replace")
