# SPDX-License-Identifier: Apache-2.0
"""What happens on the roll, in the order of its numbers: changes, and findings that open, close or are acknowledged.

A reader stands at two numbers, that of the last change and that of the last news of a finding. What came lately is held here, what is older is read from the
store; either way each entry comes once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from starlette.concurrency import run_in_threadpool

from muster.domain.model.errors import InputError
from muster.interfaces.api import rows
from muster.interfaces.api.problems import WebError
from muster.spi.reading import RollReader
from muster.spi.store import ChangeRow, News

PARTS, LEAST_EACH = 4, 4
"""One user has one of so many parts of the streams that may be open, and not fewer than so many."""
HELD = 5000
"""Entries that are held for readers who keep up."""
PART = 500
"""Entries that are read from the store at once."""
BEAT = 0.25
"""Seconds between two looks while somebody reads."""
MOST = 2**53
Names: TypeAlias = Callable[[Iterable[str]], Mapping[str, str]]


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """How far a reader has come: the numbers of the last change and of the last news of a finding."""

    change: int
    news: int

    def __str__(self) -> str:
        return f"{self.change}-{self.news}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened; ``mark`` is how far a reader has come who has read it."""

    mark: Mark
    row: ChangeRow | News
    names: Mapping[str, str]

    @property
    def kind(self) -> str:
        """Kind of the change or finding."""
        return (self.row.change.kind if isinstance(self.row, ChangeRow) else self.row.row.finding.kind).value

    @property
    def about(self) -> tuple[str, ...]:
        """Ids of what it is about."""
        if isinstance(self.row, ChangeRow):
            return (self.row.change.subject,)
        finding = self.row.row.finding
        return tuple(dict.fromkeys(each for each in (finding.subject, *finding.cards, finding.node) if each))


def mark(text: str) -> Mark | None:
    """The mark that a reader was given as the id of its last entry; None for nothing. A bare number is that of a change. Raises InputError."""
    if not text:
        return None
    change, dash, news = text.strip().partition("-")
    if not (change.isascii() and change.isdigit() and (news.isascii() and news.isdigit() if dash else True)) or max(len(change), len(news)) > 16:
        raise InputError(f"{text[:50]!r} is no id of an entry", hint="send the last `id` that was given, like 1200-35, or the number of a change")
    return Mark(int(change), int(news) if dash else -1)


