# SPDX-License-Identifier: Apache-2.0
"""The findings that are open, kept between two looks: only those are read that were found again since, however many stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from muster.domain.decide.pick_table import Table
from muster.domain.model.roll import Finding
from muster.domain.model.snapshot import Coded
from muster.spi.store import RollReader
from muster.store.reader import Reader
from muster.wiring.snapshot_columns import by_card, kinds


class Opened:
    """Open findings. One thread looks; others read what stands, which is never changed but put in the place of another."""

    def __init__(self, reader: RollReader) -> None:
        self._reader = reader
        self._kept: dict[int, tuple[float, Finding | None]] = {}
        """By number of its row: when it was found last, and the finding where it can be read."""
        self.all: Sequence[Finding] = ()
        """The newest first."""
        self.by_card: Mapping[str, Sequence[Finding]] = {}
        self.kinds: Counter[str] = Counter()
        """How many of each kind there are."""
        self._column: tuple[object, Coded] | None = None

    def look(self) -> None:
        """Takes in what was found or closed since."""
        if not isinstance(self._reader, Reader):
            self._stand([row.finding for row in self._reader.findings()])
            return
        told = self._reader.standing()
        new = [number for number, at in told if number not in self._kept or self._kept[number][0] != at]
        if new or len(told) != len(self._kept):
            read = self._reader.numbered(new)
            self._kept = {number: (at, read[number] if number in read else self._kept.get(number, (at, None))[1]) for number, at in told}
            self._stand([finding for _, finding in self._kept.values() if finding is not None])

    def _stand(self, found: Sequence[Finding]) -> None:
        self.all, self.by_card, self.kinds, self._column = found, by_card(found), Counter(each.kind.value for each in found), None

    def column(self, cards: Table) -> Coded:
        """The kinds of open findings of each card."""
        stamp = (cards.generation, cards.rows)
        if self._column is None or self._column[0] != stamp:
            self._column = (stamp, kinds(cards, self.by_card))
        return self._column[1]

    def seen(self, names: Callable[[set[str]], Mapping[str, str]], sees: Callable[[Finding, Mapping[str, str]], bool]) -> Counter[str]:
        """How many of each kind there are among those that who asks sees; ``names`` gives the names of nodes."""
        found = self.all
        told = names({each.node for each in found if each.node})
        return Counter(each.kind.value for each in found if sees(each, told))
