# SPDX-License-Identifier: Apache-2.0
"""Answers as bytes of HTTP/1.1. An error is a problem document (RFC 9457): what went wrong, a stable code, what to do next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from email.utils import formatdate
from http import HTTPStatus

import msgspec

from muster.domain.model.errors import PROBLEM_TYPE, Conflict, InputError, MusterError, NotAllowed, NotFound, Unavailable
from muster.wire.exchange import Problem
from muster.wire.report import AnswerDoc

MSGPACK = "application/msgpack"
JSON = "application/json"
PROBLEM = "application/problem+json"
PEM = "application/x-pem-file"
CODES = {"busy": 429, "too_slow": 408, "length_required": 411}
"""Codes that only this door gives, with their status: come back later; the request did not come in time; it does not say how long its body is."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class TooLargeError(InputError):
    """What was packed is larger than a body may be."""

    code = "too_large"


STATUS: tuple[tuple[type[MusterError], int], ...] = (
    (TooLargeError, 413),
    (InputError, 400),
    (NotFound, 404),
    (Conflict, 409),
    (NotAllowed, 403),
    (Unavailable, 503),
)
PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}
_pack = msgspec.msgpack.Encoder()
_json = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. ``headers`` are whole lines; with ``close`` the connection ends after it."""

    status: int
    kind: str
    body: bytes
    headers: bytes = b""
    close: bool = False
    held_back: bool = False
    """It says that the reporter has had its share, which is no sign that the server has too much to do."""

    def whole(self, date: bytes, *, last: bool = False, bare: bool = False) -> bytes:
        """All its bytes. ``last`` says that the connection ends, ``bare`` leaves the body out (HEAD)."""
        ends = b"Connection: close\r\n" if last or self.close else b""
        head = b"HTTP/1.1 %d %b\r\nDate: %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b%b\r\n" % (
            self.status,
            PHRASES[self.status],
            date,
            self.kind.encode(),
            len(self.body),
            self.headers,
            ends,
        )
        return head if bare else head + self.body


def date(now: float) -> bytes:
    """The time as a header has it."""
    return formatdate(now, usegmt=True).encode()


def problem(
    status: int, code: str, detail: str, hint: str = "", *, path: str = "", retry: int = 0, more: bytes = b"", close: bool = False, answer: str = ""
) -> Answer:
    """A problem. ``retry`` are the seconds after which to try again; ``more`` are further header lines."""
    told = Problem(
        type=PROBLEM_TYPE + code,
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        instance=path,
        hint=hint,
        answer=answer,
    )
    after = b"Retry-After: %d\r\n" % retry if retry else b""
    return Answer(status, PROBLEM, _json.encode(told), after + more, close)


def mistake(error: MusterError, path: str, retry: int) -> Answer:
    """An error of ours as an answer. ``retry`` is used where trying again may help."""
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    return problem(status, error.code, error.message, error.hint, path=path, retry=retry if status == 503 else 0)


def unexpected(path: str) -> Answer:
    """A failure of ours; its traceback stays in the log."""
    detail = "an unexpected error; it is in the server's log with the time of this answer"
    return problem(500, "unexpected", detail, "please report it with the lines of the log", path=path)


def busy(why: str, path: str, retry: int, *, close: bool = False) -> Answer:
    """Too much at once: come back later."""
    return problem(CODES["busy"], "busy", why, "keep the report and send it again after the time that Retry-After names", path=path, retry=retry, close=close)


def held_back(why: str, path: str, retry: int) -> Answer:
    """Too much of one reporter: it is to come back later, the others need not."""
    return replace(busy(why, path, retry), held_back=True)


def away(why: str, retry: int, path: str = "", *, close: bool = False) -> Answer:
    """Not now: come back later."""
    return problem(503, Unavailable.code, why, "try again after the time that Retry-After names", path=path, retry=retry, close=close)


def told(document: msgspec.Struct, kind: str = MSGPACK) -> Answer:
    """A document as msgpack or JSON."""
    return Answer(200, kind, _pack.encode(document) if kind == MSGPACK else _json.encode(document))


def report_answer(answer: AnswerDoc, path: str) -> Answer:
    """What became of a report."""
    if answer.answer != "refused":
        return told(answer)
    hint = "do not send it again; a reporter that lost its numbering starts a new incarnation"
    return problem(409, "refused", answer.detail or "the report was refused", hint, path=path, answer="refused")
