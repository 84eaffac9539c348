# SPDX-License-Identifier: Apache-2.0
"""What numbers were at a time, from the minutes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from sqlalchemy import select

from muster.store import gauges_rows
from muster.store.connections import Connections
from muster.store.gauges_map import NONE
from muster.store.gauges_rows import Flags, Rolled
from muster.store.pack import BLOCK, MINUTE, Floats, Grid, unpack
from muster.store.schema_gauges import minute_rows
from muster.store.segments import HOUR, Block
from muster.store.unread import Unread

_SOME = 200
"""Layouts that are looked at in one go: what waits of them is held in memory."""
Told: TypeAlias = tuple[Floats, Floats]
"""Numbers, and when each was told."""


@dataclass(frozen=True, slots=True)
class Past:
    """Numbers as they were at a time: by the last minute in which each was told, if the minute's last round had come.

    A minute that began before ``at`` and went on answers with the one before it. ``hours`` have segments, the latest first.
    """

    connections: Connections
    hours: Sequence[int]
    blocks: Callable[[Sequence[int], Sequence[int], Callable[[Block], Grid]], list[tuple[Block, Grid]]]
    at: float
    unread: Unread
    found: dict[int, Told] = field(default_factory=dict)

    def numbers(self, newest: Mapping[int, Told], times: Mapping[int, tuple[float, float | None]]) -> dict[int, Told]:
        """Numbers of layouts. ``newest`` is what holds now, used where it was told by then; ``times`` are from when and until when each held."""
        for number, (values, told) in newest.items():
            mine = told <= self.at
            self.found[number] = (np.where(mine, values, np.nan), np.where(mine, told, NONE))
        open_ = [number for number, (_, told) in self.found.items() if (told == NONE).any()]
        for start in range(0, len(open_), _SOME):
            some = open_[start : start + _SOME]
            self._waiting(some)
            self._packed(some, times)
        return self.found

    def _waiting(self, some: Sequence[int]) -> None:
        asked = select(minute_rows).where(minute_rows.c.layout.in_(some), minute_rows.c.minute <= self.at, minute_rows.c.at <= self.at)
        (rows,) = self.connections.rows(asked.order_by(minute_rows.c.number))
        for row, rolled in self.unread.readable("minute_rows", ("number",), rows, self._spread):
            self._take(row["layout"], rolled.last[0], rolled.count[0] > 0, row["at"])

    def _spread(self, row: Mapping[str, Any]) -> tuple[Mapping[str, Any], Rolled]:
        return row, gauges_rows.spread([row["packed"]], len(self.found[row["layout"]][0]))

    def _packed(self, some: Sequence[int], times: Mapping[int, tuple[float, float | None]]) -> None:
        """From the segments, until something of a layout was found."""
        left = [number for number in some if (self.found[number][1] == NONE).any()]
        for hour in self.hours:
            left = [number for number in left if times[number][0] < (hour + 1) * HOUR]
            if not left:
                return
            here = [number for number in left if times[number][1] is None or (times[number][1] or 0.0) >= hour * HOUR]
            for block, grid in self.blocks([hour], here, lambda block: unpack(block.packed)):
                ends = block.block * BLOCK + np.arange(len(grid.at)) * MINUTE + grid.at
                for place in np.flatnonzero(ends <= self.at).tolist():
                    self._take(block.layout, grid.last[:, place], grid.count[:, place] > 0, float(ends[place]))
            left = [number for number in left if (self.found[number][1] == NONE).all()]

    def _take(self, layout: int, last: Floats, told: Flags, at: float) -> None:
        """Takes the last numbers of a minute where nothing later is known."""
        values, times = self.found[layout]
        newer = told & (times < at)
        values[newer] = last[newer]
        times[newer] = at
