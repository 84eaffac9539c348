# SPDX-License-Identifier: Apache-2.0
"""Changes and findings as they happen: server-sent events, each with the id from which a reader who comes back goes on. Nothing is lost or told twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive, Scope, Send

from muster.domain.model.moments import rfc3339
from muster.domain.model.roll import FindingKind, Happening
from muster.interfaces.api import rows
from muster.interfaces.api.answers import AtDesk, answers
from muster.interfaces.api.feed import Entry, Feed, Mark, chosen, mark
from muster.interfaces.api.lasting import ended, over
from muster.interfaces.api.problems import WebError
from muster.interfaces.api.roll import Then
from muster.interfaces.api.rooms import InRooms
from muster.spi.store import ChangeRow
from muster.wire.documents import encode

ANSWERS = answers({"type": "string"}, "Events, as they happen", 400, 404, media="text/event-stream")
"""What the route answers, for the document."""
HEARTBEAT = 15.0
"""Seconds of silence after which a comment says that the server is there."""
SLOW = 20.0
"""Seconds that a reader may take to accept what was sent before the stream ends."""
RETRY_MS = 2000
_KINDS = frozenset({*Happening, *FindingKind})


@dataclass(frozen=True, slots=True)
class _Wanted:
    kinds: Collection[str]
    subject: str
    what: str
    wait: float


async def stream(
    request: Request,
    desk: AtDesk,
    rooms: InRooms,
    subject: Annotated[str, Query(max_length=300, description="Only of this card or node, by any of its names.")] = "",
    kinds: Annotated[str, Query(max_length=1000, description="Only of these kinds of changes and findings, with commas.")] = "",
    what: Annotated[str, Query(pattern="^(change|finding)?$", description="`change` or `finding`; both when left out.")] = "",
    after: Annotated[str, Query(max_length=40, description="The id after which to begin; the header `Last-Event-ID` goes before it.")] = "",
    wait: Annotated[float, Query(ge=0, le=86_400, description="End after so many seconds; with 0 after what there is.")] = 86_400.0,
) -> Response:
    """Server-sent events `change` and `finding`. The id of each, sent back as `Last-Event-ID`, goes on after it; without one only what is new is told.

    An event `end` says why the server ends a stream. A finding's `what` is opened, closed or acknowledged.
    """
    asked = [word for word in (w.strip() for w in kinds.split(",")) if word]
    wrong = next((word for word in asked if word not in _KINDS), None)
    if wrong is not None:
        raise WebError(400, f"kinds: {wrong!r} is no kind", code="invalid_input", hint=f"kinds are {', '.join(sorted(_KINDS))}")
    last = mark(request.headers.get("last-event-id", "") or after)
    then = Then(desk=desk, views=rooms.views, at=None, now=desk.clock())
    id_ = await run_in_threadpool(_subject, then, subject) if subject else ""
    start = await run_in_threadpool(rooms.feed.start, last)
    return _Stream(rooms.feed, then, _Wanted(frozenset(asked), id_, what, wait), start, partial(over, desk, request.headers.get("authorization", "")))


def _subject(then: Then, word: str) -> str:
    then.views.settle()
    nodes = then.views.lists.nodes().records.values()
    return next((node.id for node in nodes if word in (node.id, node.name) and then.desk.sees(node.name)), "") or then.card(word).id


class _Stream(Response):
    """The stream as a response: it ends when its reader goes, is too slow, or has had its time."""

    media_type = "text/event-stream"

    def __init__(self, feed: Feed, then: Then, wanted: _Wanted, start: Mark, over: Callable[[], str]) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._feed = feed
        self._then = then
        self._wanted = wanted
        self._at = start
        self._over = over
        self._user = f"{then.desk.user.via} {then.desk.user.name}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tells until it ends."""
        self._feed.enter(self._user)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            gone = asyncio.ensure_future(_gone(receive))
            telling = asyncio.ensure_future(self._tell(send))
            held = asyncio.ensure_future(ended(self._over))
            done, running = await asyncio.wait({gone, telling, held}, return_when=asyncio.FIRST_COMPLETED)
            for task in running:
                task.cancel()
            await asyncio.gather(gone, telling, held, return_exceptions=True)
            if held in done and gone not in done and telling not in done:
                await self._end(send, held.result())
        finally:
            self._feed.leave(self._user)

    async def _tell(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._wanted.wait
        if not await self._put(send, f"retry: {RETRY_MS}\nid: {self._at}\n\n".encode()):
            return
        while True:
            left = until - loop.time()
            found, self._at = await self._feed.after(self._at, max(0.0, min(HEARTBEAT, left)))
            told = b"".join(self._event(each) for each in found)
            if told and self._wanted_none(found):
                told += f"id: {self._at}\n\n".encode()
            ended = not found and loop.time() >= until
            if not await self._put(send, told or (b"" if ended else f": {rfc3339(self._then.desk.clock())}\n\n".encode())):
                return
            if ended:
                await self._end(send, "the time that was asked for is over")
                return

    def _wanted_none(self, found: Any) -> bool:
        """True when the last of these was not told: its id must be, so that who comes back does not read it again."""
        return not self._chosen(found[-1])

    def _chosen(self, entry: Entry) -> bool:
        wanted = self._wanted
        return chosen(entry, wanted.kinds, wanted.subject, wanted.what) and (self._then.desk.whole or self._then.visible(entry.about))

    def _event(self, entry: Entry) -> bytes:
        if not self._chosen(entry):
            return b""
        names = entry.names if self._then.desk.whole else {id_: name for id_, name in entry.names.items() if self._then.visible((id_,))}
        row = entry.row
        if isinstance(row, ChangeRow):
            kind, body = b"change", encode(rows.change(row, names))
        else:
            finding = rows.finding(row.row, names, self._then.desk.clock())
            kind, body = b"finding", encode({"number": row.number, "what": row.what, "at": rfc3339(row.at), "finding": finding})
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(entry.mark).encode(), kind, body)

    async def _put(self, send: Send, body: bytes) -> bool:
        """Sends; False when the reader does not take it in time."""
        if not body:
            return True
        try:
            await asyncio.wait_for(send(_body(body)), SLOW)
        except TimeoutError:
            return False
        return True

    async def _end(self, send: Send, why: str) -> None:
        await self._put(send, b"event: end\ndata: " + encode({"reason": why, "last": str(self._at)}) + b"\n\n")
        await send({"type": "http.response.body", "body": b""})


def _body(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


async def _gone(receive: Receive) -> None:
    """Returns when the reader went."""
    while (await receive())["type"] != "http.disconnect":
        pass
