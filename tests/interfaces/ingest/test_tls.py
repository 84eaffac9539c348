# SPDX-License-Identifier: Apache-2.0
"""The same over TLS, with a certificate of the test's own."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.interfaces.ingest.door import QUICK, Client, Site, open_site, report, request, sequence


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return path


@pytest.fixture
def ours(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


@pytest.fixture
def sealed(ours: ssl.SSLContext) -> Iterator[Site]:
    with open_site(replace(QUICK, head_time=0.5), ours) as found:
        yield found


def test_reports_come_over_tls(sealed: Site, trusting: ssl.SSLContext) -> None:
    with sealed.client(trusting) as client:
        for number in range(10):
            assert client.ask(request(report(number)))[0] == 200
        large = b"\xc4" + b"z" * 3_000_000
        assert client.ask(request(large))[0] == 200
    assert [sequence(body) for body in sealed.intake.taken[:10]] == list(range(10))
    assert sealed.intake.taken[10] == large
    assert sealed.settled(lambda: sealed.ingest.meters.connections == 0)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(sealed: Site, trusting: ssl.SSLContext, version: ssl.TLSVersion) -> None:
    trusting.minimum_version = trusting.maximum_version = version
    with sealed.client(trusting) as client:
        assert client.ask(request(report()))[0] == 200
        assert isinstance(client.socket, ssl.SSLSocket)
        client.socket.unwrap()
    assert sealed.settled(lambda: sealed.ingest.meters.connections == 0)


def test_a_large_body_is_refused_in_words_that_arrive(sealed: Site, trusting: ssl.SSLContext) -> None:
    with sealed.client(trusting) as client:
        client.send(request(b"x" * 20_000, Content_Length="99999999"))
        assert client.answer()[0] == 413
        assert client.closed
    assert sealed.settled(lambda: sealed.ingest.meters.connections == 0)


def test_what_is_no_tls_is_closed(sealed: Site, trusting: ssl.SSLContext) -> None:
    with sealed.client() as client:
        client.send(request(report()))
        client.left = client.socket.recv(100)[:0]  # an alert, in bytes that mean nothing here
        assert client.closed
    assert sealed.ingest.meters.handshakes_failed == 1
    with sealed.client(trusting) as client:
        assert client.ask(request(report()))[0] == 200


def test_who_never_shakes_hands_is_cut_off(sealed: Site) -> None:
    with socket.create_connection(("127.0.0.1", sealed.ingest.port), 5) as quiet:
        began = time.monotonic()
        with suppress(ConnectionResetError):
            assert quiet.recv(1) == b""
        assert 0.3 < time.monotonic() - began < 4
    assert sealed.ingest.meters.cut_off == 1


def test_records_may_be_torn_anywhere(sealed: Site, trusting: ssl.SSLContext) -> None:
    """A client whose bytes arrive one by one: the handshake, and a report in several records."""
    outer, inner = socket.socketpair()
    with socket.create_connection(("127.0.0.1", sealed.ingest.port), 5) as wire, outer, inner:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def drip() -> None:
            while data := inner.recv(65536):
                for start in range(0, len(data), 7):
                    wire.sendall(data[start : start + 7])

        def back() -> None:
            while data := wire.recv(65536):
                inner.sendall(data)

        threads = [threading.Thread(target=each, daemon=True) for each in (drip, back)]
        for thread in threads:
            thread.start()
        client = Client.__new__(Client)
        outer.settimeout(10)
        client.socket, client.left = trusting.wrap_socket(outer, server_hostname="localhost"), b""
        for number in range(3):
            client.send(request(report(number))[:50])
            client.send(request(report(number))[50:])
            assert client.answer()[0] == 200
        client.close()
        inner.shutdown(socket.SHUT_RDWR)
        wire.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5)


def test_a_new_certificate_is_shown_to_who_comes_next(sealed: Site, ours: ssl.SSLContext, certificate: Path, trusting: ssl.SSLContext) -> None:
    with sealed.client(trusting) as before:
        ours.load_cert_chain(certificate)
        assert before.ask(request(report()))[0] == 200
        with sealed.client(trusting) as after:
            assert after.ask(request(report()))[0] == 200


def test_one_who_does_not_trust_us_goes_away(sealed: Site) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        sealed.client(ssl.create_default_context())
    assert sealed.settled(lambda: sealed.ingest.meters.connections == 0)


def test_many_are_held_in_little_memory(ours: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    def resident() -> int:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    with open_site(QUICK, ours) as site:
        before = resident()
        clients = [site.client(trusting) for _ in range(300)]
        assert all(client.ask(request(report(client_number)))[0] == 200 for client_number, client in enumerate(clients))
        grown = (resident() - before) / len(clients)
        for client in clients:
            client.close()
    assert grown < 120, f"{grown:.0f} KiB for a connection, both sides of it"
