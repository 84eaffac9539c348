# SPDX-License-Identifier: Apache-2.0
"""ETags: by which a client says what it has seen. Ages and times of seeing move by themselves and are no part of them.

A card's tag is of two parts: what it is, and what moves. ``If-Match`` is held to the first alone: a gauge that moved meanwhile is no conflict.
"""

from __future__ import annotations

import re
from typing import Any

from fastapi import Request, Response

from muster.interfaces.api.problems import WebError
from muster.wire.documents import encode
from muster.wiring.snapshot_tags import of_body, of_card, still, tag_of

_TAG = re.compile(r'(?:W/)?"([^"]*)"')

__all__ = ["hold", "of_body", "of_card", "sent", "still", "told", "wanted"]


def told(request: Request, document: Any, what: str = "") -> Response:
    """A document as a response with its tag; 304 without it when the client has the same. ``what`` is the part by which ``If-Match`` goes."""
    body = encode(document)
    return sent(request, body, still(body), what)


def sent(request: Request, body: bytes, lasting: bytes, what: str = "") -> Response:
    """The same of a document that is written already, and of what `still` leaves of it."""
    tag = "-".join(part for part in (what, tag_of(lasting)) if part)
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
