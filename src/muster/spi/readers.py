# SPDX-License-Identifier: Apache-2.0
"""How bytes come in: one Protocol for reads that end, one for streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from muster.domain.model.source import Capture, Source


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a stream was left, in the stream's own terms ("boot-id:sequence"); survives restarts as text."""

    text: str


class Reader(Protocol):
    """Reads a source once. Failures come back as captures with ``failure`` set, never as exceptions."""

    def read(self, source: Source, deadline: timedelta) -> Iterable[Capture]:
        """One capture per read of the source, in order."""


class StreamReader(Protocol):
    """Follows a source that never ends."""

    def follow(self, source: Source, cursor: Cursor | None) -> Iterator[tuple[Capture, Cursor]]:
        """Captures as they come, each with the cursor behind it. Ends when closed."""
