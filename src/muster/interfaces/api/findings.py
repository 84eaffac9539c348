# SPDX-License-Identifier: Apache-2.0
"""Findings, events and captures: what a person should know, what happened, and the bytes it rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from muster.domain.decide.select import Lookup
from muster.domain.model.filters import Fields, Shape
from muster.interfaces.api import rows, tags
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.bodies import given
from muster.interfaces.api.changes import kinds_of, only_kinds
from muster.interfaces.api.findings_sought import Sought, held, named, only
from muster.interfaces.api.paging import Page, Question, Selection, json_answer, question
from muster.interfaces.api.params import Listing, body_schema
from muster.interfaces.api.roll import Then
from muster.interfaces.api.rooms import InRooms, Rooms, upon
from muster.interfaces.api.telling import Form, Telling, tell
from muster.spi.store import EventRow, FindingRow, Under
from muster.wire import documents as d
from muster.wire import exchange as x
from muster.wire.documents import encode
from muster.wiring.desk import Desk

router = APIRouter(prefix="/api/v1", tags=["findings and evidence"])

FINDING_FIELDS: Fields = {
    **dict.fromkeys(("id", "kind", "subject", "about", "node", "source", "attribute", "acknowledged_by"), Shape.TEXT),
    "cards": Shape.LIST,
    **dict.fromkeys(("opened_at", "last_seen_at", "acknowledged_at", "closed_at"), Shape.TIME),
}
"""What a filter or an order may ask of a finding."""
EVENT_FIELDS: Fields = {
    **dict.fromkeys(("id", "card", "node", "source", "adapter", "kind", "code", "text", "address"), Shape.TEXT),
    **dict.fromkeys(("first_at", "last_at"), Shape.TIME),
    "repeats": Shape.NUMBER,
}
"""What a filter or an order may ask of an event."""
FINDING_TABLE = (
    "id", "kind", "subject", "about", "cards", "node", "source", "attribute", "opened_at", "last_seen_at", "acknowledged_at", "acknowledged_by", "closed_at",
)  # fmt: skip
EVENT_TABLE = ("id", "card", "node", "source", "adapter", "kind", "code", "text", "address", "first_at", "last_at", "repeats")
FindingId = Annotated[str, Path(max_length=300, description="Its id.")]


def _of_finding(nodes: Mapping[str, str], row: FindingRow, path: str) -> Any:
    if path == "node":
        return nodes.get(row.finding.node, row.finding.node) or None
    holder = row if path in ("last_seen_at", "acknowledged_at", "acknowledged_by", "closed_at") else row.finding
    value = getattr(holder, path)
    return value if isinstance(value, float | tuple) else str(value or "") or None


def _of_event(nodes: Mapping[str, str], row: EventRow, path: str) -> Any:
    if path == "node":
        return nodes.get(row.node, row.node)
    value = getattr(row, path)
    return None if value == "" else value


@router.get("/findings", summary="List findings", **answers_page("Finding", 406))
async def findings(
    request: Request, desk: AtDesk, rooms: InRooms, listing: Listing, form: Form, closed: Annotated[bool, Query(description="Closed ones too.")] = False
) -> Response:
    """What a person should know: open findings, newest first, counted where one page has them all.

    `kind`, `node`, and one card of `cards` are found by an index. For other filters a page looks through 10,000 findings at most, and may be short or
    empty while its `next` goes on from there. Another order is given of 10,000 at most, and refused beyond.
    """
    asked = question("findings", listing, FINDING_FIELDS, desk.clock(), "-opened_at")
    selection = Selection(listing.fields, d.Finding)
    then = Then(desk=desk, views=rooms.views, at=asked.at, now=asked.now)

    tree = asked.tree
    all_, kinds, card = closed or "closed_at" in asked.paths, kinds_of(tree), held(tree, "cards")

    def page_of(asked: Question) -> Page[FindingRow]:
        node = _node_named(then, only(named(tree, "node")))
        read = partial(desk.reader.findings, closed=all_, at=asked.at, kinds=kinds, cards=None if card is None else [card], node=node)
        return Sought(
            what="findings",
            path="opened_at",
            read=lambda limit, before: read(limit=limit, before=before),
            lookups=partial(_lookups, then, _of_finding, lambda row: row.finding.node),
            place=lambda row: (row.finding.opened_at, row.finding.id),
        ).page(asked)

    told = Telling(page=page_of, documents=lambda found: _documents(then, found), fields=FINDING_TABLE, heavy=not indexed(asked, "opened_at"))
    return await tell(request, rooms, form, asked, selection, told)


def _node_named(then: Then, name: str | None) -> str | None:
    """The id of the only node of that name, by which the store's index finds its rows; None where there is not one."""
    ids = [] if name is None else [node.id for node in then.views.lists.nodes().records.values() if node.name == name]
    return ids[0] if len(ids) == 1 else None


def indexed(asked: Question, path: str) -> bool:
    """True when the store's indexes answer a list: in its own order, newest first, and filtered by nothing but kinds."""
    return [(key.path, key.down) for key in asked.keys] == [(path, True)] and (asked.tree is None or asked.tree == only_kinds(asked.tree))


def _lookups(then: Then, own: Callable[[Mapping[str, str], Any, str], Any], node_of: Callable[[Any], str], rows_: Sequence[Any]) -> list[Lookup]:
    nodes = then.node_names({node_of(row) for row in rows_})
    return [partial(own, nodes, row) for row in rows_]


