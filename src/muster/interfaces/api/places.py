# SPDX-License-Identifier: Apache-2.0
"""Nodes, sources and adapters: where cards stand, and by what they are seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Request, Response

from muster.domain.decide.choose import Shown, choose
from muster.domain.decide.pick_fields import NODE_FIELDS, SOURCE_FIELDS
from muster.domain.decide.select import Lookup
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.errors import Ambiguous, InputError, NotFound
from muster.domain.model.filters import Fields, Shape
from muster.domain.model.observation import Role
from muster.domain.model.reading import Known
from muster.domain.model.roll import NodeRecord, Presence
from muster.domain.model.snapshot import Coded, Numbers, Snapshot
from muster.interfaces.api import agents, tags
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.cards import of_word
from muster.interfaces.api.paging import Page, Question, Selection, page, picked, question
from muster.interfaces.api.params import At, Listing, asked_time
from muster.interfaces.api.roll import Then
from muster.interfaces.api.rooms import InRooms, upon
from muster.interfaces.api.telling import EVERYTHING, Form, Telling, tell
from muster.spi.adapter import Adapter
from muster.wire import documents as d
from muster.wire import shown

router = APIRouter(prefix="/api/v1", tags=["nodes, sources, adapters"])

NODE_TABLE = ("id", "name", "machine_id", "system", "created_at", "last_at", "age", "cards")
SOURCE_TABLE = (
    "id", "node", "node_id", "source", "adapter", "channel", "witness", "cadence", "promise", "reporter", "state", "outcome", "detail", "cards", "first_at",
    "last_at", "listed_at", "age",
)  # fmt: skip
ADAPTER_TABLE = ("id", "title", "tier", "owners", "pci_vendors", "cards")
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

    def document(self, told: Mapping[str, list[d.Agent]], now: float) -> d.Node:
        """The node's document, with who reports of it."""
        return shown.node(self.record, self.readings, self.presences, told.get(self.record.name, []), now)


def _past(then: Then) -> list[NodeRow]:
    presences: dict[str, list[Presence]] = defaultdict(list)
    for card in then.cards():
        if card.node and card.role is Role.ACCELERATOR and not card.aside:
            presences[card.node].append(card.presence)
    return [NodeRow(node, _readings(then, node), presences[node.id]) for node in then.desk.reader.nodes(then.at)]


def _readings(then: Then, node: NodeRecord) -> dict[str, Shown]:
    keys = sorted({key for voice in node.voices for key in voice.words})
    return {key: found for key in keys if (found := choose(key, node.voices, then.desk.policy, then.now)) is not None}


