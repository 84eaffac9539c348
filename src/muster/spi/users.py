# SPDX-License-Identifier: Apache-2.0
"""What those who know the users ask of a store: tokens by the digest of their secret. Whatever changes one is in the audit by the same commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from muster.domain.model.access import Grade, Part, User

TOKEN, SESSION = "token", "session"
"""Kinds: one that an admin made, and one that was given for a sign-in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token as it is kept: never its secret."""

    id: str
    name: str
    """Who comes with it."""
    kind: str
    grade: Grade
    digest: str
    """SHA-256 of the secret. It has 256 random bits, so that a slow digest would protect nothing."""
    created_at: float
    created_by: str
    nodes: tuple[str, ...] = ()
    reads: frozenset[Part] = frozenset()
    expires_at: float | None = None
    used_at: float | None = None
    """When it was used last, to the hour."""
    revoked_at: float | None = None
    revoked_by: str = ""
    origin: str | None = None
    """Digest of the proof that a session was given for: each is good for one."""

    def ended(self, now: float) -> str:
        """Why it lets nobody in at ``now``; empty when it does."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else ""


class UserStore(Protocol):
    """Where tokens are kept. Safe for several threads."""

    def by_digest(self, digest: str) -> TokenRow | None:
        """The token whose secret has this digest."""

    def tokens(self, ended_after: float | None = None) -> list[TokenRow]:
        """Tokens by time of making: those that live, and those that ended after that time; all when None."""

    def add(self, row: TokenRow, audit: Mapping[str, Any]) -> None:
        """Keeps a new token, with its entry of the audit. Raises Conflict for an origin that was used."""

    def revoke(self, ids: Sequence[str], at: float, by: str, audit: Mapping[str, Any]) -> int:
        """Ends tokens, with the entry of the audit; how many there were to end."""

    def used(self, at: Mapping[str, float]) -> None:
        """Notes when tokens were used last."""

    def drop_ended(self, before: float) -> int:
        """Forgets tokens that ended before that time; how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token that is asked for."""

    name: str
    grade: Grade
    lifetime: float | None = None
    """Seconds; None: until it is revoked."""
    nodes: tuple[str, ...] = ()
    reads: frozenset[Part] = frozenset()


class TokenOffice(Protocol):
    """Who gives tokens out, as doors see it. Safe for several threads."""

    def user(self, token: str, now: float) -> User:
        """Whose token this is. Raises NotAllowed: unknown, ended or revoked."""

    def create(self, asked: NewToken, by: User, now: float) -> tuple[TokenRow, str]:
        """A new token and its secret, which is told this once. Raises InputError or Conflict."""

    def tokens(self, now: float, *, ended: bool = False) -> list[TokenRow]:
        """Tokens that live; those that ended of late too, when asked for."""

    def revoke(self, word: str, by: User, now: float) -> list[TokenRow]:
        """Ends the token of that id, or every token of that name; those that were ended. Raises NotFound."""

    def sign_out(self, user: User, now: float) -> None:
        """Ends the session of a user; a token that an admin made stays."""

    def sign_in(self, proof: str, nonce: str, now: float) -> tuple[TokenRow, str]:
        """A session for an identity token of the issuer. Raises NotAllowed, or Unavailable when the issuer does not answer."""

    def issuer(self) -> tuple[str, str]:
        """Where people sign in, and our name there; both empty when they do not."""
