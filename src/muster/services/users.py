# SPDX-License-Identifier: Apache-2.0
"""Who comes with which token: made, shown once, looked up, revoked; and sessions for those whom an issuer knows."""

from __future__ import annotations

import hashlib
import re
import threading
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from muster.domain.model.access import Grade, User
from muster.domain.model.errors import Conflict, InputError, NotAllowed, NotFound
from muster.domain.model.moments import rfc3339
from muster.spi.users import SESSION, TOKEN, NewToken, TokenRow, UserStore

PREFIX = "muster_"
"""Every token begins with it, so that one which leaked is known for what it is."""
BITS = 256
SESSION_S = 12 * 3600.0
"""Seconds that a session lasts."""
LONGEST_S = 10 * 366 * 86_400.0
KNOWN_S = 1.0
"""Seconds for which a token that was looked up is known without asking the store again; a revocation here ends it at once."""
COARSE_S = 3600.0
"""How exactly the last use is kept."""
ENDED_S = 30 * 86_400.0
"""How long tokens that ended are listed."""
MOST_KNOWN = 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
_PATTERN = re.compile(r"[A-Za-z0-9._*?\[\]!-]{1,200}")


class Identity(Protocol):
    """Someone whom the issuer knows."""

    @property
    def name(self) -> str:
        """What they are called in the audit."""

    @property
    def grade(self) -> Grade:
        """What their groups may."""


class SignIn(Protocol):
    """The one who checks what an issuer signed."""

    def check(self, proof: str, nonce: str, now: float) -> Identity:
        """Who it is. Raises NotAllowed, or Unavailable when the issuer does not answer."""

    def issuer(self) -> tuple[str, str]:
        """The issuer, and our name there."""


