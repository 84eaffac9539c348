# SPDX-License-Identifier: Apache-2.0
"""How a reporter comes in: a one-time token and a key of its own, then access tokens for who shows that key.

What is signed travels as the bytes that were signed (`Signed.body`), so that a server need not know every field of a newer agent's request to check it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from muster.wire.report import NodeDoc


class Signed(msgspec.Struct, omit_defaults=True):
    """A request and its proof: the Ed25519 signature over `to_prove`. ``also`` is the signature of a second key, where the request brings one."""

    body: bytes
    proof: bytes
    also: bytes = b""


class EnrolRequest(msgspec.Struct, omit_defaults=True):
    """Asks to come in; proven by the key that it brings. ``server`` is the fingerprint of the authority that is meant, ``at`` the time by its clock."""

    token: str
    node: NodeDoc
    public_key: bytes
    server: str
    at: float
    reach: str = "node"
    """For whom it wants to speak: node, list or cluster."""
    agent_version: str = ""


class Enrolled(msgspec.Struct, omit_defaults=True):
    """The reporter's name from now on, and for whom it may speak."""

    reporter: str
    scope: dict[str, Any]
    authority: bytes = b""
    """PEM of the authority that signs servers' certificates."""


class TokenRequest(msgspec.Struct, omit_defaults=True):
    """Asks for an access token; proven by the enrolled key. ``instance`` is of the process that asks, ``boot_id`` of its system."""

    reporter: str
    server: str
    at: float
    nonce: bytes
    node: NodeDoc
    boot_id: str = ""
    instance: str = ""
    agent_version: str = ""


class RenewRequest(msgspec.Struct, omit_defaults=True):
    """Asks to change the key; proven by the old one, and by the new one in ``Signed.also``."""

    reporter: str
    server: str
    at: float
    nonce: bytes
    public_key: bytes


class LeaveRequest(msgspec.Struct, omit_defaults=True):
    """Says that the reporter ends; proven by its key."""

    reporter: str
    server: str
    at: float
    nonce: bytes


class Token(msgspec.Struct, omit_defaults=True):
    """An access token, when it ends by the server's clock, the server's time now, and the newest report schema it reads."""

    token: str
    until: float
    now: float
    schema: int


class AuthorityDoc(msgspec.Struct, omit_defaults=True):
    """Who this server is, before anything is trusted: its authority's certificate (PEM), and the versions it understands."""

    authority: bytes
    version: str
    newest: int
    oldest: int
    now: float


Asking: TypeAlias = EnrolRequest | TokenRequest | RenewRequest | LeaveRequest

_pack = msgspec.msgpack.Encoder(order="sorted")


def packed(asked: Asking) -> bytes:
    """The request as it is signed and sent."""
    return _pack.encode(asked)


def to_prove(kind: type[msgspec.Struct], body: bytes) -> bytes:
    """The bytes that a proof signs: the request as it was sent, with what it is for."""
    return b"muster " + kind.__name__.encode() + b"\0" + body
