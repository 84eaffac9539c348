# SPDX-License-Identifier: Apache-2.0
"""`muster agent` as people type it: an admin makes a token, a node joins with it, says how it stands, changes its key, is revoked, comes again, leaves."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.wiring.gatehouse import Gatehouse, gatehouse

from muster.interfaces.api import reporters
from muster.interfaces.api.app import build
from muster.interfaces.api.guard import routes
from muster.interfaces.cli.agent_site import lasting
from muster.interfaces.cli.main import run
from muster.wiring.desk import Desk
from muster.wiring.lock import alone
from muster.wiring.server import Server
from muster.wiring.settings import load_settings

Say = Callable[..., "Said"]


@dataclass
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Gatehouse]:
    with gatehouse(tmp_path / "gate") as found:
        yield found


@pytest.fixture
def say(house: Gatehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Say]:
    """Runs a command against a server whose API knows the gate."""

    def door(desk: Desk) -> object:
        app = build(replace(desk, enrolment=house.gate))
        if ("GET", "/api/v1/reporters") not in set(routes(app.routes)):
            app.include_router(reporters.router)
        return app

    settings = load_settings(port=0, state=tmp_path / "state", runtime=tmp_path / "run", in_memory=True)
    for name, value in (("MUSTER_RUNTIME", tmp_path / "run"), ("MUSTER_STATE", tmp_path / "agent"), ("XDG_CONFIG_HOME", tmp_path / "config")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("MUSTER_SERVER", raising=False)

    def said(*words: str, stdin: str = "") -> Said:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = run(list(words))
        told = capsys.readouterr()
        return Said(code, told.out, told.err)

    with Server(settings, door):
        yield said


def joins(say: Say, house: Gatehouse, *words: str) -> Said:
    """A node joins by a token that an admin just made."""
    token = say("agent", "token", "create", "-q").out
    return say("agent", "join", house.url, "--ca", house.authority.fingerprint, "--token", "-", *words, stdin=token)


def test_a_token_to_join_by_goes_into_a_file(say: Say, house: Gatehouse, tmp_path: Path) -> None:
    file = tmp_path / "join-token"
    made = say("agent", "token", "create", "--out", str(file))
    assert (made.code, made.out) == (0, "")
    assert "--token-file FILE" in made.err
    assert file.stat().st_mode & 0o777 == 0o600
    joined = say("agent", "join", house.url, "--ca", house.authority.fingerprint, "--token-file", str(file), "--state", str(tmp_path / "new"))
    assert joined.code == 0, joined.err
    assert say("agent", "token", "create", "--out", str(file)).code == 5


def test_the_whole_way(say: Say, house: Gatehouse, tmp_path: Path) -> None:
    made = say("agent", "token", "create", "--uses", "2", "--expires", "2h")
    assert made.code == 0
    assert "--token -" in made.err
    assert house.authority.fingerprint in made.err
    assert made.out.strip() not in made.err
    joined = say("agent", "join", house.url, "--ca", house.authority.fingerprint, "--token", "-", stdin=made.out)
    assert (joined.code, joined.out) == (0, "")
    assert f"as agent@{os.uname().nodename}" in joined.err
    assert os.uname().nodename in say("agent", "list").out
    assert "joined" in say("agent", "status").out
    told = json.loads(say("agent", "status", "-o", "json").out)
    assert (told["joined"], told["server"], told["wrong"]) == (True, house.url, [])
    assert say("agent", "renew").code == 0
    asked = say("agent", "revoke", f"{os.uname().nodename}x1")
    assert (asked.code, f"x1 has joined. Did you mean '{os.uname().nodename}'?" in asked.err) == (3, True), "it is looked for before anybody is asked"
    asked = say("agent", "revoke", os.uname().nodename.upper())
    assert (asked.code, f"End the reporter agent@{os.uname().nodename} (joined)?" in asked.err) == (5, True)
    ended = say("agent", "revoke", os.uname().nodename, "-y", "--reason", "test")
    assert ended.code == 0
    assert f"to let it in again: `muster agent reenrol {os.uname().nodename}`" in ended.err
    many = made.out.split("_")[1]
    assert "the token that it joined by lets 1 more in, whoever has it, until " in ended.err
    assert f"; `muster agent token delete {many}` ends it" in ended.err
    assert "revoked" in say("agent", "list").out
    assert say("agent", "revoke", os.uname().nodename, "-y").code == 5, "once is enough"
    file = tmp_path / "token"
    again = say("agent", "reenrol", os.uname().nodename, "--for", "10m", "--out", str(file))
    assert (again.code, again.out, file.stat().st_mode & 0o777) == (0, "", 0o600)
    assert "`muster agent leave --keep-enrolment` first" in again.err
    early = say("agent", "join", house.url, "--ca", house.authority.fingerprint, "--token-file", str(file))
    assert (early.code, "`muster agent leave --keep-enrolment`, then join" in early.err) == (5, True)
    left = say("agent", "leave")
    assert (left.code, "was revoked\n  how it stands there: muster agent list" in left.err) == (0, True)
    back = say("agent", "join", house.url, "--ca", house.authority.fingerprint, "--token", "-", stdin=file.read_text())
    assert back.code == 0, back.err
    assert say("agent", "leave").code == 0
    assert "left" in say("agent", "list").out


def test_an_agent_that_is_revoked_ends_as_one_that_is_not_allowed(say: Say, house: Gatehouse, tmp_path: Path) -> None:
    machine = tmp_path / "gone-1"
    machine.mkdir()
    (machine / "dmesg.txt").write_text("[   12.345678] pcieport 0000:5d:01.0: pciehp: Slot(23): Link Down\n")
    assert joins(say, house, "--machine", str(machine)).code == 0
    once = ("agent", "--machine", str(machine), "--once")
    assert say(*once).code == 0
    house.gate.revoke("gone-1", "op", "", house.now())
    ended = say(*once)
    assert (ended.code, "was revoked" in ended.err, "muster agent reenrol gone-1" in ended.err) == (4, True, True)
    told = json.loads(say("agent", "--machine", str(machine), "status", "-o", "json").out)
    assert told["wrong"] == ["agent@gone-1 was revoked"], "said once"
    assert say("agent", "--machine", str(machine), "renew").code == 4
    ended = say(*once)
    assert (ended.code, "was revoked" in ended.err) == (4, True), "a new key that came to nothing hides no reason"


def test_what_ends_a_revocation_is_said_by_each_command(say: Say, house: Gatehouse, tmp_path: Path) -> None:
    machine = tmp_path / "gone-2"
    machine.mkdir()
    (machine / "dmesg.txt").write_text("[   12.345678] pcieport 0000:5d:01.0: pciehp: Slot(23): Link Down\n")
    assert joins(say, house, "--machine", str(machine)).code == 0
    house.gate.revoke("gone-2", "op", "", house.now())
    renewed = say("agent", "renew", "--machine", str(machine))
    assert (renewed.code, renewed.out) == (4, "")
    assert renewed.err == "muster: agent@gone-2 was revoked\n  an operator lets it in again: `muster agent reenrol gone-2`\n", "once, and nothing beside it"
    assert say("agent", "--machine", str(machine), "--once").code == 4
    told = say("agent", "status", "--machine", str(machine))
    assert told.code == 1
    assert told.out.count("was revoked") == 1
    assert "does not fit" not in told.out
    assert re.search(r"what to do +an operator lets it in again: `muster agent reenrol gone-2`", told.out)
    assert re.search(r"wrong since +20\d\d-", told.out)
    assert re.search(r"agent +does not run", told.out)


def test_leaving_says_that_an_agent_runs(say: Say, house: Gatehouse, tmp_path: Path) -> None:
    assert joins(say, house).code == 0
    with alone(tmp_path / "agent" / "agent"):
        assert re.search(rf"agent +runs \(process {os.getpid()}\)", say("agent", "status").out)
        left = say("agent", "leave")
        assert (left.code, f"the agent that runs (process {os.getpid()}) reports no more from now on" in left.err) == (0, True)
        (tmp_path / "agent" / "agent" / "delivery.json").write_text(json.dumps({"trouble": f"this node has left {house.url}", "trouble_at": 1e9}))
        told = say("agent", "status")
    assert told.code == 1
    assert re.search(r"what to do +stop the agent that runs, or join again", told.out)
    assert "wrong since    2001-09-09T01:46:40Z" in told.out


@pytest.mark.parametrize("words", [("status",), ("renew",), ("leave",), ("release",), ("--once",)])
def test_a_recorded_machine_that_is_not_there_is_refused(say: Say, tmp_path: Path, words: tuple[str, ...]) -> None:
    for given in (("agent", *words, "--machine", str(tmp_path / "nope")), ("agent", "--machine", str(tmp_path / "nope"), *words)):
        found = say(*given)
        assert (found.code, found.out) == (2, "")
        assert f"{tmp_path / 'nope'} is no folder" in found.err
        assert "muster record" in found.err


def test_tokens_are_listed_and_deleted(say: Say, tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("# rack 1\ngpu-1\n\ngpu-2  # spare\n")
    say("agent", "token", "create", "--nodes", str(tmp_path / "nodes"))
    say("agent", "token", "create", "--cluster", "uid-1", "-o", "json")
    table = say("agent", "token", "list")
    assert "list: gpu-1, gpu-2" in table.out
    assert "cluster uid-1" in table.out
    for name in say("agent", "token", "list", "-o", "name").out.split():
        assert say("agent", "token", "delete", name).code == 0
    assert say("agent", "token", "list", "-o", "name").out == ""
    assert say("agent", "token", "delete", "none").code == 3


def test_a_token_from_a_file(say: Say, house: Gatehouse, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(say("agent", "token", "create", "-q").out)
    found = say("agent", "join", house.url, "--ca", house.authority.fingerprint, "--token-file", str(tmp_path / "token"), "--state", str(tmp_path / "other"))
    assert found.code == 0
    assert (tmp_path / "other" / "membership" / "key").exists()
    assert json.loads(say("agent", "status", "-o", "json", "--state", str(tmp_path / "other")).out)["joined"]
    assert json.loads(say("agent", "--state", str(tmp_path / "other"), "status", "-o", "json").out)["joined"]


def test_what_cannot_be_says_why_and_what_to_do(say: Say, house: Gatehouse, tmp_path: Path) -> None:
    ca = house.authority.fingerprint
    cases = {
        ("agent", "join", house.url, "--ca", "sha256:" + "0" * 64, "--token", "t"): (4, "shows another authority", "nothing was sent"),
        ("agent", "join", house.url, "--ca", ca, "--token", "t"): (4, "not known", "muster agent token create"),
        ("agent", "join", house.url, "--ca", ca): (2, "needs a token", "--token-file"),
        ("agent", "join", "http://x", "--ca", ca, "--token", "t"): (2, "is no address", "https://"),
        ("agent", "join", "https://127.0.0.1:1", "--ca", ca, "--token", "t"): (6, "does not answer", "is the server running"),
        ("agent", "renew"): (2, "nobody has joined", "muster agent join"),
        ("agent", "leave"): (3, "nobody has joined", ""),
        ("agent", "revoke", "nobody", "-y"): (3, "no reporter of a node nobody", "muster agent list"),
        ("agent", "token", "create", "--expires", "soon"): (2, "is no time", "30m"),
        ("agent", "token", "create", "--nodes", str(tmp_path / "none")): (2, "cannot be read", "one name a line"),
        ("agent", "release"): (3, "no agent runs", "--state"),
        ("agent", "release", "--for", "10m"): (3, "no agent runs", "--state"),
        ("agent", "release", "--for", "2h"): (2, "is no time to let go for", "10m"),
        ("agent", "release", "--for", "soon"): (2, "is no time", "30m"),
    }
    for words, (code, why, what) in cases.items():
        found = say(*words)
        assert (found.code, why in found.err, what in found.err) == (code, True, True), (words, found)
        assert found.out == ""
        assert "Traceback" not in found.err


def test_a_second_join_and_a_name_that_is_taken(say: Say, house: Gatehouse, tmp_path: Path) -> None:
    assert joins(say, house).code == 0
    twice = joins(say, house)
    assert (twice.code, "joined" in twice.err, "muster agent leave" in twice.err) == (5, True, True)
    other = joins(say, house, "--state", str(tmp_path / "other"))
    assert (other.code, "muster agent reenrol" in other.err) == (5, True)


def test_status_says_what_is_wrong_by_its_exit_code(say: Say, house: Gatehouse, tmp_path: Path) -> None:
    assert say("agent", "status").code == 0
    assert joins(say, house).code == 0
    (tmp_path / "agent" / "agent" / "delivery.json").write_text('{"trouble": "the disk is full", "spool_reports": 3, "spool_bytes": 99}')
    found = say("agent", "status")
    assert (found.code, "the disk is full" in found.out, "3 reports, 99 bytes" in found.out) == (1, True, True)


@pytest.mark.parametrize(("text", "seconds"), [("1h", 3600), ("2d12h", 216_000), ("30m", 1800), ("90", 90), ("1h30m5s", 5405)])
def test_how_long_is_said_as_people_say_it(text: str, seconds: int) -> None:
    assert lasting(text) == seconds
