# SPDX-License-Identifier: Apache-2.0
"""The requests of those who join, as bytes to bytes: for whichever listener hears them. Bodies are msgpack, errors are problems (RFC 9457)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from muster.domain.model.errors import PROBLEM_TYPE, Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable
from muster.spi.access import Gate
from muster.wire.enrol import AuthorityDoc, Signed
from muster.wire.exchange import Problem
from muster.wire.report import OLDEST, SCHEMA

BODY_LIMIT = 64 * 1024
"""Bytes of a request to join."""
MSGPACK = "application/msgpack"
PROBLEM = "application/problem+json"
AUTHORITY, ENROL, TOKEN, RENEW, LEAVE = "/v1/authority", "/v1/enrol", "/v1/token", "/v1/renew", "/v1/leave"
PATHS = frozenset({AUTHORITY, ENROL, TOKEN, RENEW, LEAVE})
_STATUS: tuple[tuple[type[MusterError], int], ...] = ((InputError, 400), (NotFound, 404), (Conflict, 409), (NotAllowed, 403), (Unavailable, 503))


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer: its status, media type and body."""

    status: int
    kind: str
    body: bytes


def answered(gate: Gate, method: str, path: str, body: bytes, now: float, *, peer: str = "", version: str = "") -> Answered:
    """What the gate answers. May write to the store: not for a thread that must not wait."""
    try:
        told = _asked(gate, method, path, body, now, peer, version)
    except MusterError as error:
        return trouble(error, path)
    return Answered(200, MSGPACK, msgspec.msgpack.encode(told))


def _asked(gate: Gate, method: str, path: str, body: bytes, now: float, peer: str, version: str) -> msgspec.Struct | dict[str, str]:
    if path == AUTHORITY and method in ("GET", "HEAD"):
        return AuthorityDoc(authority=gate.authority(), version=version, newest=SCHEMA, oldest=OLDEST, now=now)
    asks: dict[str, Callable[[Signed, float, str], msgspec.Struct | None]] = {ENROL: gate.enrol, TOKEN: gate.token, RENEW: gate.renew, LEAVE: gate.leave}
    if path not in asks or method != "POST":
        raise NotFound(f"{method} {path}: nothing is here", hint="is the agent of a much newer version than the server?")
    if len(body) > BODY_LIMIT:
        raise InputError(f"the request is larger than {BODY_LIMIT} bytes")
    try:
        signed = msgspec.msgpack.decode(body, type=Signed)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as wrong:
        raise InputError(f"the request does not fit: {wrong}", hint="is the agent of a much older or newer version?") from wrong
    return asks[path](signed, now, peer) or {}


def trouble(error: MusterError, path: str = "", status: int | None = None) -> Answered:
    """An error as an answer; an access token that does not hold is told with ``status`` 401."""
    code = status or next((number for kind, number in _STATUS if isinstance(error, kind)), 500)
    told = Problem(
        type=PROBLEM_TYPE + error.code,
        title=HTTPStatus(code).phrase,
        status=code,
        detail=error.message,
        code=error.code,
        instance=path,
        hint=error.hint,
    )
    return Answered(code, PROBLEM, msgspec.json.encode(told))
