# SPDX-License-Identifier: Apache-2.0
"""A node joins a real server over TLS, goes by its token, renews, and leaves; every way in which that fails says what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.wiring.gatehouse import NODE, Gatehouse, come, gatehouse, post

from muster.domain.model.errors import Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable
from muster.wire.report import NodeDoc
from muster.wiring import joining
from muster.wiring.authority import DAY, Authority
from muster.wiring.gate_calls import ask, mark_of, pinned, server_url
from muster.wiring.joining import join, leave, renew, status, token_text
from muster.wiring.membership import Membership, folder_of, joined

MARK = "sha256:" + "a" * 64


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Gatehouse]:
    with gatehouse(tmp_path / "server") as found:
        yield found


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "agent"


def test_it_joins_and_reports_for_its_own_node_alone(house: Gatehouse, state: Path) -> None:
    member = come(house, state)

    assert (member.reporter, member.address.url, member.schema) == ("agent@gpu-1", house.url, 0)
    assert post(member)[0] == 200
    assert (member.schema, member.trouble) == (2, "")
    status_, told = post(member, NodeDoc(name="gpu-2"))
    assert (status_, json.loads(told)["code"]) == (403, "not_allowed")
    assert post(member, reporter="agent@gpu-2")[0] == 403
    assert post(member, headers={"Authorization": "Bearer stolen"})[0] == 401


def test_what_it_keeps_is_private_and_the_server_has_no_key(house: Gatehouse, state: Path) -> None:
    come(house, state)
    modes = {each.name: each.stat().st_mode & 0o777 for each in folder_of(state).iterdir()}

    assert folder_of(state).stat().st_mode & 0o777 == 0o700
    assert set(modes.values()) == {0o600}
    key = (folder_of(state) / "key").read_bytes().split(b"\n")[1]
    kept = b"".join(each.read_bytes() for each in house.state.rglob("*") if each.is_file())
    assert key not in kept


def test_a_server_of_another_authority_gets_no_token(house: Gatehouse, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    plain = ask

    def watched(url: str, context: Any, method: str, path: str, body: bytes | None = None, timeout: float = 20.0) -> Any:
        sent.append(body or b"")
        return plain(url, context, method, path, body, timeout)

    monkeypatch.setattr(joining, "ask", watched)
    other = Authority.open(tmp_path / "other", ["127.0.0.1"], time.time())
    with pytest.raises(NotAllowed, match="shows another authority") as told:
        join(state, house.url, other.fingerprint, "mjoin_secret_secret", NODE)
    assert "nothing was sent" in told.value.hint
    assert sent == []
    assert not folder_of(state).exists()


def test_who_shows_our_authority_but_has_not_its_key_gets_no_token(house: Gatehouse, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server between shows the certificate that we ask for, and speaks TLS with one of its own."""
    thief = Authority.open(tmp_path / "thief", ["127.0.0.1"], time.time())
    with gatehouse(tmp_path / "between", authority=thief) as between:
        seen: list[bytes] = []
        monkeypatch.setattr(between.gate, "_authority", house.authority.authority)
        monkeypatch.setattr(between.gate, "enrol", lambda *asked: seen.append(asked[0].body))
        with pytest.raises(NotAllowed, match="is not the server whose authority is pinned"):
            join(state, between.url, house.authority.fingerprint, house.mint(), NODE)
        assert seen == []


@pytest.mark.parametrize(
    ("server", "mark"),
    [("http://h:1", "sha256:" + "a" * 64), ("https://h/x", "sha256:" + "a" * 64), ("https://h", "md5:1"), ("https://", "x"), ("https://h:x", "x")],
)
def test_what_is_no_address_or_fingerprint(state: Path, server: str, mark: str) -> None:
    with pytest.raises(InputError) as told:
        join(state, server, mark, "t", NODE)
    assert told.value.hint


@pytest.mark.parametrize("form", ["sha256:{}", "{}", "SHA256:{}", "sha256 Fingerprint={}", " {}\n"])
def test_a_fingerprint_may_be_written_as_openssl_does(form: str) -> None:
    pairs = ":".join(["B2", "82"] * 16)
    assert mark_of(form.format(pairs)) == "sha256:" + "b282" * 16


def test_an_address_may_be_short() -> None:
    assert [server_url(each) for each in ("h", "h:1", "https://h", "https://[::1]:5/")] == [
        "https://h:7461",
        "https://h:1",
        "https://h:7461",
        "https://[::1]:5",
    ]


def test_tokens_that_do_not_hold(house: Gatehouse, state: Path) -> None:
    with pytest.raises(NotAllowed, match="not known") as told:
        come(house, state, token="mjoin_x_y")
    assert "muster agent token create" in told.value.hint
    used = house.mint()
    come(house, state.with_name("first"), NodeDoc(name="first", machine_id="m1"), used)
    with pytest.raises(NotAllowed, match="used up"):
        come(house, state, token=used)
    short = house.mint(lasts=1)
    house.off = 5
    with pytest.raises(NotAllowed, match="expired"):
        come(house, state, token=short)
    house.off = 0
    assert come(house, state).reporter == "agent@gpu-1", "the same key comes again, with another token"


