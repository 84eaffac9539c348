# SPDX-License-Identifier: Apache-2.0
"""The newest numbers of the whole site as columns: what filters, orders and exports of many cards go over at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The newest numbers of one gauge or counter: one entry for each subject and source that tells it; all are equally long.

    Within an ``epoch`` entries are only added at the end: what a caller worked out of the first n (the row of each card, say) holds for the first n
    of the next answer. An entry that nobody speaks of any more stays, with NaN for its value. A new epoch begins anew.
    """

    key: str
    epoch: int
    subjects: Sequence[str]
    """Ids of cards, devices and partitions. Not to be changed by the caller; may be longer than the arrays, when another thread just added to it."""
    cards: Sequence[str]
    """The card that each subject is or belongs to, as it is called now."""
    slots: NDArray[np.int64]
    """The source that tells it: `Rounds` by this number says which and when."""
    values: NDArray[np.float64]
    """NaN: not told."""
    times: NDArray[np.float64]
    """When each number was last told, by corrected time of seeing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """How far each source has come; slot numbers are the index. A number that was never given has empty names."""

    epoch: int
    nodes: Sequence[str]
    sources: Sequence[str]
    at: NDArray[np.float64]
    """Its newest round of numbers. NaN: none yet."""
    since: NDArray[np.float64]
    """Up to when the records have its words: its last full word of facts, or repeats of it that were folded into them."""
    again_at: NDArray[np.float64]
    """Until when that word holds by repeats; NaN: it was not said again."""


Told: TypeAlias = "tuple[str, int, float, float]"
"""One newest number of a subject: its key, the slot of the source that tells it, the number, and when it was last told."""


class Numbers(Protocol):
    """Newest numbers for those who go over all of them. Safe for several threads. What is committed shows at once, or within seconds from another machine."""

    def keys(self) -> Collection[str]:
        """Gauges and counters that have a column."""

    def column(self, key: str) -> Column:
        """The column of ``key``; one without entries when nobody tells it. The arrays are the caller's own."""

    def rounds(self) -> Rounds:
        """How far each source has come. The arrays are the caller's own; the names are not to be changed."""

    def of(self, subjects: Sequence[str], keys: Collection[str] | None = None) -> list[list[Told]]:
        """The newest numbers of each of these subjects, in their order; of some keys, or all."""
