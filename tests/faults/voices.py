# SPDX-License-Identifier: Apache-2.0
"""Reporters that a test leads by the hand: each joins, posts over TLS, and remembers what was acknowledged, so that all of it can be asked for again."""

from __future__ import annotations

import http.client
import os
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.faults.site import PATIENCE, Server

from muster.wire.enrol import Asking, AuthorityDoc, Enrolled, EnrolRequest, Signed, Token, TokenRequest, packed, to_prove
from muster.wire.lanes import part
from muster.wire.report import AnswerDoc, EventDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc, pack
from muster.wiring.authority import fingerprint

LOST = (OSError, http.client.HTTPException)


@dataclass
class Said:
    """An answer."""

    status: int
    answer: str
    detail: str = ""
    retry: float = 0.0


@dataclass
class Way:
    """The way to a server's door of reporters: a TLS connection that is made anew when it was lost."""

    port: int
    context: ssl.SSLContext
    timeout: float = 20.0
    connection: http.client.HTTPSConnection | None = None

    def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> tuple[http.client.HTTPResponse, bytes]:
        """One exchange. Raises what LOST names."""
        if self.connection is None:
            self.connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=self.timeout, context=self.context)
        try:
            self.connection.request("POST", path, body, {"Content-Type": "application/msgpack", **(headers or {})})
            answer = self.connection.getresponse()
            told = answer.read()
        except BaseException:
            self.close()
            raise
        if answer.will_close:
            self.close()
        return answer, told

    def close(self) -> None:
        """Closes it."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def authority(server: Server) -> bytes:
    """The certificate of the server's authority, as it shows it; on loopback it is believed."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=20, context=ssl._create_unverified_context())
    connection.request("GET", "/v1/authority")
    found = msgspec.msgpack.decode(connection.getresponse().read(), type=AuthorityDoc)
    connection.close()
    return found.authority


def node_doc(name: str) -> NodeDoc:
    """What a node calls itself."""
    return NodeDoc(name=name, machine_id=name.encode().hex().ljust(32, "0")[:32], system=f"system-{name}")


@dataclass
class Voice:
    """One reporter of one node with one card. Its facts change with each third report, an event comes with each third, and numbers alone with each third."""

    name: str
    pem: bytes
    port: int
    node: NodeDoc = field(init=False)
    serial: str = ""
    reporter: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    incarnation: str = "life-1"
    sequence: int = 0
    said: dict[int, bytes] = field(default_factory=dict)
    """What was acknowledged."""
    again: int = 0
    """Acknowledged as duplicates: their first answer was lost."""
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    cadence: float = 10.0
    given: Way | None = None
    """A connection that is there already."""

    def __post_init__(self) -> None:
        self.node = node_doc(self.name)
        self.serial = self.serial or f"SN-{self.name}"
        self.mark = fingerprint(self.pem)
        self.way = self.given or Way(self.port, ssl.create_default_context(cadata=self.pem.decode()))

    def _signed(self, path: str, asking: Asking) -> bytes:
        body = packed(asking)
        signed = msgspec.msgpack.encode(Signed(body=body, proof=self.key.sign(to_prove(type(asking), body))))
        for _ in range(100):
            answer, told = self.way.post(path, signed)
            if answer.status == 200:
                return told
            assert answer.status in (429, 503), f"{path}: {answer.status} {told[:300]!r}"
            time.sleep(0.2)
        raise AssertionError(f"{path}: busy for too long")

    def join(self, token: str, now: float | None = None) -> Voice:
        """Joins, and gets an access token."""
        public = self.key.public_key().public_bytes_raw()
        asking = EnrolRequest(token=token, node=self.node, public_key=public, server=self.mark, at=now or time.time(), agent_version="test")
        self.reporter = msgspec.msgpack.decode(self._signed("/v1/enrol", asking), type=Enrolled).reporter
        return self.known(now)

    def known(self, now: float | None = None) -> Voice:
        """Gets an access token."""
        at, nonce = now or time.time(), os.urandom(16)
        asking = TokenRequest(reporter=self.reporter, server=self.mark, at=at, nonce=nonce, node=self.node, boot_id=f"boot-{self.name}", instance=self.name)
        self.headers = {"Authorization": f"Bearer {msgspec.msgpack.decode(self._signed('/v1/token', asking), type=Token).token}"}
        return self

    def close(self) -> None:
        """Closes its connection."""
        self.way.close()

    def listing(self, sequence: int, at: float) -> ListingDoc:
        """The round of one number."""
        readings: dict[str, dict[str, Any]] = {
            "product.name": {"v": "Model X"},
            "firmware.version": {"v": fact(sequence)},
            "temperature.core": {"v": float(sequence)},
            "energy.total": {"v": 1000.0 * sequence},
        }
        ids = [("serial", self.serial), ("pci_address", "0000:3b:00.0"), ("index", "0")]
        return ListingDoc(
            source="test.status",
            channel="in_band",
            witness="driver",
            cadence=self.cadence,
            outcome="devices",
            complete=True,
            observed_at=at,
            boot_id=f"boot-{self.name}",
            adapter="test",
            counts={"card": 1},
            observations=[ObservationDoc(level="card", ids=ids, readings=readings)],
        )

    def report(self, sequence: int, at: float | None = None, sent: float | None = None) -> ReportDoc:
        """The report of one number."""
        now = time.time() if at is None else at
        text = f"something number {sequence}"
        events = [EventDoc(id=f"{self.name}-{sequence}", source="test.log", adapter="test", text=text, level="node", kind="x", first_at=now, last_at=now)]
        return ReportDoc(
            reporter=self.reporter,
            incarnation=self.incarnation,
            sequence=sequence,
            node=self.node,
            sent_at=now if sent is None else sent,
            agent_version="test",
            adapters={"test": "1"},
            heard=[part(self.listing(sequence, now))],
            events=events if sequence % 3 == 2 else [],
        )

    def post(self, body: bytes, way: Way | None = None) -> Said:
        """Sends a report once. Raises what LOST names."""
        answer, told = (way or self.way).post("/v1/reports", body, self.headers)
        retry = float(answer.headers.get("Retry-After") or 0)
        if answer.status == 200:
            found = msgspec.msgpack.decode(told, type=AnswerDoc)
            return Said(200, found.answer, found.detail, retry)
        return Said(answer.status, "", told.decode(errors="replace"), retry)

    def say(self, ended: threading.Event | None = None, patience: float = PATIENCE) -> bool:
        """Tells the next report, again and again until it is acknowledged. False when ``ended`` came first: the number is used for the same words next time."""
        sequence = self.sequence + 1
        body = self.pending = getattr(self, "pending", None) or pack(self.report(sequence))
        end = time.monotonic() + patience
        while not (ended is not None and ended.is_set()):
            assert time.monotonic() < end, f"{self.name}: report {sequence} was not taken within {patience:g} s"
            try:
                said = self.post(body)
            except LOST:
                time.sleep(0.05)
                continue
            if said.status == 200:
                assert said.answer in ("applied", "duplicate"), said
                self.again += said.answer == "duplicate"
                self.sequence, self.said[sequence], self.pending = sequence, body, None
                return True
            assert said.status in (429, 503), said
            time.sleep(0.1)
        return False

    pending: bytes | None = None
    """The report that is under way."""


