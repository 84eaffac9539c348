# SPDX-License-Identifier: Apache-2.0
"""Nodes, sources and adapters: where cards stand, and by what they are seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from muster.domain.decide.choose import Shown, choose
from muster.domain.decide.select import Lookup
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.errors import Ambiguous, NotFound
from muster.domain.model.filters import Fields, Shape
from muster.domain.model.observation import Role
from muster.domain.model.reading import Known
from muster.domain.model.roll import CardRecord, NodeRecord, Presence, SourceRecord
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.paging import READING_FIELDS, Selection, json_answer, page, page_answer, question
from muster.interfaces.api.params import At, Listing, asked_time
from muster.interfaces.api.roll import Then
from muster.spi.adapter import Adapter
from muster.wire import documents as d
from muster.wire import shown
from muster.wiring.desk import Desk

router = APIRouter(prefix="/api/v1", tags=["nodes, sources, adapters"])

NODE_FIELDS: Fields = {
    **READING_FIELDS,
    **dict.fromkeys(("id", "name", "machine_id", "system"), Shape.TEXT),
    "cards": Shape.NUMBER,
    "created_at": Shape.TIME,
    "last_at": Shape.TIME,
}
"""What a filter or an order may ask of a node; ``cards`` is their number."""
SOURCE_FIELDS: Fields = {
    **dict.fromkeys(
        ("id", "node", "node_id", "source", "adapter", "channel", "witness", "reporter", "state", "outcome", "detail", "unknown_shape"), Shape.TEXT
    ),
    **dict.fromkeys(("cadence", "promise", "cards", "age"), Shape.NUMBER),
}
"""What a filter or an order may ask of a source."""
ADAPTER_FIELDS: Fields = {
    **dict.fromkeys(("id", "title", "tier"), Shape.TEXT),
    **dict.fromkeys(("owners", "pci_vendors", "later"), Shape.LIST),
    "cards": Shape.NUMBER,
}
"""What a filter or an order may ask of an adapter."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as filters and orders see it."""

    record: NodeRecord
    readings: dict[str, Shown]
    presences: Sequence[Presence]

    def lookup(self) -> Lookup:
        """The value at a path."""
        return self._at

    def _at(self, path: str) -> Any:
        if path in ATTRIBUTES:
            found = self.readings.get(path)
            return found.reading.value if found is not None and isinstance(found.reading, Known) else None
        return len(self.presences) if path == "cards" else getattr(self.record, path) or None

    def document(self, now: float) -> d.Node:
        """The node's document."""
        return shown.node(self.record, self.readings, self.presences, now)


def _nodes(then: Then) -> list[NodeRow]:
    presences: dict[str, list[Presence]] = defaultdict(list)
    for card in then.cards():
        if card.node and card.role is Role.ACCELERATOR and not card.aside:
            presences[card.node].append(card.presence)
    return [NodeRow(node, _readings(then, node), presences[node.id]) for node in then.desk.reader.nodes(then.at)]


def _readings(then: Then, node: NodeRecord) -> dict[str, Shown]:
    keys = sorted({key for voice in node.voices for key in voice.words})
    return {key: found for key in keys if (found := choose(key, node.voices, then.desk.policy, then.now)) is not None}


@router.get("/nodes", summary="List nodes", **answers_page("Node"))
def nodes(desk: AtDesk, listing: Listing) -> Response:
    """Operating systems that hold cards, in the order of their creation."""
    asked = question("nodes", listing, NODE_FIELDS, desk.clock(), "created_at")
    selection = Selection(listing.fields, d.Node)
    found = page(_nodes(Then(desk=desk, at=asked.at, now=asked.now)), asked, NodeRow.lookup, lambda row: row.record.id)
    return page_answer(asked, found, [row.document(asked.now) for row in found.rows], selection)


@router.get("/nodes/{node:path}", summary="One node", **answers(ref("Node"), "The node", 400, 404))
def node(desk: AtDesk, node: Annotated[str, Path(max_length=300, description="Its name or our id.")], at: At = "") -> Response:
    """The node with its readings and the number of its cards by presence."""
    now = desk.clock()
    time = asked_time(at, now)
    then = Then(desk=desk, at=time, now=now if time is None else time)
    rows = _nodes(then)
    found = [row for row in rows if row.record.id == node] or [row for row in rows if row.record.name.lower() == node.lower()]
    found = found or [row for row in rows if node in row.record.former_names]
    return json_answer(_only("node", node, found, [row.record.id for row in found]).document(then.now))