class Tokens:
    """The tokens of a site. ``mint`` gives random bytes. Safe for several threads."""

    def __init__(self, store: UserStore, mint: Callable[[int], bytes], sign_in: SignIn | None = None) -> None:
        self._store = store
        self._mint = mint
        self._sign_in = sign_in
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, TokenRow]] = OrderedDict()
        self._used: dict[str, float] = {}

    def user(self, token: str, now: float) -> User:
        """Whose token this is. Raises NotAllowed: unknown, ended or revoked."""
        row = self._row(digest(token), now) if token.startswith(PREFIX) else None
        if row is None:
            raise NotAllowed("the token is not known", hint="`muster login URL` keeps one that is; an admin makes it with `muster token create`")
        if ended := row.ended(now):
            raise NotAllowed(f"the token {row.name} is {ended}", hint="ask an admin for another, or sign in again with `muster login URL --oidc`")
        if now - max(row.used_at or 0.0, self._used.get(row.id, 0.0)) >= COARSE_S:
            self._used[row.id] = now
        via = "oidc" if row.kind == SESSION else "token"
        return User(name=row.name, grade=row.grade, via=via, token=row.id, nodes=row.nodes, reads=row.reads)

    def _row(self, found: str, now: float) -> TokenRow | None:
        with self._lock:
            asked, row = self._known.get(found, (-1e18, None))
            if row is not None and 0 <= now - asked < KNOWN_S:
                return row
        fresh = self._store.by_digest(found)
        with self._lock:
            self._known.pop(found, None)
            if fresh is not None:
                self._known[found] = (now, fresh)
                while len(self._known) > MOST_KNOWN:
                    self._known.popitem(last=False)
        return fresh

    def create(self, asked: NewToken, by: User, now: float) -> tuple[TokenRow, str]:
        """A new token and its secret, which is told this once. Raises InputError or Conflict."""
        _check(asked)
        if any(each.name == asked.name for each in self.tokens(now)):
            raise Conflict(f"there is a token called {asked.name}", hint=f"give it another name, or end that one first: muster token revoke {asked.name}")
        row, secret = self._made(TOKEN, asked, signature(by), now)
        self._store.add(row, _entry("create_token", by, now, row))
        return row, secret

    def _made(self, kind: str, asked: NewToken, by: str, now: float, origin: str | None = None) -> tuple[TokenRow, str]:
        secret = PREFIX + urlsafe_b64encode(self._mint(BITS // 8)).decode().rstrip("=")
        row = TokenRow(
            id=f"tok-{self._mint(5).hex()}",
            name=asked.name,
            kind=kind,
            grade=asked.grade,
            digest=digest(secret),
            created_at=now,
            created_by=by,
            nodes=asked.nodes,
            reads=asked.reads,
            expires_at=None if asked.lifetime is None else now + asked.lifetime,
            origin=origin,
        )
        return row, secret

    def tokens(self, now: float, *, ended: bool = False) -> list[TokenRow]:
        """Tokens that live; those that ended of late too, when asked for."""
        rows = self._store.tokens(now - ENDED_S if ended else now)
        return [self._now(row) for row in rows if ended or not row.ended(now)]

    def _now(self, row: TokenRow) -> TokenRow:
        used = self._used.get(row.id)
        return row if used is None else replace(row, used_at=max(used, row.used_at or 0.0))

    def revoke(self, word: str, by: User, now: float) -> list[TokenRow]:
        """Ends the token of that id, or every token and session of that name; those that were ended. Raises NotFound."""
        living = self.tokens(now)
        found = [row for row in living if row.id == word] or [row for row in living if row.name == word]
        if not found:
            raise NotFound(f"no token {word!r}", hint="`muster token list` lists those that live")
        self._store.revoke([row.id for row in found], now, signature(by), _entry("revoke_token", by, now, *found))
        self.forget()
        return found

    def sign_out(self, user: User, now: float) -> None:
        """Ends the session of a user; a token that an admin made stays."""
        found = [row for row in self.tokens(now) if row.id == user.token and row.kind == SESSION]
        if found:
            self._store.revoke([user.token], now, signature(user), _entry("sign_out", user, now, *found))
            self.forget()

    def sign_in(self, proof: str, nonce: str, now: float) -> tuple[TokenRow, str]:
        """A session for an identity token of the issuer. Raises NotAllowed, or Unavailable when the issuer does not answer."""
        who = self.identity(proof, nonce, now)
        return self.session(who.name, who.grade, digest(proof), now)

    def identity(self, proof: str, nonce: str, now: float) -> Identity:
        """Who an identity token is of. It may ask the issuer for its keys. Raises NotAllowed or Unavailable."""
        if self._sign_in is None:
            raise NotAllowed("nobody signs in here through an issuer", hint="set oidc_issuer, or come with a token: muster login URL --token-file FILE")
        return self._sign_in.check(proof, nonce, now)

    def session(self, name: str, grade: Grade, origin: str, now: float) -> tuple[TokenRow, str]:
        """A session for somebody whose proof was checked; ``origin`` is its digest, which is good for one. Raises NotAllowed for a second."""
        row, secret = self._made(SESSION, NewToken(name=name, grade=grade, lifetime=SESSION_S), name, now, origin)
        by = User(name=name, grade=grade, via="oidc", token=row.id)
        try:
            self._store.add(row, _entry("sign_in", by, now, row))
        except Conflict as used:
            raise NotAllowed("this sign-in was used before", hint="sign in again") from used
        return row, secret

    def issuer(self) -> tuple[str, str]:
        """Where people sign in, and our name there; both empty when they do not."""
        return ("", "") if self._sign_in is None else self._sign_in.issuer()

    def flush(self, now: float) -> None:
        """Writes down which tokens were used, and forgets those that ended long ago. Not for every request: a look must not wait for the disk."""
        if used := self.lately():
            self._store.used(used)
        self._store.drop_ended(now - ENDED_S)

    def lately(self) -> dict[str, float]:
        """When tokens were used since this was asked last, by id."""
        used, self._used = self._used, {}
        return used

    def note(self, used: Mapping[str, float]) -> None:
        """Takes in when tokens were used at another door, to be written down with the rest."""
        for id_, at in used.items():
            self._used[id_] = max(at, self._used.get(id_, 0.0))

    def forget(self) -> None:
        """Looks every token up anew."""
        with self._lock:
            self._known.clear()


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def signature(user: User) -> str:
    """How a user stands in the audit."""
    return user.name


def _entry(what: str, by: User, now: float, *rows: TokenRow) -> Mapping[str, Any]:
    """The entry of the audit for tokens that were made or ended: who and which, never the secret nor its digest."""
    told = [
        {
            "id": row.id,
            "name": row.name,
            "kind": row.kind,
            "grade": row.grade.value,
            **({"nodes": list(row.nodes)} if row.nodes else {}),
            **({"reads": sorted(row.reads)} if row.reads else {}),
            **({"expires_at": rfc3339(row.expires_at)} if row.expires_at is not None else {}),
        }
        for row in rows
    ]
    return {"at": now, "by": signature(by), "what": what, "asked_by": asker(by), "tokens": told}


def asker(user: User) -> str:
    """How the server knows a user, for the audit: ``token ID`` or ``oidc ID``; ``local`` and the account where that is known."""
    return f"{user.via} {user.token or user.name}".strip()


def _check(asked: NewToken) -> None:
    if not _NAME.fullmatch(asked.name):
        raise InputError(f"{asked.name!r} is no name for a token", hint="up to 100 letters, digits and . _ @ + - like ann@example.org or ci-reader")
    if asked.lifetime is not None and not 60 <= asked.lifetime <= LONGEST_S:
        raise InputError(f"a token cannot last {asked.lifetime:g} seconds", hint="from a minute to ten years, like 30d; leave it out for one without end")
    wrong = next((each for each in asked.nodes if not _PATTERN.fullmatch(each)), None)
    if wrong is not None:
        raise InputError(f"{wrong!r} is no pattern of node names", hint="like rack1-*")
    if asked.grade is Grade.ADMIN and (asked.nodes or asked.reads):
        raise InputError("an admin lets others in, so that no scope can hold them", hint="make it a viewer or operator, or leave the scope out")
    if asked.reads and asked.grade is not Grade.VIEWER:
        raise InputError("who may only read is a viewer", hint="--role viewer, or leave read= out of the scope")
