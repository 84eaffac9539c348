# SPDX-License-Identifier: Apache-2.0
"""What the routes of one application share beside the desk: the columns of the roll, open streams, answers that are kept, and figures of the API's own work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from muster.interfaces.api.feed import Feed
from muster.interfaces.api.kept import Answers
from muster.interfaces.api.metrics import Figures
from muster.interfaces.api.roll import Then
from muster.wiring.desk import Desk
from muster.wiring.snapshots import Settings, Views

T = TypeVar("T")
INLINE = 100
"""Rows that are made on the loop; more of them go to a thread."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """One of each for an application."""

    views: Views
    answers: Answers
    feed: Feed
    figures: Figures

    def close(self) -> None:
        """Ends what goes on by itself."""
        self.views.close()


_making = threading.Lock()


def open_rooms(desk: Desk) -> Rooms:
    """The rooms of an application on ``desk``, which sees everything."""
    views = Views(desk.reader, desk.policy, desk.clock, desk.adapters, desk.numbers, Settings(small=desk.scan_limit))

    def names(ids: Iterable[str]) -> Mapping[str, str]:
        return Then(desk=desk, views=views, at=None, now=desk.clock()).names(ids)

    feed, figures = Feed(desk.reader, names, desk.streams), Figures(desk.meters)
    figures.watch("muster_streams_open", "Streams of changes that are read now.", lambda: feed.open)
    figures.watch("muster_columns_cards", "Cards that stand in columns.", lambda: views.size)
    figures.watch("muster_columns_refresh_seconds", "How long the last look for what is new took.", lambda: views.took)
    figures.watch("muster_columns_version", "The last commit that stands in columns.", lambda: views.version)
    return Rooms(views=views, answers=Answers(desk.answers, desk.clock), feed=feed, figures=figures)


async def rooms_of(request: Request) -> Rooms:
    """The rooms of the application that answers, made when the first request asks."""
    state = request.app.state
    found: Rooms | None = getattr(state, "rooms", None)
    if found is None:
        with _making:
            found = getattr(state, "rooms", None)
            if found is None:
                found = state.rooms = open_rooms(state.desk)
    return found


InRooms = Annotated[Rooms, Depends(rooms_of)]


async def upon(rooms: Rooms, work: Callable[[], T], rows: int = 1, *, then: bool = False) -> T:
    """What ``work`` gives, from columns that are good enough: on the loop where it is little, else in a thread. ``then``: it looks at the past."""
    if then:
        return await run_in_threadpool(work)
    if not rooms.views.ready():
        await run_in_threadpool(rooms.views.settle)
    else:
        rooms.views.settle()
    return work() if rows <= INLINE else await run_in_threadpool(work)
