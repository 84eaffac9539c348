# SPDX-License-Identifier: Apache-2.0
"""What a door is handed: the store's reader, and the one writer behind a lock. The server fills it; tests fill it with recorded parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from muster.domain.model.policy import Policy
from muster.spi.adapter import Adapter
from muster.spi.store import FindingRow, RollReader
from muster.wire.report import ActDoc, AnswerDoc, ReportDoc


class Keeper(Protocol):
    """The writer as doors see it. Not for several threads at once."""

    def report(self, doc: ReportDoc, now: float) -> AnswerDoc:
        """Takes a report in."""

    def act(self, doc: ActDoc, now: float, *, dry_run: bool = False) -> list[str]:
        """Carries out an operator's word, or only tries it; ids of the cards touched. Raises NotFound, Ambiguous, Conflict, InputError."""

    def tick(self, now: float) -> None:
        """Lets time pass: silences and settle times."""

    def acknowledge(self, finding: str, by: str, reason: str, now: float) -> FindingRow:
        """Marks a finding as seen. Raises NotFound or Conflict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The parts a door works with. ``clock`` is the only clock it may ask."""

    reader: RollReader
    keeper: Keeper
    policy: Policy
    clock: Callable[[], float]
    adapters: Sequence[Adapter] = ()
    version: str = ""
    well: Callable[[], dict[str, str]] = dict
    """What is not well with the server, by check; empty when it can do its work."""
    notes: Callable[[], dict[str, str]] = dict
    """What a person should know of a server that does its work all the same, by check."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def report(self, doc: ReportDoc) -> AnswerDoc:
        """Takes a report in, one at a time."""
        with self.lock:
            return self.keeper.report(doc, self.clock())

    def act(self, doc: ActDoc, *, dry_run: bool = False) -> list[str]:
        """Carries out an act, or only tries it, one at a time."""
        with self.lock:
            return self.keeper.act(doc, self.clock(), dry_run=dry_run)

    def acknowledge(self, finding: str, by: str, reason: str) -> FindingRow:
        """Acknowledges a finding, one at a time."""
        with self.lock:
            return self.keeper.acknowledge(finding, by, reason, self.clock())

    def tick(self) -> None:
        """Lets time pass."""
        with self.lock:
            self.keeper.tick(self.clock())
