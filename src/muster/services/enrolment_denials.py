# SPDX-License-Identifier: Apache-2.0
"""What was refused, for the audit: counted exactly, written now and then, so that a flood of refusals is no flood of entries."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from muster.domain.model.errors import Unavailable
from muster.spi.enrolment import Deed, EnrolmentStore

KINDS = 64
"""Different refusals that are told apart between two entries; the rest is counted together."""
EVERY = 10.0
"""Seconds between entries on what keeps coming."""
_LONGEST = 160


@dataclass(slots=True)
class Denials:
    """Refusals that are not in the audit yet."""

    store: EnrolmentStore
    _count: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    _written: float = float("-inf")
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str, target: str, why: str, peer: str) -> None:
        """Counts a refusal."""
        key = (what, plain(target), plain(why), plain(peer))
        with self._turn:
            if key not in self._count and len(self._count) >= KINDS:
                key = (what, "others", "more refusals than are told apart", "")
            self._count[key] = self._count.get(key, 0) + 1

    def write(self, now: float) -> None:
        """Writes them into the audit, when it is time and there are any; when the store does not take them they wait."""
        with self._turn:
            if not self._count or 0.0 <= now - self._written < EVERY:
                return
            waiting, self._count, self._written = self._count, {}, now
        try:
            with self.store.change() as rows:
                for (what, target, why, peer), count in waiting.items():
                    rows.audit(Deed(at=now, by=peer or "unknown", what=what, target=target, result="denied", detail={"why": why, "count": count}))
        except Unavailable:
            with self._turn:
                for key, count in waiting.items():
                    self._count[key] = self._count.get(key, 0) + count


def plain(text: str) -> str:
    """A stranger's text on one line, without what is not printable, and not too long."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:_LONGEST])
