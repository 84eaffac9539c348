# SPDX-License-Identifier: Apache-2.0
"""Cards: the list, one card, its history and its series."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from muster.domain.decide.select import Lookup
from muster.domain.decide.view import OF_DEVICES, CardView, value
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.errors import InputError
from muster.domain.model.filters import Fields, Shape
from muster.domain.model.moments import moment, rfc3339
from muster.domain.model.observation import Role
from muster.domain.model.roll import CardRecord, Finding, Presence
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.changes import change_page
from muster.interfaces.api.paging import READING_FIELDS, Selection, json_answer, page, page_answer, question
from muster.interfaces.api.params import At, Listing, asked_time
from muster.interfaces.api.roll import NAMED, Then
from muster.wire import documents as d
from muster.wire import shown

router = APIRouter(prefix="/api/v1/cards", tags=["cards"])

_TEXTS = ("id", "name", "vendor", "model", "presence", "rung", "role", "node", "node_id", "slot", "address", "index", "place", "serial", "vendor_uuid")
_LISTS = ("conflicts", "seen_by", "findings")
_TOLD_BY_NAME = frozenset({"name", "model", "vendor"})
CARD_FIELDS: Fields = {
    **READING_FIELDS,
    **dict.fromkeys(_TEXTS, Shape.TEXT),
    **dict.fromkeys(_LISTS, Shape.LIST),
    "aside": Shape.BOOL,
    "presence_since": Shape.TIME,
    "created_at": Shape.TIME,
}
"""What a filter or an order may ask of a card."""

CardName = Annotated[
    str,
    Path(max_length=300, description="Our id or its beginning, a UUID, a serial, a PCI address, node/slot, node/address or node/index.", examples=["node-1/3"]),
]
RoleAsked = Annotated[str, Query(pattern=r"^(accelerator|display|any)$", description="Displays are listed only when asked for, here or in the filter.")]
Retired = Annotated[bool, Query(description="List retired cards too; so does a filter that asks for `presence`.")]


@dataclass(frozen=True, slots=True)
class CardRow:
    """A card as filters and orders see it. ``shown`` has the readings that were asked for; None when none were."""

    then: Then
    record: CardRecord
    shown: CardView | None
    findings: Sequence[Finding]

    def lookup(self) -> Lookup:
        """The value at a path."""
        return self._at

    def _at(self, path: str) -> Any:
        if path in ATTRIBUTES:
            return value(self.shown, path) if self.shown else None
        record = self.record
        match path:
            case "name":
                return shown.card_name(record, self._at("model"))
            case "model":
                return shown.model(self.shown) if self.shown else None
            case "vendor":
                return self.then.vendor(self.shown) if self.shown else None
            case "node":
                return record.node_name or None if record.node else None
            case "node_id":
                return record.node
            case "serial" | "vendor_uuid":
                return next(iter(record.ids.get(path, ())), None)
            case "findings":
                return [finding.kind.value for finding in self.findings]
            case "presence_since":
                return record.presence_at
            case "seen_by":
                return sorted({claim.source for claim in record.claims if claim.sees(self.then.now)})
            case _:
                return self._plain(getattr(record, path))

    @staticmethod
    def _plain(told: Any) -> Any:
        return told if told is None or isinstance(told, tuple | float | bool) else str(told) or None


def listed(records: Sequence[CardRecord], role: str, retired: bool, asked: Collection[str]) -> list[CardRecord]:
    """Those that a list shows: displays and retired cards only when asked for."""
    return [
        card
        for card in records
        if ("role" in asked or role == "any" or card.role == role) and (retired or "presence" in asked or card.presence is not Presence.RETIRED)
    ]


def rows(then: Then, records: Sequence[CardRecord], asked: frozenset[str], findings: Mapping[str, Sequence[Finding]]) -> list[CardRow]:
    """Rows of the cards, with the readings that are asked of them and no others."""
    keys = asked & ATTRIBUTES.keys() | (NAMED if _TOLD_BY_NAME & asked else frozenset())
    sketches: Sequence[CardView | None] = then.sketches(records, keys, parts=not OF_DEVICES.keys().isdisjoint(keys)) if keys else [None] * len(records)
    return [CardRow(then, record, sketch, findings.get(record.id, ())) for record, sketch in zip(records, sketches, strict=True)]


def whole(then: Then, records: Sequence[CardRecord], findings: Mapping[str, Sequence[Finding]]) -> list[d.Card]:
    """Whole documents of the cards, in their order."""
    nodes = then.nodes()
    return [shown.card(each, then.vendor(each), findings.get(each.record.id, ()), nodes) for each in then.views(records)]


@router.get("", summary="List cards", **answers_page("Card"))
def cards(desk: AtDesk, listing: Listing, role: RoleAsked = Role.ACCELERATOR.value, retired: Retired = False) -> Response:
    """Accelerators of every presence but retired, by node, slot, address and index. Displays with `role=display`."""
    asked = question("cards", listing, CARD_FIELDS, desk.clock(), "node,slot,address,index")
    selection = Selection(listing.fields, d.Card)
    then = Then(desk=desk, at=asked.at, now=asked.now)
    findings = then.findings()
    found = page(rows(then, listed(then.cards(), role, retired, asked.paths), asked.paths, findings), asked, CardRow.lookup, lambda row: row.record.id)
    return page_answer(asked, found, whole(then, [row.record for row in found.rows], findings), selection)


SeriesKey = Annotated[str, Query(description="The attribute.", examples=["temperature.core"])]
Since = Annotated[str, Query(max_length=64, description="RFC 3339, or a time ago like `-1h`.")]
Until = Annotated[str, Query(max_length=64, description="RFC 3339, or a time ago; now when left out.")]
Part = Annotated[str, Query(max_length=200, description="A device or partition of the card, by its id; the card itself when left out.")]


@router.get("/{card:path}/history", summary="History of a card", **answers_page("Change", 404))
def history(desk: AtDesk, card: CardName, listing: Listing) -> Response:
    """What happened to the card, oldest first (`sort=-number` for the newest first), also under names it had before."""
    found = Then(desk=desk, at=None, now=desk.clock()).card(card)
    return change_page(desk, found.id, listing)


@router.get("/{card:path}/series", summary="Minutes of a gauge", **answers(ref("Series"), "Minute roll-ups", 400, 404))
def series(desk: AtDesk, card: CardName, key: SeriesKey, since: Since = "-1h", until: Until = "", part: Part = "") -> Response:
    """Minute roll-ups of one gauge by source: count, mean, lowest, highest and last value. No row means that nothing was read in that minute."""
    now = desk.clock()
    entry = ATTRIBUTES.get(key)
    if entry is None or not entry.numeric:
        raise InputError(f"key={key!r} is no attribute with a number", hint="like key=temperature.core; `fields` of a card's readings are the keys")
    begin, end = moment(since, now), moment(until or "now", now)
    if begin >= end:
        raise InputError(f"since={since} is not before until={until or 'now'}")
    found = Then(desk=desk, at=None, now=now).card(card)
    parts = {each.id for each in (*found.devices, *found.partitions)}
    if part and part not in parts:
        raise InputError(f"part={part!r} is no device or partition of {found.id}", hint=f"its parts: {', '.join(sorted(parts)) or 'none'}")
    subject = part or found.id
    points = [_point(row) for row in desk.reader.minutes(subject, key, begin, end)]
    return json_answer(d.Series(card=found.id, subject=subject, key=key, unit=entry.unit.value, since=rfc3339(begin), until=rfc3339(end), points=points))


def _point(row: Mapping[str, Any]) -> d.Point:
    count = int(row["count"])
    mean = row["sum"] / count if count else None
    return d.Point(minute=rfc3339(row["minute"]), source=row["source"], count=count, mean=mean, low=row["low"], high=row["high"], last=row["last"])


@router.get("/{card:path}", summary="One card", **answers(ref("Card"), "The card", 400, 404))
def card_(desk: AtDesk, card: CardName, at: At = "") -> Response:
    """The card with every reading, where it comes from and how old it is. A card that was joined into another answers with the card it is now."""
    now = desk.clock()
    time = asked_time(at, now)
    then = Then(desk=desk, at=time, now=now if time is None else time)
    return json_answer(whole(then, [then.card(card)], then.findings())[0])
