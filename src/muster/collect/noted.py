# SPDX-License-Identifier: Apache-2.0
"""How delivery stands, in a small file beside the spool, for whoever asks on the node (``muster agent status``)."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from muster.collect.clock import Clock
from muster.collect.delivery import Delivery
from muster.collect.spool import Spool

FILE = "delivery.json"
EVERY_S = 10.0
EARLY_S = 0.5
"""So much before its time a note is taken along, where there is something to do anyway."""


class Noted:
    """Writes the file when something changed, some `EVERY_S` apart. Where it cannot be written, nothing happens: it is for looking at."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._next = float("-inf")
        self._last: dict[str, object] = {}
        self._length = 0

    def note(self, delivery: Delivery, spool: Spool) -> float:
        """Notes how things stand, when it is time. Gives the seconds after which to come again, though nothing happens until then."""
        now, told = self._clock.mono(), self._told(delivery, spool)
        if told != self._last:
            if now < self._next - EARLY_S:
                return self._next - now
            self._next = now + EVERY_S
            alike = {**told, "delivered_at": self._last.get("delivered_at")} == self._last
            text = (json.dumps(told) + "\n").encode()
            if (alike and self._written_over(text)) or self._written(text):
                self._last, self._length = told, len(text)
        return EVERY_S if len(spool) or told != self._last else float("inf")

    def _written_over(self, text: bytes) -> bool:
        """Puts the digits of a time in place of those before, where nothing else is new: a file that is replaced costs a turn of the disk."""
        if len(text) != self._length:
            return False
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return os.pwrite(handle, text, 0) == len(text)
        except OSError:
            return False
        finally:
            os.close(handle)

    def _written(self, text: bytes) -> bool:
        part = self._path.with_suffix(".part")
        try:
            part.write_bytes(text)
            part.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            return False
        return True

    @staticmethod
    def _told(delivery: Delivery, spool: Spool) -> dict[str, object]:
        return {
            "delivered_at": round(delivery.delivered_at, 1),
            "trouble": delivery.trouble,
            "trouble_at": round(delivery.trouble_at, 1),
            "spool_reports": len(spool),
            "spool_bytes": spool.size,
            "refused": delivery.refused,
            "dropped": spool.dropped,
        }