def test_a_name_that_is_taken_and_one_who_joined_already(house: Gatehouse, state: Path, tmp_path: Path) -> None:
    come(house, state)
    with pytest.raises(Conflict, match="joined already, with another key") as told:
        come(house, tmp_path / "second")
    assert "muster agent reenrol gpu-1" in told.value.hint
    with pytest.raises(Conflict, match="this node joined https"):
        come(house, state)


def test_a_join_whose_answer_is_lost_can_be_said_again(house: Gatehouse, state: Path) -> None:
    token = house.mint()
    house.lose = "/v1/enrol"
    with pytest.raises(Unavailable, match="does not answer"):
        come(house, state, token=token)
    house.lose = ""
    assert post(come(house, state, token=token))[0] == 200
    assert len(house.gate.members()) == 1


@pytest.mark.parametrize("off", [-7200.0, 7200.0, 86_400.0 * 30])
def test_a_clock_that_is_off_is_no_bar_while_certificates_hold(tmp_path: Path, state: Path, off: float) -> None:
    with gatehouse(tmp_path / "server", off=off, authority=Authority.open(tmp_path / "a", ["127.0.0.1"], time.time())) as house:
        member = come(house, state)
        assert post(member)[0] == 200
        assert abs(status(state)["clock_off"] - off) < 5
        renew(state)
        member.refused()
        assert post(member)[0] == 200


def test_a_clock_that_is_far_off_is_named(tmp_path: Path, state: Path) -> None:
    with gatehouse(tmp_path / "server", off=400 * DAY) as house, pytest.raises(NotAllowed, match="the clock of this node is 345") as told:
        come(house, state)
    assert "NTP" in told.value.hint