def _counted(then: Then) -> tuple[Snapshot, dict[str, Counter[str]]]:
    """The nodes with the number of their cards, and that number by presence."""
    nodes, cards = then.views.lists.nodes().snapshot, then.views.cards()
    home, presence = cards.columns.get("node_id"), cards.columns.get("presence")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    if isinstance(home, Coded) and isinstance(presence, Coded):
        rows = cards.live & of_word(cards, "role", Role.ACCELERATOR.value) & of_word(cards, "aside", word=False) & (home.codes >= 0) & (presence.codes >= 0)
        kinds = len(presence.words.values)
        both, how_many = np.unique(home.codes[rows].astype(np.int64) * kinds + presence.codes[rows], return_counts=True)
        for each, count in zip(both.tolist(), how_many.tolist(), strict=True):
            counts[home.words.values[each // kinds]][presence.words.values[each % kinds]] = count
    numbers = np.array([float(counts[id_].total()) if id_ in counts else 0.0 for id_ in nodes.texts("id", list(range(nodes.rows)))], np.float64)
    return replace(nodes, columns={**nodes.columns, "cards": Numbers(values=numbers)}), counts


@router.get("/nodes", summary="List nodes", **answers_page("Node", 406))
async def nodes(request: Request, desk: AtDesk, rooms: InRooms, listing: Listing, form: Form) -> Response:
    """Operating systems that hold cards, in the order of their creation."""
    asked = question("nodes", listing, NODE_FIELDS, desk.clock(), "created_at")
    selection = Selection(listing.fields, d.Node)
    then = Then(desk=desk, views=rooms.views, at=asked.at, now=asked.now)

    def page_of(asked: Question) -> Page[NodeRow]:
        if asked.at is not None:
            return page(_past(then), asked, NodeRow.lookup, lambda row: row.record.id)
        snapshot, counts = _counted(then)
        found = picked(snapshot, then.seen(snapshot, "name"), asked)
        return Page(rows=_rows(then, snapshot.texts("id", found.rows), counts), next=found.next, total=found.total)

    def documents(rows: Sequence[NodeRow]) -> list[d.Node]:
        told = agents.of_nodes(desk.reader, [row.record.name for row in rows]) if asked.at is None else {}
        return [row.document(told, then.now) for row in rows]

    told = Telling(page=page_of, documents=documents, fields=NODE_TABLE, readings=True, heavy=True)
    return await tell(request, rooms, form, asked, selection, told)


def _rows(then: Then, ids: Sequence[str], counts: Mapping[str, Counter[str]]) -> list[NodeRow]:
    records = then.views.lists.nodes().records
    found = [records[id_] for id_ in ids if id_ in records]
    return [NodeRow(node, _readings(then, node), [Presence(each) for each in counts[node.id].elements()] if node.id in counts else []) for node in found]


@router.get("/nodes/{node:path}", summary="One node", **answers(ref("Node"), "The node", 400, 404))
async def node(
    request: Request, desk: AtDesk, rooms: InRooms, node: Annotated[str, Path(max_length=300, description="Its name or our id.")], at: At = ""
) -> Response:
    """The node with its readings and the number of its cards by presence."""
    now = desk.clock()
    time = asked_time(at, now)
    then = Then(desk=desk, views=rooms.views, at=time, now=now if time is None else time)

    def told() -> Response:
        if time is not None:
            rows = _past(then)
            one = _called(node, [row.record for row in rows])
            return tags.told(request, next(row for row in rows if row.record is one).document({}, then.now))
        one = _called(node, [each for each in then.views.lists.nodes().records.values() if desk.sees(each.name)])
        reporters = agents.of_nodes(desk.reader, [one.name])
        return tags.told(request, _rows(then, [one.id], _counted(then)[1])[0].document(reporters, then.now))

    return await upon(rooms, told, EVERYTHING, then=time is not None)


def _called(word: str, records: Sequence[NodeRecord]) -> NodeRecord:
    """The node of that id, name, or name that it had."""
    found = [each for each in records if each.id == word] or [each for each in records if each.name.lower() == word.lower()]
    found = found or [each for each in records if word in each.former_names]
    one: NodeRecord = _only("node", word, found, [each.id for each in found])
    return one


def _only(kind: str, word: str, found: Sequence[Any], ids: Sequence[str]) -> Any:
    if not found:
        raise NotFound(f"no {kind} {word!r}", hint=f"`muster get {kind}s` (/api/v1/{kind}s) lists them")
    if len(found) > 1:
        raise Ambiguous(f"{word!r} fits {len(found)} {kind}s: {', '.join(ids)}", hint="name one of them by its id")
    return found[0]


def _aged(snapshot: Snapshot, now: float) -> Snapshot:
    """The sources with their age."""
    seen = snapshot.columns.get("last_at")
    if not isinstance(seen, Numbers):
        return snapshot
    return replace(snapshot, columns={**snapshot.columns, "age": Numbers(values=np.round(np.maximum(now - seen.values, 0.0), 3).astype(np.float64))})


@router.get("/sources", summary="List sources", **answers_page("Source", 406))
async def sources(request: Request, desk: AtDesk, rooms: InRooms, listing: Listing, form: Form) -> Response:
    """Every source on every node: its promise, its last word, and whether it is silent, failed or hung. Only as they are now."""
    if listing.at:
        raise InputError("at: sources are told as they are now, not as they were", hint="leave it out; history tells what became of them: /api/v1/changes")
    asked = question("sources", listing, SOURCE_FIELDS, desk.clock(), "node,source")
    selection = Selection(listing.fields, d.Source)
    then = Then(desk=desk, views=rooms.views, at=None, now=desk.clock())

    def page_of(asked: Question) -> Page[str]:
        snapshot = _aged(then.views.lists.sources().snapshot, then.now)
        found = picked(snapshot, then.seen(snapshot), asked)
        return Page(rows=snapshot.texts("id", found.rows), next=found.next, total=found.total)

    def documents(ids: Sequence[str]) -> list[d.Source]:
        records, adapters = then.views.lists.sources().records, rooms.views.adapters
        found = ((records[id_], adapters.of(records[id_].source)) for id_ in ids if id_ in records)
        return agents.sources(desk.reader, found, then.now)

    return await tell(request, rooms, form, asked, selection, Telling(page=page_of, documents=documents, fields=SOURCE_TABLE, heavy=True))


@router.get("/sources/{source:path}", summary="One source", **answers(ref("Source"), "The source", 400, 404))
async def source(
    request: Request,
    desk: AtDesk,
    rooms: InRooms,
    source: Annotated[str, Path(max_length=300, description="node/source, the node by name or id.", examples=["node-1/pci"])],
) -> Response:
    """The source with its state."""

    def told() -> Response:
        known = rooms.views.lists.sources().records
        here = {id_: each for id_, each in known.items() if desk.sees(each.node_name)}
        found = [id_ for id_ in here if id_ == source] or [id_ for id_, each in here.items() if f"{each.node_name}/{each.source}".lower() == source.lower()]
        record = here[_only("source", source, found, found)]
        return tags.told(request, agents.sources(desk.reader, [(record, rooms.views.adapters.of(record.source))], desk.clock())[0])

    return await upon(rooms, told, EVERYTHING)


def _adapters(then: Then) -> list[d.Adapter]:
    snapshot = then.views.cards()
    column, here = snapshot.columns.get("seen_by"), then.seen(snapshot)
    seen: Counter[str] = Counter()
    if isinstance(column, Coded):
        counts = np.bincount(column.codes[here & (column.codes >= 0)], minlength=len(column.words.values))
        for sources, count in zip(list(column.words.values), counts.tolist(), strict=False):
            seen.update({adapter: count for adapter in {then.views.adapters.of(source) for source in sources} if adapter and count})
    return [_adapter(each, seen[each.manifest.name]) for each in then.desk.adapters]


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


@router.get("/adapters", summary="List adapters", **answers_page("Adapter", 406))
async def adapters(request: Request, desk: AtDesk, rooms: InRooms, listing: Listing, form: Form) -> Response:
    """What this server can read, by whom it is kept, and how many cards it sees now."""
    asked = question("adapters", listing, ADAPTER_FIELDS, desk.clock(), "id")
    selection = Selection(listing.fields, d.Adapter)
    then = Then(desk=desk, views=rooms.views, at=None, now=desk.clock())

    def page_of(asked: Question) -> Page[d.Adapter]:
        return page(_adapters(then), asked, _struct_lookup, lambda row: row.id)

    told: Telling[d.Adapter] = Telling(page=page_of, documents=lambda found: found, fields=ADAPTER_TABLE)
    return await tell(request, rooms, form, asked, selection, told)


def _struct_lookup(row: Any) -> Lookup:
    return lambda path: getattr(row, path)


@router.get("/adapters/{adapter}", summary="One adapter", **answers(ref("Adapter"), "The adapter", 400, 404))
async def adapter(request: Request, desk: AtDesk, rooms: InRooms, adapter: Annotated[str, Path(max_length=100, description="Its name.")]) -> Response:
    """The adapter with its sources and formats."""
    then = Then(desk=desk, views=rooms.views, at=None, now=desk.clock())

    def told() -> Response:
        found = [each for each in _adapters(then) if each.id == adapter]
        return tags.told(request, _only("adapter", adapter, found, [adapter]))

    return await upon(rooms, told)
