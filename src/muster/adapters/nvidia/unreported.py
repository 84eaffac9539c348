# SPDX-License-Identifier: Apache-2.0
"""What the long listings say no more: a group that is there without its main value under any name that is known. The tool renamed it, or dropped it."""

from __future__ import annotations

from collections.abc import Collection

from muster.adapters.nvidia.board import Board
from muster.domain.model.reading import Absent, Why
from muster.formats.tree import fold

# group, fields of which one should stand in it
_MAIN = (
    ("utilization", ("utilization.gpu",)),
    ("temperature", ("temperature.gpu",)),
    ("fb memory usage", ("memory.used",)),
)
_POWER = ("power.draw", "power.draw.instant", "power.draw.average")
_USUAL = frozenset({"pci", "fb memory usage", "utilization", "temperature", "clocks"})
"""Groups of every listing that was not asked for a part of it."""


def mark(board: Board, groups: Collection[str]) -> None:
    """Marks main values of ``board`` that its listing no longer tells. ``groups`` are the names of its groups that hold something."""
    if board.partial:
        return
    there = {fold(group) for group in groups}
    for group, fields in _MAIN:
        if group in there:
            _mark(board, fields)
    if "power readings" in there or "gpu power readings" in there or there >= _USUAL:
        _mark(board, _POWER)


def _mark(board: Board, fields: tuple[str, ...]) -> None:
    if not any(name in board.fields for name in fields):
        board.offer(fields[0], Absent(Why.NOT_REPORTED, "the listing has no such line"))
