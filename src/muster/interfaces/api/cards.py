# SPDX-License-Identifier: Apache-2.0
"""Cards: the list, one card, its history and its series."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response

from muster.domain.decide.pick_fields import CARD_FIELDS
from muster.domain.decide.pick_order import ready
from muster.domain.decide.select import Lookup
from muster.domain.decide.view import OF_DEVICES, CardView, value
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.errors import InputError
from muster.domain.model.moments import moment, rfc3339
from muster.domain.model.observation import Role
from muster.domain.model.roll import CardRecord, Finding, Presence
from muster.domain.model.snapshot import Coded, Mask, Snapshot
from muster.interfaces.api import tags
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.changes import change_page
from muster.interfaces.api.paging import Page, Question, Selection, page, picked, question
from muster.interfaces.api.params import At, Listing, asked_time
from muster.interfaces.api.roll import NAMED, Then
from muster.interfaces.api.rooms import InRooms, upon
from muster.interfaces.api.telling import Form, Telling, tell
from muster.wire import documents as d
from muster.wire import shown
from muster.wire.documents import encode
from muster.wiring.snapshot_plates import Wanted
from muster.wiring.snapshot_printing import Printed
from muster.wiring.snapshots import Views

router = APIRouter(prefix="/api/v1/cards", tags=["cards"])
_WHOLE = Selection("", d.Card)

_TOLD_BY_NAME = frozenset({"name", "model", "vendor"})
TABLE = (
    "id", "name", "vendor", "model", "presence", "presence_since", "rung", "role", "aside", "node", "slot", "address", "index", "place", "ids", "seen_by",
    "findings", "created_at",
)  # fmt: skip
"""Fields of a card in a table."""

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


def _by_name(role: str, retired: bool, asked: Collection[str]) -> tuple[str, bool]:
    """The role that is listed ("" for any), and whether retired cards are: what a filter asks for is not left out before it."""
    return "" if "role" in asked or role == "any" else role, retired or "presence" in asked


def listed(records: Sequence[CardRecord], role: str, retired: bool, asked: Collection[str]) -> list[CardRecord]:
    """Those that a list shows: displays and retired cards only when asked for."""
    only, all_ = _by_name(role, retired, asked)
    return [card for card in records if (not only or card.role == only) and (all_ or card.presence is not Presence.RETIRED)]


def shown_rows(snapshot: Snapshot, role: str, retired: bool, asked: Collection[str]) -> Mask:
    """Rows that a list shows, as `listed` says it of records."""
    only, all_ = _by_name(role, retired, asked)
    among: Mask = snapshot.live
    if only:
        among = among & of_word(snapshot, "role", only)
    return among if all_ else among & ~of_word(snapshot, "presence", Presence.RETIRED.value)


def of_word(snapshot: Snapshot, path: str, word: str | bool) -> Mask:
    """Rows with this word in a column."""
    column = snapshot.columns.get(path)
    if not isinstance(column, Coded) or column.words.find(word) < 0:
        return np.zeros(snapshot.rows, np.bool_)
    return np.equal(column.codes, column.words.find(word))


def rows(then: Then, records: Sequence[CardRecord], asked: frozenset[str], findings: Mapping[str, Sequence[Finding]]) -> list[CardRow]:
    """Rows of the cards, with the readings that are asked of them and no others."""
    keys = asked & ATTRIBUTES.keys() | (NAMED if _TOLD_BY_NAME & asked else frozenset())
    sketches: Sequence[CardView | None] = then.sketches(records, keys, parts=not OF_DEVICES.keys().isdisjoint(keys)) if keys else [None] * len(records)
    return [CardRow(then, record, sketch, findings.get(record.id, ())) for record, sketch in zip(records, sketches, strict=True)]


def whole(then: Then, records: Sequence[CardRecord], selection: Selection | None = None) -> list[d.Card]:
    """Documents of the cards, in their order; what ``selection`` leaves out is not made."""
    asked = None if selection is None or selection.whole else frozenset(selection.plain)
    findings = then.findings() if asked is None or "findings" in asked else {}
    some = list(records) if asked is None else [_light(card, asked) for card in records]
    nodes = then.node_names({claim.node for record in some for claim in record.claims} | _told_of(some))
    made = asked is None or "vendor" in asked
    return [shown.card(each, then.vendor(each) if made else None, findings.get(each.record.id, ()), nodes) for each in then.views_of(some, _keys(selection))]


def printed(then: Then, ids: Sequence[str], selection: Selection, known: Mapping[str, CardRecord] | None = None) -> list[Printed]:
    """The documents of the cards that are shown now, as they are sent; one that went meanwhile is left out."""
    wanted = Wanted(tuple(selection.plain), tuple(selection.keys))
    plates = then.views.plates
    told = plates.printed(ids, wanted, then.now, _findings(then, selection), then.node_names, known) if plates is not None else {}
    left = ids if plates is None else [id_ for id_, one in told.items() if isinstance(one, CardRecord)]
    made = {document.id: document for document in whole(then, ordered(then, left), selection)} if left else {}
    found: list[Printed] = []
    for id_ in ids:
        one = told.get(id_)
        if isinstance(one, Printed) and then.shows_on(one.node, one.node_name):
            found.append(one)
        elif id_ in made:
            body = encode(selection.of(made[id_]))
            found.append(Printed("", "", body, tags.still(body)))
    return found


def _findings(then: Then, selection: Selection) -> Mapping[str, Sequence[Finding]]:
    return then.findings() if selection.whole or "findings" in selection.plain else {}


def _light(card: CardRecord, asked: Collection[str]) -> CardRecord:
    """The card without what no field that is asked for tells."""
    claims = card.claims if "claims" in asked or "seen_by" in asked else ()
    return replace(card, claims=claims, details=card.details if "details" in asked else {})


def _told_of(records: Sequence[CardRecord]) -> set[str]:
    return {place.partition("/")[0] for record in records for place in record.details}


def _keys(selection: Selection | None) -> frozenset[str] | None:
    """Readings that must be chosen for what ``selection`` gives; None for all."""
    if selection is None or selection.whole or {"readings", "devices", "partitions", "increase"} & set(selection.plain):
        return None
    asked = set(selection.plain)
    name = {"product.name"} if asked & _TOLD_BY_NAME else set()
    maker = NAMED if "vendor" in asked else frozenset()
    return frozenset(selection.keys) | name | maker | (OF_DEVICES.keys() if "together" in asked else frozenset())


def ordered(then: Then, ids: Sequence[str]) -> list[CardRecord]:
    """The records of these cards, in the order of their ids; one that went meanwhile is left out."""
    found = {card.id: card for card in then.cards(ids)}
    return [found[id_] for id_ in ids if id_ in found]


@router.get("", summary="List cards", **answers_page("Card", 406))
async def cards(
    request: Request, desk: AtDesk, rooms: InRooms, listing: Listing, form: Form, role: RoleAsked = Role.ACCELERATOR.value, retired: Retired = False
) -> Response:
    """Accelerators of every presence but retired, by node, slot, address and index. Displays with `role=display`."""
    asked = question("cards", listing, CARD_FIELDS, desk.clock(), "node,slot,address,index")
    selection = Selection(listing.fields, d.Card)
    then = Then(desk=desk, views=rooms.views, at=asked.at, now=asked.now)

    def page_of(asked: Question) -> Page[str]:
        return _past(then, asked, role, retired) if asked.at is not None else _present(then, asked, role, retired)

    told = Telling(
        page=page_of,
        documents=lambda ids: whole(then, ordered(then, ids), selection),
        printed=None if asked.at is not None else lambda ids: printed(then, ids, selection),
        fields=TABLE,
        readings=True,
        heavy=_slow(rooms.views, asked),
    )
    return await tell(request, rooms, form, asked, selection, told)


def _slow(views: Views, asked: Question) -> bool:
    """True when a large roll must be put in an order first that nobody asked for lately."""
    return views.ready() and views.size > views.settings.small and not ready(views.cards(), asked.keys)


def _present(then: Then, asked: Question, role: str, retired: bool) -> Page[str]:
    snapshot = then.views.cards(asked.paths)
    found = picked(snapshot, then.seen(snapshot) & shown_rows(snapshot, role, retired, asked.paths), asked)
    return Page(rows=snapshot.texts("id", found.rows), next=found.next, total=found.total)


def _past(then: Then, asked: Question, role: str, retired: bool) -> Page[str]:
    there = rows(then, listed(then.cards(), role, retired, asked.paths), asked.paths, then.findings())
    found = page(there, asked, CardRow.lookup, lambda row: row.record.id)
    return Page(rows=[row.record.id for row in found.rows], next=found.next, total=found.total)


SeriesKey = Annotated[str, Query(description="The attribute.", examples=["temperature.core"])]
Since = Annotated[str, Query(max_length=64, description="RFC 3339, or a time ago like `-1h`.")]
Until = Annotated[str, Query(max_length=64, description="RFC 3339, or a time ago; now when left out.")]
Part = Annotated[str, Query(max_length=200, description="A device or partition of the card, by its id; the card itself when left out.")]


@router.get("/{card:path}/history", summary="History of a card", **answers_page("Change", 404, 406))
async def history(request: Request, desk: AtDesk, rooms: InRooms, card: CardName, listing: Listing, form: Form) -> Response:
    """What happened to the card, oldest first (`sort=-number` for the newest first), also under names it had before."""
    then = Then(desk=desk, views=rooms.views, at=None, now=desk.clock())
    found = await upon(rooms, lambda: then.card(card))
    return await change_page(request, rooms, then, found.id, listing, form)


@router.get("/{card:path}/series", summary="Minutes of a gauge", **answers(ref("Series"), "Minute roll-ups", 400, 404))
async def series(
    request: Request, desk: AtDesk, rooms: InRooms, card: CardName, key: SeriesKey, since: Since = "-1h", until: Until = "", part: Part = ""
) -> Response:
    """Minute roll-ups of one gauge by source: count, mean, lowest, highest and last value. No row means that nothing was read in that minute."""
    now = desk.clock()
    entry = ATTRIBUTES.get(key)
    if entry is None or not entry.numeric:
        raise InputError(f"key={key!r} is no attribute with a number", hint="like key=temperature.core; `fields` of a card's readings are the keys")
    begin, end = moment(since, now), moment(until, now) if until else now
    if begin > end:
        raise InputError(f"since={since} is not before until={until or 'now'}", hint="both are times, or how long ago: since=-2h, until=-1h")
    then = Then(desk=desk, views=rooms.views, at=None, now=now)

    def told() -> d.Series:
        found = then.card(card)
        parts = {each.id for each in (*found.devices, *found.partitions)}
        if part and part not in parts:
            raise InputError(f"part={part!r} is no device or partition of {found.id}", hint=f"its parts: {', '.join(sorted(parts)) or 'none'}")
        subject = part or found.id
        points = [_point(row) for row in rooms.views.reader.minutes(subject, key, begin, end)]
        return d.Series(card=found.id, subject=subject, key=key, unit=entry.unit.value, since=rfc3339(begin), until=rfc3339(end), points=points)

    return tags.told(request, await upon(rooms, told, EXPENSIVE))


EXPENSIVE = 10_000
"""Said of work that belongs into a thread."""


def _point(row: Mapping[str, Any]) -> d.Point:
    count = int(row["count"])
    mean = row["sum"] / count if count else None
    return d.Point(minute=rfc3339(row["minute"]), source=row["source"], count=count, mean=mean, low=row["low"], high=row["high"], last=row["last"])


@router.get("/{card:path}", summary="One card", **answers(ref("Card"), "The card", 400, 404))
async def card_(request: Request, desk: AtDesk, rooms: InRooms, card: CardName, at: At = "") -> Response:
    """The card with every reading, where it comes from and how old it is. A card that was joined into another answers with the card it is now.

    The first part of its ETag says what the card is: sent as `If-Match` with an act, the act is refused when the card has changed meanwhile.
    """
    now = desk.clock()
    time = asked_time(at, now)
    then = Then(desk=desk, views=rooms.views, at=time, now=now if time is None else time)

    def told() -> Response:
        known = then.at_once(card)
        one = next(iter(printed(then, [known], _WHOLE)), None) if known else None
        if one is not None and one.tag:
            return tags.sent(request, one.body, one.still, one.tag)
        record = then.card(card)
        one = next(iter(printed(then, [record.id], _WHOLE, {record.id: record})), None) if time is None else None
        if one is not None and one.tag:
            return tags.sent(request, one.body, one.still, one.tag)
        return tags.told(request, whole(then, [record])[0], tags.of_card(record))

    return await upon(rooms, told, then=time is not None)
