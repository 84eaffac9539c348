# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: how it starts, where it finds a server, how it fails, how it ends."""

from __future__ import annotations

import contextlib
import http.server
import importlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from muster.domain.model.errors import InputError, Unavailable
from muster.interfaces.cli import names, preferences
from muster.interfaces.cli.client import locate, problem
from muster.interfaces.cli.exits import EXITS, exit_code
from muster.interfaces.cli.main import COMMANDS, run
from muster.wiring.server import Server

from .conftest import Muster

HEAVY = ("rich", "pydantic", "fastapi", "sqlalchemy", "uvicorn", "structlog", "msgspec", "yaml", "asyncio", "importlib.metadata")
DELAY_S = 3.0


class _Odd(http.server.BaseHTTPRequestHandler):
    """A server that is none of ours; the path says how it is odd."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        if kind == "slow":
            time.sleep(DELAY_S)
        status = int(kind) if kind.isdigit() else 200
        body = {"html": b"<html></html>", "list": b"[]", "empty": b"{}", "slow": b"{}"}.get(kind, json.dumps({"detail": "no\x1b", "hint": "do\x07"}).encode())
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Says nothing."""


class _Patient(http.server.ThreadingHTTPServer):
    """Clients that hang up are what is tested."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def odd() -> Iterator[str]:
    server = _Patient(("127.0.0.1", 0), _Odd)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("kind", "code"), [("html", 6), ("list", 6), ("empty", 6), ("400", 2), ("401", 4), ("403", 4), ("404", 3), ("409", 5), ("422", 2), ("500", 6), ("503", 6)]
)
def test_exit_codes_of_answers(alone: Muster, odd: str, kind: str, code: int) -> None:
    told = alone("get", "cards", "--server", f"{odd}/{kind}")

    assert told.code == code
    assert told.out == ""
    assert "\x1b" not in told.err
    assert "Traceback" not in told.err


def test_no_answer_in_time(alone: Muster, odd: str) -> None:
    assert alone("get", "cards", "--server", f"{odd}/slow", "--timeout", "0.2").code == 7


def test_nobody_there(alone: Muster, tmp_path: Path) -> None:
    assert alone("get", "cards").code == 6
    assert alone("get", "cards", "--server", "http://127.0.0.1:9").code == 6
    assert alone("get", "cards", "--server", f"unix:{tmp_path}/no.sock").code == 6
    assert alone("get", "cards", "--server", "http://").code == 2


def test_a_password_in_the_address_is_refused_and_shown_nowhere(alone: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_SERVER", "https://me:CANARY@muster.example:7460")
    for words in (("get", "cards"), ("config",), ("login", "https://me:CANARY@muster.example", "--token-file", os.devnull)):
        told = alone(*words)
        assert "CANARY" not in told.out + told.err, words
        assert told.code == (0 if words == ("config",) else 2)


def test_every_code_has_a_meaning() -> None:
    assert {exit_code(problem(status, b"")) for status in (400, 401, 404, 408, 409, 418, 500)} <= EXITS.keys()


def test_a_file_of_a_server_that_has_ended_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_RUNTIME", str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    for text in (json.dumps({"url": "http://x:1", "socket": "", "pid": child.pid}), "{", "[]", '{"url": 1}', '{"url": "http://x", "pid": 0}'):
        (tmp_path / "server.json").write_text(text)
        with pytest.raises(Unavailable):
            locate()
    (tmp_path / "server.json").write_text(json.dumps({"url": "http://x:1/", "socket": str(tmp_path / "gone.sock"), "pid": os.getpid()}))
    assert (locate().url, locate().socket) == ("http://x:1", "")


def test_settings_of_the_client(alone: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "muster" / "config.toml"
    file.parent.mkdir()
    file.write_text('output = "name"\ntimeout = 5\n')
    for name, value in (("OUTPUT", "json"), ("ROOT", "/host"), ("TOKEN", "s3cret"), ("PROCESS_NAMES", "1")):
        monkeypatch.setenv(f"MUSTER_{name}", value)

    rows = {row["setting"]: row for row in json.loads(alone("config").out)["items"]}
    assert (rows["output"]["value"], rows["output"]["from"]) == ("json", "MUSTER_OUTPUT")
    assert (rows["timeout"]["value"], rows["timeout"]["from"]) == (5, str(file))
    assert (rows["port"]["from"], rows["port"]["of"]) == ("default", "server")
    assert (rows["root"]["value"], rows["root"]["from"]) == ("/host", "MUSTER_ROOT")
    assert (rows["token"]["value"], rows["process_names"]["value"]) == ("(set)", "1")
    assert "s3cret" not in json.dumps(rows)
    assert str(file) in alone("config", "path").out.splitlines()


@pytest.mark.parametrize(
    "url", ["postgresql://u:s3cret@h/roll", "postgresql://u:s3cret:@%40@h:5/roll?a=b", "postgresql://u@h/roll?password=s3cret&sslmode=require"]
)
def test_the_password_of_the_database_is_not_shown(alone: Muster, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("MUSTER_DATABASE", url)

    shown = [row["value"] for row in json.loads(alone("config", "-o", "json").out)["items"] if row["setting"] == "database"]
    assert len(shown) == 1
    assert shown[0].startswith("postgresql://u")
    assert "(set)" in shown[0]
    assert "s3cret" not in shown[0]


@pytest.mark.parametrize("text", ["timeout = 0", "timeout = 'soon'", "colour = 1", "= 1"])
def test_a_settings_file_that_does_not_fit_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "muster" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)

    with pytest.raises(InputError, match=r"config\.toml"):
        preferences.preferred("timeout")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_there_and_explains_itself(alone: Muster, name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(importlib.import_module(module), attribute)

    assert isinstance(command, click.Command)
    assert command.name == name
    told = alone(name, "--help")
    assert told.code == 0
    assert told.out.startswith("Usage: muster")


def test_help_lists_every_command_without_importing_it() -> None:
    told = python("import sys; from muster.interfaces.cli.main import run; run(['--help']); print(*sorted(sys.modules))")

    assert all(f"  {name} " in told for name in COMMANDS)
    assert "muster.interfaces.cli.get" not in told.split()


def python(code: str) -> str:
    """What a fresh Python prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_get_starts_light() -> None:
    loaded = python("import sys, muster.interfaces.cli.main, muster.interfaces.cli.get; print(*sys.modules)").split()

    assert [name for name in HEAVY if name in loaded] == []


