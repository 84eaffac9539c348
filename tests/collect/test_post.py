# SPDX-License-Identifier: Apache-2.0
"""The way to the server over real sockets: one connection that is kept, opened again when it broke; tokens, schemas, waits, TLS."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from muster.collect.post import Address, Fate, Posted, Poster, address, judged
from muster.domain.model.errors import NotAllowed
from muster.wire.lanes import part
from muster.wire.report import AnswerDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc, unpack


def report(sequence: int = 1) -> ReportDoc:
    row = ObservationDoc(level="card", ids=[("serial", "77x1")], readings={"power.draw": {"v": 61.5}, "product.name": {"v": "X1"}})
    doc = ListingDoc(source="a", channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observed_at=1.0, observations=[row])
    return ReportDoc(reporter="agent@n1", incarnation="i0", sequence=sequence, node=NodeDoc(name="n1"), sent_at=1.0, heard=[part(doc)])


class Site(ThreadingHTTPServer):
    """A server on loopback: says what it reads, keeps reports, and gives the answers it is told to before it takes them."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Visit)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.scheme = "https" if context else "http"
        self.schema: int | None = 2
        self.first: list[tuple[int, Mapping[str, str], AnswerDoc | dict[str, str] | None]] = []
        self.got: list[ReportDoc] = []
        self.paths: list[str] = []
        self.tokens: list[str] = []
        self.hang_up = 0
        self.visits: list[Visit] = []
        self.ways: list[Poster] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def end(self) -> None:
        """Ends, with all that is open."""
        for each in self.ways:
            each.close()
        self.shutdown()
        self.server_close()

    def drop(self) -> None:
        """Closes every connection that is open, as a server that restarts does."""
        for each in self.visits:
            each.close_connection = True
            with contextlib.suppress(OSError):
                each.connection.shutdown(2)

    def handle_error(self, *_: object) -> None:
        """Connections are cut on purpose."""


