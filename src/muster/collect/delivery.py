# SPDX-License-Identifier: Apache-2.0
"""Delivers what is in the spool, oldest first, and waits longer after each failure. One report that the server fails on does not hold up the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from muster.collect.clock import Clock
from muster.collect.edge import Edge
from muster.collect.post import Fate, Post, Posted
from muster.collect.spool import Kept, Spool
from muster.wire.report import ReportDoc

_log = logging.getLogger("muster.delivery")

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
TRIES = 6
"""Times that a server which is otherwise well may fail on one report before it is set aside."""


class Delivery:
    """The way to the server.

    ``spread`` gives numbers 0..1, so that many agents do not come back at once; ``renew`` begins a new incarnation; ``longest`` are seconds between tries.
    ``well`` asks whether the server can do its work: only then is a report that it fails on again and again to blame for it.
    ``smaller`` gives a report that is too large in smaller ones, numbered anew; ``wanted`` is told the digests of captures that the server asks for.
    """

    def __init__(
        self,
        spool: Spool,
        post: Post,
        clock: Clock,
        *,
        boot_id: str,
        spread: Callable[[], float],
        renew: Callable[[], None],
        longest: float = LONGEST_WAIT_S,
        well: Callable[[], bool] = lambda: False,
        smaller: Callable[[ReportDoc], Sequence[ReportDoc]] = lambda _: (),
        wanted: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        self._spool = spool
        self._post = post
        self._clock = clock
        self._boot_id = boot_id
        self._spread = spread
        self._renew = renew
        self._longest = longest
        self._well = well
        self._smaller = smaller
        self._wanted = wanted
        self._failures = 0
        self._broke: tuple[int, int] = (0, 0)
        self._next = float("-inf")
        self.delivered = 0
        self.delivered_at = 0.0
        """Wall time of the last report that arrived; 0 when none has."""
        self.refused = 0
        self.failed: Posted | None = None
        """What became of the last post where it did not arrive; None when it did."""
        self.trouble_at = 0.0
        """Wall time since which that is so; 0 when it is not."""

    @property
    def trouble(self) -> str:
        """Why the last post did not arrive; empty when it did."""
        return self.failed.detail if self.failed is not None else ""

    @property
    def next_at(self) -> float:
        """When to try next (monotonic)."""
        return self._next

    def wait(self, seconds: float) -> None:
        """Waits for something to deliver, ``seconds`` at most."""
        if self._spool.came.wait(seconds):
            self._spool.came.clear()

    def wake(self) -> None:
        """Ends a `wait` of another thread."""
        self._spool.came.set()

    def step(self) -> bool:
        """Delivers one report when there is one and it is time. True when the next can follow at once."""
        if self._clock.mono() < self._next:
            return False
        found = self._spool.oldest(self._clock.wall(), self._clock.mono(), self._boot_id)
        if found is None:
            return False
        again = False
        with Edge() as edge:
            again = self._settle(*found, self._post(self._stamped(found[1])))
        return self._settle(*found, Posted(Fate.LATER, f"the agent failed on it: {edge.broke}", broke=True)) if edge.broke else again

    def stumbled(self, how: str) -> None:
        """Something beside the posts broke: goes on after a wait."""
        self._later(Posted(Fate.LATER, f"the agent failed: {how}"))

    def _settle(self, kept: Kept, report: ReportDoc, posted: Posted) -> bool:
        """Does with a report what became of its post. True when the next can follow at once."""
        if posted.fate is Fate.LATER:
            if posted.broke and self._to_blame(kept):
                self._set_aside(kept, report, posted.detail)
                return True
            self._later(posted)
            return False
        if posted.fate is Fate.TOO_LARGE:
            return self._part(kept, report, posted)
        self._spool.done(kept)
        self._settled(report, posted)
        if posted.renew:
            self._renew()
        return True

    def _part(self, kept: Kept, report: ReportDoc, posted: Posted) -> bool:
        """Puts a report that is too large back in smaller ones; one that cannot be parted is refused."""
        parts = self._smaller(report)
        for each in parts:
            self._spool.add(each)
        self._spool.done(kept)
        if parts:
            _log.warning("report %s/%d is too large for the server and is sent in %d", report.incarnation, report.sequence, len(parts))
        else:
            self._settled(report, posted)
        return True

    def _to_blame(self, kept: Kept) -> bool:
        """True when the server has failed on this one report often enough, and is otherwise well."""
        order, tries = self._broke
        self._broke = (kept.order, tries + 1 if order == kept.order else 1)
        return self._broke[1] >= TRIES and self._well()

    def _set_aside(self, kept: Kept, report: ReportDoc, detail: str) -> None:
        where = self._spool.set_aside(kept)
        self._failures, self._next, self.failed, self.trouble_at = 0, float("-inf"), None, 0.0
        self.refused += 1
        _log.error("report %s/%d is set aside after %d tries, kept as %s: %s", report.incarnation, report.sequence, self._broke[1], where, detail)

    def _stamped(self, report: ReportDoc) -> ReportDoc:
        return msgspec.structs.replace(report, sent_at=self._clock.wall(), sent_mono=self._clock.mono(), boot_id=self._boot_id)

    def _settled(self, report: ReportDoc, posted: Posted) -> None:
        if self._failures:
            _log.info("the server answers again")
        self._failures, self.failed, self.trouble_at = 0, None, 0.0
        if posted.fate is Fate.TAKEN:
            self.delivered += 1
            self.delivered_at = self._clock.wall()
            if posted.wanted:
                self._wanted(posted.wanted)
            return
        self.refused += 1
        _log.error("report %s/%d was refused and is dropped: %s", report.incarnation, report.sequence, posted.detail)

    def _later(self, posted: Posted) -> None:
        backed = min(self._longest, FIRST_WAIT_S * 2.0 ** min(self._failures, 16))
        spread = self._spread()
        self._failures += 1
        self._next = self._clock.mono() + max(backed * (0.5 + spread / 2), posted.wait * (1 + spread / 4))
        if posted.detail != self.trouble:
            _log.warning("reports wait: %s", posted.detail)
        self.failed, self.trouble_at = posted, self.trouble_at or self._clock.wall()
