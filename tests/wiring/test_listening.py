# SPDX-License-Identifier: Apache-2.0
"""How a server listens: on loopback, with TLS, by its socket; whom each way lets in; and settings that it will not start with.

Nothing here listens beyond loopback: where a test needs a server that others could reach, it is told so.
"""

from __future__ import annotations

import datetime
import http.client
import json
import os
import pwd
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.needs import lacks
from tests.wiring.certificates import authority

from muster.domain.model.access import Grade, User
from muster.domain.model.errors import InputError, MusterError, Unavailable
from muster.interfaces.api.app import build
from muster.spi.users import NewToken
from muster.wiring import listening
from muster.wiring.entrance import account
from muster.wiring.server import Server, serve
from muster.wiring.settings import ServerSettings, load_settings

ROOT = User(name="root", grade=Grade.ADMIN, via="local")


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Any]:
    return {"port": 0, "state": tmp_path / "state", "runtime": tmp_path / "run"}


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers believe that others reach them."""
    monkeypatch.setattr(listening, "beyond", lambda settings: True)


def token(server: Server, grade: Grade = Grade.VIEWER) -> str:
    assert server.desk.users is not None
    return server.desk.users.create(NewToken(name=f"the-{grade}", grade=grade), ROOT, time.time())[1]


def ask(
    server: Server, path: str = "/api/v1/whoami", context: ssl.SSLContext | None = None, more: dict[str, str] | None = None, **headers: str
) -> tuple[int, Any]:
    """By TCP, with TLS where a context is given."""
    where = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    connection = http.client.HTTPSConnection(*where, timeout=10, context=context) if context else http.client.HTTPConnection(*where, timeout=10)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()} | (more or {}))
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told


def here(server: Server, path: str = "/api/v1/whoami", **headers: str) -> tuple[int, Any]:
    """By the socket."""
    connection = http.client.HTTPConnection("muster", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(server.socket)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told


def test_on_loopback_there_is_no_ceremony(told: dict[str, Any]) -> None:
    with Server(load_settings(**told), build) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert ask(server)[1] == {"name": "a program on the server's machine", "role": "operator", "via": "local", "token": None, "nodes": [], "reads": []}
        assert here(server)[1]["role"] == "admin"
        assert here(server)[1]["name"] == account(os.geteuid())


def test_a_machine_of_many_users_asks_for_tokens(told: dict[str, Any]) -> None:
    with Server(load_settings(**told, loopback_open=False), build) as server:
        assert ask(server)[0] == 401
        assert ask(server, authorization=f"Bearer {token(server)}")[1]["role"] == "viewer"
        assert here(server)[1]["role"] == "admin"


def test_where_others_reach_it_everybody_needs_a_token_and_tls(told: dict[str, Any], reached: None) -> None:
    with Server(load_settings(**told, names=["muster.example"]), build) as server:
        assert server.authority is not None
        context = ssl.create_default_context(cadata=server.authority.ca.decode())
        assert ask(server, context=context)[0] == 401
        assert ask(server, "/healthz", context=context)[0] == 200
        assert ask(server, context=context, authorization=f"Bearer {token(server)}")[1]["name"] == "the-viewer"
        assert ask(server, "/healthz", context=context, host="muster.example:7460")[0] == 200
        assert ask(server, "/healthz", context=context, host="evil.example")[0] == 421
        with pytest.raises((http.client.BadStatusLine, ConnectionError)):
            ask(server)
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(server, context=ssl.create_default_context())
        assert here(server)[1]["role"] == "admin"


def test_old_tls_is_not_spoken(told: dict[str, Any], reached: None) -> None:
    with Server(load_settings(**told), build) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert ask(server, "/healthz", context=context)[0] == 200
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError, ValueError)):
            ask(server, "/healthz", context=context)


def test_a_certificate_of_ones_own(told: dict[str, Any], tmp_path: Path) -> None:
    files = authority(tmp_path / "tls", "127.0.0.1", "muster.example")
    with Server(load_settings(**told, tls_certificate=files.chain, tls_key=files.key, loopback_open=False), build) as server:
        context = ssl.create_default_context(cafile=files.ca)
        assert server.authority is not None
        assert server.authority.fingerprint == files.fingerprint
        assert ask(server, context=context, authorization=f"Bearer {token(server)}")[0] == 200
        fresh = authority(tmp_path / "new", "127.0.0.1")
        os.utime(fresh.chain, (1, 1))
        for name in ("chain", "key"):
            shutil.copy(getattr(fresh, name), getattr(files, name))
        server.writing._tidy()
        assert "another authority" in here(server, "/readyz")[1]["checks"]["certificate"]
        assert ask(server, "/healthz", context=context)[0] == 200


def test_plain_http_beyond_loopback_is_said_each_time(told: dict[str, Any], reached: None) -> None:
    until = threading.Event()

    def ready(server: Server) -> None:
        check(server)
        until.set()

    with capture_logs() as logs:
        serve(load_settings(**told, plain_http_beyond_loopback=True), build, ready=ready, until=until)

    assert any(each["log_level"] == "warning" and each.get("setting") == "plain_http_beyond_loopback" for each in logs)


def check(server: Server) -> None:
    """Without TLS, but nobody comes in without a token."""
    assert server.url.startswith("http://")
    assert ask(server)[0] == 401
    assert ask(server, authorization=f"Bearer {token(server)}")[0] == 200


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"tls_certificate": "c.pem"}, "go together"),
        ({"tls_key": "k.pem"}, "go together"),
        ({"plain_http_beyond_loopback": True}, "loopback only"),
        ({"host": "0.0.0.0", "plain_http_beyond_loopback": True, "tls_certificate": "c.pem", "tls_key": "k.pem"}, "contradict"),
        ({"host": "0.0.0.0", "in_memory": True}, "no folder"),
        ({"host": "example.org"}, "no address"),
        ({"host": "127.0.0.1:80"}, "no address"),
        ({"names": ["https://x"]}, "no host name"),
        ({"names": ["a b"]}, "no host name"),
        ({"names": ["*.example.org"]}, "no host name"),
        ({"oidc_issuer": "https://i.example"}, "oidc_client_id"),
        ({"oidc_issuer": "https://i.example", "oidc_client_id": "m"}, "oidc_roles"),
        ({"oidc_issuer": "https://i.example", "oidc_client_id": "m", "oidc_roles": {"a": "root"}}, "no role"),
        ({"oidc_issuer": "http://i.example", "oidc_client_id": "m", "oidc_roles": {"a": "viewer"}}, "http://"),
        ({"oidc_client_id": "m"}, "oidc_issuer is not"),
        ({"oidc_roles": {"a": "viewer"}}, "oidc_issuer is not"),
        ({"outgoing_http": ["everything"]}, "no kind"),
        ({"outgoing_networks": {"x": ["10.0.0.0/8"]}}, "no kind"),
        ({"outgoing_networks": {"oidc": ["10.0.0.1/8"]}}, "host bits"),
        ({"outgoing_ca": "/nowhere.pem"}, "is no file"),
    ],
)
def test_settings_that_do_not_go_together(told: dict[str, Any], more: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why) as refused:
        Server(load_settings(**told | more), build).start()

    assert refused.value.hint
    assert not list(told["runtime"].glob("*")) if told["runtime"].exists() else True


def test_certificates_that_cannot_be_used(told: dict[str, Any], tmp_path: Path) -> None:
    good = authority(tmp_path / "good", "127.0.0.1")
    other = authority(tmp_path / "other", "127.0.0.1")
    old = authority(tmp_path / "old", "127.0.0.1", since=datetime.timedelta(days=-9), until=datetime.timedelta(days=-1))
    (tmp_path / "none.pem").write_text("none")
    cases = [
        (good.chain, other.key),
        (old.chain, old.key),
        (tmp_path / "none.pem", good.key),
        (good.chain, tmp_path / "none.pem"),
        (tmp_path / "missing", good.key),
    ]
    for chain, key in cases:
        with pytest.raises(MusterError) as refused:
            Server(load_settings(**told, tls_certificate=chain, tls_key=key), build).start()
        assert refused.value.hint
    good.key.chmod(0o644)
    with pytest.raises((InputError, Unavailable), match="others") as refused:
        Server(load_settings(**told, tls_certificate=good.chain, tls_key=good.key), build).start()
    assert "chmod 600" in refused.value.hint


def test_headers_that_tell_of_a_proxy_change_nothing(told: dict[str, Any]) -> None:
    """uvicorn would believe them from loopback; one who can set them must not become the socket's user, nor anybody."""
    with Server(load_settings(**told, loopback_open=False), build) as server:
        for value in ("unix", "127.0.0.1", "unix, 127.0.0.1"):
            for name in ("x-forwarded-for", "x-real-ip", "forwarded"):
                assert ask(server, more={name: value})[0] == 401
    with Server(load_settings(**told), build) as server:
        assert ask(server, x_forwarded_for="unix", x_forwarded_proto="https")[1]["role"] == "operator"


