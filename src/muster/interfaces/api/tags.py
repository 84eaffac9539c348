# SPDX-License-Identifier: Apache-2.0
"""ETags: by which a client says what it has seen. Ages and times of seeing move by themselves and are no part of them.

A card's tag is of two parts: what it is, and what moves. ``If-Match`` is held to the first alone: a gauge that moved meanwhile is no conflict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from fastapi import Request, Response

from muster.domain.decide.essence import essence
from muster.domain.model.roll import CardRecord
from muster.interfaces.api.problems import WebError
from muster.wire.documents import encode

_MOVES = re.compile(rb'"(?:age|at|observed_at|last_at|last_seen_at|next)":(?:"[^"]*"|[^,}\]]*)')
_TAG = re.compile(r'(?:W/)?"([^"]*)"')
_SIZE = 9


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else sorted(value, key=str) if isinstance(value, set | frozenset) else str(value)


_sorted = msgspec.json.Encoder(enc_hook=_plain, order="sorted")


def of_body(body: bytes) -> str:
    """The tag of a body."""
    return blake2b(_MOVES.sub(b"", body), digest_size=_SIZE).hexdigest()


def of_card(record: CardRecord) -> str:
    """What a card is: it differs when the record does."""
    return blake2b(_sorted.encode(essence(record)), digest_size=_SIZE).hexdigest()


def told(request: Request, document: Any, what: str = "") -> Response:
    """A document as a response with its tag; 304 without it when the client has the same. ``what`` is the part by which ``If-Match`` goes."""
    body = encode(document)
    tag = "-".join(part for part in (what, of_body(body)) if part)
    headers = {"etag": f'W/"{tag}"', "cache-control": "no-cache", "vary": "accept, authorization"}
    known = _TAG.findall(request.headers.get("if-none-match", ""))
    if tag in known or request.headers.get("if-none-match", "").strip() == "*":
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def wanted(request: Request) -> frozenset[str]:
    """What ``If-Match`` says that a thing must be; empty when nothing is said."""
    said = request.headers.get("if-match", "").strip()
    if not said or said == "*":
        return frozenset()
    found = frozenset(tag.partition("-")[0] for tag in _TAG.findall(said))
    if not found:
        raise WebError(400, f"If-Match: {said[:100]!r} is no ETag", code="invalid_input", hint='send it as it was given, like "0123abcd"')
    return found


def hold(tags: frozenset[str], what: str, name: str) -> None:
    """Raises WebError 412 when ``If-Match`` names other tags than ``what``."""
    if tags and what not in tags:
        raise WebError(412, f"{name} has changed since it was read", code="changed", hint="read it again, and act if it still is what you mean")
