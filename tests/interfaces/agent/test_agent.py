# SPDX-License-Identifier: Apache-2.0
"""The agent's process: recorded machines, a server behind a socket, one agent per state folder, and how little it loads."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import msgspec
import pytest

from muster.domain.model.errors import Conflict, InputError, NotFound, Unavailable
from muster.interfaces.agent.__main__ import main
from muster.wire.report import AnswerDoc, ReportDoc, unpack
from muster.wiring.agent import Settings, eyes, run_agent

MACHINE = """
about = "a small node"
[node]
name = "small-1"
machine_id = "77aa88bb99cc00dd11ee22ff33aa44bb"
system = "SN-4711"
[[captures]]
source = "node.files"
format = "node-files"
locator = []
file = "node.txt"
[[captures]]
source = "kernel_log.kmsg"
format = "kernel-log"
locator = ["/dev/kmsg"]
file = "log.txt"
"""
LOG = "[   12.345678] pcieport 0000:5d:01.0: pciehp: Slot(23): Link Down\n"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A recorded machine with a node and a kernel log."""
    folder = tmp_path / "machine"
    folder.mkdir()
    (folder / "machine.toml").write_text(MACHINE)
    (folder / "node.txt").write_text("/proc/sys/kernel/osrelease: 6.1.0-7\n/sys/devices/system/cpu/online: 0-3\n")
    (folder / "log.txt").write_text(LOG)
    return folder


WHO = {"type": "urn:muster:problem:not_allowed", "code": "not_allowed", "detail": "who are you?"}


