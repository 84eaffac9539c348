# SPDX-License-Identifier: Apache-2.0
"""What strangers may cause as often as they like is said seldom."""

from __future__ import annotations

import time

AGAIN = 60.0
"""Seconds until the same is said again."""
MANY = 1_000
"""Things that are remembered before it is begun anew."""


class Seldom:
    """Lets each thing be said once a minute."""

    def __init__(self) -> None:
        self._again: dict[str, float] = {}

    def may(self, about: str = "") -> bool:
        """True when nothing was said about it for a minute; then it is said now."""
        now = time.monotonic()
        if now < self._again.get(about, float("-inf")):
            return False
        if len(self._again) >= MANY:
            self._again.clear()
        self._again[about] = now + AGAIN
        return True