SYSTEM = shutil.which("python3", path="/usr/bin:/bin")
"""A Python that every user can run."""


def test_another_user_at_the_socket_is_a_stranger(told: dict[str, Any]) -> None:
    """The file's mode keeps others out; where somebody opened it, the kernel's word on who comes still counts."""
    if os.geteuid() != 0 or SYSTEM is None:
        lacks("only root can become another user, who needs a Python to run")
    nobody = pwd.getpwnam("nobody")
    code = (
        "import http.client, socket, sys\n"
        "c = http.client.HTTPConnection('muster'); c.sock = socket.socket(socket.AF_UNIX); c.sock.connect(sys.argv[1])\n"
        "c.request('GET', '/api/v1/whoami', headers={'x-forwarded-for': 'unix'}); print(c.getresponse().status)"
    )
    folder = Path("/tmp") / f"muster-peer-{os.getpid()}"
    try:
        with Server(load_settings(**told | {"runtime": folder}), build) as server:
            command = [str(SYSTEM), "-I", "-S", "-c", code, server.socket]
            folder.chmod(0o755)
            assert stat.S_IMODE(os.stat(server.socket).st_mode) == 0o600
            outside = subprocess.run(command, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], capture_output=True, text=True, check=False)
            assert "PermissionError" in outside.stderr, outside
            os.chmod(server.socket, 0o666)
            inside = subprocess.run(command, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], capture_output=True, text=True, check=False)
            assert inside.stdout.strip() == "401", inside
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["inside", "apart"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str], Path]]:
    """A real server in a process of its own, or in two, which logs everything it can to a file."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MUSTER_", "XDG_"))}
    environment |= {
        "PYTHONPATH": "src",
        "HOME": str(tmp_path),
        "MUSTER_RUNTIME": str(tmp_path / "r"),
        "MUSTER_LOOPBACK_OPEN": "false",
        "MUSTER_LOG_LEVEL": "debug",
    }
    log = tmp_path / "log"
    command = [sys.executable, "-m", "muster", "server", "--port", "0", "--state", str(tmp_path / "s"), "--log-format", "json"]
    with log.open("w") as file, subprocess.Popen(command, stderr=file, stdout=file, text=True, env=environment) as process:
        until = time.monotonic() + 30
        while not (tmp_path / "r" / "server.json").exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until
            time.sleep(0.05)
        yield process, environment, tmp_path
        process.terminate()
        process.wait(20)


def test_a_secret_is_nowhere(running: tuple[subprocess.Popen[str], dict[str, str], Path]) -> None:
    """Tokens, right and wrong, are used in every way that one might; then logs, processes, files and answers are searched for them."""
    process, environment, folder = running

    def muster(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "muster", *words], env=environment, capture_output=True, text=True, check=False, timeout=60, **more)

    made = muster("token", "create", "canary", "--role", "admin")
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    url = json.loads((folder / "r" / "server.json").read_text())["url"]
    seen = [muster("login", url, "--token-file", "-", input=secret)]
    with subprocess.Popen(
        [sys.executable, "-m", "muster", "get", "cards", "--watch"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as watching:
        time.sleep(1.5)
        lines = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (watching.pid, process.pid))
        own = Path(f"/proc/{process.pid}/environ").read_bytes()
        watching.terminate()
        output, errors = watching.communicate(timeout=20)
    seen += [muster(*words) for words in (["whoami", "-v"], ["token", "list", "-o", "json"], ["audit", "-o", "json"], ["get", "cards", "-v"], ["config"])]
    wrong = "muster_canary" + "W" * 36
    port = int(url.rpartition(":")[2])
    for header in (f"Bearer {secret}", f"Bearer {wrong}", f"Basic {secret}", secret):
        for path in ("/api/v1/cards", "/api/v1/nothing", f"/api/v1/cards?token={wrong}", f"/api/v1/cards/{wrong}"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path, headers={"authorization": header, "cookie": f"t={secret}"})
            answer = connection.getresponse()
            assert secret not in answer.read().decode() + str(answer.headers)
            connection.close()
    assert muster("token", "revoke", "canary", "-y").returncode == 0
    ended = muster("whoami")
    assert (ended.returncode, "revoked" in ended.stderr) == (4, True), ended.stderr
    told = "".join(each.stdout + each.stderr for each in seen)
    stored = b"".join(path.read_bytes() for path in (folder / "s").rglob("*") if path.is_file()) + (folder / "r" / "server.json").read_bytes()

    piece = secret.removeprefix("muster_")[:16]
    assert all(each.returncode == 0 for each in seen), told
    for place in (told, (folder / "log").read_text(), lines.decode(), own.decode(), stored.decode("latin-1"), (output + errors).decode()):
        assert piece not in place
    assert "refused" in (folder / "log").read_text()
    kept = [path for path in folder.rglob("*") if path.is_file() and piece.encode() in path.read_bytes()]
    assert [path.relative_to(folder) for path in kept] == [Path(".config/muster/servers.json")]
    assert stat.S_IMODE(kept[0].stat().st_mode) == 0o600


def test_words_of_an_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MUSTER_NAMES", "a.example, b.example")
    monkeypatch.setenv("MUSTER_OUTGOING_HTTP", '["oidc"]')
    monkeypatch.setenv("MUSTER_OIDC_ROLES", '{"staff": "viewer"}')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    found: ServerSettings = load_settings()

    assert (found.names, found.outgoing_http, found.oidc_roles) == (("a.example", "b.example"), ("oidc",), {"staff": "viewer"})


def test_a_chain_without_its_authority_is_refused(told: dict[str, Any], tmp_path: Path) -> None:
    files = authority(tmp_path / "good", "127.0.0.1")
    whole = files.chain.read_bytes()
    leaf = whole[: whole.index(b"-----END CERTIFICATE-----") + 26]
    files.chain.write_bytes(leaf)
    with pytest.raises(InputError, match="lacks its authority") as refused:
        Server(load_settings(**told, tls_certificate=files.chain, tls_key=files.key), build).start()
    assert "CN=test authority" in refused.value.hint
    files.chain.write_bytes(leaf + files.ca.read_bytes())
    with Server(load_settings(**told, tls_certificate=files.chain, tls_key=files.key), build) as server:
        made = server.authority
        assert made is not None
        assert made.fingerprint == files.fingerprint
        files.chain.write_bytes(leaf)
        assert not made.refresh(time.time())
        assert "lacks its authority" in made.trouble


def test_a_certificate_that_signed_itself_is_its_own_authority(told: dict[str, Any], tmp_path: Path) -> None:
    files = authority(tmp_path / "good", "127.0.0.1")
    own = tmp_path / "own.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=me", "-days", "2"]
    subprocess.run([*words, "-addext", "basicConstraints=CA:FALSE", "-keyout", files.key, "-out", own], check=True, capture_output=True)
    files.key.chmod(0o600)
    with Server(load_settings(**told, tls_certificate=own, tls_key=files.key), build) as server:
        assert server.authority is not None
