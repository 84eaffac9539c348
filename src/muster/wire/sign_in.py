# SPDX-License-Identifier: Apache-2.0
"""Users at the API: who they are, the tokens they come with, and what is sent for one."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from muster.wire.documents import Time

Role = Annotated[str, Meta(extra_json_schema={"enum": ["viewer", "operator", "admin"]})]


class Whoami(Struct):
    """Who asks, and what they may. ``via``: local (the server's own machine), token or oidc. ``nodes``: patterns of the nodes they see; empty: all.

    ``reads``: the parts that they may read, and nothing else; empty: all that the role allows.
    """

    name: str
    role: Role
    via: str
    token: str | None = None
    nodes: list[str] = []
    reads: list[str] = []


class UserToken(Struct):
    """A token of a user. Its secret is never shown again. ``used_at`` is kept to the hour; ``state``: live, expired or revoked."""

    id: str
    name: str
    kind: str
    role: Role
    state: str
    created_at: Time
    created_by: str
    nodes: list[str] = []
    reads: list[str] = []
    expires_at: Time | None = None
    used_at: Time | None = None
    revoked_at: Time | None = None
    revoked_by: str = ""


class UserTokenRequest(Struct, omit_defaults=True):
    """A token that is asked for. ``lifetime`` in seconds; left out: until it is revoked."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    role: Role
    lifetime: Annotated[float, Meta(gt=0)] | None = None
    nodes: Annotated[list[Annotated[str, Meta(min_length=1, max_length=200)]], Meta(max_length=100)] = []
    reads: Annotated[list[str], Meta(max_length=20)] = []


class UserTokenMade(Struct):
    """A new token with its secret, which is told this once."""

    token: UserToken
    secret: str


class SignInRequest(Struct, omit_defaults=True):
    """What an issuer signed for somebody: the identity token, and the nonce that was sent to it."""

    id_token: Annotated[str, Meta(min_length=1, max_length=16384)]
    nonce: Annotated[str, Meta(max_length=200)] = ""


class AuditEntry(Struct):
    """One entry of the audit log: who did what, and how the server knew them."""

    at: Time | None
    by: str
    what: str
    asked_by: str
    reason: str
    detail: dict[str, Any]


class AuditCheck(Struct):
    """What became of the audit log: whole, or which entry is the first that is not as it was written."""

    whole: bool
    entries: int
    broken: int | None = None
    why: str = ""
    head: str = ""
