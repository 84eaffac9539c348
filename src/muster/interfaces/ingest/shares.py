# SPDX-License-Identifier: Apache-2.0
"""How much of the writer's time each reporter took, so that one whose reports are dear does not starve the others.

What is taken is forgotten evenly: who may take fifteen seconds of a minute may take a quarter of a second more with each second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

from muster.domain.model.access import Reach, Speaker
from muster.interfaces.ingest.limits import Limits
from muster.wiring.seldom import Seldom

log = logging.getLogger("muster.ingest")
T = TypeVar("T")
MINUTE = 60.0
MANY = 4_096
"""Reporters that are remembered before those are forgotten that took nothing of late."""


class Each(Sequence[T]):
    """Posts for the writer. Who goes through them is timed: ``spent`` has the processor time from each to the next, in seconds."""

    def __init__(self, posts: Sequence[T]) -> None:
        self._posts = posts
        self.spent = [0.0] * len(posts)

    def __iter__(self) -> Iterator[T]:
        began = time.thread_time()
        for place, post in enumerate(self._posts):
            yield post
            ended = time.thread_time()
            self.spent[place] += ended - began
            began = ended

    def __len__(self) -> int:
        return len(self._posts)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        return self._posts[place]


class Shares:
    """By reporter. Written by the writer's thread, read by the listener's too."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._spent: dict[str, tuple[float, float, float]] = {}
        """Seconds taken, when they were counted, and the share."""
        self._dear: dict[str, float] = {}
        """Who took long for their last report, and how long."""
        self._seldom = Seldom()

    def add(self, speaker: Speaker, seconds: float) -> None:
        """A report of this reporter took so long."""
        limits, who, now = self._limits, speaker.reporter, time.monotonic()
        if seconds >= limits.dear:
            self._dear[who] = seconds
        else:
            self._dear.pop(who, None)
        share = limits.share if speaker.scope.reach is Reach.NODE else limits.share_of_many
        spent = self._left(who, now) + seconds
        self._spent[who] = spent, now, share
        if len(self._spent) > MANY:
            self._spent = {each: told for each, told in self._spent.items() if self._left(each, now) > 0}
        if spent > share and self._seldom.may():
            log.warning("%s took %.0f s of the writer within a minute, and is made to wait: what it reports is large, and new each time", who, spent)

    def wait(self, who: str) -> float:
        """Seconds until this reporter may report again; 0 when it may."""
        told = self._spent.get(who)
        if told is None:
            return 0.0
        return max(0.0, self._left(who, time.monotonic()) - told[2]) * MINUTE / told[2]

    def dear(self, who: str) -> bool:
        """True when its last report took long."""
        return who in self._dear

    def _left(self, who: str, now: float) -> float:
        """What is not forgotten yet of what it took."""
        told = self._spent.get(who)
        return max(0.0, told[0] - (now - told[1]) * told[2] / MINUTE) if told is not None else 0.0