def _documents(then: Then, found: Sequence[FindingRow]) -> list[d.Finding]:
    names = then.names(word for row in found for word in rows.finding_words(row))
    return [rows.finding(row, names, then.now) for row in found]


@router.get("/findings/{finding:path}", summary="One finding", **answers(ref("Finding"), "The finding", 400, 404))
async def finding(request: Request, desk: AtDesk, rooms: InRooms, finding: FindingId) -> Response:
    """The finding with its evidence, open or closed."""
    then = Then(desk=desk, views=rooms.views, at=None, now=desk.clock())

    def told() -> Response:
        row = desk.reader.finding(finding)
        return tags.told(request, _documents(then, [row])[0], state_of(row))

    return await upon(rooms, told)


def state_of(row: FindingRow) -> str:
    """What a finding is, as a tag: by it an acknowledgement is held to what was read."""
    return tags.of_body(encode([row.finding.id, row.finding.opened_at, row.finding.about, row.acknowledged_at, row.acknowledged_by, row.closed_at]))


@router.post(
    "/findings/{finding:path}/acknowledge",
    summary="Acknowledge a finding",
    **answers(ref("Finding"), "The finding", 400, 403, 404, 409, 412, 413, 415, 422),
    openapi_extra=body_schema("AcknowledgeRequest"),
)
async def acknowledge(request: Request, desk: AtDesk, rooms: InRooms, finding: FindingId) -> Response:
    """Says that somebody has seen it. It stays open as long as it holds.

    With `If-Match` only when it is as it was read; with `Idempotency-Key` it is answered the same when it comes again within a day.
    """
    raw, told = await given(request, x.AcknowledgeRequest)
    held = tags.wanted(request)

    async def work(_: Under | None) -> Response:
        return json_answer(await run_in_threadpool(_acknowledge, rooms, desk, finding, told, held))

    return await rooms.answers.once(request, desk, raw, work)


def _acknowledge(rooms: Rooms, desk: Desk, finding: str, told: x.AcknowledgeRequest, held: frozenset[str]) -> d.Finding:
    if held:
        tags.hold(held, state_of(desk.reader.finding(finding)), f"finding {finding}")
    row = desk.acknowledge(finding, told.by, told.reason)
    rooms.views.caught_up()
    return _documents(Then(desk=desk, views=rooms.views, at=None, now=desk.clock()), [row])[0]


@router.get("/events", summary="List events", **answers_page("Event", 404, 406))
async def events(
    request: Request,
    desk: AtDesk,
    rooms: InRooms,
    listing: Listing,
    form: Form,
    card: Annotated[str, Query(max_length=300, description="Only of this card, by any of its names.")] = "",
    node: Annotated[str, Query(max_length=300, description="Only of this node.")] = "",
) -> Response:
    """What happened, newest first, counted where one page has them all. `at=` leaves out what came later.

    `card`, `node` and `kind` are found by an index. For other filters a page looks through 10,000 events at most, and may be short or empty while its
    `next` goes on from there. Another order is given of 10,000 at most, and refused beyond: narrow it, or take `sort=-last_at`.
    """
    asked = question("events", listing, EVENT_FIELDS, desk.clock(), "-last_at")
    selection = Selection(listing.fields, d.Event)
    then = Then(desk=desk, views=rooms.views, at=None, now=asked.now)
    tree, kinds = asked.tree, kinds_of(asked.tree)

    def page_of(asked: Question) -> Page[EventRow]:
        id_ = then.card(card).id if card else only(named(tree, "card"))
        node_id = _node_id(then, node) if node else _node_named(then, only(named(tree, "node")))
        return Sought(
            what="events",
            path="last_at",
            read=lambda limit, before: desk.reader.events(id_, node_id, limit, kinds=kinds, before=before),
            lookups=partial(_lookups, then, _of_event, lambda row: row.node),
            place=lambda row: (row.last_at, row.id),
            fits=lambda row: asked.at is None or row.first_at <= asked.at,
        ).page(asked)

    def documents(found: Sequence[EventRow]) -> list[d.Event]:
        nodes = then.node_names({row.node for row in found})
        return [rows.event(row, nodes) for row in found]

    heavy = asked.at is not None or not indexed(asked, "last_at")
    return await tell(request, rooms, form, asked, selection, Telling(page=page_of, documents=documents, fields=EVENT_TABLE, heavy=heavy))


def _node_id(then: Then, word: str) -> str | None:
    """The id of a node by its name or id; the word itself where there is none."""
    if not word:
        return None
    return next((node.id for node in then.views.lists.nodes().records.values() if word.lower() in (node.id, node.name.lower())), word)


_RAW = {"200": {"content": {"text/plain": {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}}}}


@router.get(
    "/captures/{digest}",
    summary="The capture behind a value",
    **answers(ref("CaptureInfo"), "What was read, and how; with `raw` its bytes", 400, 404),
    openapi_extra={"responses": _RAW},
)
def capture(
    request: Request,
    desk: AtDesk,
    digest: Annotated[str, Path(pattern=r"^[0-9A-Za-z:_-]{1,128}$", description="The digest that a reading carries.")],
    raw: Annotated[bool, Query(description="The bytes themselves, as they were read.")] = False,
) -> Response:
    """The bytes that a reading, change or finding rests on: what was run or read, its exit status, and what it said."""
    found = desk.reader.capture(digest)
    if not raw:
        return tags.told(request, rows.capture(found))
    name = "".join(sign if sign.isalnum() else "-" for sign in digest)
    headers = {
        "content-disposition": f'attachment; filename="capture-{name}.txt"',
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }
    return Response(found.payload, media_type="text/plain", headers=headers)