def fact(sequence: int) -> str:
    """The fact that a report of this number tells: a new one with each third."""
    return f"v{(sequence + 2) // 3}"


def voices(server: Server, count: int, prefix: str = "node") -> list[Voice]:
    """So many that have joined."""
    pem, token = authority(server), server.join_token(uses=count)
    found = []
    for number in range(count):
        found.append(Voice(f"{prefix}-{number}", pem, server.port))
        server.after.append(found[-1].close)
        found[-1].join(token)
    return found


def card_of(server: Server, voice: Voice) -> dict[str, Any]:
    """The card's document."""
    found: dict[str, Any] = server.get(f"cards/{voice.serial}")
    return found


def versions_of(server: Server, voice: Voice) -> list[str]:
    """The versions that the card's firmware went through by its history, oldest first. Each must begin where the one before ended."""
    rows = sorted((each for each in server.all(f"cards/{voice.serial}/history") if each["kind"] == "firmware_changed"), key=lambda each: each["number"])
    now = [each["detail"]["now"] for each in rows]
    assert [each["detail"]["was"] for each in rows] == ["v1", *now[:-1]][: len(rows)]
    return now


def whole(server: Server, voice: Voice) -> None:
    """All that was acknowledged is there, once, and nothing else: history, events, and the newest numbers."""
    assert voice.pending is None
    last = (voice.sequence + 2) // 3
    assert versions_of(server, voice) == [f"v{number}" for number in range(2, last + 1)]
    told = sorted((each["id"].partition("-")[2], each["repeats"]) for each in server.all(f"events?node={voice.name}"))
    assert told == sorted((f"{voice.name}-{sequence}", 1) for sequence in range(2, voice.sequence + 1, 3))
    readings = card_of(server, voice)["readings"]
    assert readings["temperature.core"]["value"] == voice.sequence
    assert readings["energy.total"]["value"] == 1000 * voice.sequence
    assert readings["firmware.version"]["value"] == f"v{last}"


def answered(voice: Voice, sequence: int, way: Way) -> Said:
    """The answer to a report that was acknowledged, sent a second time; as long as the server is too busy it waits as it is told."""
    until = time.monotonic() + PATIENCE
    while (said := voice.post(voice.said[sequence], way)).status in (429, 503) and time.monotonic() < until:
        time.sleep(min(said.retry, 1.0))
    return said


def replayed(voice: Voice, last: int = 10) -> None:
    """What was acknowledged, sent a second time, is known to have been taken: the last by what it said, those before it by their numbers at least."""
    way = Way(voice.port, voice.way.context)
    try:
        newest, *before = sorted(voice.said)[-last:][::-1]
        said = answered(voice, newest, way)
        assert (said.status, said.answer) == (200, "duplicate"), (newest, said)
        for sequence in before:
            said = answered(voice, sequence, way)
            known = (said.status, said.answer) == (200, "duplicate")
            assert known or (said.status == 409 and "what it said is not remembered" in said.detail), (sequence, said)
    finally:
        way.close()
