# SPDX-License-Identifier: Apache-2.0
"""Answers that are kept for a day under the ``Idempotency-Key`` of their request: the same request again gets the same answer, and nothing is done twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, TypeAlias

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from muster.domain.model.errors import InputError
from muster.interfaces.api.problems import WebError
from muster.spi.store import Answered, Under
from muster.wiring.desk import Desk

Work: TypeAlias = Callable[[Under | None], Awaitable[Response]]
"""Does what is asked. What it changes may be kept together with its answer, under the key and the digest of the request that it is given."""
DAY = 86_400.0
LONGEST = 200
"""Letters of a key."""
MOST = 10_000
"""Answers that are kept where there is no store for them."""


class Answers:
    """Kept in the store where it keeps them, else in this process."""

    def __init__(self, store: Any, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._here: OrderedDict[str, Answered] = OrderedDict()
        self._lock = threading.Lock()
        self._running: set[str] = set()

    async def once(self, request: Request, desk: Desk, body: bytes, work: Work) -> Response:
        """What ``work`` answers, or what it answered when the same request came with the same key. Raises WebError 409 and 422."""
        said = request.headers.get("idempotency-key", "").strip().strip('"')
        if not said:
            return await work(None)
        if len(said) > LONGEST or not said.isprintable():
            raise InputError("Idempotency-Key is too long or no text", hint=f"a random text of at most {LONGEST} letters, a new one for each thing to do")
        key = sha256("\0".join((desk.user.name, desk.user.token, request.method, request.url.path, said)).encode()).hexdigest()
        digest = sha256(body).hexdigest()
        with self._lock:
            if key in self._running:
                raise WebError(409, "a request with this Idempotency-Key is being answered", code="conflict", hint="wait, and send it again")
            self._running.add(key)
        try:
            kept = await run_in_threadpool(self._recall, key)
            return _again(kept, digest) if kept is not None else await self._first(key, digest, work)
        finally:
            with self._lock:
                self._running.discard(key)

    async def _first(self, key: str, digest: str, work: Work) -> Response:
        response = await work((key, digest))
        if response.status_code < 500:
            answered = Answered(key=key, digest=digest, at=self._clock(), status=response.status_code, body=bytes(response.body))
            await run_in_threadpool(self._keep, answered)
        return response

    def _recall(self, key: str) -> Answered | None:
        found: Answered | None = self._store.recall(key) if self._store is not None else self._here.get(key)
        return found if found is not None and self._clock() - found.at <= DAY else None

    def _keep(self, answered: Answered) -> None:
        if self._store is not None:
            self._store.keep(answered)
            return
        with self._lock:
            self._here[answered.key] = answered
            while len(self._here) > MOST:
                self._here.popitem(last=False)


def _again(kept: Answered, digest: str) -> Response:
    if kept.digest != digest:
        raise WebError(422, "this Idempotency-Key was used for another body", code="key_used", hint="take a new key for another thing to do")
    media = "application/json" if kept.status < 400 else "application/problem+json"
    return Response(kept.body, kept.status, media_type=media, headers={"idempotency-replayed": "true"})
