# SPDX-License-Identifier: Apache-2.0
"""A gate on a real store, and nodes with real keys that come to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc.jwk import OKPKey

from muster.domain.model.access import Reach, Scope, Speaker
from muster.services.enrolment import Enrolment
from muster.store import open_store
from muster.wire.enrol import Asking, Enrolled, EnrolRequest, LeaveRequest, RenewRequest, Signed, Token, TokenRequest, packed, to_prove
from muster.wire.report import NodeDoc
from muster.wiring.authority import TokenSigner

SERVER = "sha256:" + "ab" * 32
NOW = 1_800_000_000.0
ANY = Scope(reach=Reach.NODE)
SIGNING = Ed25519PrivateKey.generate()


def gate_on(store: Any, now: float = NOW, **more: Any) -> Enrolment:
    """The gate of a server that starts on the store."""
    return Enrolment(store.enrolment, TokenSigner(OKPKey.import_key(SIGNING)), lambda: b"PEM", SERVER, now, os.urandom, **more)


@contextmanager
def a_gate(path: Path | str | None = None) -> Iterator[tuple[Enrolment, Any]]:
    """A gate with its store."""
    store = open_store(path)
    try:
        yield gate_on(store), store
    finally:
        store.close()


def doc(name: str, machine: str = "", system: str = "") -> NodeDoc:
    """A node by its names; a machine id that says nothing is made from the name."""
    return NodeDoc(name=name, machine_id=machine or f"machine-{name}", system=system or f"system-{name}")


@dataclass(frozen=True)
class Node:
    """A node with a key."""

    doc: NodeDoc
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    boot: str = "boot-1"
    instance: str = "process-1"

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    def prove(self, asked: Asking, also: Ed25519PrivateKey | None = None) -> Signed:
        body = packed(asked)
        words = to_prove(type(asked), body)
        return Signed(body=body, proof=self.key.sign(words), also=also.sign(words) if also else b"")

    def asks_in(self, token: str, at: float = NOW, reach: str = "node") -> Signed:
        return self.prove(EnrolRequest(token=token, node=self.doc, public_key=self.public, server=SERVER, at=at, reach=reach))

    def joins(self, gate: Enrolment, token: str, now: float = NOW, reach: str = "node") -> Enrolled:
        return gate.enrol(self.asks_in(token, now, reach), now, "192.0.2.7")

    def asks_token(self, reporter: str, at: float = NOW, nonce: bytes | None = None) -> Signed:
        nonce = os.urandom(16) if nonce is None else nonce
        return self.prove(TokenRequest(reporter=reporter, server=SERVER, at=at, nonce=nonce, node=self.doc, boot_id=self.boot, instance=self.instance))

    def token(self, gate: Enrolment, reporter: str, now: float = NOW) -> Token:
        return gate.token(self.asks_token(reporter, now), now, "192.0.2.7")

    def asks_renewal(self, reporter: str, new: Ed25519PrivateKey, at: float = NOW) -> Signed:
        public = new.public_key().public_bytes_raw()
        return self.prove(RenewRequest(reporter=reporter, server=SERVER, at=at, nonce=os.urandom(16), public_key=public), new)

    def leaves(self, gate: Enrolment, reporter: str, now: float = NOW) -> None:
        gate.leave(self.prove(LeaveRequest(reporter=reporter, server=SERVER, at=now, nonce=os.urandom(16))), now)

    def restarted(self, instance: str, boot: str | None = None) -> Node:
        return replace(self, instance=instance, boot=self.boot if boot is None else boot)


def mint(gate: Enrolment, scope: Scope = ANY, uses: int = 1, lasts: float = 3600.0) -> str:
    return gate.mint(scope, uses, lasts, "admin", NOW)[1]


def joined(gate: Enrolment, name: str = "gpu-1") -> tuple[Node, str, Speaker]:
    """A node that joined, its reporter, and who speaks by its token."""
    node = Node(doc(name))
    reporter = node.joins(gate, mint(gate)).reporter
    return node, reporter, gate.speaker(node.token(gate, reporter).token, NOW)


def audited(site: tuple[Enrolment, Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in site[1].reader.audit()]
