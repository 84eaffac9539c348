# SPDX-License-Identifier: Apache-2.0
"""Every error as a problem document (RFC 9457): what went wrong in plain words, a stable code, and what to do next. Never a traceback."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from muster.domain.decide.find import AmbiguousCard
from muster.domain.model.errors import PROBLEM_TYPE, Ambiguous, Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable
from muster.wire.documents import encode
from muster.wire.exchange import Problem

MEDIA = "application/problem+json"
STATUS: tuple[tuple[type[MusterError], int], ...] = (
    (Ambiguous, 400),
    (InputError, 400),
    (NotFound, 404),
    (Conflict, 409),
    (NotAllowed, 403),
    (Unavailable, 503),
)
CODES = {
    400: "bad_request",
    401: "not_signed_in",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    412: "changed",
    413: "too_large",
    415: "unsupported_media_type",
    421: "wrong_host",
    429: "too_many_attempts",
}
OWN = {"not_ready": 503, "unexpected": 500}
"""Codes of answers that are no error of a request."""
HINTS = {404: "the resources of this server are listed in /openapi.json", 405: "the header Allow names the methods that this resource knows"}

log = structlog.get_logger("muster.api")


_LONGEST_PATH = 200
_SECRET = re.compile(r"(?:muster_|mjoin_|eyJ)[A-Za-z0-9_.-]{8,}|(?<![A-Za-z0-9_-])(?![0-9a-f]{64}\b)[A-Za-z0-9_-]{43,}")
"""Tokens of users, join tokens, signed tokens; and any word of 256 bits that is no digest."""


class WebError(MusterError):
    """An error that belongs to HTTP itself, with its status."""

    def __init__(self, status: int, message: str, *, code: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code or CODES.get(status, "error")


class Refused(Conflict):
    """A report that was not accepted; it is not to be sent again."""

    code = "refused"


def shown(path: str) -> str:
    """A path as it is written to the log: in plain letters, bounded, and without what looks like a secret that somebody put into it."""
    return _SECRET.sub("(token)", ascii(path)[1:-1])[:_LONGEST_PATH]


def answer(status: int, code: str, detail: str, *, hint: str = "", headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    """A problem as a response. ``type`` is a URN made of the code."""
    known = status in HTTPStatus._value2member_map_
    problem = Problem(
        type=PROBLEM_TYPE + code, title=HTTPStatus(status).phrase if known else "Error", status=status, detail=detail, code=code, hint=hint, **more
    )
    return Response(encode(problem), status, headers=dict(headers or {}), media_type=MEDIA)


def install(app: FastAPI) -> None:
    """Makes every error of the application a problem."""
    app.add_exception_handler(MusterError, _muster)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def _muster(request: Request, error: Exception) -> Response:
    told = cast(MusterError, error)
    status = told.status if isinstance(told, WebError) else next((s for kind, s in STATUS if isinstance(told, kind)), 500)
    more: dict[str, Any] = {"instance": request.url.path}
    if isinstance(told, AmbiguousCard):
        more["candidates"] = [{"id": c.id, "node": c.node_name or None, "slot": c.slot or None, "address": c.address or None} for c in told.candidates]
    if isinstance(told, Refused):
        more["answer"] = "refused"
    return answer(status, told.code, told.message, hint=told.hint, **more)


def _invalid(request: Request, error: Exception) -> Response:
    told = cast(RequestValidationError, error)
    errors = [{"in": ".".join(str(part) for part in each["loc"]), "detail": each["msg"]} for each in told.errors()]
    detail = "; ".join(f"{each['in']}: {each['detail']}" for each in errors) or "the request does not fit"
    return answer(400, InputError.code, detail, errors=errors, instance=request.url.path, hint="/openapi.json describes the parameters")


def _http(request: Request, error: Exception) -> Response:
    told = cast(HTTPException, error)
    code = CODES.get(told.status_code, "error")
    detail = str(told.detail)
    if told.status_code in (404, 405):
        detail = f"{request.method} {request.url.path}: {'nothing is here' if told.status_code == 404 else 'this method is not allowed'}"
    return answer(told.status_code, code, detail, hint=HINTS.get(told.status_code, ""), headers=told.headers, instance=request.url.path)


def _unexpected(request: Request, error: Exception) -> Response:
    log.error("unexpected error", path=shown(request.url.path), method=request.method, exc_info=error)
    detail = "an unexpected error; it is in the server's log with the time of this answer"
    return answer(500, "unexpected", detail, instance=request.url.path, hint="please report it with the lines of the log")
