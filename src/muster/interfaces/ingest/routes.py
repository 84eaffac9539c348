# SPDX-License-Identifier: Apache-2.0
"""What can be asked of the door of reporters, where, and what it answers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from muster.domain.model.errors import InputError
from muster.interfaces.ingest import answers
from muster.interfaces.ingest.answers import Answer, TooLargeError
from muster.interfaces.ingest.limits import KIB
from muster.interfaces.ingest.reception import Reception
from muster.services import enrolment_routes as gate
from muster.wire.exchange import Health, Version
from muster.wire.report import SCHEMA

MSGPACK = frozenset({"application/msgpack", "application/x-msgpack", "application/vnd.msgpack"})
SMALL = 64 * KIB
"""Bytes of a request that is no report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that is whole."""

    method: str
    path: str
    body: bytes
    peer: str


Make = Callable[[Reception, Asked], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One way to ask. ``answer`` is made in a thread of the gate when ``slow``, else at once; a report has none, for it goes to the writer."""

    method: bytes
    answer: Make | None = None
    slow: bool = True


def _gate(reception: Reception, asked: Asked) -> Answer:
    found = gate.answered(reception.gate, asked.method, asked.path, asked.body, reception.clock(), peer=asked.peer, version=reception.version)
    return Answer(found.status, found.kind, found.body, b"Retry-After: %d\r\n" % reception.retry() if found.status == 503 else b"")


def _version(reception: Reception, _asked: Asked) -> Answer:
    return answers.told(Version(version=reception.version, api="v1", report_schema=SCHEMA), answers.JSON)


def _health(reception: Reception, _asked: Asked) -> Answer:
    wrong = reception.stuck()
    if wrong:
        return Answer(503, answers.JSON, msgspec.json.encode(Health(status="failing", checks={"writer": wrong})))
    return answers.told(Health(status="ok"), answers.JSON)


_REPORTS = Route(method=b"POST")
_POST = Route(method=b"POST", answer=_gate)
_HEALTH = Route(method=b"GET", answer=_health, slow=False)
ROUTES: Mapping[str, Route] = {
    "/v1/reports": _REPORTS,
    "/api/v1/reports": _REPORTS,
    gate.AUTHORITY: Route(method=b"GET", answer=_gate),
    gate.ENROL: _POST,
    gate.TOKEN: _POST,
    gate.RENEW: _POST,
    gate.LEAVE: _POST,
    "/version": Route(method=b"GET", answer=_version, slow=False),
    "/healthz": _HEALTH,
    "/readyz": _HEALTH,
}
"""Reports come where the API takes them too, so that an agent posts to either door alike."""


def inflated(body: bytes, most: int) -> bytes:
    """What gzip packed. Raises TooLargeError above ``most`` bytes and InputError for what is no gzip, cut, or followed by more."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(body, most + 1)
    except zlib.error as wrong:
        raise InputError(f"the body is no gzip: {wrong}", hint="send it as it is, without Content-Encoding") from wrong
    if len(plain) > most:
        raise TooLargeError(f"the body is more than {most} bytes when it is unpacked", hint="split the report")
    if not unpacker.eof or unpacker.unused_data:
        raise InputError("the body is a cut gzip, or more than one", hint="send it as it is, without Content-Encoding")
    return plain
