# SPDX-License-Identifier: Apache-2.0
"""Nodes and sources in columns: lists that are read whole, each time of a small roll, and of a large one for a small share of the time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
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
        self._turn = threading.Lock()

    def nodes(self) -> Seldom[NodeRecord]:
        """The nodes."""
        now = self._clock()
        return self._seldom("nodes", NODE_FIELDS, lambda: {node.id: (node, node_row(node, self._policy, now)) for node in self._reader.nodes()})

    def sources(self) -> Seldom[SourceRecord]:
        """The sources, by their last word."""
        return self._seldom("sources", FIELDS, lambda: {source_id(each): (each, source_row(each, self._adapters)) for each in self._reader.sources()})

    def old(self) -> bool:
        """True when one of them would be read anew for who asks now."""
        return any(not self._fresh(self._kept.get(name)) for name in ("nodes", "sources"))

    def renew(self) -> None:
        """Reads anew what is old."""
        self.nodes()
        self.sources()

    def _fresh(self, found: Seldom[Any] | None) -> bool:
        version, spared = self._pace()
        return found is not None and spared and (found.snapshot.version == version or self._ticks() - found.made < REST * found.took)

    def _seldom(self, name: str, fields: Fields, read: Callable[[], Mapping[str, tuple[Any, Row]]]) -> Seldom[Any]:
        found = self._kept.get(name)
        if found is not None and self._fresh(found):
            return found
        with self._turn:
            found = self._kept.get(name)
            if found is None or not self._fresh(found):
                found = self._kept[name] = self._read(fields, read)
        return found

    def _read(self, fields: Fields, read: Callable[[], Mapping[str, tuple[Any, Row]]]) -> Seldom[Any]:
        began, version, table = self._ticks(), self._pace()[0], Table(fields)
        told = read()
        for id_, (_, row) in told.items():
            table.put(id_, row)
        live, columns = table.columns()
        snapshot = Snapshot(version=version, at=self._clock(), live=live, columns=columns, stamp=next(self._stamps))
        return Seldom(snapshot, {id_: record for id_, (record, _) in told.items()}, self._ticks(), self._ticks() - began)
