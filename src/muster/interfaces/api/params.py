# SPDX-License-Identifier: Apache-2.0
"""The query parameters that every list shares, and the media type and body checks of what is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant

from muster.domain.model.errors import InputError
from muster.domain.model.moments import moment
from muster.domain.model.near import alike
from muster.interfaces.api.problems import WebError

T = TypeVar("T")
MOST = 1000
"""Items of a page."""
SMALL = 256 * 1024
"""Bytes of a body that is no report."""

Limit = Annotated[int, Query(ge=1, le=MOST, description="Items of a page.")]
Cursor = Annotated[str, Query(max_length=4000, description="`next` of the page before; opaque. Goes with the same filter, sort and time.")]
Filter = Annotated[
    str,
    Query(
        alias="filter",
        max_length=4000,
        description='What to list, a subset of CEL: `presence == "present" && memory.total >= 64Gi`. An absent value is neither true nor false.',
        examples=['presence in ["missing", "unknown"]'],
    ),
]
Fields = Annotated[str, Query(max_length=2000, description="Fields and reading keys to give, with commas; `id` always is there. All when left out.")]
Sort = Annotated[str, Query(max_length=500, description="Fields or reading keys to sort by, with commas; `-` before one turns it round. Absent comes last.")]
At = Annotated[str, Query(max_length=64, description="What was believed then: RFC 3339, or a time ago like `-10m`. Now when left out.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The parameters of a list as they were given."""

    limit: int
    cursor: str
    filter: str
    fields: str
    sort: str
    at: str

    def time(self, now: float) -> float | None:
        """The time asked for; None is now."""
        return asked_time(self.at, now)


def asked_time(text: str, now: float) -> float | None:
    """The time in a parameter; None when it was left out. Raises InputError, also for a time to come."""
    if not text:
        return None
    at = moment(text, now)
    if at > now:
        raise InputError(f"at={text} is yet to come", hint="leave it out to see the roll as it is now")
    return at


async def known_only(request: Request) -> None:
    """Raises InputError for a query parameter that the resource does not have: what was misspelt is never passed over in silence."""
    known = sorted(_names(request.scope["route"].dependant))
    for name in request.query_params:
        if name not in known:
            listed = f"its parameters are {', '.join(known)}" if known else "it takes none"
            raise InputError(f"no parameter {name!r}", hint=" ".join([*(f"did you mean {each!r}?" for each in alike(name, known)[:1]), listed]))


def _names(dependant: Dependant) -> set[str]:
    return {each.alias for each in dependant.query_params}.union(*map(_names, dependant.dependencies))


async def asked(limit: Limit = 100, cursor: Cursor = "", filter_: Filter = "", fields: Fields = "", sort: Sort = "", at: At = "") -> Asked:
    """The shared parameters of a list."""
    return Asked(limit=limit, cursor=cursor, filter=filter_, fields=fields, sort=sort, at=at)


Listing = Annotated[Asked, Depends(asked)]


async def body(request: Request, limit: int) -> bytes:
    """The body, up to ``limit`` bytes. Raises WebError 413 as soon as it is longer."""
    told = request.headers.get("content-length", "")
    if told.isascii() and told.isdigit() and int(told[:20]) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def _too_large(limit: int) -> WebError:
    return WebError(413, f"the body is larger than {limit} bytes", hint="split it")


def media_type(request: Request) -> str:
    """The media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def json_body(request: Request, kind: type[T]) -> T:
    """The body as a document of ``kind``. Raises WebError 415 or 413, or InputError with the place that does not fit."""
    if media_type(request) != "application/json":
        raise WebError(415, f"the body is {media_type(request) or 'of no type'}, not application/json", hint="send Content-Type: application/json")
    return decoded(await body(request, SMALL), kind)


def decoded(raw: bytes, kind: type[T]) -> T:
    """``raw`` JSON as ``kind``. Raises InputError."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as wrong:
        raise InputError(f"the body does not fit: {wrong}", hint="/openapi.json describes it") from wrong


def body_schema(name: str, *more: str) -> dict[str, Any]:
    """OpenAPI of a body that is read by hand: the document ``name``, as JSON and as each media type of ``more``."""
    schema = {"schema": {"$ref": f"#/components/schemas/{name}"}}
    return {"requestBody": {"required": True, "content": dict.fromkeys(("application/json", *more), schema)}}
