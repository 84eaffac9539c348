# SPDX-License-Identifier: Apache-2.0
"""Users: who asks, the tokens they come with, and sessions for those whom an issuer knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from muster.domain.model.access import Grade, Part
from muster.domain.model.errors import InputError, NotAllowed
from muster.domain.model.moments import rfc3339
from muster.interfaces.api.answers import AtDesk, answers, ref
from muster.interfaces.api.identity import address
from muster.interfaces.api.paging import json_answer
from muster.interfaces.api.params import body_schema, json_body
from muster.interfaces.api.problems import WebError
from muster.spi.users import NewToken, TokenOffice, TokenRow
from muster.wire import sign_in as s
from muster.wiring.desk import Desk
from muster.wiring.entrance import PEER

router = APIRouter(prefix="/api/v1", tags=["users"])

TOKEN_LIST = {
    "title": "UserTokenList",
    "type": "object",
    "required": ["items"],
    "properties": {"items": {"type": "array", "items": ref("UserToken")}},
}
_SECRET = {"cache-control": "no-store"}


@router.get("/whoami", summary="Who asks", **answers(ref("Whoami"), "Who you are here, and what you may"))
def whoami(desk: AtDesk) -> Response:
    """How the server knows you: by the token that came with the request, or by the way it came."""
    user = desk.user
    return json_answer(
        s.Whoami(
            name=user.name or "a program on the server's machine",
            role=user.grade.value,
            via=user.via,
            token=user.token or None,
            nodes=list(user.nodes),
            reads=sorted(user.reads),
        )
    )


@router.get("/tokens", summary="List tokens", **answers(ref("UserTokenList"), "Tokens, the oldest first", 400))
def tokens(desk: AtDesk, ended: Annotated[bool, Query(description="Those that ended in the last 30 days too.")] = False) -> Response:
    """Tokens and sessions that live. Secrets are not among what is kept."""
    now = desk.clock()
    return json_answer({"items": [token(row, now) for row in _office(desk).tokens(now, ended=ended)]})


@router.post(
    "/tokens",
    summary="Make a token",
    **answers(ref("UserTokenMade"), "The token with its secret", 409, 413, 415),
    openapi_extra=body_schema("UserTokenRequest"),
)
async def create(desk: AtDesk, request: Request) -> Response:
    """A token for a person or program. The secret in the answer is told this once."""
    told = await json_body(request, s.UserTokenRequest)
    asked = NewToken(name=told.name, grade=_grade(told.role), lifetime=told.lifetime, nodes=tuple(told.nodes), reads=_parts(told.reads))
    now = desk.clock()
    row, secret = await run_in_threadpool(_office(desk).create, asked, desk.user, now)
    return _made(row, secret, now)


def _made(row: TokenRow, secret: str, now: float) -> Response:
    answer = json_answer(s.UserTokenMade(token=token(row, now), secret=secret))
    answer.headers.update(_SECRET)
    return answer


@router.delete("/tokens/{token}", summary="End a token", **answers(ref("UserTokenList"), "The tokens that were ended", 404))
def revoke(desk: AtDesk, token: Annotated[str, Path(max_length=200, description="Its id, or a name: every token and session of that name.")]) -> Response:
    """Ends a token at once: the next request that comes with it is refused."""
    now = desk.clock()
    return json_answer({"items": [_document(row, now, "revoked") for row in _office(desk).revoke(token, desk.user, now)]})


@router.post(
    "/login/oidc",
    summary="Sign in",
    **answers(ref("UserTokenMade"), "A session of 12 hours, with its secret", 413, 415),
    openapi_extra=body_schema("SignInRequest"),
)
async def sign_in(desk: AtDesk, request: Request) -> Response:
    """A session for who shows an identity token of the issuer that the server knows. It counts once, and within ten minutes of its making."""
    where, now = address(request.scope), desk.clock()
    attempts, refusals = request.app.state.attempts, request.app.state.refusals
    wait = 0.0 if where == PEER else attempts.wait(where, "", now)
    if wait > 0:
        refusals.told(429, "too many attempts", request.scope, quiet=True)
        raise WebError(429, "too many sign-ins from this address failed", hint=f"wait {int(wait) + 1} seconds")
    told = await json_body(request, s.SignInRequest)
    try:
        row, secret = await run_in_threadpool(_office(desk).sign_in, told.id_token, told.nonce, now)
    except NotAllowed as refused:
        attempts.failed(where, now)
        refusals.told(403, refused.message, request.scope)
        raise
    return _made(row, secret, now)


@router.post("/logout", summary="Sign out", **answers(ref("Whoami"), "Who signed out"))
def sign_out(desk: AtDesk) -> Response:
    """Ends the session that the request came with. A token that an admin made is not ended by it, nor anything of who comes without one."""
    if desk.users is not None:
        desk.users.sign_out(desk.user, desk.clock())
    return whoami(desk)


def _office(desk: Desk) -> TokenOffice:
    if desk.users is None:
        raise NotAllowed("no tokens are kept here", hint="a server keeps them; this is the API within a program")
    return desk.users


def _grade(text: str) -> Grade:
    if text not in set(Grade):
        raise InputError(f"role={text!r} is no role", hint=f"one of {', '.join(Grade)}")
    return Grade(text)


def _parts(told: Iterable[str]) -> frozenset[Part]:
    wrong = next((each for each in told if each not in set(Part)), None)
    if wrong is not None:
        raise InputError(f"reads: there is no part {wrong!r}", hint=f"parts are {', '.join(Part)}")
    return frozenset(Part(each) for each in told)


def token(row: TokenRow, now: float) -> s.UserToken:
    """The document of a token."""
    return _document(row, now, row.ended(now) or "live")


def _document(row: TokenRow, now: float, state: str) -> s.UserToken:
    del now
    return s.UserToken(
        id=row.id,
        name=row.name,
        kind=row.kind,
        role=row.grade.value,
        state=state,
        created_at=rfc3339(row.created_at),
        created_by=row.created_by,
        nodes=list(row.nodes),
        reads=sorted(row.reads),
        expires_at=_when(row.expires_at),
        used_at=_when(row.used_at),
        revoked_at=_when(row.revoked_at),
        revoked_by=row.revoked_by,
    )


def _when(at: float | None) -> str | None:
    return None if at is None else rfc3339(at)
