# SPDX-License-Identifier: Apache-2.0
"""Group commit: reports are gathered for a moment and handed to the writer together, by the one thread that may call it. What is answered is durable.

All but `_work` and what it calls runs in the listener's loop.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

from muster.domain.model.access import Speaker
from muster.domain.model.errors import MusterError, NotAllowed, Unavailable
from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.line import Line, Outcome, Post
from muster.interfaces.ingest.meters import Meters
from muster.interfaces.ingest.shares import Each, Shares
from muster.spi.access import Gate, Intake

log = logging.getLogger("muster.ingest")


class FailedError(MusterError):
    """The writer failed on a report in a way that nobody foresaw."""

    code = "unexpected"


class LateError(Unavailable):
    """The writer was not done in time; it may have the report or not, so it is to be sent again."""


class StrangerError(NotAllowed):
    """The access token does not hold: another is to be asked for."""


class HeldBackError(Unavailable):
    """This reporter took more than its share of the writer; ``retry`` are the seconds after which it may come again."""

    def __init__(self, message: str, retry: float) -> None:
        super().__init__(message)
        self.retry = math.ceil(retry)


class Gathering:
    """The queue before the writer, and the writer's thread."""

    def __init__(self, gate: Gate, intake: Intake, clock: Callable[[], float], loop: asyncio.AbstractEventLoop, limits: Limits, meters: Meters) -> None:
        self._gate = gate
        self._intake = intake
        self._clock = clock
        self._loop = loop
        self._limits = limits
        self._meters = meters
        self._line = Line(limits)
        self._shares = Shares(limits)
        self._at_work: list[Post] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = False
        self._begins = 0.0
        """When the next batch is due, if a timer runs."""
        self._bell = threading.Event()
        self._batches: SimpleQueue[list[Post] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="muster-intake", daemon=True)
        self._thread.start()

    def behind(self) -> str:
        """Why no more reports are taken now; empty when they are."""
        limits, meters = self._limits, self._meters
        if meters.queue >= limits.queue:
            return f"{meters.queue} reports wait for the writer"
        if meters.queue_bytes >= limits.queue_bytes:
            return f"{meters.queue_bytes} bytes wait for the writer"
        age = self.age()
        return f"the oldest report has waited {age:.0f} s for the writer" if age >= limits.queue_age else ""

    def age(self) -> float:
        """Seconds that the oldest report has waited, those at work included."""
        oldest = self._at_work[0] if self._at_work else self._line.oldest
        return time.monotonic() - oldest.arrived if oldest is not None else 0.0

    @property
    def empty(self) -> bool:
        """True when nothing waits and the writer rests."""
        return not self._line and not self._at_work

    def held_back(self, reporter: str) -> HeldBackError | None:
        """Why this reporter's reports are not taken now; None when they are."""
        wait = self._shares.wait(reporter)
        return HeldBackError("the reports of this reporter took more than its share of the server's time", wait) if wait else None

    def put(self, post: Post) -> None:
        """One more; its sender is answered later."""
        meters = self._meters
        if not self._line.put(post, dear=self._shares.dear(post.reporter)):
            post.sender.answered(HeldBackError("large reports wait for the writer already", self._limits.retry))
            return
        meters.queue += 1
        meters.queue_bytes += post.size
        if self._line.full:
            self._begin()
        elif self._timer is None and not self._due:
            self._timer = self._loop.call_later(self._limits.gather, self._begin)
            self._begins = time.monotonic() + self._limits.gather

    def rest(self) -> None:
        """Sleeps until the next batch is due, or something is there for the loop to do: what comes meanwhile is read at once then, and goes with it."""
        limit = self._limits.rest
        wait = limit if self._timer is None else min(limit, self._begins - time.monotonic())
        if wait > 0 and self._bell.wait(wait):
            self._bell.clear()

    def call(self, then: Callable[[], None]) -> None:
        """From another thread: has the loop do something, and ends its rest."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(then)
        self._bell.set()

    def _begin(self) -> None:
        """Hands the next batch to the writer, or, while it is busy, notes that one is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = bool(self._at_work)
        if self._due or not self._line:
            return
        self._at_work = self._line.batch()
        self._batches.put(self._at_work)
        self._due = bool(self._line)

    def _done(self, batch: list[Post], outcomes: Sequence[Outcome], took: float) -> None:
        meters = self._meters
        meters.batches += 1
        meters.taken += len(batch)
        meters.largest_batch = max(meters.largest_batch, len(batch))
        meters.commits.add(took)
        self._at_work = []
        if self._due:
            self._due = False
            self._begin()
        now = time.monotonic()
        for post, outcome in zip(batch, outcomes, strict=True):
            if post.open:
                meters.acknowledged.add(now - post.arrived)
                self._answer(post, outcome)

    def _answer(self, post: Post, outcome: Outcome) -> None:
        post.open = False
        post.body = b""
        self._meters.queue -= 1
        self._meters.queue_bytes -= post.size
        try:
            post.sender.answered(outcome)
        except Exception:  # one answer that cannot be sent must not keep the others back
            log.exception("an answer to a reporter could not be sent")

    def lose_patience(self) -> None:
        """Answers those who have waited too long. Who is still before the writer leaves the queue; order is kept, for all that is older left before."""
        before = time.monotonic() - self._limits.patience
        late = [post for post in self._at_work if post.open and post.arrived <= before]
        for post, dear in self._line.late(before):
            if dear:
                self._answer(post, HeldBackError("other large reports went before", self._limits.retry))
            else:
                late.append(post)
        for post in late:
            self._meters.late += 1
            self._answer(post, LateError(f"the writer has not taken the report within {self._limits.patience:g} s", hint="send it again; it counts once"))

    def flush(self) -> None:
        """Hands over what waits, now."""
        self._begin()

    def stop(self, patience: float) -> None:
        """Ends the writer's thread once it is done with its batch."""
        self._batches.put(None)
        self._thread.join(patience)

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            began = time.monotonic()
            try:
                outcomes = self._take(batch)
            except Exception:
                log.exception("a batch of %d reports could not be taken", len(batch))
                outcomes = [FailedError("an unexpected error; it is in the server's log with the time of this answer")] * len(batch)
            self.call(partial(self._done, batch, outcomes, time.monotonic() - began))

    def _take(self, batch: Sequence[Post]) -> list[Outcome]:
        """The outcomes of a batch: of those whose token still holds as the writer says, of the others the reason."""
        now = self._clock()
        outcomes: dict[Post, Outcome] = {}
        posts: dict[Post, tuple[Speaker, bytes]] = {}
        for post in batch:
            try:
                speaker = self._gate.speaker(post.token, now)
                if (held := self.held_back(speaker.reporter)) is not None:
                    outcomes[post] = held
                else:
                    posts[post] = speaker, post.body
            except NotAllowed as error:
                outcomes[post] = StrangerError(error.message, hint=error.hint)
            except MusterError as error:
                outcomes[post] = error
        if posts:
            outcomes.update(zip(posts, self._ask(list(posts.values()), now), strict=True))
        return [outcomes[post] for post in batch]

    def _ask(self, posts: list[tuple[Speaker, bytes]], now: float) -> Sequence[Outcome]:
        """The writer's word. When it fails on several, each is tried alone, so that one report cannot stand in the way of the others."""
        each = Each(posts)
        try:
            outcomes = self._intake.take(each, now)
            if len(outcomes) == len(posts):
                return outcomes
            log.error("the writer gave %d answers to %d reports", len(outcomes), len(posts))
        except MusterError as error:
            return [error] * len(posts)
        except Exception:
            log.exception("the writer failed on a batch of %d reports", len(posts))
        finally:
            for (speaker, _), spent in zip(posts, each.spent, strict=True):
                self._shares.add(speaker, spent)
        if len(posts) == 1:
            return [
                FailedError("an unexpected error; it is in the server's log with the time of this answer", hint="please report it with the lines of the log")
            ]
        self._meters.poisoned += 1
        return [outcome for post in posts for outcome in self._ask([post], now)]
