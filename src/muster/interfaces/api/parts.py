# SPDX-License-Identifier: Apache-2.0
"""Devices and partitions: lists over all cards, and one by our id."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Request, Response

from muster.domain.decide.pick_fields import PART_FIELDS
from muster.domain.decide.select import Lookup
from muster.domain.decide.view import CardView, PartView
from muster.domain.model.attributes import ATTRIBUTES, Level
from muster.domain.model.errors import Ambiguous, NotFound
from muster.domain.model.names import NameKind, canonical
from muster.domain.model.observation import Role
from muster.domain.model.reading import Known
from muster.domain.model.roll import CardRecord, PartRecord
from muster.domain.model.snapshot import Coded, Snapshot, Words
from muster.interfaces.api import tags
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.cards import Retired, RoleAsked, listed, of_word, ordered, shown_rows
from muster.interfaces.api.paging import Page, Question, Selection, page, picked, question
from muster.interfaces.api.params import Asked, At, Listing, asked_time
from muster.interfaces.api.roll import NAMED, Then
from muster.interfaces.api.rooms import InRooms, Rooms, upon
from muster.interfaces.api.telling import Form, Telling, tell
from muster.wire import documents as d
from muster.wire import shown
from muster.wiring.desk import Desk

router = APIRouter(prefix="/api/v1", tags=["devices and partitions"])

DEVICE_TABLE = ("id", "card", "name", "ordinal", "ids", "presence")
PARTITION_TABLE = (*DEVICE_TABLE, "under")
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


@router.get("/devices", summary="List devices", **answers_page("Device", 406))
async def devices(
    request: Request, desk: AtDesk, rooms: InRooms, listing: Listing, form: Form, role: RoleAsked = Role.ACCELERATOR.value, retired: Retired = False
) -> Response:
    """The processors of cards that have several, or whose source tells them apart."""
    return await _list(request, desk, rooms, listing, form, Level.DEVICE, role, retired)


@router.get("/devices/{device:path}", summary="One device", **answers(ref("Device"), "The device", 400, 404))
async def device(request: Request, desk: AtDesk, rooms: InRooms, device: PartId, at: At = "") -> Response:
    """The device with every reading."""
    return await _one(request, desk, rooms, Level.DEVICE, device, at)


@router.get("/partitions", summary="List partitions", **answers_page("Partition", 406))
async def partitions(
    request: Request, desk: AtDesk, rooms: InRooms, listing: Listing, form: Form, role: RoleAsked = Role.ACCELERATOR.value, retired: Retired = False
) -> Response:
    """The isolated slices of cards and devices."""
    return await _list(request, desk, rooms, listing, form, Level.PARTITION, role, retired)


@router.get("/partitions/{partition:path}", summary="One partition", **answers(ref("Partition"), "The partition", 400, 404))
async def partition(request: Request, desk: AtDesk, rooms: InRooms, partition: PartId, at: At = "") -> Response:
    """The partition with every reading."""
    return await _one(request, desk, rooms, Level.PARTITION, partition, at)


_Place = tuple[str, str]
"""Ids of a card and of a part of it."""


async def _list(request: Request, desk: Desk, rooms: Rooms, listing: Asked, form: str, level: Level, role: str, retired: bool) -> Response:
    kind = d.Device if level is Level.DEVICE else d.Partition
    asked = question(f"{level}s", listing, PART_FIELDS, desk.clock(), "node,card,ordinal")
    selection = Selection(listing.fields, kind)
    then = Then(desk=desk, views=rooms.views, at=asked.at, now=asked.now)

    def page_of(asked: Question) -> Page[_Place]:
        return _past(then, asked, level, role, retired) if asked.at is not None else _present(then, asked, level, role, retired)

    def documents(places: Sequence[_Place]) -> list[d.Device | d.Partition]:
        cards = {card.record.id: card for card in then.views_of(ordered(then, list(dict.fromkeys(card for card, _ in places))))}
        made = (_document(cards[card], part, level) for card, part in places if card in cards)
        return [each for each in made if each is not None]

    fields = DEVICE_TABLE if level is Level.DEVICE else PARTITION_TABLE
    return await tell(request, rooms, form, asked, selection, Telling(page=page_of, documents=documents, fields=fields, readings=True))


def _present(then: Then, asked: Question, level: Level, role: str, retired: bool) -> Page[_Place]:
    snapshot = _snapshot(then, level, asked.paths)
    found = picked(snapshot, then.seen(snapshot) & shown_rows(snapshot, role, retired, asked.paths), asked)
    places = list(zip(snapshot.texts("card", found.rows), snapshot.texts("id", found.rows), strict=True))
    return Page(rows=places, next=found.next, total=found.total)


def _snapshot(then: Then, level: Level, paths: Collection[str] = ()) -> Snapshot:
    return then.views.devices(paths) if level is Level.DEVICE else then.views.partitions(paths)


def _past(then: Then, asked: Question, level: Level, role: str, retired: bool) -> Page[_Place]:
    having = [card for card in listed(then.cards(), role, retired, asked.paths) if _records(card, level)]
    sketches = then.sketches(having, (asked.paths & ATTRIBUTES.keys()) | NAMED, parts=True)
    found = page([PartRow(card, part) for card in sketches for part in _parts(card, level)], asked, PartRow.lookup, lambda row: row.part.record.id)
    return Page(rows=[(row.card.record.id, row.part.record.id) for row in found.rows], next=found.next, total=found.total)


async def _one(request: Request, desk: Desk, rooms: Rooms, level: Level, id_: str, at: str) -> Response:
    now = desk.clock()
    time = asked_time(at, now)
    then = Then(desk=desk, views=rooms.views, at=time, now=now if time is None else time)

    def told() -> Response:
        records = then.cards(sorted(_cards(then, level, id_)) if time is None else None)
        parts = [(card, part) for card in records for part in _records(card, level)]
        found = [each for each in parts if each[1].id == id_] or [each for each in parts if _named(each[1], id_)]
        if not found:
            raise NotFound(f"no {level} {id_!r}", hint=f"`muster get {level}s` (/api/v1/{level}s) lists them")
        if len(found) > 1:
            raise Ambiguous(f"{id_!r} fits {len(found)} {level}s: {', '.join(part.id for _, part in found[:10])}", hint="name one by its id")
        card, part = found[0]
        return tags.told(request, _document(then.views_of([card])[0], part.id, level))

    return await upon(rooms, told, then=time is not None)


def _cards(then: Then, level: Level, word: str) -> set[str]:
    """Ids of the cards with a part of this id, UUID or serial."""
    snapshot = _snapshot(then, level)
    rows = of_word(snapshot, "id", word)
    for kind in _STRONG:
        column = snapshot.columns.get(kind.value)
        if isinstance(column, Coded):
            spelt: dict[str, list[int]] = column.words.kept("canonical", partial(_canonical, kind, column.words))
            rows = rows | np.isin(column.codes, spelt.get(canonical(kind, word), []))
    return set(snapshot.texts("card", np.flatnonzero(rows & snapshot.live).tolist()))


def _canonical(kind: NameKind, words: Words) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for code, value in enumerate(list(words.values)):
        found.setdefault(canonical(kind, str(value)), []).append(code)
    return found


def _named(part: PartRecord, word: str) -> bool:
    return any(canonical(kind, value) == canonical(kind, word) for kind in _STRONG for value in part.ids.get(kind, ()))


def _records(card: CardRecord, level: Level) -> Sequence[PartRecord]:
    return card.devices if level is Level.DEVICE else card.partitions


def _parts(card: CardView, level: Level) -> Sequence[PartView]:
    return card.devices if level is Level.DEVICE else card.partitions


def _document(card: CardView, id_: str, level: Level) -> d.Device | d.Partition | None:
    part = next((each for each in _parts(card, level) if each.record.id == id_), None)
    if part is None:
        return None
    name = shown.card_name(card.record, shown.model(card))
    return shown.device(card, part, name) if level is Level.DEVICE else shown.partition(card, part, name)
