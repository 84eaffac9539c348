# SPDX-License-Identifier: Apache-2.0
"""Signing in from the command line: by a token, over TLS with a pinned authority, at a real server."""

from __future__ import annotations

import io
import json
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.interfaces.cli.conftest import Muster, report

from muster.interfaces.api.app import build
from muster.interfaces.cli import known
from muster.wiring import listening
from muster.wiring.server import Server
from muster.wiring.settings import ServerSettings, load_settings


def settings(folder: Path, **more: Any) -> ServerSettings:
    return load_settings(host="127.0.0.1", port=0, runtime=folder / "run", state=folder / "state", loopback_open=False, **more)


@dataclass
class Site:
    """A server that asks for tokens, and a token of each role."""

    server: Server
    tokens: dict[str, str]
    folder: Path

    @property
    def url(self) -> str:
        """Its address."""
        return self.server.url

    def file(self, role: str) -> str:
        """A file with the token of the role."""
        path = self.folder / f"{role}.token"
        path.write_text(self.tokens[role] + "\n")
        return str(path)


def made(server: Server, folder: Path, alone: Muster, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Tokens made by the command line through the server's socket."""
    tokens = {}
    for role in ("viewer", "operator", "admin"):
        said = alone("token", "create", f"the-{role}", "--role", role, "--server", server.socket)
        assert said.code == 0, said.err
        tokens[role] = said.out.strip()
    return Site(server, tokens, folder)


@pytest.fixture
def site(tmp_path: Path, alone: Muster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    with Server(settings(folder), build) as server:
        server.desk.report(report(time.time()))
        yield made(server, tmp_path, alone, monkeypatch)


@pytest.fixture
def far(tmp_path: Path, alone: Muster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server that believes others reach it: it makes its own authority, and TCP is TLS. It listens on loopback all the same."""
    monkeypatch.setattr(listening, "beyond", lambda settings: True)
    folder = tmp_path / "far"
    told = load_settings(host="127.0.0.1", port=0, runtime=folder / "run", state=folder / "state")
    with Server(told, build) as server:
        yield made(server, tmp_path, alone, monkeypatch)


def test_a_token_by_a_file(site: Site, alone: Muster) -> None:
    said = alone("login", site.url, "--token-file", site.file("viewer"))

    assert (said.code, said.out) == (0, ""), said.err
    assert "as the-viewer (viewer)" in said.err
    assert stat.S_IMODE(known.file().stat().st_mode) == 0o600
    assert stat.S_IMODE(known.file().parent.stat().st_mode) == 0o700
    assert "alpha" in alone("get", "cards").out
    assert alone("whoami").out == f"the-viewer: viewer, known by token, at {site.url}\n"
    assert json.loads(alone("whoami", "-o", "json").out)["role"] == "viewer"


def test_a_token_into_a_file_that_only_its_user_reads(site: Site, alone: Muster, tmp_path: Path) -> None:
    file = tmp_path / "token-of-ann"
    said = alone("token", "create", "ann", "--role", "viewer", "--out", str(file), "--server", site.server.socket)
    assert (said.code, said.out) == (0, ""), said.err
    secret = file.read_text().strip()
    assert secret.startswith("muster_")
    assert secret not in said.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert alone("login", site.url, "--token-file", str(file)).code == 0
    again = alone("token", "create", "bob", "--role", "viewer", "--out", str(file), "--server", site.server.socket)
    assert (again.code, "is there already" in again.err) == (5, True)
    assert file.read_text().strip() == secret
    assert alone("token", "create", "bob", "--role", "viewer", "--out", str(tmp_path / "none" / "t"), "--server", site.server.socket).code == 6
    assert "bob" not in alone("token", "list", "--server", site.server.socket).out, "no token was made that nobody has"


def test_a_token_by_stdin(site: Site, alone: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(site.tokens["operator"] + "\n"))

    assert alone("login", site.url, "--token-file", "-").code == 0
    assert "the-operator" in alone("whoami").out


def test_a_token_in_the_environment(site: Site, alone: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_TOKEN", site.tokens["admin"])

    assert "the-admin" in alone("whoami", "--server", site.url).out


def test_what_lets_nobody_in(site: Site, alone: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad").write_text("muster_" + "A" * 43)
    for words in ([site.url, "--token-file", str(tmp_path / "bad")], [site.url.replace("http", "https"), "--token-file", str(tmp_path / "bad")]):
        assert alone("login", *words).code in (4, 6)
    for text in ("", "two words", "x" * 2000, "é"):
        (tmp_path / "bad").write_text(text)
        assert alone("login", site.url, "--token-file", str(tmp_path / "bad")).code == 2
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    for words in ([site.url], [site.url, "--token-file", str(tmp_path / "none")], ["ftp://x", "--token-file", "-"], ["http://192.0.2.1", "--token-file", "-"]):
        said = alone("login", *words)
        assert said.code == 2, words
        assert "\n  " in said.err
    assert not known.file().exists()
    assert alone("get", "cards", "--server", site.url).code == 4


def test_roles_at_the_command_line(site: Site, alone: Muster) -> None:
    alone("login", site.url, "--token-file", site.file("viewer"))
    denied = alone("set", "card", "alpha/0", "asset.owner=lab")
    assert (denied.code, "needs the role operator" in denied.err) == (4, True)
    alone("login", site.url, "--token-file", site.file("operator"))
    assert alone("set", "card", "alpha/0", "asset.owner=lab").code == 0
    assert alone("token", "list").code == 4
    alone("login", site.url, "--token-file", site.file("admin"))
    assert alone("set", "card", "alpha/0", "asset.owner=lab2", "--by", "boss").code == 0
    told = json.loads(alone("audit", "-o", "json").out)["items"]
    assert [each["by"] for each in told[:2]] == ["the-admin for boss", "the-operator"]
    assert alone("audit", "verify").code == 0


def test_logout(site: Site, alone: Muster) -> None:
    assert alone("logout").code == 3
    alone("login", site.url, "--token-file", site.file("viewer"))

    assert alone("logout", "http://elsewhere:1").code == 3
    assert "not signed in at http://elsewhere:1" in alone("logout", "--server", "http://elsewhere:1").err
    assert alone("logout").code == 0
    assert alone("whoami", "--server", site.url).code == 4
    assert site.tokens["viewer"] not in known.file().read_text()
    assert alone("login", site.url, "--token-file", site.file("viewer")).code == 0, "a token that an admin made is not ended by it"


def test_a_revoked_token_ends_at_once(site: Site, alone: Muster) -> None:
    alone("login", site.url, "--token-file", site.file("viewer"))
    assert alone("get", "cards").code == 0
    assert alone("token", "revoke", "the-viewer", "--server", site.server.socket).code == 5, "nobody was asked"
    assert alone("get", "cards").code == 0
    assert alone("token", "revoke", "the-viewer", "-y", "--server", site.server.socket).code == 0
    said = alone("get", "cards")

    assert (said.code, "revoked" in said.err) == (4, True)
    assert alone("token", "revoke", "the-viewer", "--server", site.server.socket).code == 3, "it is looked for before anybody is asked"
    assert "the-viewer" not in alone("token", "list", "--server", site.server.socket).out
    assert "revoked" in alone("token", "list", "--ended", "--server", site.server.socket).out


def test_tokens_with_a_scope_and_an_end(site: Site, alone: Muster) -> None:
    words = ["token", "create", "ci", "--role", "viewer", "--expires", "1d12h", "--scope", "nodes=beta*,rack1-*", "--scope", "read=roll", "-o", "json"]
    told = json.loads(alone(*words, "--server", site.server.socket).out)
    (site.folder / "t").write_text(told["secret"])
    alone("login", site.url, "--token-file", str(site.folder / "t"))

    assert (told["token"]["nodes"], told["token"]["reads"]) == (["beta*", "rack1-*"], ["roll"])
    alone("token", "create", "whole", "--role", "viewer", "--server", site.server.socket)
    listed = {line.split()[0]: line for line in alone("token", "list", "--server", site.server.socket).out.splitlines()}
    assert "beta*, rack1-*  roll" in listed["ci"]
    assert "live   all             all" in listed["whole"]
    assert "only nodes beta*, rack1-* and reading roll" in alone("whoami").out
    assert json.loads(alone("get", "cards", "-o", "json").out)["items"] == []
    assert alone("get", "findings").code == 4
    for bad in (["--expires", "soon"], ["--expires", ""], ["--expires", "1s"], ["--scope", "x"], ["--scope", "nodes="], ["--scope", "read=all"]):
        assert alone("token", "create", "n", "--role", "viewer", *bad, "--server", site.server.socket).code == 2, bad


def test_the_file_is_held_to_its_user(site: Site, alone: Muster) -> None:
    alone("login", site.url, "--token-file", site.file("viewer"))
    known.file().chmod(0o644)
    said = alone("get", "cards")

    assert (said.code, "chmod 600" in said.err) == (2, True)
    known.file().chmod(0o600)
    for text in ("", "[]", "{", '{"servers": []}', '{"servers": {"x": 1}}'):
        known.file().write_text(text)
        assert alone("get", "cards").code == 2


def test_tls_with_the_servers_own_authority(far: Site, alone: Muster) -> None:
    assert far.url.startswith("https://")
    assert far.server.authority is not None
    mark = far.server.authority.fingerprint
    url = far.url.replace(far.url.split("//")[1].rpartition(":")[0], "127.0.0.1")

    unknown = alone("login", url, "--token-file", far.file("viewer"))
    assert (unknown.code, "--ca sha256:" in unknown.err) == (4, True)
    other = alone("login", url, "--token-file", far.file("viewer"), "--ca", "sha256:" + "0" * 64)
    assert (other.code, "another authority" in other.err) == (4, True)
    assert alone("login", url, "--token-file", far.file("viewer"), "--ca", "md5:1").code == 2
    assert alone("login", url, "--token-file", far.file("viewer"), "--ca", mark).code == 0
    digits = mark.removeprefix("sha256:").upper()
    pairs = ":".join(digits[at : at + 2] for at in range(0, 64, 2))
    for form in (f"sha256:{pairs}", pairs, f"sha256 Fingerprint={pairs}"):
        assert alone("login", url, "--token-file", far.file("viewer"), "--ca", form).code == 0, form
    assert alone("get", "cards").code == 0
    assert alone("login", url, "--token-file", far.file("operator")).code == 0, "what was pinned stays so"
    plain = alone("whoami", "--server", url.replace("https", "http"))
    assert plain.code != 0
    pem = far.folder / "ca.pem"
    pem.write_bytes(far.server.authority.ca)
    assert alone("login", url, "--token-file", far.file("admin"), "--ca-file", str(pem)).code == 0
    assert alone("login", url, "--token-file", far.file("admin"), "--ca-file", str(pem), "--ca", mark).code == 2
    pem.write_text("none")
    assert alone("login", url, "--token-file", far.file("admin"), "--ca-file", str(pem)).code == 2


def test_a_token_goes_nowhere_before_the_authority_is_known(far: Site, alone: Muster, tmp_path: Path) -> None:
    """Another server in its place, with another authority: nothing is told to it."""
    import socket
    import ssl
    import threading

    from tests.wiring.certificates import authority

    files = authority(tmp_path / "evil", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(2):
                with listener.accept()[0] as plain:
                    plain.settimeout(5)
                    try:
                        with context.wrap_socket(plain, server_side=True) as sock:
                            heard.append(sock.recv(65536))
                    except OSError:
                        heard.append(b"")

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        assert far.server.authority is not None
        known.keep(f"https://127.0.0.1:{port}", known.Server(token=far.tokens["admin"], ca=far.server.authority.ca.decode()))
        assert alone("get", "cards").code == 4
        assert alone("login", f"https://127.0.0.1:{port}", "--ca", far.server.authority.fingerprint, "--token-file", far.file("admin")).code == 4
        thread.join()

    assert heard == [b"", b""]


def test_without_tls_a_token_does_not_leave_this_machine(alone: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_TOKEN", "muster_x")
    said = alone("get", "cards", "--server", "http://192.0.2.1:7460")

    assert (said.code, "without TLS" in said.err) == (2, True)


def test_without_an_issuer(site: Site, alone: Muster) -> None:
    said = alone("login", site.url, "--oidc")

    assert (said.code, "oidc_" in said.err) == (2, True)
