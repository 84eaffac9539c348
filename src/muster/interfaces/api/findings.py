# SPDX-License-Identifier: Apache-2.0
"""Findings, events and captures: what a person should know, what happened, and the bytes it rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Generic, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from muster.domain.decide.select import Lookup
from muster.domain.model.errors import NotFound
from muster.domain.model.filters import Fields, Shape
from muster.interfaces.api import rows
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.paging import Selection, json_answer, page, page_answer, question
from muster.interfaces.api.params import Listing, body_schema, json_body
from muster.interfaces.api.roll import Then
from muster.spi.store import EventRow, FindingRow
from muster.wire import documents as d
from muster.wire import exchange as x
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
EVENTS_READ = 10_000
"""The newest events among which filters look."""
FindingId = Annotated[str, Path(max_length=300, description="Its id.")]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Of(Generic[T]):
    row: T
    own: Callable[[T, str], Any]

    def lookup(self) -> Lookup:
        return lambda path: self.own(self.row, path)


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


@router.get("/findings", summary="List findings", **answers_page("Finding"))
def findings(desk: AtDesk, listing: Listing, closed: Annotated[bool, Query(description="Closed ones too.")] = False) -> Response:
    """What a person should know: open findings, newest first."""
    asked = question("findings", listing, FINDING_FIELDS, desk.clock(), "-opened_at")
    selection = Selection(listing.fields, d.Finding)
    then = Then(desk=desk, at=asked.at, now=asked.now)
    nodes = then.nodes()
    told = [_Of(row, partial(_of_finding, nodes)) for row in desk.reader.findings(closed=closed or "closed_at" in asked.paths, at=asked.at)]
    found = page(told, asked, _Of.lookup, lambda each: f"{each.row.finding.id} {each.row.finding.opened_at}")
    return page_answer(asked, found, _documents(then, [each.row for each in found.rows]), selection)


def _documents(then: Then, found: Sequence[FindingRow]) -> list[d.Finding]:
    names = then.names(word for row in found for word in rows.finding_words(row))
    return [rows.finding(row, names, then.now) for row in found]


@router.get("/findings/{finding:path}", summary="One finding", **answers(ref("Finding"), "The finding", 400, 404))
def finding(desk: AtDesk, finding: FindingId) -> Response:
    """The finding with its evidence, open or closed."""
    found = next((row for row in desk.reader.findings(closed=True) if row.finding.id == finding), None)
    if found is None:
        raise NotFound(f"no finding {finding!r}", hint="`/api/v1/findings?closed=true` lists them")
    return json_answer(_documents(Then(desk=desk, at=None, now=desk.clock()), [found])[0])


@router.post(
    "/findings/{finding:path}/acknowledge",
    summary="Acknowledge a finding",
    **answers(ref("Finding"), "The finding", 400, 403, 404, 409, 413, 415),
    openapi_extra=body_schema("AcknowledgeRequest"),
)
async def acknowledge(desk: AtDesk, request: Request, finding: FindingId) -> Response:
    """Says that somebody has seen it. It stays open as long as it holds."""
    told = await json_body(request, x.AcknowledgeRequest)
    return json_answer(await run_in_threadpool(_acknowledge, desk, finding, told))


def _acknowledge(desk: Desk, finding: str, told: x.AcknowledgeRequest) -> d.Finding:
    row = desk.acknowledge(finding, told.by, told.reason)
    return _documents(Then(desk=desk, at=None, now=desk.clock()), [row])[0]


@router.get("/events", summary="List events", **answers_page("Event", 404))
def events(
    desk: AtDesk,
    listing: Listing,
    card: Annotated[str, Query(max_length=300, description="Only of this card, by any of its names.")] = "",
    node: Annotated[str, Query(max_length=300, description="Only of this node.")] = "",
) -> Response:
    """What happened, newest first, among the newest 10,000. `at=` leaves out what came later."""
    asked = question("events", listing, EVENT_FIELDS, desk.clock(), "-last_at")
    selection = Selection(listing.fields, d.Event)
    then = Then(desk=desk, at=None, now=asked.now)
    id_, nodes = then.card(card).id if card else None, then.nodes()
    node_id = next((each for each, name in nodes.items() if node and name.lower() == node.lower()), node)
    read = desk.reader.events(id_, node_id or None, EVENTS_READ)
    told = [_Of(row, partial(_of_event, nodes)) for row in read if asked.at is None or row.first_at <= asked.at]
    found = page(told, asked, _Of.lookup, lambda each: each.row.id)
    return page_answer(asked, found, [rows.event(each.row, nodes) for each in found.rows], selection)


_RAW = {"200": {"content": {"text/plain": {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}}}}


@router.get(
    "/captures/{digest}",
    summary="The capture behind a value",
    **answers(ref("CaptureInfo"), "What was read, and how; with `raw` its bytes", 400, 404),
    openapi_extra={"responses": _RAW},
)
def capture(
    desk: AtDesk,
    digest: Annotated[str, Path(pattern=r"^[0-9A-Za-z:_-]{1,128}$", description="The digest that a reading carries.")],
    raw: Annotated[bool, Query(description="The bytes themselves, as they were read.")] = False,
) -> Response:
    """The bytes that a reading, change or finding rests on: what was run or read, its exit status, and what it said."""
    found = desk.reader.capture(digest)
    if not raw:
        return json_answer(rows.capture(found))
    name = "".join(sign if sign.isalnum() else "-" for sign in digest)
    headers = {
        "content-disposition": f'attachment; filename="capture-{name}.txt"',
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }
    return Response(found.payload, media_type="text/plain", headers=headers)
