# SPDX-License-Identifier: Apache-2.0
"""How delivery stands, in a small file beside the spool, for whoever asks on the node (``muster agent status``)."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from muster.collect.clock import Clock
from muster.collect.delivery import Delivery
from muster.collect.spool import Spool

FILE = "delivery.json"
EVERY_S = 10.0


class Noted:
    """Writes the file when something changed, at most every `EVERY_S`. Where it cannot be written, nothing happens: it is for looking at."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._next = float("-inf")
        self._last = ""

    def note(self, delivery: Delivery, spool: Spool) -> None:
        """Notes how things stand, when it is time."""
        now = self._clock.mono()
        if now < self._next:
            return
        self._next = now + EVERY_S
        told = {
            "delivered_at": delivery.delivered_at,
            "trouble": delivery.trouble,
            "spool_reports": len(spool),
            "spool_bytes": spool.size,
            "refused": delivery.refused,
            "dropped": spool.dropped,
        }
        text = json.dumps(told)
        if text == self._last:
            return
        part = self._path.with_suffix(".part")
        with contextlib.suppress(OSError):
            part.write_text(text + "\n", encoding="utf-8")
            part.replace(self._path)
            self._last = text
