# SPDX-License-Identifier: Apache-2.0
"""Devices and partitions: lists over all cards, and one by our id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from muster.domain.decide.select import Lookup
from muster.domain.decide.view import CardView, PartView
from muster.domain.model.attributes import ATTRIBUTES, Level
from muster.domain.model.errors import Ambiguous, NotFound
from muster.domain.model.filters import Fields, Shape
from muster.domain.model.names import NameKind, canonical
from muster.domain.model.observation import Role
from muster.domain.model.reading import Known
from muster.domain.model.roll import CardRecord, PartRecord
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.cards import Retired, RoleAsked, listed
from muster.interfaces.api.paging import READING_FIELDS, Selection, json_answer, page, page_answer, question
from muster.interfaces.api.params import Asked, At, Listing, asked_time
from muster.interfaces.api.roll import NAMED, Then
from muster.wire import documents as d
from muster.wire import shown
from muster.wiring.desk import Desk

router = APIRouter(prefix="/api/v1", tags=["devices and partitions"])

PART_FIELDS: Fields = {
    **READING_FIELDS,
    **dict.fromkeys(("id", "card", "presence", "role", "node", "under", "serial", "vendor_uuid"), Shape.TEXT),
    "ordinal": Shape.NUMBER,
}
"""What a filter or an order may ask of a device or partition; presence, role and node are its card's."""
PartId = Annotated[str, Path(max_length=200, description="Our id, or its UUID or serial.")]
_STRONG = (NameKind.VENDOR_UUID, NameKind.SERIAL)


@dataclass(frozen=True, slots=True)
class PartRow:
    """A device or partition with its card."""

    card: CardView
    part: PartView

    def lookup(self) -> Lookup:
        """The value at a path."""
        return self._at

    def _at(self, path: str) -> Any:
        if path in ATTRIBUTES:
            found = self.part.readings.get(path)
            return found.reading.value if found is not None and isinstance(found.reading, Known) else None
        record, card = self.part.record, self.card.record
        match path:
            case "id" | "ordinal":
                return getattr(record, path)
            case "under":
                return record.under or None
            case "serial" | "vendor_uuid":
                return next(iter(record.ids.get(path, ())), None)
            case "card":
                return card.id
            case "node":
                return card.node_name or None if card.node else None
            case _:
                return str(getattr(card, path))


@router.get("/devices", summary="List devices", **answers_page("Device"))
def devices(desk: AtDesk, listing: Listing, role: RoleAsked = Role.ACCELERATOR.value, retired: Retired = False) -> Response:
    """The processors of cards that have several, or whose source tells them apart."""
    return _list(desk, listing, Level.DEVICE, role, retired)


@router.get("/devices/{device:path}", summary="One device", **answers(ref("Device"), "The device", 400, 404))
def device(desk: AtDesk, device: PartId, at: At = "") -> Response:
    """The device with every reading."""
    return json_answer(_one(desk, Level.DEVICE, device, at))


@router.get("/partitions", summary="List partitions", **answers_page("Partition"))
def partitions(desk: AtDesk, listing: Listing, role: RoleAsked = Role.ACCELERATOR.value, retired: Retired = False) -> Response:
    """The isolated slices of cards and devices."""
    return _list(desk, listing, Level.PARTITION, role, retired)


@router.get("/partitions/{partition:path}", summary="One partition", **answers(ref("Partition"), "The partition", 400, 404))
def partition(desk: AtDesk, partition: PartId, at: At = "") -> Response:
    """The partition with every reading."""
    return json_answer(_one(desk, Level.PARTITION, partition, at))


def _list(desk: Desk, listing: Asked, level: Level, role: str, retired: bool) -> Response:
    kind = d.Device if level is Level.DEVICE else d.Partition
    asked = question(level, listing, PART_FIELDS, desk.clock(), "node,card,ordinal")
    selection = Selection(listing.fields, kind)
    then = Then(desk=desk, at=asked.at, now=asked.now)
    having = {card.id: card for card in listed(then.cards(), role, retired, asked.paths) if _records(card, level)}
    sketches = then.sketches(list(having.values()), (asked.paths & ATTRIBUTES.keys()) | NAMED, parts=True)
    found = page([PartRow(card, part) for card in sketches for part in _parts(card, level)], asked, PartRow.lookup, lambda row: row.part.record.id)
    whole = {card.record.id: card for card in then.views([having[id_] for id_ in dict.fromkeys(row.card.record.id for row in found.rows)])}
    documents = [_document(whole[row.card.record.id], row.part.record.id, level) for row in found.rows]
    return page_answer(asked, found, documents, selection)


def _one(desk: Desk, level: Level, id_: str, at: str) -> d.Device | d.Partition:
    now = desk.clock()
    time = asked_time(at, now)
    then = Then(desk=desk, at=time, now=now if time is None else time)
    parts = [(card, part) for card in then.cards() for part in _records(card, level)]
    found = [each for each in parts if each[1].id == id_] or [each for each in parts if _named(each[1], id_)]
    if not found:
        raise NotFound(f"no {level} {id_!r}", hint=f"`/api/v1/{level}s` lists them")
    if len(found) > 1:
        raise Ambiguous(f"{id_!r} fits {len(found)} {level}s: {', '.join(part.id for _, part in found[:10])}", hint="name one by its id")
    card, part = found[0]
    return _document(then.views([card])[0], part.id, level)


def _named(part: PartRecord, word: str) -> bool:
    return any(canonical(kind, value) == canonical(kind, word) for kind in _STRONG for value in part.ids.get(kind, ()))


def _records(card: CardRecord, level: Level) -> Sequence[PartRecord]:
    return card.devices if level is Level.DEVICE else card.partitions


def _parts(card: CardView, level: Level) -> Sequence[PartView]:
    return card.devices if level is Level.DEVICE else card.partitions


def _document(card: CardView, id_: str, level: Level) -> d.Device | d.Partition:
    part = next(each for each in _parts(card, level) if each.record.id == id_)
    name = shown.card_name(card.record, shown.model(card))
    return shown.device(card, part, name) if level is Level.DEVICE else shown.partition(card, part, name)
