# SPDX-License-Identifier: Apache-2.0
"""What `muster doctor` says of the agent's own needs: each need is taken away for real."""

from __future__ import annotations

import json
import os
import re
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.collect.test_delivery import report
from tests.collect.world import Hands
from tests.needs import lacks

from muster.collect.noted import FILE
from muster.collect.spool import Limits, Spool
from muster.wiring.agent import Settings
from muster.wiring.checkup import checkup, device_files
from muster.wiring.lock import alone
from muster.wiring.survey import Seen


class Dated(BaseHTTPRequestHandler):
    """Answers with a clock that is off by so many seconds."""

    off = 0.0

    def do_GET(self) -> None:
        """Any question."""
        self.send_response_only(200)
        self.send_header("Date", formatdate(time.time() + self.off, usegmt=True))
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    """A server with a clock of its own."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dated) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


def checked(tmp_path: Path, environ: dict[str, str] | None = None, **settings: object) -> dict[str, Seen]:
    told = Settings.of({key: str(value) for key, value in settings.items()}, state=tmp_path / "state")
    rows = checkup(told, {"MUSTER_RUNTIME": str(tmp_path), **(environ or {})}, sys=tmp_path / "sys", dev=tmp_path / "dev")
    return {row.source.removeprefix("agent."): row for row in rows}


def test_a_node_that_never_joined_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = checked(tmp_path)

    assert found["server"].state == "nothing"
    assert "muster agent join" in found["server"].help
    assert found["spool"].state == "ok"
    assert "devices" not in found


@pytest.mark.parametrize(("off", "state"), [(0.0, "ok"), (7200.0, "limited"), (-7200.0, "limited")])
def test_a_clock_that_is_off(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch, off: float, state: str) -> None:
    monkeypatch.setattr(Dated, "off", off)
    found = checked(tmp_path, MUSTER_SERVER=server)

    assert (found["server"].state, found["clock"].state) == ("ok", state)
    assert ("behind" in found["clock"].why) == (off > 0)
    assert ("ahead" in found["clock"].why) == (off < 0)


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    found = checked(tmp_path, MUSTER_SERVER="http://127.0.0.1:9")

    assert found["reach"].state == "failed"
    assert "127.0.0.1:9" in found["reach"].why
    assert checked(tmp_path, MUSTER_SERVER="ftp://x")["server"].state == "failed"


@pytest.mark.parametrize(
    ("token", "state", "words"),
    [
        ({"until": time.time() + 900, "off": 0.2, "trouble": ""}, "ok", ""),
        ({"until": time.time() + 20, "off": 0.0, "trouble": ""}, "limited", "ends now"),
        ({"until": time.time() + 900, "off": 3600.0, "trouble": ""}, "limited", "ends now"),
        ({"until": None, "trouble": "this reporter was revoked", "at": time.time() - 700, "help": "reenrol it"}, "failed", "revoked (first said"),
        ({}, "nothing", "no access token"),
    ],
)
def test_a_membership_and_its_token(tmp_path: Path, token: dict[str, object], state: str, words: str) -> None:
    folder = tmp_path / "state" / "membership"
    folder.mkdir(parents=True)
    card = {"url": "https://127.0.0.1:9", "fingerprint": "sha256:00", "reporter": "agent@n1", "node": {"name": "n1"}, "scope": {}, "joined_at": 1.0}
    (folder / "membership.json").write_text(json.dumps(card))
    (folder / "token.json").write_text(json.dumps(token))
    found = checked(tmp_path)

    assert found["server"].state == "ok"
    assert (found["token"].state, words in found["token"].why) == (state, True)
    assert found["reach"].state == "failed"
    (folder / "membership.json").write_text("{half")
    assert checked(tmp_path)["server"].state == "failed"


def test_a_spool_that_fills_and_a_delivery_that_stands_still(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "state" / "spool", Limits())
    for sequence in range(1, 4):
        spool.add(report(Hands(), sequence, size=300_000))
    (tmp_path / "state" / FILE).write_text(json.dumps({"trouble": "no route to host", "dropped": 0, "refused": 0}))
    found = checked(tmp_path, MUSTER_SERVER="http://127.0.0.1:9", MUSTER_SPOOL_MIB="1")
    assert (found["spool"].state, found["delivery"].state) == ("limited", "failed")
    assert "3 reports wait, 85 %" in found["spool"].why

    for path in (tmp_path / "state" / "spool").iterdir():
        os.utime(path, (time.time() - 1200, time.time() - 1200))
    (tmp_path / "state" / FILE).write_text(json.dumps({"trouble": "", "dropped": 4, "refused": 1}))
    found = checked(tmp_path, MUSTER_SERVER="http://127.0.0.1:9")
    assert "oldest for 20 minutes" in found["spool"].why
    assert "4 dropped and 1 refused" in found["delivery"].why

    found = checked(tmp_path, MUSTER_SERVER="http://127.0.0.1:9", MUSTER_SPOOL_MIB="900000")
    assert "the spool may need" in found["spool"].why


def test_what_was_wrong_is_told_with_its_time_and_not_when_it_is_over(tmp_path: Path, server: str) -> None:
    """The spool waits, and a note of an agent that ended long ago says that no server was there."""
    spool = Spool(tmp_path / "state" / "spool", Limits())
    spool.add(report(Hands(), 1))
    for path in (tmp_path / "state" / "spool").iterdir():
        os.utime(path, (time.time() - 1200, time.time() - 1200))
    note = {"trouble": "no server is running here", "trouble_at": time.time() - 780}
    (tmp_path / "state" / FILE).write_text(json.dumps(note))
    found = checked(tmp_path, MUSTER_SERVER="http://127.0.0.1:9")
    assert found["delivery"].why == "no server is running here (first said 13 minutes ago)"
    assert found["spool"].help == f"no agent runs on {tmp_path / 'state'}: start it"
    assert found["reach"].state == "failed"
    found = checked(tmp_path, MUSTER_SERVER=server)
    assert (found["server"].state, "delivery" in found, "reach" in found) == ("ok", False, False)

    with alone(tmp_path / "state"):
        found = checked(tmp_path, MUSTER_SERVER=server)
        assert "delivery" not in found, "the server answers now"
        assert "agent's log" in found["spool"].help
        assert checked(tmp_path, MUSTER_SERVER="http://127.0.0.1:9")["spool"].help == "look at agent.reach above"
        assert checked(tmp_path, MUSTER_SERVER="ftp://x")["spool"].help == "look at agent.server above"
        (tmp_path / "state" / FILE).write_text(json.dumps({**note, "trouble": "HTTP 503: the disk is full"}))
        assert checked(tmp_path, MUSTER_SERVER=server)["delivery"].why == "HTTP 503: the disk is full (first said 13 minutes ago)"
    assert "delivery" not in checked(tmp_path, MUSTER_SERVER=server), "nobody runs who would be told so now"


def test_each_row_that_a_hint_names_is_there(tmp_path: Path, server: str) -> None:
    spool = Spool(tmp_path / "state" / "spool", Limits())
    spool.add(report(Hands(), 1))
    for path in (tmp_path / "state" / "spool").iterdir():
        os.utime(path, (time.time() - 1200, time.time() - 1200))
    with alone(tmp_path / "state"):
        for address in (server, "http://127.0.0.1:9", "ftp://x", ""):
            found = checked(tmp_path, MUSTER_SERVER=address)
            for row in found.values():
                for named in re.findall(r"agent\.(\w+) above", row.help):
                    assert named in list(found)[: list(found).index(row.source.removeprefix("agent."))]


def node_tree(root: Path) -> Path:
    """A card on a bus with a device file that a driver made."""
    card = root / "sys/bus/pci/devices/0000:1a:00.0"
    (card / "accel/accel0").mkdir(parents=True)
    (card / "class").write_text("0x120000\n")
    (card / "accel/accel0/uevent").write_text("MAJOR=261\nMINOR=0\nDEVNAME=accel/accel0\n")
    bridge = root / "sys/bus/pci/devices/0000:00:00.0"
    (bridge / "misc/bridge0").mkdir(parents=True)
    (bridge / "class").write_text("0x060000\n")
    (bridge / "misc/bridge0/uevent").write_text("MAJOR=10\nMINOR=1\nDEVNAME=bridge0\n")
    return root / "dev/accel/accel0"


def test_device_files_that_are_not_there(tmp_path: Path) -> None:
    path = node_tree(tmp_path)
    assert list(device_files(tmp_path / "sys", tmp_path / "dev")) == [path]
    assert checked(tmp_path)["devices"].state == "limited"
    assert str(path) in checked(tmp_path)["devices"].why
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert checked(tmp_path)["devices"].state == "ok"


def test_device_files_that_may_not_be_opened(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        lacks("only root may become somebody else")
    path = node_tree(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("")
    path.chmod(0o600)
    for each in (tmp_path, *tmp_path.parents):
        if each.owner() == "root" and str(each).startswith("/tmp/"):
            each.chmod(0o755)
    assert path.group() == "root"
    told = as_nobody(lambda: str(checked(tmp_path, MUSTER_SERVER="http://127.0.0.1:9")["devices"]))

    assert "state='limited'" in told
    assert f"may not be opened: {path}" in told
    assert "group root" in told


def as_nobody(ask: Callable[[], str]) -> str:
    """The answer that another user gets."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, ask().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told
