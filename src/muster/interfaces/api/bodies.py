# SPDX-License-Identifier: Apache-2.0
"""What is sent to be done: its bytes, by which a request that comes again is known, and what they say."""

from __future__ import annotations

from typing import TypeVar

from fastapi import Request

from muster.interfaces.api.params import SMALL, body, decoded, media_type
from muster.interfaces.api.problems import WebError

T = TypeVar("T")


async def given(request: Request, kind: type[T]) -> tuple[bytes, T]:
    """The body and the document of ``kind`` in it. Raises WebError 415 or 413, or InputError with the place that does not fit."""
    if media_type(request) != "application/json":
        raise WebError(415, f"the body is {media_type(request) or 'of no type'}, not application/json", hint="send Content-Type: application/json")
    raw = await body(request, SMALL)
    return raw, decoded(raw, kind)
