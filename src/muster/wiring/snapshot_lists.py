# SPDX-License-Identifier: Apache-2.0
"""Nodes and sources in columns: lists that are read whole, each time of a small roll, and of a large one for a small share of the time.

Those of a large roll are read anew by who keeps its columns, while who asks has what stands.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar

from muster.domain.decide.pick_fields import NODE_FIELDS
from muster.domain.decide.pick_rows import Row, node_row
from muster.domain.decide.pick_table import Table
from muster.domain.model.filters import Fields
from muster.domain.model.policy import Policy
from muster.domain.model.roll import NodeRecord, SourceRecord
from muster.domain.model.snapshot import Snapshot
from muster.spi.store import RollReader
from muster.wiring.snapshot_sources import FIELDS, Adapters, source_id, source_row

R = TypeVar("R")
REST = 20.0
"""A list that took a second to read is not read again within so many seconds."""
IDLE = 60.0
"""Nor, while nobody asks for it or nothing but times has changed, within so many."""
ROWS, NAP = 50, 0.001
"""After so many rows who keeps the lists of a large roll leaves the processor to requests for so many seconds."""


@dataclass(frozen=True, slots=True)
class Seldom(Generic[R]):
    """A list that is kept with its records."""

    snapshot: Snapshot
    records: Mapping[str, R]
    made: float
    took: float


class Lists:
    """The lists. ``pace`` gives the last commit that is known, and whether reading must be spared. Safe for several threads."""

    def __init__(
        self,
        reader: RollReader,
        policy: Policy,
        clock: Callable[[], float],
        adapters: Adapters,
        ticks: Callable[[], float],
        pace: Callable[[], tuple[int, bool]],
    ) -> None:
        self._reader = reader
        self._policy = policy
        self._clock = clock
        self._adapters = adapters
        self._ticks = ticks
        self._pace = pace
        self._stamps = count(1)
        self._kept: dict[str, Seldom[Any]] = {}
        self._asked: dict[str, bool] = {}
        """Which were asked for since they were read."""
        self._turn = threading.Lock()

    def nodes(self) -> Seldom[NodeRecord]:
        """The nodes."""
        return self._given("nodes")

    def sources(self) -> Seldom[SourceRecord]:
        """The sources, by their last word."""
        return self._given("sources")

    def old(self) -> bool:
        """True when one of them would be read anew for who asks now."""
        return any(not self._stands(name) for name in _READ)

    def renew(self) -> None:
        """Reads what would be read anew for who asks now."""
        for name in _READ:
            self._given(name)

    def keep(self) -> None:
        """Reads anew what is old of a large roll, in the stead of who asks next."""
        if self._pace()[1]:
            for name in _READ:
                with self._turn:
                    if not self._fresh(name):
                        self._renewed(name, NAP)

    def _stands(self, name: str) -> bool:
        return name in self._kept and self._pace()[1]

    def _given(self, name: str) -> Seldom[Any]:
        """The list as it stands of a large roll, else as it is now."""
        found = self._kept.get(name)
        if found is None or not self._pace()[1]:
            with self._turn:
                found = self._kept[name] if self._stands(name) else self._renewed(name)
        self._asked[name] = True
        return found

    def _fresh(self, name: str) -> bool:
        found = self._kept.get(name)
        if found is None:
            return False
        wanted = self._asked.get(name) and found.snapshot.version != self._pace()[0]
        return self._ticks() - found.made < max(REST * found.took, 0.0 if wanted else IDLE)

    def _renewed(self, name: str, nap: float = 0.0) -> Seldom[Any]:
        began, version = self._ticks(), self._pace()[0]
        fields, rows = _READ[name](self)
        table, records = Table(fields), dict[str, Any]()
        for id_, record, row in rows:
            records[id_] = record
            table.put(id_, row)
            if nap and len(records) % ROWS == 0:
                time.sleep(nap)
        live, columns = table.columns()
        snapshot = Snapshot(version=version, at=self._clock(), live=live, columns=columns, stamp=next(self._stamps))
        made = Seldom(snapshot, records, self._ticks(), self._ticks() - began)
        self._kept[name], self._asked[name] = made, False
        return made

    def _of_nodes(self) -> tuple[Fields, Iterator[tuple[str, Any, Row]]]:
        now = self._clock()
        return NODE_FIELDS, ((node.id, node, node_row(node, self._policy, now)) for node in self._reader.nodes())

    def _of_sources(self) -> tuple[Fields, Iterator[tuple[str, Any, Row]]]:
        return FIELDS, ((source_id(each), each, source_row(each, self._adapters)) for each in self._reader.sources())


_READ: Mapping[str, Callable[[Lists], tuple[Fields, Iterator[tuple[str, Any, Row]]]]] = {"nodes": Lists._of_nodes, "sources": Lists._of_sources}
