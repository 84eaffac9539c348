# SPDX-License-Identifier: Apache-2.0
"""A server for reporters on a loopback port: real TLS, a real store, and the routes of those who join."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from muster.domain.model.access import Reach, Scope
from muster.domain.model.errors import MusterError
from muster.services.enrolment import Enrolment
from muster.services.enrolment_routes import PATHS, answered, trouble
from muster.store import open_store
from muster.wire.report import NodeDoc, ReportDoc, pack, unpack
from muster.wiring.authority import Authority, dice, state_of
from muster.wiring.joining import join
from muster.wiring.membership import Membership

NODE = NodeDoc(name="gpu-1", machine_id="machine-gpu-1", system="system-gpu-1")


@dataclass
class Gatehouse:
    """A running server. ``off`` is how far its clock is from ours."""

    gate: Enrolment
    authority: Authority
    store: Any
    port: int
    state: Path
    off: float = 0.0
    lose: str = ""
    """A path whose answers get lost, after the work is done."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def now(self) -> float:
        return time.time() + self.off

    def mint(self, uses: int = 1, lasts: float = 3600.0) -> str:
        return self.gate.mint(Scope(reach=Reach.NODE), uses, lasts, "admin", self.now())[1]


def _handler(house: Gatehouse) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_GET(self) -> None:
            self._do()

        def do_POST(self) -> None:
            self._do()

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path in PATHS:
                found = answered(house.gate, self.command, self.path, body, house.now(), peer="127.0.0.1", version="1.0")
                status, kind, payload = found.status, found.kind, found.body
            else:
                status, kind, payload = self._report(body)
            if self.path == house.lose:
                self.close_connection = True
                return
            self.send_response_only(status)
            self.send_header("Date", formatdate(house.now(), usegmt=True))
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def _report(self, body: bytes) -> tuple[int, str, bytes]:
            try:
                speaker = house.gate.speaker((self.headers.get("Authorization") or "").removeprefix("Bearer "), house.now())
            except MusterError as error:
                found = trouble(error, self.path, 401)
                return found.status, found.kind, found.body
            try:
                report = unpack(body)
                house.gate.check(speaker, report.reporter, report.node)
            except MusterError as error:
                found = trouble(error, self.path)
                return found.status, found.kind, found.body
            return 200, "application/json", b'{"answer": "applied"}'

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        pass


@contextmanager
def gatehouse(state: Path, *, off: float = 0.0, names: tuple[str, ...] = ("127.0.0.1", "localhost"), authority: Authority | None = None) -> Iterator[Gatehouse]:
    """Runs one on ``state``, whose clock is ``off``."""
    store = open_store(state / "roll.sqlite")
    now = time.time() + off
    own = authority or Authority.open(state_of(state), names, now)
    gate = Enrolment(store.enrolment, own.signer, own.authority, own.fingerprint, now, dice)
    house = Gatehouse(gate, own, store, 0, state, off)
    server = _Server(("127.0.0.1", 0), _handler(house))
    server.socket = _tls(server, own.context())
    house.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield house
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        store.close()


def _tls(server: ThreadingHTTPServer, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)


def come(house: Gatehouse, state: Path, node: NodeDoc = NODE, token: str = "") -> Membership:
    join(state, house.url, house.authority.fingerprint, token or house.mint(), node)
    found = Membership.open(state)
    assert found is not None
    return found


def post(member: Membership, node: NodeDoc = NODE, reporter: str = "", headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Posts a report as the agent does."""
    import http.client
    from urllib.parse import urlsplit

    report = ReportDoc(reporter=reporter or member.reporter, incarnation="i", sequence=1, node=node, sent_at=time.time())
    where = urlsplit(member.address.url)
    connection = http.client.HTTPSConnection(where.hostname or "", where.port, context=member.context(), timeout=10)
    connection.request("POST", "/v1/reports", pack(report), headers or member.headers())
    answer = connection.getresponse()
    told = answer.status, answer.read()
    connection.close()
    return told
