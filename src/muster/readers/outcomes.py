# SPDX-License-Identifier: Apache-2.0
"""Captures as the readers build them: one that brought bytes, and one that says why there are none. All readers share the form."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from muster.domain.model.source import CAPTURE_LIMIT, Capture, Outcome, Read, Source

Clock: TypeAlias = Callable[[], datetime]
"""Where a reader takes the wall time from; the floor above owns it."""

STDERR_LIMIT = 64 * 1024
"""Bytes of error text kept of one read."""


@dataclass(frozen=True, slots=True)
class Taking:
    """One read that is under way: who reads what, and since when."""

    source: Source
    read: Read
    taken_at: datetime
    started: float

    @classmethod
    def begin(cls, source: Source, read: Read, clock: Clock) -> Taking:
        """Starts the watch for one read."""
        return cls(source, read, clock(), time.monotonic())

    def brought(self, payload: bytes, **more: Any) -> Capture:
        """A capture of ``payload``, capped at `CAPTURE_LIMIT`; ``more`` are further fields of `Capture`."""
        cut = bool(more.pop("cut", False)) or len(payload) > CAPTURE_LIMIT
        return self._capture(payload=payload[:CAPTURE_LIMIT], cut=cut, **more)

    def failed(self, outcome: Outcome, detail: str = "", **more: Any) -> Capture:
        """A capture that says why there is nothing to interpret. A missing tool gets the hint of its source."""
        if outcome is Outcome.TOOL_MISSING and self.source.install:
            detail = f"{detail}; {self.source.install}" if detail else self.source.install
        return self._capture(failure=outcome, detail=detail, **more)

    def _capture(self, **fields: Any) -> Capture:
        context: Mapping[str, str] = fields.pop("context", {})
        return Capture(
            source=self.source.id,
            locator=self.read.locator,
            format=self.read.format,
            taken_at=self.taken_at,
            duration=timedelta(seconds=round(time.monotonic() - self.started, 6)),
            context=dict(context),
            **fields,
        )
