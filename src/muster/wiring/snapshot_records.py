# SPDX-License-Identifier: Apache-2.0
"""Records of the cards that are shown: those that were asked for lately are kept decoded, until they are written again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

from muster.domain.model.roll import CardRecord
from muster.spi.numbers import Numbers, Rounds
from muster.spi.store import Fresh, RollReader
from muster.store.again import Runs, card_on
from muster.store.reader import Reader
from muster.wiring.snapshot_clocks import Times, places_of

MOST = 300
"""Records that are kept. More of them would hold up the whole process whenever the collector goes over them."""


class Records:
    """Decoded records by id. What is kept is as new as the last look of who keeps it; times of what was said again are those of the asking."""

    def __init__(self, reader: RollReader, numbers: Numbers | None) -> None:
        self._reader = reader
        self._numbers = numbers
        self._kept: OrderedDict[str, CardRecord] = OrderedDict()
        self._lock = threading.Lock()
        self._watching: list[Callable[[str], None]] = []
        self.changes = 0
        """Grows with every card that is written or gone."""
        self._slots: dict[tuple[str, str], int] = {}
        self._named: object = None

    def watch(self, drop: Callable[[str], None]) -> None:
        """Tells of each card that is written or gone from now on."""
        self._watching.append(drop)

    def written(self, card: CardRecord) -> None:
        """A card was written: what is kept of it is old."""
        with self._lock:
            self.changes += 1
            if card.id in self._kept:
                self._kept[card.id] = card
        for drop in self._watching:
            drop(card.id)

    def gone(self, id_: str) -> None:
        """A card is no more."""
        with self._lock:
            self.changes += 1
            self._kept.pop(id_, None)
        for drop in self._watching:
            drop(id_)

    def of(self, ids: Sequence[str]) -> list[CardRecord]:
        """The cards of these ids, in their order; those that are no more are left out."""
        if self._numbers is None:
            read = {card.id: card for card in self._reader.cards(None, ids)}
            return [read[id_] for id_ in ids if id_ in read]
        with self._lock:
            found = {id_: self._kept[id_] for id_ in ids if id_ in self._kept}
            began = self.changes
        missing = [id_ for id_ in ids if id_ not in found]
        if missing:
            found |= {card.id: card for card in self.read(missing)}
        with self._lock:
            for id_ in ids:
                card = found.get(id_)
                if card is not None and (began == self.changes or id_ in self._kept):
                    self._kept.setdefault(id_, card)
                    self._kept.move_to_end(id_)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return [found[id_] for id_ in ids if id_ in found]

    def fresh(self, after: int) -> Fresh:
        """Cards written since, in the same way as `read`."""
        return self._reader.fresh(after, moved=False) if self._numbers is not None and isinstance(self._reader, Reader) else self._reader.fresh(after)

    def read(self, ids: Sequence[str]) -> list[CardRecord]:
        """The cards as they were written, with the times of their last full words; where nobody has their numbers, those up to now."""
        return self._reader.written(ids, (), ())[0] if self._numbers is not None and isinstance(self._reader, Reader) else self._reader.cards(None, ids)

    def now(self, cards: Iterable[CardRecord]) -> list[CardRecord]:
        """The cards with the times until which their sources went on saying the same."""
        some = list(cards)
        if self._numbers is None:
            return some
        runs = self._runs({place for card in some for place in places_of(card)})
        return [card_on(card, runs) for card in some] if runs else some

    def _runs(self, places: Iterable[tuple[str, str]]) -> Runs:
        if self._numbers is None:
            return {}
        rounds = self._numbers.rounds()
        slots = self.slots(rounds)
        told = {place: slot for place in places if (slot := slots.get(place)) is not None}
        runs = {place: (float(rounds.since[slot]), float(rounds.again_at[slot])) for place, slot in told.items()}
        return {place: run for place, run in runs.items() if run[0] == run[0] and run[1] == run[1]}

    def times(self) -> Times | None:
        """How far each source has come; None where that stands in the records themselves."""
        if self._numbers is None or not isinstance(self._reader, Reader):
            return None
        rounds = self._numbers.rounds()
        return Times(rounds, self.slots(rounds))

    def slots(self, rounds: Rounds) -> Mapping[tuple[str, str], int]:
        """The slot of each source."""
        if self._named is not rounds.nodes:
            self._slots = {place: slot for slot, place in enumerate(zip(rounds.nodes, rounds.sources, strict=True)) if place[0]}
            self._named = rounds.nodes
        return self._slots
