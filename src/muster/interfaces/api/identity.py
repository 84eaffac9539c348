# SPDX-License-Identifier: Apache-2.0
"""Who asks: by the way they come (socket, this machine) or by a token. Everything but a few words on the server's state is for those who are known."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from ipaddress import IPv6Address, ip_address
from typing import Any

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from muster.domain.model.access import User
from muster.domain.model.errors import NotAllowed, Unavailable
from muster.interfaces.api import problems
from muster.interfaces.api.guard import PUBLIC, key
from muster.wiring.desk import Desk
from muster.wiring.entrance import NOBODY, PEER

MOST_FAILED = 10
"""Tokens that were none, from one address within WINDOW_S; more are not looked at."""
WINDOW_S = 60.0
MOST_ADDRESSES = 10_000
MOST_TRUSTED = 1_000
LONGEST_TOKEN = 512

log = structlog.get_logger("muster.access")


class Refusals:
    """Who was not let in: counted by status, and told to the log."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def told(self, status: int, why: str, scope: Scope, user: User | None = None, *, quiet: bool = False) -> None:
        """One refusal. Nothing that came with the request but method and path is written, both in plain letters."""
        self.counts[status] += 1
        if not quiet:
            who = {"user": user.name, "token": user.token} if user is not None else {}
            log.warning("refused", status=status, why=why, address=address(scope), method=scope["method"], path=problems.shown(scope["path"]), **who)


class Attempts:
    """Failed attempts by address. Who was let in before is not locked out by a neighbour who fails."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()
        self._trusted: OrderedDict[int, None] = OrderedDict()

    def wait(self, where: str, token: str, now: float) -> float:
        """Seconds until another token is looked at; 0: now."""
        failed = self._failed.get(where)
        if failed is None or hash(token) in self._trusted:
            return 0.0
        while failed and not 0 <= now - failed[0] < WINDOW_S:
            failed.popleft()
        return failed[0] + WINDOW_S - now if len(failed) >= MOST_FAILED else 0.0

    def failed(self, where: str, now: float) -> None:
        """One more."""
        self._failed.setdefault(where, deque(maxlen=MOST_FAILED)).append(now)
        self._failed.move_to_end(where)
        while len(self._failed) > MOST_ADDRESSES:
            self._failed.popitem(last=False)

    def passed(self, token: str) -> None:
        """A token that let somebody in."""
        self._trusted[hash(token)] = None
        self._trusted.move_to_end(hash(token))
        while len(self._trusted) > MOST_TRUSTED:
            self._trusted.popitem(last=False)


def address(scope: Scope) -> str:
    """From where the request comes: an address; of IPv6 the network, as one machine has many; ``unix`` for the socket. What a header says is not believed."""
    host = str((scope.get("client") or ("unknown", 0))[0])
    try:
        found = ip_address(host)
    except ValueError:
        return host
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped) if found.ipv4_mapped else f"{IPv6Address(int(found) >> 64 << 64)}/64"
    return str(found)


class Identity:
    """Puts the user into the request's state, or answers 401. Outside of the routes, so that nothing is served around it."""

    def __init__(self, app: ASGIApp, desk: Desk, refusals: Refusals, attempts: Attempts) -> None:
        self._app = app
        self._desk = desk
        self._refusals = refusals
        self._attempts = attempts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what comes from somebody who is known, or asks for what is public."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        user = await self._user(scope)
        if isinstance(user, User):
            scope.setdefault("state", {})["user"] = user
            await self._app(scope, receive, send)
            return
        await user(scope, receive, send)

    async def _user(self, scope: Scope) -> User | Any:
        """The user, or the answer that refuses."""
        told = [bytes(value) for name, value in scope["headers"] if name == b"authorization"]
        if told:
            return await self._by_token(scope, told)
        client = scope.get("client")
        user = self._desk.entrance.known((str(client[0]), int(client[1] or 0)) if client else None)
        if user is None and key(scope["method"], scope["path"]) in PUBLIC:
            return NOBODY
        return user or self._refused(scope, "no token", "this needs a token")

    async def _by_token(self, scope: Scope, told: list[bytes]) -> User | Any:
        scheme, _, text = told[0].decode("latin-1").partition(" ")
        token = text.strip()
        if len(told) > 1 or scheme.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN:
            return self._failed(scope, "no bearer token", "the header Authorization does not hold one bearer token")
        now, where = self._desk.clock(), address(scope)
        wait = 0.0 if where == PEER else self._attempts.wait(where, token, now)
        if wait > 0:
            return self._too_often(scope, wait)
        if self._desk.users is None:
            return self._failed(scope, "no tokens here", "nobody comes by a token here", "leave the header Authorization out")
        try:
            user = await run_in_threadpool(self._desk.users.user, token, now)
        except NotAllowed as refused:
            return self._failed(scope, refused.message, refused.message, refused.hint)
        except Unavailable as error:
            return problems.answer(503, error.code, error.message, hint=error.hint, instance=scope["path"])
        self._attempts.passed(token)
        return user

    def _failed(self, scope: Scope, why: str, detail: str, hint: str = "") -> Any:
        self._attempts.failed(address(scope), self._desk.clock())
        return self._refused(scope, why, detail, hint, error=', error="invalid_token"')

    def _refused(self, scope: Scope, why: str, detail: str, hint: str = "", error: str = "") -> Any:
        self._refusals.told(401, why, scope)
        issuer, client = self._desk.users.issuer() if self._desk.users else ("", "")
        people = f', oidc_issuer="{issuer}", oidc_client_id="{client}"' if issuer else ""
        headers = {"www-authenticate": f'Bearer realm="muster"{error}{people}'}
        return problems.answer(401, "not_signed_in", detail, hint=hint or _SIGN_IN, headers=headers, instance=scope["path"])

    def _too_often(self, scope: Scope, wait: float) -> Any:
        self._refusals.told(429, "too many attempts", scope, quiet=True)
        headers = {"retry-after": str(int(wait) + 1)}
        detail = "too many tokens from this address were not known"
        hint = f"wait {int(wait) + 1} seconds, and find out which program shows an old token"
        return problems.answer(429, "too_many_attempts", detail, hint=hint, headers=headers, instance=scope["path"])


_SIGN_IN = "muster login URL --token-file FILE keeps a token; an admin makes one with `muster token create NAME`; on the server's machine its socket needs none"
