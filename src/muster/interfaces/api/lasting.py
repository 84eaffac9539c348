# SPDX-License-Identifier: Apache-2.0
"""Answers that go on for a while end with the token by which they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from muster.domain.model.errors import NotAllowed, Unavailable
from muster.wiring.desk import Desk

LOOK = 1.0
"""Seconds between two looks whether the token still holds."""
log = structlog.get_logger("muster.api")


def over(desk: Desk, shown: str) -> str:
    """Why who asked, with ``shown`` as their authorization, may not ask any more: their token was ended; empty when they may."""
    if not desk.user.token or desk.users is None:
        return ""
    try:
        now = desk.users.user(shown.partition(" ")[2].strip(), desk.clock())
    except NotAllowed as refused:
        return refused.message
    except Unavailable:
        return ""
    return "" if now == desk.user else "the token may other things now"


async def ended(why_over: Callable[[], str]) -> str:
    """Returns when the token with which an answer was asked for holds no more: why."""
    while True:
        await asyncio.sleep(LOOK)
        if why := await run_in_threadpool(why_over):
            return why


class Export(StreamingResponse):
    """A list as it is made. One whose token was ended breaks off without the mark of its end, so that nobody takes it for whole."""

    def __init__(self, request: Request, parts: Any, media_type: str, headers: dict[str, str]) -> None:
        super().__init__(parts, media_type=media_type, headers=headers)
        self._desk: Desk = request.app.state.desk.of(request.state.user)
        self._shown = request.headers.get("authorization", "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it, for as long as who asked may have it."""
        telling = asyncio.ensure_future(super().__call__(scope, receive, send))
        watching = asyncio.ensure_future(ended(lambda: over(self._desk, self._shown)))
        both = (telling, watching)
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            whole = telling.done()
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        if whole:
            telling.result()
        elif not watching.cancelled():
            log.warning("an export is broken off", path=scope["path"], problem=watching.result())
