# SPDX-License-Identifier: Apache-2.0
"""Streams and exports end with the token by which they were asked for, and one user does not hold all streams."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.interfaces.api.site import PEOPLE, ROOT, Site, site

from muster.domain.model.access import Grade
from muster.interfaces.api import feed, lasting, telling
from muster.interfaces.api.feed import Feed
from muster.interfaces.api.problems import WebError
from muster.spi.users import NewToken

STREAM = "/api/v1/changes/stream"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(lasting, "LOOK", 0.05)
    with site() as found:
        yield found


def read(here: Site, secret: str, then: Callable[[], Awaitable[None]], within: float) -> bytes:
    """What a stream told until it ended. Raises TimeoutError when it did not."""
    told = b"".join(each.get("body", b"") for each in messages(here, secret, then, within))
    assert here.app.state.rooms.feed.open == 0
    return told


def messages(here: Site, secret: str, then: Callable[[], Awaitable[None]], within: float, path: str = STREAM, query: bytes = b"") -> list[Any]:
    """What was sent until it ended. Raises TimeoutError when it did not."""
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async def follow() -> None:
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query, "http_version": "1.1",
            "headers": [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer " + secret.encode())], "scheme": "http", "root_path": "",
            "client": ("192.0.2.7", 1), "server": ("127.0.0.1", 80), "asgi": {"version": "3.0"},
        }  # fmt: skip
        reading = asyncio.ensure_future(here.app(scope, never, send))
        await then()
        await asyncio.wait_for(reading, within)

    asyncio.run(follow())
    return sent


async def nothing() -> None:
    await asyncio.sleep(0.3)


def test_a_stream_ends_when_its_token_is_revoked(here: Site) -> None:
    async def revoke() -> None:
        await nothing()
        here.tokens.revoke("viewer", ROOT, here.clock())

    told = read(here, here.secrets["viewer"], revoke, 5.0)
    assert b"retry: " in told
    assert b'event: end\ndata: {"reason":"the token viewer is revoked"' in told


def test_a_stream_ends_when_its_token_expires(here: Site) -> None:
    secret = here.tokens.create(NewToken(name="short", grade=PEOPLE["viewer"].grade, lifetime=100.0), ROOT, here.clock())[1]

    async def later() -> None:
        await nothing()
        here.clock.now += 200

    assert b"the token short is expired" in read(here, secret, later, 5.0)


def test_a_stream_ends_when_its_token_may_other_things(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = here.tokens.user

    async def change() -> None:
        await nothing()
        monkeypatch.setattr(here.tokens, "user", lambda token, now: replace(asked(token, now), grade=Grade.ADMIN))

    told = read(here, here.secrets["viewer"], change, 5.0)
    assert b'event: end\ndata: {"reason":"the token may other things now"' in told


def test_a_token_that_holds_keeps_its_stream(here: Site) -> None:
    with pytest.raises(TimeoutError):
        read(here, here.secrets["viewer of a"], nothing, 1.0)


def test_one_user_has_a_part_of_the_streams(here: Site) -> None:
    kept = Feed(here.desk.reader, lambda _ids: {}, 32)
    for _ in range(8):
        kept.enter("token one")
    with pytest.raises(WebError, match="8 streams of this user") as refused:
        kept.enter("token one")
    assert refused.value.status == 503
    for _ in range(8):
        kept.enter("token two")
    kept.leave("token one")
    kept.enter("token one")
    for _ in range(16):
        kept.leave("token one" if kept.open > 8 else "token two")
    assert kept.open == 0
    assert not kept._readers


def test_few_streams_are_still_for_one_user(here: Site) -> None:
    kept = Feed(here.desk.reader, lambda _ids: {}, 5)
    for _ in range(feed.LEAST_EACH):
        kept.enter("local ")
    with pytest.raises(WebError):
        kept.enter("local ")


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_an_export_breaks_off_when_its_token_is_revoked(here: Site, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(telling, "PART", 1)
    honest = telling._part
    go_on = threading.Event()

    def slow(*args: Any) -> bytes:
        go_on.wait(0.5)
        return honest(*args)

    monkeypatch.setattr(telling, "_part", slow)

    async def revoke() -> None:
        await asyncio.sleep(0.2)
        here.tokens.revoke("viewer", ROOT, here.clock())

    cards = int(here.ask("admin", "GET", "/api/v1/cards").json()["total"])
    sent = messages(here, here.secrets["viewer"], revoke, 10.0, "/api/v1/cards", b"format=" + form.encode())
    assert sent[0]["status"] == 200
    assert all(each.get("more_body") for each in sent[1:])  # it is not said to be whole
    assert b"".join(each.get("body", b"") for each in sent[1:]).count(b"\n") < cards


def test_an_export_whose_token_holds_is_whole(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "PART", 1)
    sent = messages(here, here.secrets["viewer"], nothing, 10.0, "/api/v1/cards", b"format=ndjson")
    assert sent[-1]["more_body"] is False