def _only(kind: str, word: str, found: Sequence[Any], ids: Sequence[str]) -> Any:
    if not found:
        raise NotFound(f"no {kind} {word!r}", hint=f"`/api/v1/{kind}s` lists them")
    if len(found) > 1:
        raise Ambiguous(f"{word!r} fits {len(found)} {kind}s: {', '.join(ids)}", hint="name one of them by its id")
    return found[0]


def _sources(desk: Desk) -> list[d.Source]:
    now = desk.clock()
    adapter = {source.id: each.manifest.name for each in desk.adapters for source in each.sources}
    return [shown.source(record, _adapter_of(record, adapter), now) for record in desk.reader.sources()]


def _adapter_of(record: SourceRecord, known: dict[Any, str]) -> str | None:
    return known.get(record.source)


@router.get("/sources", summary="List sources", **answers_page("Source"))
def sources(desk: AtDesk, listing: Listing) -> Response:
    """Every source on every node: its promise, its last word, and whether it is silent, failed or hung. Only as they are now."""
    asked = question("sources", listing, SOURCE_FIELDS, desk.clock(), "node,source")
    selection = Selection(listing.fields, d.Source)
    found = page(_sources(desk), asked, _struct_lookup, lambda row: row.id)
    return page_answer(asked, found, found.rows, selection)


@router.get("/sources/{source:path}", summary="One source", **answers(ref("Source"), "The source", 400, 404))
def source(desk: AtDesk, source: Annotated[str, Path(max_length=300, description="node/source, the node by name or id.", examples=["node-1/pci"])]) -> Response:
    """The source with its state."""
    known = _sources(desk)
    found = [each for each in known if each.id == source] or [each for each in known if f"{each.node}/{each.source}".lower() == source.lower()]
    return json_answer(_only("source", source, found, [each.id for each in found]))


def _struct_lookup(row: Any) -> Lookup:
    return lambda path: getattr(row, path)


def _adapters(desk: Desk) -> list[d.Adapter]:
    now = desk.clock()
    seen = Counter(adapter for card in desk.reader.cards() for adapter in _seen_by(card, desk.adapters, now))
    return [_adapter(each, seen[each.manifest.name]) for each in desk.adapters]


def _seen_by(card: CardRecord, adapters: Sequence[Adapter], now: float) -> set[str]:
    sources = {claim.source for claim in card.claims if claim.sees(now)}
    return {each.manifest.name for each in adapters if any(source.id in sources for source in each.sources)}


def _adapter(each: Adapter, cards: int) -> d.Adapter:
    manifest = each.manifest
    declared = [
        d.AdapterSource(
            id=source.id,
            reader=source.reader.value,
            channel=source.channel.value,
            witness=source.witness.value,
            cadence=source.cadence.total_seconds(),
            provides=list(source.provides),
            after=source.after,
            install=source.install,
        )
        for source in each.sources
    ]
    return d.Adapter(
        id=manifest.name,
        title=manifest.title,
        tier=manifest.tier,
        owners=list(manifest.owners),
        pci_vendors=list(manifest.pci_vendors),
        formats=dict(manifest.formats),
        later=list(manifest.later),
        sources=declared,
        cards=cards,
    )


@router.get("/adapters", summary="List adapters", **answers_page("Adapter"))
def adapters(desk: AtDesk, listing: Listing) -> Response:
    """What this server can read, by whom it is kept, and how many cards it sees now."""
    asked = question("adapters", listing, ADAPTER_FIELDS, desk.clock(), "id")
    selection = Selection(listing.fields, d.Adapter)
    found = page(_adapters(desk), asked, _struct_lookup, lambda row: row.id)
    return page_answer(asked, found, found.rows, selection)


@router.get("/adapters/{adapter}", summary="One adapter", **answers(ref("Adapter"), "The adapter", 400, 404))
def adapter(desk: AtDesk, adapter: Annotated[str, Path(max_length=100, description="Its name.")]) -> Response:
    """The adapter with its sources and formats."""
    found = [each for each in _adapters(desk) if each.id == adapter]
    return json_answer(_only("adapter", adapter, found, [adapter]))
