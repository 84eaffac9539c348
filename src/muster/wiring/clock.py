# SPDX-License-Identifier: Apache-2.0
"""The server's clock: it follows the wall clock, but does not leap with it. A wall clock that is set while the server runs ages nothing at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

STEP = 2.0
"""Seconds by which the wall clock may be off and is followed at once: what time services correct."""
PATIENCE = 900.0
"""Seconds for which a wall clock that was set must stand by its new time before it is believed."""


class SteadyClock:
    """Seconds since the epoch, which go on evenly. Safe for several threads.

    ``leapt`` is told when a new time of the wall clock is taken on, by how many seconds it differs.
    """

    def __init__(
        self, wall: Callable[[], float], mono: Callable[[], float], *, patience: float = PATIENCE, leapt: Callable[[float], None] = lambda _: None
    ) -> None:
        self._wall, self._mono = wall, mono
        self._patience = patience
        self._leapt = leapt
        self._lock = threading.Lock()
        self._base = wall() - mono()
        self._doubt: tuple[float, float] | None = None
        """The other base that the wall clock tells, and since when (monotonic)."""

    def __call__(self) -> float:
        """The time now."""
        with self._lock:
            mono = self._mono()
            leapt = self._follow(self._wall() - mono, mono)
            now = self._base + mono
        if leapt:
            self._leapt(leapt)  # who is told may ask us for the time
        return now

    @property
    def trouble(self) -> str:
        """What is wrong with the wall clock; empty when nothing is."""
        with self._lock:
            if self._doubt is None:
                return ""
            off = self._doubt[0] - self._base
            return f"the clock of this machine leapt {abs(off):.0f} s {'ahead' if off > 0 else 'back'}; set it right, or it is believed in a while"

    def _follow(self, base: float, mono: float) -> float:
        """Seconds by which a new time of the wall clock is taken on; 0 when none is."""
        if abs(base - self._base) <= STEP:
            self._base, self._doubt = base, None
        elif self._doubt is None or abs(base - self._doubt[0]) > STEP:
            self._doubt = (base, mono)
        elif mono - self._doubt[1] >= self._patience:
            off = base - self._base
            self._base, self._doubt = base, None
            return off
        return 0.0
