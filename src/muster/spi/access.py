# SPDX-License-Identifier: Apache-2.0
"""What the doors ask of those who know who is who, and of the writer when reports come by many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from muster.domain.model.access import Speaker, User
from muster.domain.model.errors import MusterError
from muster.wire.enrol import Enrolled, EnrolRequest, Token, TokenRequest
from muster.wire.report import AnswerDoc


class Gate(Protocol):
    """Reporters at the door of the site. Safe for several threads."""

    def authority(self) -> bytes:
        """The certificate of our authority, PEM; what joins is told its fingerprint by another way."""

    def enrol(self, asked: EnrolRequest, now: float) -> Enrolled:
        """Lets a reporter in by a one-time token. Raises NotAllowed or Conflict."""

    def token(self, asked: TokenRequest, now: float) -> Token:
        """An access token for who shows the enrolled key. Raises NotAllowed."""

    def speaker(self, token: str, now: float) -> Speaker:
        """Whose access token this is; cheap when it was seen before. Raises NotAllowed: unknown, ended or revoked."""


class Users(Protocol):
    """Users at the API. Safe for several threads."""

    def user(self, token: str, now: float) -> User:
        """Whose token this is. Raises NotAllowed: unknown, ended or revoked."""


class Intake(Protocol):
    """The writer as the listener of reporters sees it. Called by one thread at a time."""

    def take(self, posts: Sequence[tuple[Speaker, bytes]], now: float) -> list[AnswerDoc | MusterError]:
        """Takes packed reports in, all in one commit; one answer for each. What it answers is durable when it returns."""
