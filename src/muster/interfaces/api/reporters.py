# SPDX-License-Identifier: Apache-2.0
"""Reporters: who joined, who may join, and ending it. Every change is in the audit; keys and digests are never told."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from muster.domain.model.access import Reach, Scope
from muster.domain.model.errors import Conflict, InputError, NotAllowed, NotFound
from muster.domain.model.moments import rfc3339
from muster.interfaces.api.answers import AtDesk, answers, ref
from muster.interfaces.api.paging import json_answer
from muster.interfaces.api.params import Limit, body_schema, json_body
from muster.spi import enrolment as kept
from muster.spi.access import Reporters
from muster.wire import reporters as r
from muster.wiring.desk import Desk

router = APIRouter(prefix="/api/v1", tags=["reporters"])

REPORTER_LIST = {
    "title": "ReporterList",
    "type": "object",
    "required": ["items", "next"],
    "properties": {"items": {"type": "array", "items": ref("Reporter")}, "next": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
}
JOIN_TOKEN_LIST = {
    "title": "JoinTokenList",
    "type": "object",
    "required": ["items"],
    "properties": {"items": {"type": "array", "items": ref("JoinToken")}},
}
_SECRET = {"cache-control": "no-store"}
Named = Annotated[str, Path(max_length=300, description="Its id, or the host name or machine id of its node.")]
After = Annotated[str, Query(max_length=300, description="`next` of the page before.")]


@router.get("/reporters", summary="List reporters", **answers(ref("ReporterList"), "Reporters by id", 400, 409))
def reporters(desk: AtDesk, limit: Limit = 100, cursor: After = "") -> Response:
    """All that ever joined: agents, collectors, controllers."""
    found = [each for each in _office(desk).members() if each.reporter > cursor and desk.sees(each.name)]
    now = desk.clock()
    items = [document(each, now) for each in found[:limit]]
    return json_answer({"items": items, "next": items[-1].id if len(found) > limit else None})


@router.post(
    "/reporters/{reporter:path}/revoke",
    summary="Revoke a reporter",
    **answers(ref("Reporter"), "The reporter that was ended", 403, 404, 409, 413, 415),
    openapi_extra=body_schema("RevokeRequest"),
)
async def revoke(desk: AtDesk, request: Request, reporter: Named) -> Response:
    """Ends a reporter: its access tokens are refused from now on, and it gets no other until it is let in again."""
    told = await json_body(request, r.RevokeRequest)
    now = desk.clock()
    ended = await run_in_threadpool(lambda: _office(desk).revoke(_seen(desk, reporter), desk.who, told.reason, now))
    return json_answer(document(ended, now))


@router.post(
    "/reporters/{reporter:path}/reenrol",
    summary="Let a node join once more",
    **answers(ref("Reopened"), "The reporter, and a token for its node", 403, 404, 409, 413, 415),
    openapi_extra=body_schema("ReenrolRequest"),
)
async def reenrol(desk: AtDesk, request: Request, reporter: Named) -> Response:
    """For a node with a new system: another key may take the place of its old one, once and for a while. The old key holds until then."""
    told = await json_body(request, r.ReenrolRequest)
    now = desk.clock()
    member, token, text = await run_in_threadpool(lambda: _office(desk).reenrol(_seen(desk, reporter), told.lasts, desk.who, now))
    answer = json_answer(r.Reopened(reporter=document(member, now), made=_made(desk, token, text)))
    answer.headers.update(_SECRET)
    return answer


@router.get("/join-tokens", summary="List join tokens", **answers(ref("JoinTokenList"), "Tokens that can be used, newest first", 400, 409))
def join_tokens(desk: AtDesk) -> Response:
    """Tokens by which reporters may join still. Their texts are not kept."""
    _whole(desk)
    return json_answer({"items": [_token(each) for each in _office(desk).tokens(desk.clock())]})


@router.post(
    "/join-tokens",
    summary="Make a join token",
    **answers(ref("JoinTokenMade"), "The token with its text", 403, 409, 413, 415),
    openapi_extra=body_schema("JoinTokenRequest"),
)
async def mint(desk: AtDesk, request: Request) -> Response:
    """A one-time token to join by: for a node, a list of nodes, a cluster, or any node. Its text is told this once."""
    told = await json_body(request, r.JoinTokenRequest)
    _whole(desk)
    scope = _asked(told)
    token, text = await run_in_threadpool(lambda: _office(desk).mint(scope, told.uses, told.lasts, desk.who, desk.clock()))
    answer = json_answer(_made(desk, token, text))
    answer.headers.update(_SECRET)
    return answer


@router.delete("/join-tokens/{token}", summary="Delete a join token", **answers(ref("JoinTokenList"), "The tokens that are left", 403, 404, 409))
def drop(desk: AtDesk, token: Annotated[str, Path(max_length=100, description="Its id.")]) -> Response:
    """Ends a token. Who joined by it stays."""
    _whole(desk)
    _office(desk).drop(token, desk.who, desk.clock())
    return join_tokens(desk)


def _office(desk: Desk) -> Reporters:
    found: Reporters | None = desk.enrolment
    if found is None:
        raise Conflict("this server lets no reporters in", hint="it listens for none; its settings say where it would")
    return found


def _whole(desk: Desk) -> None:
    if not desk.whole:
        raise NotAllowed("join tokens are of the whole site", hint="ask an admin who sees every node")


def _seen(desk: Desk, word: str) -> str:
    """The id of the reporter that is meant, as far as its node is in sight. Raises NotFound."""
    if desk.whole:
        return word
    found = [each for each in _office(desk).members() if word in (each.reporter, each.name, each.machine_id) and desk.sees(each.name)]
    if len(found) != 1:
        raise NotFound(f"no reporter of a node {word!r} has joined", hint="`muster agent list` shows all that you see")
    return found[0].reporter


def _asked(told: r.JoinTokenRequest) -> Scope:
    given = [name for name, value in (("node", told.node), ("nodes", told.nodes), ("cluster", told.cluster)) if value]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} do not go together", hint="one of them says for whom the token is")
    if told.cluster:
        return Scope(reach=Reach.CLUSTER, cluster=told.cluster)
    if told.nodes:
        return Scope(reach=Reach.LIST, nodes=frozenset(told.nodes))
    return Scope(reach=Reach.NODE, nodes=frozenset({told.node} if told.node else ()))


def document(member: kept.Member, now: float) -> r.Reporter:
    """A reporter as it is told."""
    return r.Reporter(
        id=member.reporter,
        node=member.name,
        state=_state(member, now),
        scope=_scope(member.scope),
        machine_id=member.machine_id or None,
        joined_at=rfc3339(member.enrolled_at),
        keyed_at=rfc3339(member.keyed_at),
        agent_version=member.agent_version or None,
        join_token=member.token,
        revoked_at=_time(member.revoked_at),
        revoked_by=member.revoked_by or None,
        reason=member.reason or None,
        reopened_until=_time(member.reenrol_until),
    )


def _state(member: kept.Member, now: float) -> str:
    if member.reenrol_until is not None and now < member.reenrol_until:
        return "reopened"
    if member.revoked_at is None:
        return "joined"
    return "left" if member.revoked_by == member.reporter else "revoked"


def _time(at: float | None) -> str | None:
    return None if at is None else rfc3339(at)


def _scope(scope: Scope) -> r.ReporterScope:
    return r.ReporterScope(reach=scope.reach.value, nodes=sorted(scope.nodes), cluster=scope.cluster or None)


def _token(token: kept.JoinToken) -> r.JoinToken:
    return r.JoinToken(
        id=token.id,
        scope=_scope(token.scope),
        uses=token.uses,
        left=token.left,
        created_at=rfc3339(token.created_at),
        expires_at=rfc3339(token.expires_at),
        by=token.by,
    )


def _made(desk: Desk, token: kept.JoinToken, text: str) -> r.JoinTokenMade:
    where = _office(desk).where()
    return r.JoinTokenMade(id=token.id, token=text, expires_at=rfc3339(token.expires_at), authority=where.fingerprint or None, address=where.address or None)