class Listener(socketserver.ThreadingUnixStreamServer):
    """A server on a socket: keeps reports, and gives the answers it is told to before it takes them."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        self.got: list[ReportDoc] = []
        self.first: list[tuple[int, AnswerDoc | dict[str, str]]] = []
        super().__init__(str(path), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    def do_POST(self) -> None:
        """A report."""
        listener = self.server
        assert isinstance(listener, Listener)
        report = unpack(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = listener.first.pop(0) if listener.first else (200, AnswerDoc("applied"))
        if status == 200:
            listener.got.append(report)
        body = msgspec.json.encode(answer)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        """A socket file has none."""
        return "socket"

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    """A server that listens."""
    server = Listener(tmp_path / "muster.sock")
    yield server
    server.shutdown()
    server.server_close()


def settings(tmp_path: Path, machine: Path) -> Settings:
    return Settings(server=str(tmp_path / "muster.sock"), machine=machine, state=tmp_path / "state")


def test_once_delivers_a_recorded_machine(tmp_path: Path, machine: Path, listener: Listener) -> None:
    assert run_agent(settings(tmp_path, machine), {}, once=True) == 0
    assert json.loads((tmp_path / "state" / "delivery.json").read_text())["delivered_at"] > 0, "`muster agent status` says when"

    listings = [each for report in listener.got for each in report.listings]
    assert {report.reporter for report in listener.got} == {"agent@small-1"}
    assert listener.got[0].node.machine_id == "77aa88bb99cc00dd11ee22ff33aa44bb"
    assert listener.got[0].node.system == "SN-4711"
    assert {each.source for each in listings} >= {"node.files", "kernel_log.kmsg"}
    assert [each.kind for report in listener.got for each in report.events] == ["hotplug"]


def test_the_same_events_when_it_is_read_again(tmp_path: Path, machine: Path, listener: Listener) -> None:
    for _ in range(2):
        run_agent(settings(tmp_path, machine), {}, once=True)
    ids = [each.id for report in listener.got for each in report.events]

    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_without_a_server_reports_wait_and_go_later(tmp_path: Path, machine: Path) -> None:
    with pytest.raises(Unavailable):
        run_agent(settings(tmp_path, machine), {}, once=True)
    server = Listener(tmp_path / "muster.sock")
    run_agent(settings(tmp_path, machine), {}, once=True)
    server.shutdown()
    server.server_close()

    assert len({report.incarnation for report in server.got}) == 2


def test_a_refused_report_is_dropped_and_told(tmp_path: Path, machine: Path, listener: Listener) -> None:
    listener.first.append((409, AnswerDoc("refused", "used before")))

    assert run_agent(settings(tmp_path, machine), {}, once=True) == 1
    assert not list((tmp_path / "state" / "spool").glob("*.report"))


def test_runs_until_it_is_told_to_stop(tmp_path: Path, machine: Path, listener: Listener) -> None:
    stop = threading.Event()
    agent = threading.Thread(target=run_agent, args=(settings(tmp_path, machine), {}), kwargs={"stop": stop})
    agent.start()
    end = time.monotonic() + 5
    while len(listener.got) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    with pytest.raises(Conflict):
        run_agent(settings(tmp_path, machine), {}, once=True)
    stop.set()
    agent.join(5)

    assert not agent.is_alive()
    assert len(listener.got) >= 2


def test_machines_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run_agent(Settings(machine=tmp_path / "none", state=tmp_path / "state"), {}, once=True)
    with pytest.raises(NotFound):
        eyes(tmp_path / "none")


def test_a_pile_of_captures_is_a_machine_too(tmp_path: Path) -> None:
    folder = tmp_path / "pile-7"
    folder.mkdir()
    (folder / "dmesg.txt").write_text(LOG)
    seen = eyes(folder)

    assert seen.node.name == "pile-7"
    assert [str(source.id) for each in seen.adapters for source in each.sources] == ["kernel_log.kmsg"]


def test_this_node(tmp_path: Path) -> None:
    """The node's own files are read below a root of our making."""
    kernel = tmp_path / "proc/sys/kernel"
    kernel.mkdir(parents=True)
    (kernel / "hostname").write_text("root-5\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("11223344556677889900aabbccddeeff\n")
    seen = eyes(root=str(tmp_path))
    seen.close()

    assert (seen.node.name, seen.node.machine_id) == ("root-5", "11223344556677889900aabbccddeeff")
    assert {str(source.id) for source in seen.streams} >= {"kernel_log.kmsg"}


def test_the_door_has_exit_codes(tmp_path: Path, machine: Path, listener: Listener, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["--once", "--machine", str(machine), "--state", str(tmp_path / "state")]

    assert main([*told, "--server", str(tmp_path / "muster.sock")]) == 0
    assert main([*told, "--server", str(tmp_path / "other.sock")]) == 6
    assert main(["--once", "--machine", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("muster:") == 2
    for status in (401, 403):
        listener.first[:] = [(status, WHO)]
        assert main([*told, "--server", str(tmp_path / "muster.sock")]) == 4
        assert re.search(r"muster: .*who are you[^\0]*muster agent join", capsys.readouterr().err)


@contextmanager
def at_a_terminal(*words: str) -> Iterator[Callable[[str], str]]:
    """An agent whose stderr is a terminal. What is given waits for a text on it, and tells all that was said until then."""
    screen, line = pty.openpty()
    told = bytearray()

    def until(text: str) -> str:
        end = time.monotonic() + 20
        while text not in told.decode() and time.monotonic() < end:
            if select.select([screen], [], [], 0.1)[0]:
                told.extend(os.read(screen, 4096))
        return told.decode()

    environment = {**os.environ, "PYTHONPATH": "src", "MUSTER_CADENCE": "1"}
    with subprocess.Popen([sys.executable, "-m", "muster.interfaces.agent", *words], stdout=subprocess.PIPE, stderr=line, env=environment) as process:
        try:
            yield until
        finally:
            process.terminate()
            assert process.communicate(timeout=20)[0] == b""
            os.close(line)
            os.close(screen)


def test_at_a_terminal_it_says_what_it_does_and_when_it_is_connected_again(tmp_path: Path, machine: Path, listener: Listener) -> None:
    with at_a_terminal("--server", str(tmp_path / "muster.sock"), "--machine", str(machine), "--state", str(tmp_path / "state")) as until:
        told = until("connected")
        assert f"muster: reports small-1 to {tmp_path / 'muster.sock'}, until Ctrl-C; its state is in {tmp_path / 'state'}\r\n" in told
        assert told.count("muster: connected; the server takes the reports\r\n") == 1
        listener.first += [(503, AnswerDoc("refused", "busy"))] * 2
        told = until("connected again")
        assert told.count("reports wait: ") == 1, "the log says why"
        assert told.count("muster: connected again\r\n") == 1


def test_at_a_terminal_it_counts_its_sources_and_says_how_a_stranger_comes_in(tmp_path: Path, machine: Path, listener: Listener) -> None:
    listener.first += [(403, WHO)] * 100
    with at_a_terminal("--server", str(tmp_path / "muster.sock"), "--machine", str(machine), "--state", str(tmp_path / "state"), "--once") as until:
        told = until("muster agent join")
    assert "muster: the reports wait in" in told
    assert "muster agent join" in told
    assert "delivered" not in told
    listener.first.clear()
    with at_a_terminal("--server", str(tmp_path / "muster.sock"), "--machine", str(machine), "--state", str(tmp_path / "state"), "--once") as until:
        told = until("delivered")
    assert "muster: 2 sources are read" in told
    assert re.search(r"muster: \d reports delivered", told)


def test_in_a_journal_it_says_nothing_more(tmp_path: Path, machine: Path, listener: Listener, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_agent(settings(tmp_path, machine), {}, once=True) == 0
    assert listener.got
    assert capsys.readouterr() == ("", "")


def test_it_loads_little() -> None:
    """Neither what draws tables nor what speaks SQL."""
    script = "import sys, muster.interfaces.agent.__main__; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=dict(os.environ))
    heavy = {
        "click",
        "rich",
        "pydantic",
        "sqlalchemy",
        "fastapi",
        "starlette",
        "uvicorn",
        "structlog",
        "yaml",
        "httpx2",
        "alembic",
        "numpy",
        "cryptography",
        "uvloop",
        "joserfc",
    }

    assert not heavy & set(done.stdout.split())
