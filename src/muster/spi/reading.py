# SPDX-License-Identifier: Apache-2.0
"""What is asked of a store: every plain query of the roll."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from muster.domain.model.roll import CardRecord, NodeRecord, SourceRecord
from muster.spi.rows import CaptureRow, ChangeRow, CurrentValue, EventRow, FindingRow, Fresh, News, Reporter


class RollReader(Protocol):
    """Every plain query. ``at`` None is now; a time answers what was believed then."""

    def version(self) -> int:
        """Number of the last commit that changed a record; 0 in an empty store. Cheap: asked many times a second."""

    def fresh(self, after: int) -> Fresh:
        """Cards written since commit ``after``; 0 asks for all."""

    def cards(self, at: float | None = None, ids: Iterable[str] | None = None) -> list[CardRecord]:
        """Cards believed at ``at``, in order of creation."""

    def resolve(self, card: str) -> str:
        """The card id that ``card`` (perhaps joined into another since) stands for now. Raises NotFound."""

    def current(self, cards: Iterable[str] | None = None, at: float | None = None, *, numbers: bool = True) -> list[CurrentValue]:
        """Gauges and counters; in the past, the last of the minute roll-ups at or before ``at``.

        Without ``numbers`` only words that were said one by one: for who has the newest numbers as columns, of which the newer one counts.
        """

    def minutes(self, subject: str, key: str, since: float, until: float) -> list[Mapping[str, Any]]:
        """Roll-ups ``{minute, source, count, sum, low, high, last}`` of one gauge."""

    def nodes(self, at: float | None = None, ids: Iterable[str] | None = None) -> list[NodeRecord]:
        """Nodes, in order of creation; those of ``ids``, or all."""

    def sources(self, nodes: Iterable[str] | None = None) -> list[SourceRecord]:
        """Sources, by node name and source; those of ``nodes`` (ids), or all."""

    def reporters(self, names: Iterable[str] | None = None, *, nodes: Iterable[str] | None = None) -> list[Reporter]:
        """Reporters by name; those of ``names``, those that spoke last of ``nodes`` (by name), or all."""

    def changes(
        self,
        subject: str | None = None,
        after: int = 0,
        limit: int = 500,
        at: float | None = None,
        *,
        before: int | None = None,
        kinds: Collection[str] | None = None,
        newest: bool = False,
    ) -> list[ChangeRow]:
        """History between two numbers, the oldest first or the ``newest``; of one subject, or all. In the past: learnt by then and not yet superseded."""

    def findings(
        self,
        *,
        closed: bool = False,
        at: float | None = None,
        cards: Iterable[str] | None = None,
        kinds: Collection[str] | None = None,
        node: str | None = None,
        limit: int | None = None,
        before: tuple[float, str] | None = None,
    ) -> list[FindingRow]:
        """Open findings, or closed ones too, newest first. ``before``: those after the one that opened at this time with this id."""

    def finding(self, id_: str) -> FindingRow:
        """The newest finding of that id. Raises NotFound."""

    def news(self, after: int, limit: int = 500) -> list[News]:
        """What became of findings, by running number."""

    def events(
        self,
        card: str | None = None,
        node: str | None = None,
        limit: int = 500,
        *,
        kinds: Collection[str] | None = None,
        before: tuple[float, str] | None = None,
    ) -> list[EventRow]:
        """Events, newest first. ``before``: those after the one that last happened at this time with this id."""

    def capture(self, digest: str) -> CaptureRow:
        """The capture with this digest. Raises NotFound when it was never kept or was dropped by the budget."""

    def audit(self, limit: int = 500) -> list[Mapping[str, Any]]:
        """Operator acts, newest first."""

    def audited(self, limit: int = 500, before: int | None = None) -> list[tuple[int, Mapping[str, Any]]]:
        """The same with the number of each in the log; those before a number."""
