# SPDX-License-Identifier: Apache-2.0
"""A server that gives no answer: each reason has a hint of its own that is true."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collect.test_post import Site, certificate
from tests.interfaces.agent.test_agent import Listener

from muster.interfaces.cli.exits import UNREACHABLE
from muster.interfaces.cli.main import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server and no settings of this machine."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "MUSTER_RUNTIME", "MUSTER_STATE"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.delenv("MUSTER_SERVER", raising=False)


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Site]:
    """A server that speaks TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path, "ours"))
    site = Site(context)
    yield site
    site.end()


@pytest.mark.parametrize("words", [("get", "cards", "--server"), ("login", "--token-file", "token")])
def test_plain_http_at_a_port_that_speaks_tls(secure: Site, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    (tmp_path / "token").write_text("mt_canary\n")
    monkeypatch.chdir(tmp_path)
    at = f"127.0.0.1:{secure.server_port}"
    assert run([*words, f"http://{at}"]) != 0
    assert f"it speaks TLS\n  use https://{at}\n" in capsys.readouterr().err


def test_the_same_for_an_agent(secure: Site, tmp_path: Path, capsys: Capture) -> None:
    at = f"127.0.0.1:{secure.server_port}"
    assert agent(tmp_path, f"http://{at}") == UNREACHABLE
    assert f"http://{at}: it speaks TLS; use https://\n  name it so: --server https://" in capsys.readouterr().err


def test_a_name_that_nobody_has(capsys: Capture) -> None:
    assert run(["get", "cards", "--server", "http://nobody.invalid:7460"]) == UNREACHABLE
    told = capsys.readouterr().err
    assert "is 'nobody.invalid' the server's name?" in told
    assert "start one" not in told


def test_nobody_at_this_machine_or_another(capsys: Capture) -> None:
    assert run(["get", "cards", "--server", "127.0.0.1:9"]) == UNREACHABLE
    assert "start one with `muster server`" in capsys.readouterr().err
    assert run(["get", "cards", "--server", "192.0.2.1:9", "--timeout", "0.2"]) != 0
    assert "start one" not in capsys.readouterr().err


def agent(folder: Path, server: str) -> int:
    machine = folder / "machine"
    machine.mkdir(exist_ok=True)
    (machine / "dmesg.txt").write_text("[   12.345678] pcieport 0000:5d:01.0: pciehp: Slot(23): Link Down\n")
    return run(["agent", "--once", "--machine", str(machine), "--state", str(folder / "state"), "--server", server])


@pytest.mark.parametrize(
    ("status", "hint"),
    [(503, "a server runs there and cannot take them now"), (500, "somebody answers there who does not"), (404, "is it the server's")],
)
def test_a_server_that_runs_and_cannot_take_reports(tmp_path: Path, capsys: Capture, status: int, hint: str) -> None:
    listener = Listener(tmp_path / "muster.sock")
    listener.first += [(status, {"type": "urn:muster:problem:unavailable", "detail": "the database is away", "code": "unavailable"})] * 99
    try:
        assert agent(tmp_path, str(tmp_path / "muster.sock")) == UNREACHABLE
    finally:
        listener.shutdown()
        listener.server_close()
    told = capsys.readouterr().err
    assert f"HTTP {status}: the database is away\n" in told
    assert hint in told
    assert "starts one" not in told
