# SPDX-License-Identifier: Apache-2.0
"""What all connections of the listener share: bounds, who waits how long, the gate's threads, the way to the writer. In the listener's loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from functools import partial
from typing import Protocol, TypeVar

from muster.domain.model.errors import MusterError
from muster.interfaces.ingest import answers
from muster.interfaces.ingest.gathering import FailedError, Gathering, HeldBackError
from muster.interfaces.ingest.limits import Limits
from muster.interfaces.ingest.line import Post, Sender
from muster.interfaces.ingest.meters import Meters
from muster.spi.access import Gate, Intake
from muster.wiring.seldom import Seldom

log = logging.getLogger("muster.ingest")
T = TypeVar("T")
SWEEP = 0.5
"""Seconds between two looks at who is too slow; less where one may be slow only for less."""
MOST_TOKENS = 100_000
"""Access tokens that are remembered; then it is begun anew."""
LINGER = 2.0
"""Seconds for a client to read why it is sent away while it still sends."""
SPREAD = 0.6180339887
"""Multiples of it fall apart evenly, modulo one."""


class Wait(IntEnum):
    """What a connection is waited for."""

    FIRST = 0
    REQUEST = 1
    HEAD = 2
    BODY = 3
    GATE = 4
    END = 5


class Guest(Protocol):
    """A connection, as it is swept."""

    def overdue(self, wait: Wait) -> None:
        """It was waited for too long."""

    def leave(self) -> None:
        """The door closes: a connection without a request ends now, another after its answer."""


class Reception:
    """Shared by all connections of one listener."""

    def __init__(self, gate: Gate, intake: Intake, clock: Callable[[], float], limits: Limits, loop: asyncio.AbstractEventLoop, version: str) -> None:
        self.gate = gate
        self.clock = clock
        self.limits = limits
        self.version = version
        self.meters = Meters()
        self.closing = False
        self._loop = loop
        self._gathering = Gathering(gate, intake, clock, loop, limits, self.meters)
        self._askers = ThreadPoolExecutor(limits.askers, thread_name_prefix="muster-gate")
        self._asked = 0
        self._guests: set[Guest] = set()
        self._since: tuple[dict[Guest, float], ...] = tuple({} for _ in Wait)
        self._may = (limits.stranger, limits.idle, limits.head_time, limits.body_time, limits.patience, LINGER)
        self._tokens: dict[str, str] = {}
        self._rooms: Counter[str] = Counter()
        self._resting = self._came = False
        self._sent_away = 0
        self._seldom = Seldom()
        self._date = (0, b"")
        self._every = min(SWEEP, *(may / 2 for may in self._may))
        self._sweeper = loop.call_later(self._every, self._sweep)

    # who is here

    def admit(self, guest: Guest) -> bool:
        """A connection came. False when there are too many, or the door is closed."""
        if self.closing or len(self._guests) >= self.limits.connections:
            self.meters.turned_away += 1
            self._say_full()
            return False
        self._guests.add(guest)
        self._came = True
        self.meters.opened += 1
        self.meters.connections = len(self._guests)
        return True

    def _say_full(self) -> None:
        if not self.closing and self._seldom.may():
            most = self.limits.connections
            log.warning("%d connections are open, and others are turned away; raise ingest_connections and the limit of open files", most)

    def dismiss(self, guest: Guest) -> None:
        """A connection has ended."""
        self._guests.discard(guest)
        self.meters.connections = len(self._guests)

    def watch(self, guest: Guest, wait: Wait, before: Wait | None) -> None:
        """From now on the guest is waited for in another way than before."""
        if before is not None:
            self._since[before].pop(guest, None)
        self._since[wait][guest] = time.monotonic()

    def forget(self, guest: Guest, before: Wait) -> None:
        """The guest is waited for no more."""
        self._since[before].pop(guest, None)

    def _sweep(self) -> None:
        self._sweeper = self._loop.call_later(self._every, self._sweep)
        now = time.monotonic()
        for wait, since, may in zip(Wait, self._since, self._may, strict=True):
            while since:
                guest, began = next(iter(since.items()))
                if began + may > now:
                    break
                del since[guest]
                guest.overdue(wait)
        self._gathering.lose_patience()

    # room for bodies

    def room(self, size: int, who: str) -> bool:
        """Takes room for ``size`` bytes of that reporter; False when there is none, or when it has its part."""
        if self.meters.flight + size > self.limits.flight or (size and self._rooms[who] + size > self.limits.flight_each):
            return False
        self.meters.flight += size
        if size:
            self._rooms[who] += size
        return True

    def holds_much(self, who: str) -> bool:
        """True when it is this reporter itself that leaves it no room."""
        return 2 * self._rooms[who] > self.limits.flight_each

    def vacate(self, size: int, who: str) -> None:
        """Gives room back."""
        self.meters.flight -= size
        self._rooms[who] -= size
        if not self._rooms[who]:
            del self._rooms[who]

    # the way in

    def behind(self) -> str:
        """Why no reports are taken now; empty when they are."""
        return self._gathering.behind()

    def knows(self, token: str) -> bool:
        """True when the gate knew this token before. It is asked again before the report is taken, so that nothing but time is won."""
        return token in self._tokens

    def note(self, token: str, reporter: str | None) -> None:
        """The gate knows whose token it is, or no longer."""
        if reporter is None:
            self._tokens.pop(token, None)
            return
        if len(self._tokens) >= MOST_TOKENS:
            self._tokens.clear()
        self._tokens[token] = reporter

    def reporter(self, token: str) -> str:
        """Whose token it is, as far as that is known: the token itself where it is not."""
        return self._tokens.get(token, token)

    def held_back(self, token: str) -> HeldBackError | None:
        """Why no report of this token's reporter is taken now; None when it is, and while it is not known whose it is."""
        reporter = self._tokens.get(token)
        return self._gathering.held_back(reporter) if reporter is not None else None

    def stuck(self) -> str:
        """What is wrong with the writer; empty when nothing is."""
        age = self._gathering.age()
        return f"the writer has not answered for {age:.0f} s" if age >= self.limits.patience else ""

    def put(self, sender: Sender, token: str, body: bytes) -> None:
        """A report for the writer; its sender is answered later."""
        self._gathering.put(Post(sender, token, self._tokens.get(token, ""), body))
        if not self._resting and self.limits.rest:
            self._resting = True
            self._loop.call_soon(self._rest)

    def _rest(self) -> None:
        """More will have come when this is over, and one waking serves them all."""
        self._resting = False
        if not self._came:  # the loop lets in one in a turn: while more come it goes on at once
            self._gathering.rest()
        self._came = False

    def retry(self) -> int:
        """Seconds for the next one who is sent away, another for each, so that they do not come back together."""
        self._sent_away += 1
        return 1 + int((self._sent_away * SPREAD) % 1.0 * self.limits.retry)

    def date(self) -> bytes:
        """The time, as a header has it."""
        now = int(self.clock())
        if self._date[0] != now:
            self._date = (now, answers.date(now))
        return self._date[1]

    # the gate's threads

    def ask(self, question: Callable[[], T], then: Callable[[T | MusterError], None]) -> bool:
        """Has a thread find the answer; ``then`` gets it, or the error, in the loop. False when too many wait."""
        if self._asked >= self.limits.asking or self.closing:
            return False
        self._asked += 1
        self._askers.submit(self._ask, question, then)
        return True

    def _ask(self, question: Callable[[], T], then: Callable[[T | MusterError], None]) -> None:
        found: T | MusterError
        try:
            found = question()
        except MusterError as error:
            found = error
        except Exception:
            log.exception("an answer to a reporter could not be made")
            found = FailedError(
                "an unexpected error; it is in the server's log with the time of this answer", hint="please report it with the lines of the log"
            )
        self._gathering.call(partial(self._found, then, found))

    def _found(self, then: Callable[[T | MusterError], None], found: T | MusterError) -> None:
        self._asked -= 1
        then(found)

    # the end

    async def close(self) -> None:
        """Lets requests that are under way end, for a while; then all connections are closed."""
        self.closing = True
        for guest in list(self._guests):
            guest.leave()
        until = time.monotonic() + self.limits.grace
        while self._guests and time.monotonic() < until:
            self._gathering.flush()
            await asyncio.sleep(0.01)
        self._sweeper.cancel()
        for guest in list(self._guests):
            guest.overdue(Wait.END)
        await asyncio.sleep(0)
        self._askers.shutdown(wait=False, cancel_futures=True)
        left = max(until - time.monotonic(), 0.5)
        await asyncio.to_thread(self._gathering.stop, left)
