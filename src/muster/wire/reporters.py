# SPDX-License-Identifier: Apache-2.0
"""Documents of the API on those who report: who joined, and the one-time tokens to join by. A token's text is in the answer that makes it alone."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from muster.wire.documents import Time

_REACH = {"enum": ["node", "list", "cluster"]}


class ReporterScope(Struct):
    """For whom it speaks: one node, the nodes that are listed (host names and machine ids), or a cluster. One node without a name: any, each for itself."""

    reach: Annotated[str, Meta(extra_json_schema=_REACH)]
    nodes: list[str]
    cluster: str | None


class Reporter(Struct):
    """A reporter that joined. `state` is joined, revoked, left, or reopened: it may join once more, with another key."""

    id: str
    node: str
    state: Annotated[str, Meta(extra_json_schema={"enum": ["joined", "revoked", "left", "reopened"]})]
    scope: ReporterScope
    machine_id: str | None
    joined_at: Time | None
    keyed_at: Time | None
    """Since when it has its present key."""
    agent_version: str | None
    join_token: str
    """Id of the token by which it joined."""
    revoked_at: Time | None = None
    revoked_by: str | None = None
    reason: str | None = None
    reopened_until: Time | None = None


class JoinToken(Struct):
    """A one-time token to join by, without its text."""

    id: str
    scope: ReporterScope
    uses: int
    left: int
    """Uses that are left."""
    created_at: Time | None
    expires_at: Time | None
    by: str


class JoinTokenRequest(Struct, omit_defaults=True):
    """Asks for a token. Without `node`, `nodes` and `cluster` any node may join by it, each for itself."""

    node: Annotated[str, Meta(max_length=256)] = ""
    nodes: Annotated[list[Annotated[str, Meta(max_length=256)]], Meta(max_length=20_000)] = []
    cluster: Annotated[str, Meta(max_length=256)] = ""
    uses: Annotated[int, Meta(ge=1, le=100_000)] = 1
    lasts: Annotated[float, Meta(ge=1, le=7_776_000)] = 3600.0
    """Seconds for which it holds."""


class JoinTokenMade(Struct):
    """A new token. `token` is its text, told this once; `authority` is the fingerprint that a node checks before it sends the token."""

    id: str
    token: str
    expires_at: Time | None
    authority: str | None
    address: str | None
    """Where to join, as far as the server knows."""


class RevokeRequest(Struct, omit_defaults=True):
    """Why a reporter ends."""

    reason: Annotated[str, Meta(max_length=2000)] = ""


class ReenrolRequest(Struct, omit_defaults=True):
    """For how long another key may take the place of the present one."""

    lasts: Annotated[float, Meta(ge=60, le=604_800)] = 3600.0


class Reopened(Struct):
    """A reporter that may join once more, and a token for that."""

    reporter: Reporter
    made: JoinTokenMade


DOCUMENTS: tuple[Any, ...] = (Reporter, JoinToken, JoinTokenRequest, JoinTokenMade, RevokeRequest, ReenrolRequest, Reopened)
