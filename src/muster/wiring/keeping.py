# SPDX-License-Identifier: Apache-2.0
"""Who keeps the roll in this process: the inventory while this server may write, nobody while another does. One thing at a time, whoever asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from muster.domain.model.access import Speaker
from muster.domain.model.errors import MusterError, Unavailable
from muster.spi.access import AtHome
from muster.spi.store import FindingRow, Under
from muster.wire.report import ActDoc, AnswerDoc, ReportDoc
from muster.wiring.desk import Keeper

T = TypeVar("T")
SLICE = 0.05
"""Seconds in which the roll is kept from reports while time passes; where more parts are due than can be looked at in them, reports come between."""


class Keeping:
    """`Keeper` and `Intake` over whoever keeps the roll now. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keeper: Keeper | None = None
        self._why = Unavailable("the server is starting", hint="try again in a moment")
        self._spent: dict[str, float] = {}
        self.bounds: AtHome | None = None
        """Who may report without a token, from this machine; None: whoever does."""

    def begin(self, make: Callable[[], Keeper]) -> None:
        """Keeps the roll from now on, by what ``make`` makes."""
        with self._lock:
            self._keeper = make()

    def end(self, why: Unavailable) -> None:
        """Keeps it no more."""
        with self._lock:
            self._keeper, self._why = None, why

    @property
    def begun(self) -> bool:
        """True while this process keeps the roll."""
        return self._keeper is not None

    def report(self, doc: ReportDoc, now: float) -> AnswerDoc:
        """Takes a report in of a program of this machine. Raises Unavailable while another server writes, NotAllowed in the name of one who joined."""
        if self.bounds is not None:
            self.bounds.at_home(doc.reporter)
        answer = self._do("report", lambda keeper: keeper.report(doc, now))
        if self.bounds is not None:
            self.bounds.heard(doc.reporter, doc.node)
        return answer

    def take(self, posts: Sequence[tuple[Speaker, bytes]], now: float) -> list[AnswerDoc | MusterError]:
        """Takes packed reports in, in one commit."""
        try:
            return self._do("take", lambda keeper: keeper.take(posts, now))
        except Unavailable as error:
            return [error] * len(posts)

    def act(self, doc: ActDoc, now: float, *, dry_run: bool = False, under: Under | None = None) -> list[str]:
        """Carries out an operator's word."""
        return self._do("act", lambda keeper: keeper.act(doc, now, dry_run=dry_run, under=under))

    def acknowledge(self, finding: str, by: str, reason: str, now: float) -> FindingRow:
        """Marks a finding as seen."""
        return self._do("acknowledge", lambda keeper: keeper.acknowledge(finding, by, reason, now))

    def tick(self, now: float) -> bool:
        """Lets time pass, for a moment at most, so that reports need not wait. True when more is due: the next call goes on with it."""
        if not self.begun:
            return False
        until = time.monotonic() + SLICE
        return self._do("tick", lambda keeper: keeper.tick(now, lambda: time.monotonic() >= until))

    def hold(self, until: float) -> None:
        """Holds nobody's silence against them before ``until``."""
        if self.begun:
            self._do("hold", lambda keeper: keeper.hold(until))

    def alone(self, work: Callable[[], None]) -> None:
        """Does something while nobody else writes."""
        with self._lock:
            work()

    def meters(self) -> Mapping[str, float]:
        """Seconds of processor time spent so far, by what was done."""
        keeper = self._keeper
        figures = keeper.figures() if keeper is not None else {}
        return {**{f"writer_{name}_cpu_seconds_total": spent for name, spent in sorted(self._spent.items())}, **figures}

    def _do(self, name: str, work: Callable[[Keeper], T]) -> T:
        with self._lock:
            if self._keeper is None:
                raise self._why
            began = time.thread_time()
            try:
                return work(self._keeper)
            finally:
                self._spent[name] = self._spent.get(name, 0.0) + time.thread_time() - began
