# SPDX-License-Identifier: Apache-2.0
"""How a reporter comes in: a one-time token and a key of its own, then access tokens for who shows that key."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.wire.report import NodeDoc


class EnrolRequest(msgspec.Struct, omit_defaults=True):
    """Asks to come in. ``proof`` is the Ed25519 signature by ``public_key`` over `to_prove`."""

    token: str
    node: NodeDoc
    public_key: bytes
    at: float
    proof: bytes
    agent_version: str = ""


class Enrolled(msgspec.Struct, omit_defaults=True):
    """The reporter's name from now on, and for whom it may speak."""

    reporter: str
    scope: dict[str, Any]
    authority: bytes = b""
    """PEM of the authority that signs servers' certificates."""


class TokenRequest(msgspec.Struct, omit_defaults=True):
    """Asks for an access token. ``proof`` is the signature by the enrolled key over `to_prove`."""

    reporter: str
    at: float
    nonce: bytes
    proof: bytes


class Token(msgspec.Struct, omit_defaults=True):
    """An access token, when it ends by the server's clock, the server's time now, and the newest report schema it reads."""

    token: str
    until: float
    now: float
    schema: int


def to_prove(asked: EnrolRequest | TokenRequest) -> bytes:
    """The bytes that a proof signs: all of the request but the proof, in one form, with what it is for."""
    kind = type(asked).__name__.encode()
    return kind + b"\0" + msgspec.msgpack.encode(msgspec.structs.replace(asked, proof=b""), order="sorted")