def test_a_server_of_another_age_or_none_at_all(house: Gatehouse, state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("muster.wiring.gate_calls.SCHEMA", 0)
    with pytest.raises(Unavailable, match="takes reports of schema 1 to 2") as told:
        come(house, state)
    assert "same version" in told.value.hint
    with pytest.raises(Unavailable, match="does not answer"):
        join(state, "https://127.0.0.1:1", house.authority.fingerprint, "t", NODE)
    monkeypatch.undo()
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    plain = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    thread = Thread(target=plain.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    with pytest.raises(Unavailable) as told:
        join(state, f"https://127.0.0.1:{plain.server_address[1]}", house.authority.fingerprint, "t", NODE)
    plain.shutdown()
    thread.join()
    plain.server_close()
    assert "7461" in told.value.hint


def test_it_leaves_and_comes_again(house: Gatehouse, state: Path) -> None:
    come(house, state)
    card, trouble = leave(state, tell=True)
    assert (card.reporter, trouble, folder_of(state).exists()) == ("agent@gpu-1", None, False)
    assert house.gate.members()[0].revoked_by == "agent@gpu-1"
    assert post(come(house, state))[0] == 200
    house.lose = "/v1/leave"
    assert "does not answer" in str(leave(state, tell=True)[1])
    with pytest.raises(NotFound):
        leave(state, tell=True)
    with pytest.raises(InputError, match="nobody has joined"):
        joined(state)


def test_one_that_has_left_reports_no_more_though_its_token_holds(house: Gatehouse, state: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The agent that runs has a token for an hour; it looks whether its membership still is there."""
    running = come(house, state)
    assert post(running)[0] == 200
    house.lose = "/v1/leave"
    house.gate.revoke("gpu-1", "op", "", house.now())  # whatever the server knows
    leave(state, tell=True)
    with pytest.raises(NotAllowed, match=f"this node has left {house.url}"):
        running.headers()
    with pytest.raises(NotAllowed, match=f"this node has left {house.url}") as told:
        running.headers()
    assert "stop the agent" in told.value.hint
    assert running.shut_out is told.value
    said = [each.getMessage() for each in caplog.records if "has left" in each.getMessage()]
    assert said == [f"nothing is reported any more: this node has left {house.url} (stop the agent; or join again, and start it anew)"]
    assert not folder_of(state).exists(), "it leaves nothing behind there"


def test_one_that_joined_anew_says_that_the_agent_is_to_start_anew(house: Gatehouse, state: Path) -> None:
    running = come(house, state)
    assert running.headers()
    leave(state, tell=True)
    again = come(house, state)
    with pytest.raises(NotAllowed, match="joined anew"):
        running.headers()
    assert again.headers()


def test_a_membership_that_comes_back_is_gone_by_again(house: Gatehouse, state: Path) -> None:
    """A disk that was away for a moment is no leave."""
    running = come(house, state)
    folder_of(state).rename(state / "away")
    with pytest.raises(NotAllowed):
        running.headers()
    (state / "away").rename(folder_of(state))
    assert post(running)[0] == 200
    assert (running.trouble, running.shut_out) == ("", None)


def test_a_revoked_one_is_told_so_when_it_renews_and_in_one_voice(house: Gatehouse, state: Path, caplog: pytest.LogCaptureFixture) -> None:
    running = come(house, state)
    house.gate.revoke("gpu-1", "op", "", house.now())
    running.refused()
    for _ in range(2):
        with pytest.raises(NotAllowed, match="was revoked"):
            running.headers()
    assert [each.getMessage() for each in caplog.records if "revoked" in each.getMessage()] == [
        "no access token: agent@gpu-1 was revoked (an operator lets it in again: `muster agent reenrol gpu-1`)"
    ]
    told = status(state)
    assert (told["wrong"], told["help"]) == (["agent@gpu-1 was revoked"], ["an operator lets it in again: `muster agent reenrol gpu-1`"])
    assert abs(told["wrong_since"] - time.time()) < 30
    caplog.clear()
    for _ in range(2):
        with pytest.raises(NotAllowed, match="was revoked") as refused:
            renew(state)
        assert "muster agent reenrol gpu-1" in refused.value.hint
    assert not caplog.records, "the command says it, and nobody else"


def test_a_clone_is_told_what_it_is(house: Gatehouse, state: Path, tmp_path: Path) -> None:
    original = come(house, state)
    original.boot_id = "boot-a"
    assert post(original)[0] == 200
    shutil.copytree(state, tmp_path / "copy")
    copy = Membership.open(tmp_path / "copy", msgspec.structs.replace(NODE, machine_id="machine-copy"), "boot-b")
    assert copy is not None
    with pytest.raises(Conflict, match="joined on another machine") as told:
        copy.headers()
    assert "leave --keep-enrolment" in told.value.hint
    leave(tmp_path / "copy", tell=False)
    anew = come(house, tmp_path / "copy", NodeDoc(name="gpu-copy", machine_id="machine-copy", system="system-copy"))
    assert post(anew, NodeDoc(name="gpu-copy", machine_id="machine-copy"))[0] == 200
    assert post(original)[0] == 200


def test_status_of_one_who_never_joined(state: Path) -> None:
    told = status(state)
    assert (told["joined"], told["spool_reports"], told["wrong"]) == (False, 0, [])


def test_the_token_comes_from_where_it_was_put(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(" T \n")
    assert token_text("T", None, str) == "T"
    assert token_text(None, str(tmp_path / "t"), str) == "T"
    assert token_text("-", None, lambda: "T\n") == token_text(None, "-", lambda: "T\n") == "T"
    for given, file in ((None, None), ("T", "f"), (None, str(tmp_path / "none"))):
        with pytest.raises(InputError):
            token_text(given, file, str)


def test_the_secrets_are_in_no_argument_and_no_message(
    house: Gatehouse, state: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[Any] = []
    plain = subprocess.run

    def watched(*words: Any, **more: Any) -> Any:
        commands.append((words[0], more.get("env")))
        return plain(*words, **more)

    monkeypatch.setattr(subprocess, "run", watched)
    monkeypatch.setenv("MUSTER_TOKEN", "canary-of-the-environment")
    token = house.mint()
    member = come(house, state, token=token)
    access = member.headers()["Authorization"].removeprefix("Bearer ")
    key = (folder_of(state) / "key").read_text().split("\n")[1]
    troubles = []
    for deed in (lambda: come(house, state.with_name("x"), token=token), lambda: join(state, "https://127.0.0.1:1", house.authority.fingerprint, token, NODE)):
        with pytest.raises(MusterError) as error:
            deed()
        troubles.append(f"{error.value.message} {error.value.hint}")
    said = json.dumps(commands) + caplog.text + "".join(troubles) + json.dumps(status(state))
    assert len(commands) >= 2
    for secret in (token, token.split("_")[2], access, key, "canary-of-the-environment"):
        assert secret not in said


def test_a_stranger_of_the_node_finds_no_secret_among_its_processes(house: Gatehouse, state: Path) -> None:
    """While a node joins by the token on stdin, nothing in the process list has it."""
    token = house.mint()
    code = "import sys; from muster.wiring.joining import join, token_text; from muster.wire.report import NodeDoc; from pathlib import Path; "
    code += "join(Path(sys.argv[1]), sys.argv[2], sys.argv[3], token_text('-', None, sys.stdin.readline), NodeDoc(name='gpu-1'))"
    words = [sys.executable, "-c", code, str(state), house.url, house.authority.fingerprint]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, text=True)
    assert child.stdin is not None
    child.stdin.write(token + "\n")
    child.stdin.close()
    seen = ""
    while child.poll() is None:
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                seen += each.read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
    assert child.returncode == 0
    assert house.authority.fingerprint in seen, "it was looked at while it ran"
    assert token.split("_")[2] not in seen


def test_requests_that_are_none_are_told_so(house: Gatehouse) -> None:
    context = pinned(house.authority.authority())
    for method, path, body, status_ in (
        ("GET", "/v1/enrol", None, 404), ("POST", "/v1/enrol", b"\xc1", 400), ("POST", "/v1/token", b"x" * 70_000, 400), ("POST", "/v1/authority", b"", 404),
    ):  # fmt: skip
        told = ask(house.url, context, method, path, body)
        assert (told.status, "code" in json.loads(told.body)) == (status_, True)
