# SPDX-License-Identifier: Apache-2.0
"""The server's clock: it follows the wall clock, but never leaps with it. A wall clock that is set while the server runs ages nothing at once."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable

STEP = 2.0
"""Seconds by which the wall clock may be off and is followed at once: what time services correct."""
PATIENCE = 900.0
"""Seconds for which a wall clock that was set must stand by its new time before it is believed."""
SLEW = 0.5
"""Seconds that are made up for in each second, once it is believed: a source keeps its promise for three rounds, so that half a round more is no silence."""
OLDEST = 1_735_689_600.0
"""The beginning of 2025: a wall clock that shows an earlier time was never set."""
FARTHEST = 86_400.0
"""A wall clock farther off than that, in seconds, is never believed by a server that runs."""


class SteadyClock:
    """Seconds since the epoch, which always go on, at half to one and a half times the pace of the monotonic clock. Safe for several threads."""

    def __init__(self, wall: Callable[[], float], mono: Callable[[], float]) -> None:
        self._wall, self._mono = wall, mono
        self._lock = threading.Lock()
        self._asked = mono()
        self._shared = memoryview(mmap.mmap(-1, 8)).cast("d")
        """What is added to the monotonic clock, where a process that was parted from this one sees it, too."""
        self._base = wall() - self._asked
        self._doubt: tuple[float, float] | None = None
        """The other base that the wall clock tells, and since when (monotonic)."""

    def __call__(self) -> float:
        """The time now."""
        with self._lock:
            mono = self._mono()
            self._follow(self._wall() - mono, mono)
            self._asked = mono
            return self._base + mono

    def reach(self, time: float) -> None:
        """Sees to it that the time is not before ``time``: what was written down then lies behind us, whatever the wall clock shows now."""
        with self._lock:
            self._base = max(self._base, time - self._mono())

    def told(self) -> float:
        """The time now, without a look at the wall clock: for a process that was parted from the one that follows it."""
        return self._base + self._mono()

    @property
    def _base(self) -> float:
        return float(self._shared[0])

    @_base.setter
    def _base(self, base: float) -> None:
        self._shared[0] = base

    @property
    def trouble(self) -> str:
        """What is wrong with the wall clock; empty when nothing is."""
        with self._lock:
            if self._doubt is None:
                return ""
            base, since = self._doubt
            off = base - self._base
            told = f"the clock of this machine leapt and is {_span(abs(off))} {'ahead of' if off > 0 else 'behind'} the server's"
            if abs(off) > FARTHEST:
                return f"{told}; that is too far to follow: set it right, or restart the server if it is right now"
            if self._asked - since < PATIENCE:
                return f"{told}; set it right, or the server follows it in a while"
            return f"{told}, which follows it and is there in {_span(abs(off) / SLEW)}"

    def _follow(self, base: float, mono: float) -> None:
        """Takes on what the wall clock tells, as far as it is believed."""
        off = base - self._base
        if abs(off) <= STEP:
            self._base, self._doubt = base, None
        elif self._doubt is None or abs(base - self._doubt[0]) > STEP:
            self._doubt = (base, mono)
        elif mono - self._doubt[1] >= PATIENCE and abs(off) <= FARTHEST:
            most = SLEW * min(mono - self._asked, mono - self._doubt[1] - PATIENCE)
            self._base += min(most, max(-most, off))
            self._doubt = (base, self._doubt[1])


def _span(seconds: float) -> str:
    """A length of time in its largest unit."""
    for unit, name in ((86_400.0 * 365, "years"), (86_400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