class Visit(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Site

    def setup(self) -> None:
        super().setup()
        self.server.visits.append(self)

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        if self.path.endswith("/version"):
            told = {"version": "1"} if self.server.schema is None else {"version": "1", "report_schema": self.server.schema}
            self._say(200, json.dumps(told).encode())
        else:
            self._say(200 if self.path.endswith("/base/readyz") else 503, b"{}")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.server.tokens.append(self.headers.get("Authorization", ""))
        if self.server.hang_up:
            self.server.hang_up -= 1
            self.close_connection = True
            self.connection.shutdown(2)
            return
        status, headers, answer = self.server.first.pop(0) if self.server.first else (200, {}, AnswerDoc("applied"))
        if status == 200:
            self.server.got.append(unpack(body))
        self._say(status, msgspec.json.encode(answer) if answer else b"{}", headers)

    def _say(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def site() -> Iterator[Site]:
    """A server."""
    made = Site()
    yield made
    made.end()


def to(site: Site, path: str = "", token: str = "", member: Member | None = None) -> Poster:
    """A way to the server, closed when the server ends."""
    site.ways.append(Poster(lambda: address(site.url + path), token=token, member=member))
    return site.ways[-1]


def test_posts_over_one_connection(site: Site) -> None:
    post = to(site, "/base", token="t0k")
    for sequence in (1, 2, 3):
        assert post(report(sequence)) == Posted(Fate.TAKEN, "applied")

    assert [each.sequence for each in site.got] == [1, 2, 3]
    assert site.got[0].heard
    assert len(site.visits) == 1
    assert site.paths == ["/base/version"] + ["/base/api/v1/reports"] * 3
    assert set(site.tokens) == {"Bearer t0k"}
    assert post.well()
    assert not to(site).well()


def test_a_connection_that_the_server_closed_is_opened_again(site: Site) -> None:
    post = to(site)
    post(report(1))
    site.drop()

    assert post(report(2)).fate is Fate.TAKEN
    assert [each.sequence for each in site.got] == [1, 2]
    assert len(site.visits) == 2


def test_a_server_that_hangs_up_each_time_is_asked_later(site: Site) -> None:
    site.hang_up = 9
    post = to(site)
    posted = post(report())

    assert posted.fate is Fate.LATER
    assert site.url in posted.detail
    assert len(site.visits) <= 2
    site.hang_up = 0
    assert post(report()).fate is Fate.TAKEN


@pytest.mark.parametrize("schema", [1, None])
def test_a_server_of_the_last_version_gets_what_it_understands(site: Site, schema: int | None) -> None:
    post = to(site)
    post(report(1))
    site.schema = schema
    site.drop()
    post(report(2))
    site.schema = 2
    site.drop()
    post(report(3))

    assert [(bool(each.heard), bool(each.listings)) for each in site.got] == [(True, False), (False, True), (True, False)]
    assert site.got[1].listings[0].observations[0].readings["power.draw"] == {"v": 61.5}


class Member:
    """A membership whose tokens are numbered."""

    def __init__(self, context: ssl.SSLContext, schema: int = 2) -> None:
        self.schema = schema
        self.number = 1
        self.denied = False
        self._context = context

    def context(self) -> ssl.SSLContext:
        return self._context

    def headers(self) -> Mapping[str, str]:
        if self.denied:
            raise NotAllowed("this node was revoked", hint="join again")
        return {"Authorization": f"Bearer token-{self.number}"}

    def refused(self) -> None:
        self.number += 1


def test_a_token_that_is_refused_is_renewed_once(site: Site) -> None:
    member = Member(ssl.create_default_context())
    site.first = [(401, {}, None), (200, {}, AnswerDoc("applied")), (401, {}, None), (401, {}, None)]
    post = to(site, member=member)

    assert post(report()).fate is Fate.TAKEN
    assert site.tokens == ["Bearer token-1", "Bearer token-2"]
    assert post(report()).fate is Fate.LATER
    assert len(site.tokens) == 4
    assert all("version" not in path for path in site.paths)
    member.denied = True
    assert post(report()) == Posted(Fate.LATER, "this node was revoked")


def test_a_member_says_what_its_server_reads(site: Site) -> None:
    to(site, member=Member(ssl.create_default_context(), schema=1))(report())
    to(site, member=Member(ssl.create_default_context(), schema=0))(report())

    assert [bool(each.heard) for each in site.got] == [False, True]


def test_the_server_may_want_captures_and_time(site: Site) -> None:
    date = {"Retry-After": "Wed, 11 Feb 2026 08:41:37 GMT", "Date": "Wed, 11 Feb 2026 08:41:07 GMT"}
    site.first = [
        (200, {}, AnswerDoc("applied", wanted=["d1", "d2"])),
        (429, {"Retry-After": "17"}, None),
        (429, date, None),
        (429, {"Retry-After": "999999999"}, None),
        (429, {"Retry-After": "soon"}, None),
        (413, {"Content-Type": "application/problem+json"}, {"type": "urn:muster:problem:too_large", "code": "too_large"}),
    ]
    post = to(site)

    assert post(report()).wanted == ("d1", "d2")
    waits = [post(report()) for _ in range(4)]
    assert [(each.fate, each.wait) for each in waits] == [(Fate.LATER, 17), (Fate.LATER, 30), (Fate.LATER, 3600), (Fate.LATER, 0)] or waits[1].wait == 0
    assert post(report()).fate is Fate.TOO_LARGE


def test_a_date_is_held_against_the_servers_own_clock() -> None:
    date = {"Retry-After": "Wed, 11 Feb 2026 08:41:37 GMT", "Date": "Wed, 11 Feb 2026 08:41:07 GMT"}

    assert judged(503, date, b"").wait == 30
    assert judged(503, {**date, "Date": "Wed, 11 Feb 2026 09:41:07 GMT"}, b"").wait == 0
    assert judged(503, {"Retry-After": date["Retry-After"]}, b"").wait == 0


def certificate(folder: Path, name: str) -> Path:
    """A certificate for loopback, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_over_tls_only_the_server_that_is_known_gets_reports(tmp_path: Path) -> None:
    ours, other = certificate(tmp_path, "ours"), certificate(tmp_path, "other")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(ours)
    site = Site(serving)
    try:
        known = to(site, member=Member(ssl.create_default_context(cafile=str(ours))))
        strange = to(site, member=Member(ssl.create_default_context(cafile=str(other))))
        assert [known(report(number)).fate for number in (1, 2)] == [Fate.TAKEN, Fate.TAKEN]
        assert len(site.visits) == 1
        refused = strange(report(3))
        assert refused.fate is Fate.LATER
        assert "certificate" in refused.detail
        assert [each.sequence for each in site.got] == [1, 2]
    finally:
        site.end()


def test_a_server_that_is_not_there_is_asked_later(tmp_path: Path) -> None:
    assert Poster(lambda: None)(report()).fate is Fate.LATER
    assert Poster(lambda: Address("http://localhost", str(tmp_path / "no.sock")))(report()).fate is Fate.LATER
    assert Poster(lambda: Address("http://127.0.0.1:9"))(report()).fate is Fate.LATER
    assert not Poster(lambda: Address("http://127.0.0.1:9")).well()
    assert not Poster(lambda: None).well()


def test_plain_http_at_a_port_that_speaks_tls(tmp_path: Path) -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate(tmp_path, "ours"))
    site = Site(serving)
    try:
        url = f"http://127.0.0.1:{site.server_port}"
        posted = Poster(lambda: Address(url))(report())
        assert posted == Posted(Fate.LATER, f"{url}: it speaks TLS; use https://")
    finally:
        site.end()


def test_one_who_hangs_up_is_not_said_to_speak_tls(site: Site) -> None:
    site.hang_up = 9
    assert "TLS" not in to(site)(report()).detail


class Strange(Member):
    """A token that is none."""

    def headers(self) -> Mapping[str, str]:
        return {"Authorization": "Bearer a\r\nX-Forged: 1"}


def test_a_header_that_cannot_be_sent_is_a_trouble(site: Site) -> None:
    posted = to(site, member=Strange(ssl.create_default_context()))(report())
    assert posted.fate is Fate.LATER
    assert "Invalid header value" in posted.detail
    assert site.got == []
