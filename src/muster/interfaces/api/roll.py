# SPDX-License-Identifier: Apache-2.0
"""The roll as it was believed at one moment: records, gauges and findings of the store, put together for those who show cards.

The present goes by columns, and only the rows that are shown are read from the store. The past has no columns: it is read through, where the roll is small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muster.domain.decide.find import find
from muster.domain.decide.view import OF_DEVICES, CardView, view
from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.errors import Ambiguous, InputError, NotFound
from muster.domain.model.roll import CardRecord, Finding, PartRecord, Voice, Word
from muster.domain.model.snapshot import Coded, Mask, Snapshot
from muster.domain.model.units import Unit
from muster.wire import shown
from muster.wiring.desk import Desk
from muster.wiring.snapshot_columns import apart_of
from muster.wiring.snapshot_sources import makers
from muster.wiring.snapshots import Views

NAMED = frozenset({"product.name", "pci.vendor_id"})
"""What a card's name, model and maker are told by."""
_APART = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT or entry.unit is Unit.LIST)
MANY = 200
"""Cards that a short name may fit before they are no longer looked at one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Then:
    """The roll at ``now``; ``at`` None reads the present state."""

    desk: Desk
    views: Views
    at: float | None
    now: float

    def cards(self, ids: Collection[str] | None = None) -> list[CardRecord]:
        """Records, those named, or all where the roll may be read through. Raises InputError where it may not."""
        if ids is None:
            self.may_scan()
        elif self.at is None:
            return [card for card in self.views.records.of(list(ids)) if self.shows(card)]
        return self.desk.reader.cards(self.at, ids)

    def shows(self, card: CardRecord) -> bool:
        """True for a card that who asks may see."""
        return self.shows_on(card.node, card.node_name)

    def shows_on(self, node: str | None, name: str) -> bool:
        """True when who asks may see what stands on this node."""
        return self.desk.whole or (node is not None and self.desk.sees(name))

    def may_scan(self) -> None:
        """Raises InputError when the roll is too large to be read through for one question."""
        limit = self.desk.scan_limit
        if self.views.size > limit:
            past = self.at is not None
            what = "at: the past of the whole roll" if past else "this question"
            hint = "ask for one card by its id: GET /api/v1/cards/{id}; its history and its series say more of the past than one moment does"
            hint = f"leave `at` out, or {hint}; `muster get changes` tells what changed on the whole site" if past else hint
            raise InputError(f"{what} is not kept in columns, and {self.views.size} cards are more than the {limit} that are read one by one", hint=hint)

    def seen(self, snapshot: Snapshot, path: str = "node") -> Mask:
        """Rows that who asks may see."""
        if self.desk.whole:
            return snapshot.live
        column = snapshot.columns.get(path)
        if not isinstance(column, Coded):
            return np.zeros(snapshot.rows, np.bool_)
        sees = np.array([*(self.desk.sees(str(name)) for name in list(column.words.values)), False], np.bool_)
        found: Mask = sees[column.codes] & snapshot.live
        return found

    def at_once(self, word: str) -> str:
        """The id of the card that ``word`` names, where it is the id of one that is there now; else empty."""
        return word.strip() if self.at is None and self.views.knows(word.strip()) else ""

    def card(self, word: str) -> CardRecord:
        """The card that ``word`` names, in the form it has now when it was joined into another. Raises NotFound, Ambiguous."""
        if self.at is not None and self.views.size <= self.desk.scan_limit:
            return self._among(word, self.cards([word.strip()]) or self.cards())
        for ids in self.views.candidates(word):
            found = self.cards(ids[:MANY])
            if len(ids) > MANY and len(found) > 1:
                raise Ambiguous(f"{word!r} fits {len(ids) if self.desk.whole else 'many'} cards", hint="name one by its id or as node/slot, node/address")
            try:
                return find(word, found)
            except NotFound:
                continue
        return self._among(word, [])

    def _among(self, word: str, records: Sequence[CardRecord]) -> CardRecord:
        try:
            return find(word, records)
        except NotFound:
            return self._joined(word, records)

    def _joined(self, word: str, records: Sequence[CardRecord]) -> CardRecord:
        now_id = self.views.reader.resolve(word)
        found = next((card for card in records if card.id == now_id), None) or next(iter(self.cards([now_id])), None)
        if found is None and self.at is None:
            raise NotFound(f"no card {word!r}", hint="`muster get cards` lists the cards there are")
        if found is None:
            raise NotFound(f"no card {word!r} at that time", hint="its history says when it was first seen: /api/v1/cards/{card}/history")
        return found

    def views_of(self, records: Sequence[CardRecord], keys: frozenset[str] | None = None) -> list[CardView]:
        """The cards as shown, with their gauges, or with only the readings named. They are ones that who asks may see."""
        pruned = records if keys is None else [_sketch(card, keys, parts=not OF_DEVICES.keys().isdisjoint(keys)) for card in records]
        pruned = self.views.records.now(pruned) if self.at is None else pruned
        gauges = keys is None or bool(keys & _APART)
        ids = [card.id for card in records]
        told = self.views.apart(ids, keys) if gauges and self.at is None else {}
        apart = apart_of(self.views.reader.current(ids, self.at), keys) if gauges and self.at is not None else told
        return [view(card, apart, self.desk.policy, self.now) for card in pruned]

    def sketches(self, records: Sequence[CardRecord], keys: Collection[str], parts: bool = False) -> list[CardView]:
        """The cards with only the readings named: what filters, orders and sums need. Devices and partitions are there when ``parts``."""
        wanted = frozenset(keys)
        gauges = wanted & _APART
        apart = apart_of(self.desk.reader.current(None, self.at), gauges) if gauges else {}
        return [view(_sketch(card, wanted, parts or bool(gauges)), apart, self.desk.policy, self.now) for card in records]

    def node_names(self, ids: Iterable[str]) -> Mapping[str, str]:
        """Names of these nodes, by id."""
        wanted = {id_ for id_ in ids if id_}
        if self.at is None:
            return self.views.node_names(wanted)
        return {node.id: node.name for node in self.desk.reader.nodes(self.at, wanted)}

    def visible(self, ids: Iterable[str]) -> bool:
        """True when who asks may see one of these cards, parts or nodes."""
        return self.desk.whole or any((home := self.views.home(id_)) is not None and self.desk.sees(home) for id_ in ids)

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        """Names of the cards and nodes among ``ids``; other words are passed over."""
        wanted = set(ids)
        cards = self.sketches(self.cards(sorted(wanted)), NAMED) if wanted else []
        told = {id_: name for id_, name in self.node_names(wanted - {card.record.id for card in cards}).items() if self.desk.sees(name)}
        return told | {c.record.id: shown.card_name(c.record, shown.model(c)) for c in cards}

    def findings(self) -> Mapping[str, Sequence[Finding]]:
        """Open findings by card."""
        if self.at is None:
            return self.views.findings() if self.desk.whole else _Seen(self)
        by: dict[str, list[Finding]] = defaultdict(list)
        for row in self.desk.reader.findings(at=self.at):
            for card in dict.fromkeys((*row.finding.cards, row.finding.subject)):
                by[card].append(row.finding)
        return by

    def sees(self, finding: Finding, names: Mapping[str, str]) -> bool:
        """True for an open finding that who asks may see: on a node of theirs, else on no node and about something of theirs. ``names`` are those of nodes."""
        if finding.node:
            return self.desk.sees(names.get(finding.node))
        return self.visible((finding.subject, *finding.cards))

    def vendor(self, shown: CardView) -> str | None:
        """The maker, as its adapter is called: by the PCI vendor id, else by the source that named the product."""
        found = shown.readings.get("pci.vendor_id")
        named = shown.readings.get("product.name")
        return makers(self.desk.adapters)(getattr(found.reading, "value", None) if found else None, named.source if named else "")


class _Seen(Mapping[str, Sequence[Finding]]):
    """Open findings by card for one who may not see all: looked at as they are asked for."""

    def __init__(self, then: Then) -> None:
        self._then, self._all = then, then.views.findings()

    def __getitem__(self, card: str) -> Sequence[Finding]:
        found = self._all[card]
        names = self._then.views.node_names({each.node for each in found if each.node})
        return [each for each in found if self._then.sees(each, names)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _sketch(card: CardRecord, keys: frozenset[str], parts: bool) -> CardRecord:
    return replace(
        card,
        voices=_pruned(card.voices, keys),
        node_voices=_pruned(card.node_voices, keys),
        devices=tuple(_part(part, keys) for part in card.devices) if parts else (),
        partitions=tuple(_part(part, keys) for part in card.partitions) if parts else (),
    )


def _part(part: PartRecord, keys: frozenset[str]) -> PartRecord:
    return replace(part, voices=_pruned(part.voices, keys))


def _pruned(voices: Sequence[Voice], keys: frozenset[str]) -> tuple[Voice, ...]:
    return tuple(Voice(node=v.node, source=v.source, channel=v.channel, witness=v.witness, promise=v.promise, words=_only(v.words, keys)) for v in voices)


def _only(words: Mapping[str, Word], keys: frozenset[str]) -> dict[str, Word]:
    return {key: words[key] for key in words.keys() & keys}
