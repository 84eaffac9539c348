# SPDX-License-Identifier: Apache-2.0
"""URLs that the server opens: what is let through, and the tricks that are not. Connections are real ones to a server on loopback."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from tests.wiring.certificates import authority

from muster.domain.model.errors import InputError, MusterError, NotAllowed, Unavailable
from muster.wiring.outgoing import LIMIT, Allowed, Outgoing, networks

PUBLIC = "93.184.215.14"
HOSTS = {
    "issuer.example": [PUBLIC],
    "inner.example": ["10.1.2.3"],
    "rebound.example": ["127.0.0.1"],
    "metadata.example": ["169.254.169.254"],
    "half.example": [PUBLIC, "127.0.0.1"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "six.example": ["2606:2800:21f:cb07::1"],
    "linklocal.example": ["fe80::1%eth0"],
    "nothing.example": [],
}


def resolve(host: str, port: int) -> Sequence[str]:
    if host not in HOSTS:
        raise OSError("Name or service not known")
    return HOSTS[host]


OPEN = Outgoing({"oidc": Allowed(http=True)}, resolve)

TRICKS = [
    "http://127.0.0.1/",
    "http://127.0.0.2:8080/",
    "http://localhost.localdomain/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[fd20:ce::254]/computeMetadata/v1/",
    "http://[fd00:c1::a9fe:a9fe]/opc/v2/",
    "http://[fd00:42::42]/conf",
    "http://[fd00:a9fe:a9fe::1]/v1/",
    "http://[fd00:100::100:200]/latest/meta-data/",
    "http://[::ffff:0:7f00:1]/",
    "http://[2001:470:1::5efe:7f00:1]/",
    "http://[2001:470:1::200:5efe:a9fe:a9fe]/",
    "http://[64:ff9b:1:7f00:0:100::]/",
    "http://[64:ff9b:1:a9fe:a9:fe00::]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://100.100.100.200/latest/meta-data/",
    "http://168.63.129.16/",
    "http://192.0.0.192/opc/v1/",
    "http://0.0.0.0/",
    "http://0/",
    "http://[::]/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://00127.0.0.1/",
    "http://169.254.43518/",
    "http://2852039166/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://rebound.example/",
    "http://metadata.example/",
    "http://half.example/",
    "http://mapped.example/",
    "http://linklocal.example/",
    "http://issuer.example./",
    "http://127.0.0.1./",
    "http://issuer.example@127.0.0.1/",
    "http://127.0.0.1@issuer.example/",
    "http://user:word@issuer.example/",
    "http://issuer.example:80@127.0.0.1/",
    "http://127.0.0.1#@issuer.example/",
    "http://127.0.0.1\\@issuer.example/",
    "http://issuer.example\\.rebound.example/",
    "http:\\\\issuer.example/",
    "http:/issuer.example/",
    "http:issuer.example",
    "http:///issuer.example/",
    "//issuer.example/",
    "http://issuer.example:0/",
    "http://issuer.example:99999/",
    "http://issuer.example:/",
    "http://issuer.example:80x/",
    "http://%31%32%37.0.0.1/",
    "http://issuer%2eexample/",
    "http://issuer.example\t/",
    "http://issuer.example/\r\nHost: x",
    "http://issuer .example/",
    " http://issuer.example/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://\u2460\u2461\u2466.0.0.1/",
    "http://issuer\u3002example/",
    "http://issuer..example/",
    "http://-issuer.example/",
    "http://[127.0.0.1]/",
    "http://[::1/",
    "ftp://issuer.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_x",
    "unix:///run/muster/muster.sock",
    "data:text/plain,x",
    "javascript:alert(1)",
    "",
    "http://",
    "http://" + "a" * 3000,
]


@pytest.mark.parametrize("url", TRICKS)
def test_tricks(url: str) -> None:
    with pytest.raises(MusterError) as refused:
        OPEN.check("oidc", url)

    assert isinstance(refused.value, NotAllowed | Unavailable), url


def test_no_trick_is_only_unknown() -> None:
    """A name that does not resolve proves nothing: only the one that is there on purpose is Unavailable."""
    unknown = []
    for url in TRICKS:
        try:
            OPEN.check("oidc", url)
        except Unavailable:
            unknown.append(url)
        except NotAllowed:
            continue

    assert unknown == ["http://localhost.localdomain/"]
    assert len(TRICKS) > 70


@pytest.mark.parametrize(
    ("url", "address", "port", "path"),
    [
        ("http://issuer.example/a?b=c", PUBLIC, 80, "/a?b=c"),
        ("https://ISSUER.example:8443", PUBLIC, 8443, "/"),
        ("https://inner.example/x", "10.1.2.3", 443, "/x"),
        ("https://six.example/", "2606:2800:21f:cb07::1", 443, "/"),
        (f"https://{PUBLIC}/", PUBLIC, 443, "/"),
        ("https://[2606:2800:21f:cb07::1]:9/", "2606:2800:21f:cb07::1", 9, "/"),
    ],
)
def test_plain_ones_pass(url: str, address: str, port: int, path: str) -> None:
    found = OPEN.check("oidc", url)

    assert (str(found.address), found.port, found.path) == (address, port, path)


def test_each_kind_has_networks_of_its_own() -> None:
    out = Outgoing({"oidc": Allowed(), "bmc": Allowed(networks=networks(["10.0.0.0/8"]))}, resolve)

    assert str(out.check("bmc", "https://inner.example/").address) == "10.1.2.3"
    with pytest.raises(NotAllowed, match="no network that is allowed"):
        out.check("bmc", "https://issuer.example/")
    with pytest.raises(NotAllowed, match="nothing is opened for 'webhook'"):
        out.check("webhook", "https://issuer.example/")
    with pytest.raises(NotAllowed, match="http is not opened"):
        out.check("oidc", "http://issuer.example/")


def test_what_is_closed_opens_only_to_a_network_within_it() -> None:
    wide = Outgoing({"oidc": Allowed(networks=networks(["0.0.0.0/0", "::/0"]))}, resolve)
    for url in ("https://127.0.0.1/", "https://169.254.169.254/", "https://[::1]/"):
        with pytest.raises(NotAllowed, match="closed"):
            wide.check("oidc", url)
    meant = Outgoing({"oidc": Allowed(networks=networks(["127.0.0.0/8"]))}, resolve)

    assert str(meant.check("oidc", "https://rebound.example/").address) == "127.0.0.1"
    with pytest.raises(NotAllowed):
        meant.check("oidc", "https://[::ffff:127.0.0.1]/")
    with pytest.raises(InputError, match="host bits"):
        networks(["10.0.0.1/8"])


class Peer(BaseHTTPRequestHandler):
    """Answers with what it was asked, or sends on."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.headers["host"], self.path))
        onward = {
            "/away": "http://other.example:80/",
            "/down": "https://issuer.example/",
            "/meta": "http://169.254.169.254/",
            "/round": "/round",
            "/on": "end?x=1",
        }
        if self.path in onward:
            self.send_response(302)
            self.send_header("location", onward[self.path])
            self.send_header("content-length", "0")
            self.end_headers()
            return
        body = b"x" * (LIMIT + 1) if self.path == "/much" else json.dumps({"path": self.path}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(307 if self.path == "/away" else 200)
        self.send_header("location", "http://127.0.0.1:1/")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def peer() -> Iterator[ThreadingHTTPServer]:
    Peer.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Peer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


LOOPBACK = Allowed(networks=networks(["127.0.0.0/8"]), http=True)


class Changing:
    """Answers of DNS that change: what was checked is not what would be told next."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return [self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]]


def test_the_address_that_was_checked_is_the_one_that_is_used(peer: ThreadingHTTPServer) -> None:
    changing = Changing("127.0.0.1", "169.254.169.254")
    out = Outgoing({"oidc": LOOPBACK}, changing)
    port = peer.server_address[1]
    reply = out.get("oidc", f"http://issuer.example:{port}/on")

    assert json.loads(reply.body) == {"path": "/end?x=1"}
    assert changing.asked == 1
    assert Peer.asked == [(f"issuer.example:{port}", "/on"), (f"issuer.example:{port}", "/end?x=1")]
    with pytest.raises(NotAllowed):
        out.get("oidc", f"http://issuer.example:{port}/on")


@pytest.mark.parametrize("path", ["/away", "/down", "/meta"])
def test_redirects_to_another_place_are_not_followed(peer: ThreadingHTTPServer, path: str) -> None:
    out = Outgoing({"oidc": LOOPBACK}, Changing("127.0.0.1"))
    with pytest.raises(NotAllowed, match="another place"):
        out.get("oidc", f"http://issuer.example:{peer.server_address[1]}{path}")

    assert len(Peer.asked) == 1


def test_redirects_end_and_answers_are_bounded(peer: ThreadingHTTPServer) -> None:
    out = Outgoing({"oidc": LOOPBACK}, Changing("127.0.0.1"))
    base = f"http://issuer.example:{peer.server_address[1]}"
    with pytest.raises(Unavailable, match="on and on"):
        out.get("oidc", f"{base}/round")
    with pytest.raises(Unavailable, match="more than"):
        out.get("oidc", f"{base}/much")
    reply = out.post("oidc", f"{base}/away", b"{}", "application/json")
    assert (reply.status, reply.body) == (307, b"{}")


def test_nobody_there() -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        Outgoing({"oidc": LOOPBACK}, Changing("127.0.0.1")).get("oidc", "http://issuer.example:1/")


def test_proxies_of_the_environment_are_not_asked(peer: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert Outgoing({"oidc": LOOPBACK}, Changing("127.0.0.1")).get("oidc", f"http://issuer.example:{peer.server_address[1]}/").status == 200


def test_tls_is_held_to_the_name_and_not_to_the_address(peer: ThreadingHTTPServer, tmp_path: Path) -> None:
    made = authority(tmp_path, "issuer.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.chain, made.key)
    peer.socket = context.wrap_socket(peer.socket, server_side=True)
    out = Outgoing({"oidc": Allowed(networks=LOOPBACK.networks, ca_file=str(made.ca))}, Changing("127.0.0.1"))
    port = peer.server_address[1]

    assert out.get("oidc", f"https://issuer.example:{port}/").status == 200
    with pytest.raises(Unavailable, match="does not answer"):
        out.get("oidc", f"https://other.example:{port}/")
    with pytest.raises(Unavailable, match="does not answer"):
        Outgoing({"oidc": Allowed(networks=LOOPBACK.networks)}, Changing("127.0.0.1")).get("oidc", f"https://issuer.example:{port}/")