class Feed:
    """Entries as they come, for as many readers as may be. Safe for several threads."""

    def __init__(self, reader: RollReader, names: Names, most: int) -> None:
        self._reader = reader
        self._names = names
        self._most = most
        self._each = max(LEAST_EACH, most // PARTS)
        self._readers: Counter[str] = Counter()
        self._held: deque[Entry] = deque(maxlen=HELD)
        self._begin = self._end = Mark(-1, -1)
        self._turn = threading.Lock()
        self._looked_at = float("-inf")
        self.open = 0

    def enter(self, user: str = "") -> None:
        """Lets one more reader in, of that user. Raises WebError 503 when there are as many as may be, in all or of one user."""
        hint = "close one that nobody reads, or ask for GET /api/v1/changes now and then"
        with self._turn:
            if self.open >= self._most:
                raise WebError(503, f"{self.open} streams are open, and no more are served", code="unavailable", hint=hint)
            if self._readers[user] >= self._each:
                raise WebError(503, f"{self._each} streams of this user are open, and no more are served", code="unavailable", hint=hint)
            self.open += 1
            self._readers[user] += 1

    def leave(self, user: str = "") -> None:
        """A reader went."""
        with self._turn:
            self.open -= 1
            self._readers[user] -= 1
            if self._readers[user] <= 0:
                del self._readers[user]

    def start(self, last: Mark | None) -> Mark:
        """Where a reader begins: after its last entry, or with what comes from now on."""
        self._look()
        end = self._end
        if last is None:
            return end
        return Mark(min(last.change, end.change), min(last.news, end.news) if last.news >= 0 else end.news)

    async def after(self, at: Mark, patience: float) -> tuple[Sequence[Entry], Mark]:
        """The next entries, and how far a reader has come with them; none when nothing came within ``patience`` seconds."""
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        while True:
            if loop.time() - self._looked_at >= BEAT:
                self._looked_at = loop.time()
                await run_in_threadpool(self._look)
            found, at = await self._next(at)
            left = until - loop.time()
            if found or left <= 0:
                return found, at
            await asyncio.sleep(min(BEAT, left))

    async def _next(self, at: Mark) -> tuple[Sequence[Entry], Mark]:
        with self._turn:
            held, begin, end = (list(self._held) if at != self._end else []), self._begin, self._end
        if at.change >= end.change and at.news >= end.news:
            return (), at
        if at.change >= begin.change and at.news >= begin.news:
            found = _stepped([each for each in held if not _read(each, at)][:PART], at)
            return found, found[-1].mark if found else end
        return await run_in_threadpool(self._older, at, end)

    def _older(self, at: Mark, end: Mark) -> tuple[Sequence[Entry], Mark]:
        """The next entries of the store up to ``end``, changes first."""
        changes = [row for row in self._reader.changes(None, at.change, PART) if row.number <= end.change] if at.change < end.change else []
        if changes:
            found = self._entries(changes, [], at)
            return found, found[-1].mark
        at = Mark(max(at.change, end.change), at.news)
        news = [row for row in self._reader.news(at.news, PART) if row.number <= end.news] if at.news < end.news else []
        found = self._entries([], news, at)
        return found, found[-1].mark if found else Mark(at.change, max(at.news, end.news))

    def _look(self) -> None:
        """Takes in what is new in the store."""
        with self._turn:
            if self._end.change < 0:
                self._begin = self._end = Mark(self._last_change(), self._last_news())
            while True:
                changes = self._reader.changes(None, self._end.change, PART)
                news = self._reader.news(self._end.news, PART)
                if not changes and not news:
                    return
                for entry in self._entries(changes, news, self._end):
                    if len(self._held) == HELD:
                        self._begin = self._held[0].mark
                    self._held.append(entry)
                    self._end = entry.mark

    def _entries(self, changes: Sequence[ChangeRow], news: Sequence[News], at: Mark) -> list[Entry]:
        words = {word for change in changes for word in rows.change_words(change)} | {word for each in news for word in rows.finding_words(each.row)}
        names = self._names(words) if words else {}
        found: list[Entry] = []
        for change in changes:
            at = Mark(change.number, at.news)
            found.append(Entry(at, change, names))
        for each in news:
            at = Mark(at.change, each.number)
            found.append(Entry(at, each, names))
        return found

    def _last_change(self) -> int:
        return max((row.number for row in self._reader.changes(limit=1, newest=True)), default=0)

    def _last_news(self) -> int:
        """The last number of the news, by doubling and halving."""
        low, high = 0, 1
        while self._reader.news(high, 1):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._reader.news(middle, 1) else (low, middle)
        return high if self._reader.news(low, 1) else low


def _read(entry: Entry, at: Mark) -> bool:
    """True when a reader that stands at ``at`` has had the entry."""
    return entry.mark.change <= at.change if isinstance(entry.row, ChangeRow) else entry.mark.news <= at.news


def _stepped(entries: Sequence[Entry], at: Mark) -> list[Entry]:
    """The entries with the marks of a reader who stood at ``at``."""
    found: list[Entry] = []
    for each in entries:
        at = Mark(each.row.number, at.news) if isinstance(each.row, ChangeRow) else Mark(at.change, each.row.number)
        found.append(replace(each, mark=at))
    return found


def chosen(entry: Entry, kinds: Collection[str], subject: str, what: str) -> bool:
    """True when a reader who asks for these wants the entry."""
    if what and what != ("change" if isinstance(entry.row, ChangeRow) else "finding"):
        return False
    return (not kinds or entry.kind in kinds) and (not subject or subject in entry.about)
