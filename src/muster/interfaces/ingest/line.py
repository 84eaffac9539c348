# SPDX-License-Identifier: Apache-2.0
"""Reports that wait for the writer, in two lines: those that are many and quickly done, and those that are large or whose reporter took long for its last.

The writer takes a batch of the one line, then one of the other, so that nobody waits behind more than one that is dear. In the listener's loop.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Protocol, TypeAlias

from muster.domain.model.errors import MusterError
from muster.interfaces.ingest.limits import Limits
from muster.wire.report import AnswerDoc

Outcome: TypeAlias = AnswerDoc | MusterError


class Sender(Protocol):
    """Who waits for the answer to a report."""

    def answered(self, outcome: Outcome) -> None:
        """Called once, in the loop."""


class Post:
    """One report on its way. ``body`` is let go when it was answered. The token is known; the gate is asked again when the report is taken.

    ``reporter`` is who sent it, as the gate said before.
    """

    __slots__ = ("arrived", "body", "open", "reporter", "sender", "size", "token")

    def __init__(self, sender: Sender, token: str, reporter: str, body: bytes) -> None:
        self.sender = sender
        self.token = token
        self.reporter = reporter
        self.body = body
        self.size = len(body)
        self.arrived = time.monotonic()
        self.open = True


class Line:
    """Both lines. What is large has half of the bytes that may wait, and of each reporter few."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._quick: deque[Post] = deque()
        self._dear: deque[Post] = deque()
        self._quick_bytes = self._dear_bytes = 0
        self._of: Counter[str] = Counter()
        self._turn = False

    def __bool__(self) -> bool:
        return bool(self._quick or self._dear)

    @property
    def full(self) -> bool:
        """True when there is no need to wait for more."""
        return len(self._quick) >= self._limits.batch or self._quick_bytes >= self._limits.batch_bytes or bool(self._dear)

    @property
    def oldest(self) -> Post | None:
        """Who has waited longest among the quick ones: others wait for their own kind, which is no sign that too much comes."""
        return self._quick[0] if self._quick else None

    def put(self, post: Post, *, dear: bool) -> bool:
        """One more at the end. False when too many of its kind wait."""
        if not (dear or post.size > self._limits.large):
            self._quick.append(post)
            self._quick_bytes += post.size
            return True
        if self._of[post.reporter] >= self._limits.large_each or self._dear_bytes + post.size > self._limits.queue_bytes // 2:
            return False
        self._dear.append(post)
        self._dear_bytes += post.size
        self._of[post.reporter] += 1
        return True

    def batch(self) -> list[Post]:
        """Who goes to the writer next."""
        self._turn = bool(self._dear) and (not self._quick or not self._turn)
        return [self._take_dear()] if self._turn else list(self._next())

    def _next(self) -> Iterator[Post]:
        size = 0
        for _ in range(min(len(self._quick), self._limits.batch)):
            size += self._quick[0].size
            if size > self._limits.batch_bytes and size > self._quick[0].size:
                return
            yield self._take_quick()

    def late(self, before: float) -> Iterator[tuple[Post, bool]]:
        """Takes out who came before that time, and whether it waited behind what is dear; order is kept, for all that is older left before."""
        while self._quick and self._quick[0].arrived <= before:
            yield self._take_quick(), False
        while self._dear and self._dear[0].arrived <= before:
            yield self._take_dear(), True

    def _take_quick(self) -> Post:
        post = self._quick.popleft()
        self._quick_bytes -= post.size
        return post

    def _take_dear(self) -> Post:
        post = self._dear.popleft()
        self._dear_bytes -= post.size
        self._of[post.reporter] -= 1
        if not self._of[post.reporter]:
            del self._of[post.reporter]
        return post
