# SPDX-License-Identifier: Apache-2.0
"""What the door of reporters counts of itself. Written by one thread each, read by any; a reader may see one number a moment before another."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper edges in seconds; one more bucket holds what is above."""


@dataclass(slots=True)
class Spread:
    """How often something took how long: counts by `BOUNDS`, the sum and the longest."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds
        if seconds > self.longest:
            self.longest = seconds

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)


@dataclass(slots=True)
class Meters:
    """Counts since the door was opened, and how full it is now."""

    connections: int = 0
    """Open now."""
    opened: int = 0
    turned_away: int = 0
    """Connections over the bound."""
    handshakes_failed: int = 0
    cut_off: int = 0
    """Connections of slow senders, closed."""
    malformed: int = 0
    """Connections closed for what is no HTTP."""
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By (path, status); paths that are none of ours are one, the empty one."""
    received: int = 0
    """Bytes of bodies."""
    flight: int = 0
    """Bytes of bodies that are held now."""
    queue: int = 0
    """Reports that wait for the writer now, those it works on included."""
    queue_bytes: int = 0
    batches: int = 0
    taken: int = 0
    """Reports that the writer answered."""
    largest_batch: int = 0
    poisoned: int = 0
    """Batches on which the writer failed, so that its reports were tried one by one."""
    held_back: int = 0
    """Reports that were not taken because their reporter took more than its share of the writer, answered 429."""
    late: int = 0
    """Reports that were answered before the writer was done with them."""
    commits: Spread = field(default_factory=Spread)
    """Seconds of the writer for one batch."""
    acknowledged: Spread = field(default_factory=Spread)
    """Seconds from when a report was read to its answer."""

    @property
    def sent_away(self) -> int:
        """Reports that could not be taken because the server was too busy: those that were held back are not among them."""
        return self.late + sum(count for (_, status), count in list(self.answers.items()) if status == 429)
