# SPDX-License-Identifier: Apache-2.0
"""Parts of the site as the writer holds them: read from the store when somebody speaks of them, kept while there is room, and put away again."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace

import msgspec

from muster.domain.decide.merge import Merged, Region, Roll, known_names, restore
from muster.domain.decide.merge.state import Site
from muster.domain.model.errors import InputError, Unavailable
from muster.domain.model.policy import Policy
from muster.services.journal import entry
from muster.spi.store import RollWriter

ROOM = 6_000
"""So many words and cards of all parts together are held in memory; what is beyond is read again when it is needed."""
_SITE = msgspec.msgpack.Decoder(Site)


_DAMAGED = (InputError, zlib.error, msgspec.MsgspecError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
"""What a row raises that is not what was once written there."""


class DamagedError(Unavailable):
    """A part of the site that the store does not give back."""


class Regions:
    """The parts by id, and the names by which they are found."""

    def __init__(self, writer: RollWriter, policy: Policy, room: int = ROOM) -> None:
        self._writer = writer
        self._policy = policy
        self._room = room
        self._held: OrderedDict[str, Region] = OrderedDict()
        self._fresh: dict[tuple[str, str], str] = {}
        """Names of this batch, which the store does not know yet."""
        self.damaged: dict[str, str] = {}
        """Parts that could not be read, and why."""
        self._weights: dict[str, int] = {}
        self._weight = 0

    def roll(self, names: Iterable[tuple[str, str]]) -> Roll:
        """As much of the roll as these names reach."""
        index = self.index(names)
        return Roll(regions={part: self.get(part) for part in sorted(set(index.values()))}, index=index)

    def index(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The part that knows each of these names; names that are new are left out."""
        wanted = set(names)
        index = {name: self._fresh[name] for name in wanted if name in self._fresh}
        asked = wanted - index.keys()
        if asked:
            index |= self._writer.regions_of(asked)
        return index

    def get(self, part: str) -> Region:
        """A part, read from the store where it is not held."""
        held = self._held.get(part)
        if held is None:
            held = self._read(part)
            self._put(part, held)
        self._held.move_to_end(part)
        return held

    def _read(self, part: str) -> Region:
        rows = self._writer.region(part)
        unfolded = replace(self._policy, late_listings=2**31)
        try:
            base = _SITE.decode(rows.base) if rows.base else None
            said = [entry(each) for each in rows.said]
            return restore(part, base, said, unfolded)
        except _DAMAGED as error:
            why = str(error) or type(error).__name__
            self.damaged[part] = why
            hint = "the other parts go on; put a backup of the store in its place, and what agents send meanwhile waits with them"
            raise DamagedError(f"part {part} of the site cannot be read from the store: {why}", hint=hint) from error

    def take(self, merged: Merged, said: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Holds what a step made of the part that it touched. ``said`` are the names in the word; returns the names that are new to that part.

        A name once known stays: a word that has it belongs there, whatever became of the card.
        """
        told: dict[tuple[str, str], str] = {}
        for part in merged.dropped:
            self._put(part, None)
        for part in merged.touched & merged.roll.regions.keys():
            before, after = self._held.get(part), merged.roll.regions[part]
            old = known_names(before.site) if before is not None and not merged.dropped else set()
            told |= dict.fromkeys((known_names(after.site) | set(said)) - old, part)
            self._put(part, after)
        self._fresh |= told
        return told

    def _put(self, part: str, region: Region | None) -> None:
        self._weight -= self._weights.pop(part, 0)
        self._held.pop(part, None)
        if region is not None:
            self._held[part] = region
            self._weights[part] = 1 + len(region.journal) + (2 + len(region.checkpoints)) * len(region.site.cards)
            self._weight += self._weights[part]

    def __len__(self) -> int:
        return len(self._held)

    def committed(self) -> None:
        """The batch is in the store: its names are found there, and what there is no room for is put away."""
        self._fresh.clear()
        while self._weight > self._room and len(self._held) > 1:
            self._put(next(iter(self._held)), None)

    def forget(self) -> None:
        """Puts everything away: the store alone knows."""
        self._held.clear()
        self._fresh.clear()
        self._weights.clear()
        self._weight = 0
