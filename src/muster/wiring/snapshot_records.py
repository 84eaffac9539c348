# SPDX-License-Identifier: Apache-2.0
"""Records of the cards that are shown: those that were asked for lately are kept decoded, until they are written again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from muster.domain.model.roll import CardRecord
from muster.spi.numbers import Numbers
from muster.spi.store import RollReader
from muster.store.again import Runs, card_on

MOST = 3000
"""Records that are kept."""


class Records:
    """Decoded records by id. What is kept is as new as the last look of who keeps it; times of what was said again are those of the asking."""

    def __init__(self, reader: RollReader, numbers: Numbers | None) -> None:
        self._reader = reader
        self._numbers = numbers
        self._kept: OrderedDict[str, CardRecord] = OrderedDict()
        self._lock = threading.Lock()
        self._changes = 0
        self._slots: dict[tuple[str, str], int] = {}
        self._named = -1

    def written(self, card: CardRecord) -> None:
        """A card was written: what is kept of it is old."""
        with self._lock:
            self._changes += 1
            if card.id in self._kept:
                self._kept[card.id] = card

    def gone(self, id_: str) -> None:
        """A card is no more."""
        with self._lock:
            self._changes += 1
            self._kept.pop(id_, None)

    def of(self, ids: Sequence[str]) -> list[CardRecord]:
        """The cards of these ids, in their order; those that are no more are left out."""
        if self._numbers is None:
            read = {card.id: card for card in self._reader.cards(None, ids)}
            return [read[id_] for id_ in ids if id_ in read]
        with self._lock:
            found = {id_: self._kept[id_] for id_ in ids if id_ in self._kept}
            began = self._changes
        missing = [id_ for id_ in ids if id_ not in found]
        if missing:
            found |= {card.id: card for card in self._reader.cards(None, missing)}
        with self._lock:
            for id_ in ids:
                card = found.get(id_)
                if card is not None and (began == self._changes or id_ in self._kept):
                    self._kept.setdefault(id_, card)
                    self._kept.move_to_end(id_)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return [found[id_] for id_ in ids if id_ in found]

    def now(self, cards: Iterable[CardRecord]) -> list[CardRecord]:
        """The cards with the times until which their sources went on saying the same."""
        some = list(cards)
        if self._numbers is None:
            return some
        runs = self._runs({(claim.node, claim.source) for card in some for claim in card.claims})
        return [card_on(card, runs) for card in some] if runs else some

    def _runs(self, places: Iterable[tuple[str, str]]) -> Runs:
        if self._numbers is None:
            return {}
        rounds = self._numbers.rounds()
        if self._named != len(rounds.nodes):
            self._slots = {place: slot for slot, place in enumerate(zip(rounds.nodes, rounds.sources, strict=True)) if place[0]}
            self._named = len(rounds.nodes)
        told = {place: slot for place in places if (slot := self._slots.get(place)) is not None}
        runs = {place: (float(rounds.since[slot]), float(rounds.again_at[slot])) for place, slot in told.items()}
        return {place: run for place, run in runs.items() if run[0] == run[0] and run[1] == run[1]}