def test_version(alone: Muster) -> None:
    assert alone("version").out.startswith("muster ")
    assert json.loads(alone("version", "-o", "json").out)["python"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(alone: Muster, shell: str) -> None:
    told = alone("completion", shell)

    assert told.code == 0
    assert "_MUSTER_COMPLETE" in told.out


def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str) -> list[str]:
    monkeypatch.setenv("_MUSTER_COMPLETE", "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit):
        run([])
    return capsys.readouterr().out.splitlines()[1::3]


def test_commands_and_live_names_are_completed_and_kept(muster: Muster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cards = muster("get", "cards", "-o", "name").out.split()

    assert completed(monkeypatch, capsys, "muster ge") == ["get"]
    assert completed(monkeypatch, capsys, "muster describe ca") == ["cards"]
    assert sorted(completed(monkeypatch, capsys, "muster describe card c-")) == sorted(cards)
    places = completed(monkeypatch, capsys, "muster describe card ")
    assert sorted(places) == ["alpha/0000:22:00.0", "alpha/PCIe 4"] or sorted(places) == ["alpha/0", "alpha/1"]
    assert completed(monkeypatch, capsys, "muster describe node a") == ["alpha"]
    assert completed(monkeypatch, capsys, "muster agent revoke a") == ["alpha"]
    assert "alpha/redfish" in completed(monkeypatch, capsys, "muster describe source alpha/")
    monkeypatch.setattr("muster.interfaces.cli.client.Client.get", lambda *_, **__: pytest.fail("the server was asked again"))
    assert sorted(completed(monkeypatch, capsys, "muster describe card c-")) == sorted(cards)


def test_completion_is_silent_where_the_server_is_away(monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    monkeypatch.setattr(names, "WAIT_S", 0.1)
    started = time.monotonic()

    assert names.live("/cards") == []
    assert names.live("/cards", f"{odd}/slow") == []
    assert time.monotonic() - started < DELAY_S / 2


def started(*words: str, runtime: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "MUSTER_RUNTIME": str(runtime), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, "-m", "muster", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def test_a_closed_pipe_is_quiet(server: Server) -> None:
    runtime = server.settings.runtime
    reading, writing = os.pipe()
    os.close(reading)
    child = subprocess.run(
        [sys.executable, "-m", "muster", "get", "cards", "-o", "json"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env={**os.environ, "MUSTER_RUNTIME": str(runtime)},
        check=False,
    )
    os.close(writing)

    assert (child.returncode, child.stderr) == (0, b"")


def test_ctrl_c_ends_with_130(odd: str, tmp_path: Path) -> None:
    child = started("get", "cards", "--server", f"{odd}/slow", "-v", runtime=tmp_path)
    assert child.stderr is not None
    child.stderr.readline()
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=10)

    assert child.returncode == 130
    assert b"Traceback" not in err


def _interrupted(pid: int, handle: int) -> int:
    """The exit code after Ctrl-C. One that comes just before the command begins to wait is lost, so it is said again; a command that does not end is killed."""
    for _ in range(10):
        with contextlib.suppress(OSError):
            os.write(handle, b"\x03")
        until = time.monotonic() + 3
        while time.monotonic() < until:
            if select.select([handle], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    os.read(handle, 65536)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_top_draws_anew_until_ctrl_c(server: Server) -> None:
    pid, handle = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm", "MUSTER_RUNTIME": str(server.settings.runtime)})
        os.execv(sys.executable, [sys.executable, "-m", "muster", "top", "--interval", "0.2"])
    told = b""
    while told.count(b"muster top") < 2:
        told += os.read(handle, 4096)
    assert _interrupted(pid, handle) == 130
    assert "Acme X1" in told.decode(errors="replace")
    assert b"\x1b[2J\xe2" not in told


def test_a_prompt_that_is_interrupted_ends_with_130(server: Server) -> None:
    pid, handle = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm", "MUSTER_RUNTIME": str(server.settings.runtime)})
        os.execv(sys.executable, [sys.executable, "-m", "muster", "retire", "XQ47-1"])
    told = b""
    while b"[y/N]" not in told:
        told += os.read(handle, 4096)
    assert _interrupted(pid, handle) == 130


@pytest.mark.parametrize(("way", "reason"), [(">&-", "it is closed"), ("> /dev/full", "No space left on device")])
@pytest.mark.parametrize("command", ["version", "interpret {file}", "get cards -o json", "get cards"])
def test_output_that_cannot_be_written(server: Server, tmp_path: Path, way: str, reason: str, command: str) -> None:
    (tmp_path / "file").write_text("DCGM 1\n")
    line = f"{sys.executable} -m muster {command.format(file=tmp_path / 'file')} {way}"
    environment = {**os.environ, "PYTHONPATH": "src", "MUSTER_RUNTIME": str(server.settings.runtime)}
    told = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, env=environment, timeout=60, check=False)

    assert told.returncode == 1
    assert told.stderr.splitlines()[-1] == f"muster: the output cannot be written: {reason}"
    assert "Traceback" not in told.stderr
    assert "Exception ignored" not in told.stderr


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "0", "1e300", "x"])
def test_no_time_to_wait(alone: Muster, monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    assert alone("get", "cards", "--server", "http://127.0.0.1:9", "--timeout", seconds).code == 2
    monkeypatch.setenv("MUSTER_TIMEOUT", seconds)
    told = alone("get", "cards", "--server", "http://127.0.0.1:9")
    assert told.code == 2
    assert "MUSTER_TIMEOUT" in told.err


def test_status_tells_of_rows_that_cannot_be_read(muster: Muster, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert muster("status").err == ""
    monkeypatch.setattr(server.writing.store.unread, "_rows", {("captures", "c1")})
    assert muster("status").err == "muster: store: 1 row of captures cannot be read\n"
    monkeypatch.setattr(server.writing.writer, "trouble", "the disk is full")
    assert "the disk is full" in muster("status").err
