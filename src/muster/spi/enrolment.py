# SPDX-License-Identifier: Apache-2.0
"""What enrolment needs of a store, and of what signs access tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from muster.domain.model.access import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinToken:
    """A one-time token as it is kept: by the digest of its text. Its scope bounds what joins by it; one node without a name is any node."""

    id: str
    digest: str
    scope: Scope
    uses: int
    left: int
    created_at: float
    expires_at: float
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A reporter that joined. ``name_key``, ``machine_key`` and ``system_key`` are the forms in which names are compared; empty where it has none."""

    reporter: str
    name: str
    machine_id: str
    system: str
    name_key: str
    machine_key: str
    system_key: str
    public_key: bytes
    scope: Scope
    generation: int
    """Grows with each key, and when it is revoked; an access token holds for one generation."""
    token: str
    """Id of the join token by which it came."""
    enrolled_at: float
    keyed_at: float
    agent_version: str = ""
    revoked_at: float | None = None
    revoked_by: str = ""
    reason: str = ""
    reenrol_until: float | None = None
    """Until when a new key may take the place of this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """An entry for the audit: who did what to what, and how it ended."""

    at: float
    by: str
    what: str
    target: str
    result: str
    detail: Mapping[str, Any]


class EnrolmentRows(Protocol):
    """One transaction on tokens and members."""

    def token(self, digest: str) -> JoinToken | None:
        """The token of this digest."""

    def tokens(self) -> list[JoinToken]:
        """All tokens."""

    def put_token(self, token: JoinToken) -> None:
        """Keeps a new token."""

    def drop_token(self, id_: str) -> bool:
        """Forgets a token. False when there is none."""

    def spend(self, id_: str, now: float) -> bool:
        """Takes one use away. False when none is left or it has ended: whoever asks second gets that."""

    def members(self) -> list[Member]:
        """All members."""

    def kin(self, public_key: bytes, name_key: str, machine_key: str, system_key: str) -> list[Member]:
        """Members that have this key, or one of these names."""

    def member(self, reporter: str) -> Member | None:
        """The member of this name."""

    def put(self, member: Member) -> None:
        """Keeps a member. Raises Conflict when its key or reporter's name is another's meanwhile."""

    def audit(self, deed: Deed) -> None:
        """Writes the audit; the transaction fails when it cannot."""


class EnrolmentStore(Protocol):
    """Where tokens and members are kept."""

    def change(self) -> AbstractContextManager[EnrolmentRows]:
        """One transaction, durable when it ends, undone by any exception. Raises Unavailable."""

    def changed(self, after: int) -> tuple[int, Sequence[Member]]:
        """The number of the last change, and members changed after number ``after`` (0: all). Cheap when nothing changed; never waits for the writer."""

    def told(self) -> Sequence[tuple[str, tuple[str, str, str]]]:
        """Reporters, joined or not, and how they call the nodes that they tell of: name, machine id, system. Does not wait for the writer."""

    def tokens(self) -> list[JoinToken]:
        """All tokens, without waiting for the writer."""


class Signer(Protocol):
    """Makes and reads signed claims."""

    def sign(self, claims: Mapping[str, Any]) -> str:
        """The claims as a token."""

    def read(self, token: str) -> Mapping[str, Any]:
        """The claims of a token that we signed. Raises NotAllowed."""
