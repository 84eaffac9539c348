# SPDX-License-Identifier: Apache-2.0
"""What the tests of the door of reporters stand on: a gate and a writer that do as they are told, and a client that speaks in raw bytes."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from muster.domain.model.access import Reach, Scope, Speaker
from muster.domain.model.errors import MusterError, NotAllowed
from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.listener import Ingest
from muster.wire.enrol import Enrolled, Signed, Token
from muster.wire.report import AnswerDoc, NodeDoc, ReportDoc, pack, unpack

T0 = 1_800_000_000.0
GOOD = "token-of-node-a"
QUICK = Limits(gather=0.002, rest=0.0)
Outcome = AnswerDoc | MusterError


class Gate:
    """Knows some tokens by heart; `wait` holds it up."""

    def __init__(self) -> None:
        self.tokens = {GOOD: "node-a"}
        self.asked: list[tuple[str, Signed, str]] = []
        self.wait = threading.Event()
        self.wait.set()
        self.raises: Exception | None = None

    def authority(self) -> bytes:
        return b"-----BEGIN CERTIFICATE-----"

    def enrol(self, asked: Signed, now: float, peer: str = "") -> Enrolled:
        del now
        self.asked.append(("enrol", asked, peer))
        if self.raises is not None:
            raise self.raises
        return Enrolled(reporter="node-a", scope={"reach": "node"})

    def token(self, asked: Signed, now: float, peer: str = "") -> Token:
        self.wait.wait(20)
        self.asked.append(("token", asked, peer))
        return Token(token=GOOD, until=now + 60, now=now, schema=2)

    def renew(self, asked: Signed, now: float, peer: str = "") -> Enrolled:
        del now
        self.asked.append(("renew", asked, peer))
        return Enrolled(reporter="node-a", scope={"reach": "node"})

    def leave(self, asked: Signed, now: float, peer: str = "") -> None:
        del now
        self.asked.append(("leave", asked, peer))

    def speaker(self, token: str, now: float) -> Speaker:
        self.wait.wait(20)
        if token not in self.tokens:
            raise NotAllowed("no such token", hint="ask for another")
        return Speaker(reporter=self.tokens[token], scope=Scope(reach=Reach.NODE), until=now + 60)


class Intake:
    """Keeps what it was given, in order; `hold` holds it up, `says` answers."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[Speaker, bytes]]] = []
        self.taken: list[bytes] = []
        self.hold = threading.Event()
        self.hold.set()
        self.says: Callable[[bytes], Outcome] = lambda _body: AnswerDoc(answer="applied")
        self.threads: set[int] = set()

    def take(self, posts: Sequence[tuple[Speaker, bytes]], now: float) -> list[Outcome]:
        assert now >= T0
        self.threads.add(threading.get_ident())
        self.batches.append(list(posts))
        self.hold.wait(30)
        found = [self.says(body) for _, body in posts]
        self.taken += [body for _, body in posts]
        return found


class Client:
    """One connection, in raw bytes."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None, timeout: float = 10.0) -> None:
        self.socket: socket.socket = socket.create_connection(("127.0.0.1", port), timeout)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.left = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self, *, bare: bool = False) -> tuple[int, dict[str, str], bytes]:
        """The next answer. Raises ConnectionError when there is none."""
        while b"\r\n\r\n" not in self.left:
            self._more()
        head, _, self.left = self.left.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        length = 0 if bare else int(headers.get("content-length", "0"))
        while len(self.left) < length:
            self._more()
        body, self.left = self.left[:length], self.left[length:]
        return int(lines[0].split(" ")[1]), headers, body

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("closed")
        self.left += data

    def ask(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        self.send(data)
        return self.answer()

    @property
    def closed(self) -> bool:
        """True when the server has closed it; waits for that."""
        try:
            return not self.left and self.socket.recv(1) == b""
        except (ConnectionResetError, ssl.SSLError, BrokenPipeError):
            return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Site:
    """A listener that runs, with its gate and its writer."""

    def __init__(self, limits: Limits = QUICK, context: ssl.SSLContext | None = None, **more: Any) -> None:
        self.gate = Gate()
        self.intake = Intake()
        self.ingest = Ingest(self.gate, self.intake, lambda: T0 + time.monotonic(), context, limits, version="1.2", **more)
        self.ingest.start()

    def client(self, context: ssl.SSLContext | None = None) -> Client:
        return Client(self.ingest.port, context)

    def stop(self) -> None:
        self.gate.wait.set()
        self.intake.hold.set()
        self.ingest.stop()

    def settled(self, condition: Callable[[], bool], timeout: float = 5.0) -> bool:
        """Waits until it is so."""
        until = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True


@contextmanager
def open_site(limits: Limits = QUICK, context: ssl.SSLContext | None = None, **more: Any) -> Iterator[Site]:
    """A listener for the length of a block."""
    site = Site(limits, context, **more)
    try:
        yield site
    finally:
        site.stop()
        assert not site.ingest.alive


def report(sequence: int = 1, **more: Any) -> bytes:
    """A report of node-a, packed."""
    return pack(ReportDoc(reporter="node-a", incarnation="i", sequence=sequence, node=NodeDoc(name="node-a"), sent_at=T0, **more))


def sequence(body: bytes) -> int:
    """The number of a report."""
    return unpack(body).sequence


def request(
    body: bytes = b"", *, method: str = "POST", path: str = "/v1/reports", token: str = GOOD, kind: str = "application/msgpack", **headers: str | None
) -> bytes:
    """A request as bytes. A header that is None is left out; ``_`` in a name stands for ``-``."""
    lines: dict[str, str | None] = {"Host": "localhost", "Content-Type": kind or None, "Authorization": f"Bearer {token}" if token else None}
    if method == "POST":
        lines["Content-Length"] = str(len(body))
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def problem(body: bytes) -> dict[str, Any]:
    """A problem document."""
    found: dict[str, Any] = msgspec.json.decode(body)
    assert found["type"] == f"urn:muster:problem:{found['code']}"
    assert found["detail"]
    return found
