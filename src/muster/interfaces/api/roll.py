# SPDX-License-Identifier: Apache-2.0
"""The roll as it was believed at one moment: records, gauges and findings of the store, put together for those who show cards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.domain.decide.find import find
from muster.domain.decide.view import CardView, view
from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.errors import NotFound
from muster.domain.model.roll import CardRecord, Finding, PartRecord, Voice, Word
from muster.domain.model.units import Unit
from muster.spi.store import CurrentValue
from muster.wire import shown
from muster.wiring.desk import Desk

NAMED = frozenset({"product.name", "pci.vendor_id"})
"""What a card's name, model and maker are told by."""
_APART = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT or entry.unit is Unit.LIST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Then:
    """The roll at ``now``; ``at`` None reads the present state."""

    desk: Desk
    at: float | None
    now: float

    def cards(self, ids: Collection[str] | None = None) -> list[CardRecord]:
        """Records, all or those named."""
        return self.desk.reader.cards(self.at, ids)

    def card(self, word: str) -> CardRecord:
        """The card that ``word`` names, in the form it has now when it was joined into another. Raises NotFound, Ambiguous."""
        records = self.cards([word.strip()]) or self.cards()
        try:
            return find(word, records)
        except NotFound:
            return self._joined(word, records)

    def _joined(self, word: str, records: Sequence[CardRecord]) -> CardRecord:
        now_id = self.desk.reader.resolve(word)
        found = next((card for card in records if card.id == now_id), None)
        if found is None:
            raise NotFound(f"no card {word!r} at that time", hint="its history says when it was first seen: /api/v1/cards/{card}/history")
        return found

    def views(self, records: Sequence[CardRecord]) -> list[CardView]:
        """The cards as shown, with their gauges."""
        apart = _apart(self.desk.reader.current([card.id for card in records], self.at))
        return [view(card, apart, self.desk.policy, self.now) for card in records]

    def sketches(self, records: Sequence[CardRecord], keys: Collection[str], parts: bool = False) -> list[CardView]:
        """The cards with only the readings named: what filters, orders and sums need. Devices and partitions are there when ``parts``."""
        wanted = frozenset(keys)
        gauges = wanted & _APART
        apart = _apart(self.desk.reader.current(None, self.at), gauges) if gauges else {}
        return [view(_sketch(card, wanted, parts or bool(gauges)), apart, self.desk.policy, self.now) for card in records]

    def nodes(self) -> dict[str, str]:
        """Names of nodes by id."""
        return {node.id: node.name for node in self.desk.reader.nodes(self.at)}

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        """Names of the cards and nodes among ``ids``; other words are passed over."""
        wanted = set(ids)
        cards = self.sketches(self.cards(sorted(wanted)), NAMED)
        return {id_: name for id_, name in self.nodes().items() if id_ in wanted} | {c.record.id: shown.card_name(c.record, shown.model(c)) for c in cards}

    def findings(self) -> dict[str, list[Finding]]:
        """Open findings by card."""
        by: dict[str, list[Finding]] = defaultdict(list)
        for row in self.desk.reader.findings(at=self.at):
            for card in dict.fromkeys((*row.finding.cards, row.finding.subject)):
                by[card].append(row.finding)
        return by

    def vendor(self, shown: CardView) -> str | None:
        """The maker, as its adapter is called: by the PCI vendor id, else by the source that named the product."""
        found = shown.readings.get("pci.vendor_id")
        value = getattr(found.reading, "value", None) if found else None
        named = shown.readings.get("product.name")
        for adapter in self.desk.adapters:
            by_source = value is None and named is not None and any(source.id == named.source for source in adapter.sources)
            if value in adapter.manifest.pci_vendors or (by_source and adapter.manifest.pci_vendors):
                return adapter.manifest.name
        return None


def _apart(values: Sequence[CurrentValue], keys: Collection[str] | None = None) -> dict[str, dict[tuple[str, str], dict[str, Word]]]:
    apart: dict[str, dict[tuple[str, str], dict[str, Word]]] = defaultdict(lambda: defaultdict(dict))
    for each in values:
        if keys is None or each.key in keys:
            apart[each.subject][(each.node, each.source)][each.key] = each.word
    return apart


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
    return tuple(replace(voice, words=_only(voice.words, keys)) for voice in voices)


def _only(words: Mapping[str, Word], keys: frozenset[str]) -> dict[str, Word]:
    return {key: word for key, word in words.items() if key in keys}
