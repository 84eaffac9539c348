# SPDX-License-Identifier: Apache-2.0
"""Brings parcels to a store of metrics: in order, again after a pause when it is away or busy, given up and counted when it refuses them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from muster.spi.sinks import Post, Reply

MOST_ITEMS = 5000
"""Items of one parcel."""
MOST_BYTES = 1024 * 1024
"""Bytes of one parcel before it is packed."""
WAITING_BYTES = 64 * 1024 * 1024
"""What may wait while the store is away; then the oldest goes."""
REASONS = ("refused", "rejected", "waited")
"""Why items are given up: the store refused the post, it said of a post that it took less, or too much waited."""
FIRST_S, LONGEST_S = 0.5, 30.0
"""The first pause after a failure, and the longest."""
_SPLIT = frozenset({400, 413, 422})
"""One bad item, or too many: its neighbours are tried without it."""
_TRIES = 64
"""Posts that a refused parcel may cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """What passes here: the pause (true when it is over because all ends), a clock that never jumps, and a die between 0 and 1."""

    pause: Callable[[float], bool]
    clock: Callable[[], float]
    die: Callable[[], float]


class Parcel:
    """Items that go together. Parts of one parcel share how often they may still be tried."""

    __slots__ = ("items", "size", "tries")

    def __init__(self, items: Sequence[bytes], tries: list[None]) -> None:
        self.items = items
        self.size = sum(map(len, items))
        self.tries = tries

    def halves(self) -> list[Parcel]:
        """Two parcels of what was in one; none when it cannot be halved, or was tried often enough."""
        if len(self.items) < 2 or not self.tries:
            return []
        self.tries.pop()
        half = len(self.items) // 2
        return [Parcel(self.items[:half], self.tries), Parcel(self.items[half:], self.tries)]


class Courier:
    """The parcels that wait, and what became of the others. Used by one thread."""

    def __init__(
        self, post: Post, seal: Callable[[Sequence[bytes]], bytes], moving: Moving, say: Callable[[str], None], lost: Callable[[bytes], int] | None = None
    ) -> None:
        """``seal`` makes a body of items; ``lost`` reads in a good answer how much was not taken all the same."""
        self._post = post
        self._lost = lost
        self._seal = seal
        self._moving = moving
        self._say = say
        self._waiting: deque[Parcel] = deque()
        self._failures = 0
        self._said = ""
        self.waiting = 0
        """Bytes that wait."""
        self.trouble = ""
        """Why the last post failed that may be tried again."""
        self.sent = 0
        self.retries = 0
        self.dropped: Counter[str] = Counter(dict.fromkeys(REASONS, 0))

    def add(self, items: Iterable[bytes]) -> None:
        """Puts items at the end of what waits, in parcels."""
        mine: list[bytes] = []
        size = 0
        for item in items:
            if mine and (len(mine) >= MOST_ITEMS or size + len(item) > MOST_BYTES):
                self._queue(mine)
                mine, size = [], 0
            mine.append(item)
            size += len(item)
        if mine:
            self._queue(mine)

    def _queue(self, items: Sequence[bytes]) -> None:
        parcel = Parcel(items, [None] * _TRIES)
        self._waiting.append(parcel)
        self.waiting += parcel.size
        while self.waiting > WAITING_BYTES and len(self._waiting) > 1:
            self._drop(self._waiting.popleft(), "waited", "more waits than may: the oldest is given up")

    def deliver(self, until: float, tries: int = 0) -> bool:
        """Posts what waits until nothing does, ``until`` has come, or ``tries`` posts failed one after the other (0: no matter). True when nothing waits."""
        self._failures = 0 if tries else self._failures
        while self._waiting:
            reply = self._post(self._seal(self._waiting[0].items))
            if not _later(reply):
                self._failures = 0
                self._done(self._waiting.popleft(), reply)
            elif not self._hold(reply, until, tries):
                return False
        return True

    def _hold(self, reply: Reply, until: float, tries: int) -> bool:
        """Waits after a failure. False when there is no time for another try, or it was tried often enough."""
        self._failures += 1
        self.trouble = reply.detail
        usual = min(LONGEST_S, FIRST_S * 2.0 ** min(self._failures - 1, 16)) * (0.5 + self._moving.die() / 2)
        pause = max(usual, min(reply.wait, 10 * LONGEST_S))
        left = until - self._moving.clock()
        if tries and (self._failures >= tries or pause >= left):
            return False
        self.retries += 1
        self._tell(f"it is tried again: {reply.detail}")
        return not self._moving.pause(min(pause, max(left, 0.0))) and pause < left

    def _done(self, parcel: Parcel, reply: Reply) -> None:
        """Books a parcel that was answered for good. Of a refused one the halves come next, so that one bad item costs only itself."""
        if reply.status < 300:
            self.sent += len(parcel.items)
            self.waiting -= parcel.size
            self._said = ""
            if self._lost and (some := self._lost(reply.body)):
                self.dropped["rejected"] += some
            return
        halves = parcel.halves() if reply.status in _SPLIT else []
        self._waiting.extendleft(reversed(halves))
        if not halves:
            self._drop(parcel, "refused", f"refused: {reply.detail}")

    def _drop(self, parcel: Parcel, reason: str, why: str) -> None:
        self.dropped[reason] += len(parcel.items)
        self.waiting -= parcel.size
        self._tell(why)

    def _tell(self, what: str) -> None:
        if what != self._said:
            self._say(what)
        self._said = what


def _later(reply: Reply) -> bool:
    """True when the same may be taken later: the store could not be reached, is busy, or failed by itself."""
    return reply.status in (0, 408, 429) or reply.status >= 500
