# SPDX-License-Identifier: Apache-2.0
"""The tokens as a door sees them that has a process of its own: it looks them up by itself, and hands to the writer whatever changes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from muster.domain.model.access import Grade, User
from muster.services.users import Tokens, digest
from muster.spi.users import NewToken, TokenRow


class Far(Protocol):
    """The writer's side. What is handed over and what comes back are plain values."""

    def create(self, asked: NewToken, by: User, now: float) -> tuple[TokenRow, str]:
        """A new token and its secret."""

    def revoke(self, word: str, by: User, now: float) -> list[TokenRow]:
        """Ends tokens."""

    def sign_out(self, user: User, now: float) -> None:
        """Ends a session."""

    def session(self, name: str, grade: Grade, origin: str, now: float) -> tuple[TokenRow, str]:
        """A session for somebody whose proof was checked."""

    def note(self, used: Mapping[str, float]) -> None:
        """When tokens were used."""


HANDED = ("create", "revoke", "sign_out", "session", "note")
"""What is handed to the writer."""


class NearTokens:
    """A door's tokens: ``near`` reads the store, ``far`` is the writer. What this door ends is ended here at once, and at other doors within a second."""

    def __init__(self, near: Tokens, far: Far) -> None:
        self._near = near
        self._far = far

    def user(self, token: str, now: float) -> User:
        """Whose token this is. Raises NotAllowed."""
        return self._near.user(token, now)

    def tokens(self, now: float, *, ended: bool = False) -> list[TokenRow]:
        """Tokens that live; those that ended of late too, when asked for."""
        return self._near.tokens(now, ended=ended)

    def issuer(self) -> tuple[str, str]:
        """Where people sign in, and our name there."""
        return self._near.issuer()

    def create(self, asked: NewToken, by: User, now: float) -> tuple[TokenRow, str]:
        """A new token and its secret, which is told this once. Raises InputError or Conflict."""
        return self._far.create(asked, by, now)

    def revoke(self, word: str, by: User, now: float) -> list[TokenRow]:
        """Ends tokens. Raises NotFound."""
        try:
            return self._far.revoke(word, by, now)
        finally:
            self._near.forget()

    def sign_out(self, user: User, now: float) -> None:
        """Ends the session of a user."""
        try:
            self._far.sign_out(user, now)
        finally:
            self._near.forget()

    def sign_in(self, proof: str, nonce: str, now: float) -> tuple[TokenRow, str]:
        """A session for an identity token of the issuer, who is asked here: the writer waits for nobody. Raises NotAllowed or Unavailable."""
        who = self._near.identity(proof, nonce, now)
        return self._far.session(who.name, who.grade, digest(proof), now)

    def flush(self, now: float) -> None:
        """Tells the writer which tokens were used, once in a while."""
        del now
        if used := self._near.lately():
            self._far.note(used)
