# SPDX-License-Identifier: Apache-2.0
"""What an answer to a report means. Only a document of a server of Muster takes a report over, or refuses it; whatever else comes leaves it where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import Enum

import msgspec

from muster.collect.words import plain
from muster.domain.model.errors import PROBLEM_TYPE
from muster.wire.report import OLDEST, AnswerDoc

LONGEST_ASKED_S = 3600.0
"""The longest that a server may ask us to wait."""
WANTED = 4096
"""Captures that one answer may ask for."""
ANSWERED = "HTTP "
"""What the reason begins with where a server answered, and did not take the report; the status follows, and a colon."""
STRANGER = "none of a server of Muster"
"""What the reason says where somebody else answered."""
JSON, PROBLEM = "application/json", "application/problem+json"
MSGPACK = frozenset({"application/msgpack", "application/x-msgpack", "application/vnd.msgpack"})
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Fate(Enum):
    """What became of a post. ``TAKEN``: the server has it. ``REFUSED``: it never will. ``LATER``: try again. ``TOO_LARGE``: in smaller pieces."""

    TAKEN = "taken"
    REFUSED = "refused"
    LATER = "later"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Posted:
    """The fate of one post, with the server's reason; ``wait`` are seconds the server asked for. ``renew`` when its numbering clashed.

    ``broke`` when the server failed on it, which may be the report's own doing. ``wanted`` are digests of captures that it asks for.
    """

    fate: Fate
    detail: str = ""
    wait: float = 0.0
    renew: bool = False
    broke: bool = False
    wanted: tuple[str, ...] = ()
    status: int = field(default=0, compare=False)
    """Of an answer that left the report where it is; 0 where nobody answered."""
    ours: bool = field(default=False, compare=False)
    """That answer was given by a server of Muster."""


class _Problem(msgspec.Struct):
    """Of a problem document (RFC 9457), what is used here."""

    type: str = ""
    detail: str = ""
    title: str = ""
    code: str = ""

    @property
    def ours(self) -> bool:
        """True for one of a server of Muster: others have problem documents, and codes, of their own."""
        return bool(self.code) and self.type == PROBLEM_TYPE + self.code


class _Version(msgspec.Struct):
    report_schema: int = OLDEST


_problem = msgspec.json.Decoder(_Problem).decode
_version = msgspec.json.Decoder(_Version).decode


def judged(status: int, headers: Mapping[str, str], body: bytes, *, whole: bool = True) -> Posted:
    """What an answer means. A server that is busy, starting, or does not know us yet is asked again; one that cannot use the report is not.

    What is no word of a server of Muster, as a page of a proxy, takes nothing over; nor does an answer that is not ``whole``.
    """
    headers = {name.lower(): value for name, value in headers.items()}
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    answer = _answer(kind, body) if whole else None
    if 200 <= status < 300:
        return _taken(answer) if answer else _not_ours(status, _stranger(kind, whole=whole), headers)
    told = _told(kind, body)
    refused = answer is not None and answer.answer == "refused"
    if not (told.ours or refused):
        return _of_another(status, kind, told, body, headers, whole=whole)
    detail = f"{ANSWERED}{status}: {_said(answer) if answer else _reason(told, body)}"
    if status == 413:
        return Posted(Fate.TOO_LARGE, detail)
    if status in (400, 409, 415, 422):
        return Posted(Fate.REFUSED, detail, renew=status == 409)
    return Posted(Fate.LATER, detail, wait=_asked_wait(headers), broke=status >= 500 and status != 503, status=status, ours=True)


def _of_another(status: int, kind: str, told: _Problem, body: bytes, headers: Mapping[str, str], *, whole: bool) -> Posted:
    """What is no word of a server of Muster says nothing of the report, whatever its status: it stays, and is tried again."""
    larger = " It is to let larger bodies through (nginx: client_max_body_size)." if status == 413 else ""
    detail = plain(f"{_stranger(kind, whole=whole)}{larger} It says: {_reason(told, body)}")
    return _not_ours(status, detail, headers)


def _not_ours(status: int, detail: str, headers: Mapping[str, str]) -> Posted:
    return Posted(Fate.LATER, f"{ANSWERED}{status}: {detail}", wait=_asked_wait(headers), status=status)


def _taken(answer: AnswerDoc) -> Posted:
    if answer.answer == "refused":
        return Posted(Fate.REFUSED, _said(answer), renew=True)
    return Posted(Fate.TAKEN, _said(answer), wanted=tuple(answer.wanted[:WANTED]))


def _stranger(kind: str, *, whole: bool) -> str:
    about = (plain(kind, 60) or "without a type") if whole else "without an end"
    return f"an answer ({about}) that is {STRANGER}; what stands before it, a proxy say?"


def _said(answer: AnswerDoc) -> str:
    return plain(f"{answer.answer}: {answer.detail}" if answer.detail else answer.answer)


def _answer(kind: str, body: bytes) -> AnswerDoc | None:
    """The document of a server; None for anything else."""
    if kind not in MSGPACK and kind != JSON:
        return None
    decode = msgspec.json.decode if kind == JSON else msgspec.msgpack.decode
    try:
        found = decode(body, type=AnswerDoc)
    except _BAD:
        return None
    return found if found.answer in ("applied", "duplicate", "refused") else None


def _told(kind: str, body: bytes) -> _Problem:
    if kind not in (PROBLEM, JSON):
        return _Problem()
    try:
        return _problem(body)
    except _BAD:
        return _Problem()


def _reason(told: _Problem, body: bytes) -> str:
    """The sentence of a problem document, else the beginning of what was said."""
    return plain(told.detail or told.title or body[:200].decode("utf-8", "replace")) or "without a word"


def reads(body: bytes) -> int:
    """The newest schema of reports that a server reads, as it says in its version; the oldest where it does not say."""
    try:
        return _version(body).report_schema
    except _BAD:
        return OLDEST


def _asked_wait(headers: Mapping[str, str]) -> float:
    """Seconds that the server asks us to wait: a number, or a date held against its own clock."""
    after = headers.get("retry-after", "").strip()
    if after.isdecimal():
        return min(float(after[:20]), LONGEST_ASKED_S)
    try:
        seconds = (parsedate_to_datetime(after) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_ASKED_S)
