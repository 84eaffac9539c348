# SPDX-License-Identifier: Apache-2.0
"""What the doors ask of those who know who is who, and of the writer when reports come by many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.domain.model.access import Scope, Speaker, User
from muster.domain.model.errors import MusterError
from muster.spi.enrolment import JoinToken, Member
from muster.wire.enrol import Enrolled, Signed, Token
from muster.wire.report import AnswerDoc, NodeDoc


class Gate(Protocol):
    """Reporters at the door of the site. Safe for several threads. ``peer`` is the address that asks, for the audit."""

    def authority(self) -> bytes:
        """The certificate of our authority, PEM; what joins is told its fingerprint by another way."""

    def enrol(self, asked: Signed, now: float, peer: str = "") -> Enrolled:
        """Lets a reporter in by a one-time token. Raises NotAllowed, Conflict or InputError."""

    def token(self, asked: Signed, now: float, peer: str = "") -> Token:
        """An access token for who shows the enrolled key. Raises NotAllowed, Conflict or InputError."""

    def renew(self, asked: Signed, now: float, peer: str = "") -> Enrolled:
        """Takes a new key for the old one. Raises NotAllowed, Conflict or InputError."""

    def leave(self, asked: Signed, now: float, peer: str = "") -> None:
        """Ends a reporter by its own word. Raises NotAllowed or InputError."""

    def speaker(self, token: str, now: float) -> Speaker:
        """Whose access token this is; cheap when it was seen before. Raises NotAllowed: unknown, ended or revoked."""


class Bounds(Protocol):
    """What a reporter may speak of."""

    def check(self, speaker: Speaker, reporter: str, node: NodeDoc, cluster: str = "") -> None:
        """Raises NotAllowed when a report under this name, of this node (of ``cluster``, where that is known), is not the speaker's to make."""


class AtHome(Protocol):
    """What a program of the server's own machine may report without a token."""

    def at_home(self, reporter: str) -> None:
        """Raises NotAllowed for the name of a reporter that joined."""

    def heard(self, reporter: str, node: NodeDoc) -> None:
        """Takes note of the node of which it told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where reporters join, and the fingerprint of the authority that they find there; empty where that is not known."""

    address: str
    fingerprint: str


class Reporters(Protocol):
    """Reporters as users see and rule them. ``by`` goes into the audit, without which nothing is done."""

    def where(self) -> Where:
        """Where they join."""

    def mint(self, scope: Scope, uses: int, lasts: float, by: str, now: float) -> tuple[JoinToken, str]:
        """A new join token, and its text, which is told once. A scope of one node without a name is for any node, each for itself. Raises InputError."""

    def tokens(self, now: float) -> list[JoinToken]:
        """Join tokens that can still be used, newest first."""

    def drop(self, token: str, by: str, now: float) -> None:
        """Ends a join token, by its id. Raises NotFound."""

    def members(self) -> list[Member]:
        """All who ever joined, by name of the reporter."""

    def revoke(self, who: str, by: str, reason: str, now: float) -> Member:
        """Ends a reporter and its access tokens at once; found by reporter, node name or machine id. Raises NotFound, Ambiguous or Conflict."""

    def reenrol(self, who: str, lasts: float, by: str, now: float) -> tuple[Member, JoinToken, str]:
        """Lets this node join once more with another key, and a token for that. Raises NotFound, Ambiguous or InputError."""


class Users(Protocol):
    """Users at the API. Safe for several threads."""

    def user(self, token: str, now: float) -> User:
        """Whose token this is. Raises NotAllowed: unknown, ended or revoked."""


class Intake(Protocol):
    """The writer as the listener of reporters sees it. Called by one thread at a time."""

    def take(self, posts: Sequence[tuple[Speaker, bytes]], now: float) -> list[AnswerDoc | MusterError]:
        """Takes packed reports in, all in one commit; one answer for each. What it answers is durable when it returns."""
