# SPDX-License-Identifier: Apache-2.0
"""What changes the roll: reports of agents and acts of operators. Both go to the one writer; acts are in the audit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from muster.domain.model.errors import InputError
from muster.domain.model.moments import LATEST, rfc3339
from muster.domain.model.names import NameKind, canonical
from muster.domain.model.roll import ActKind
from muster.interfaces.api import tags
from muster.interfaces.api.answers import AtDesk, answers, ref
from muster.interfaces.api.bodies import given
from muster.interfaces.api.paging import json_answer
from muster.interfaces.api.params import body, body_schema, decoded, media_type
from muster.interfaces.api.problems import Refused, WebError
from muster.interfaces.api.roll import Then
from muster.interfaces.api.rooms import InRooms, Rooms
from muster.spi.store import Under
from muster.wire import exchange as x
from muster.wire.report import ActDoc, AnswerDoc, ReportDoc, unpack
from muster.wire.shown import plain
from muster.wiring.desk import Desk

router = APIRouter(prefix="/api/v1", tags=["writing"])

REPORT_LIMIT = 8 * 1024 * 1024
"""Bytes of a report."""
MSGPACK = ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")
_LISTED = frozenset({"at", "by", "what", "reason", "cards"})


@router.post(
    "/reports",
    summary="Send a report",
    **answers(ref("AnswerDoc"), "Applied, or a duplicate of one that was", 400, 403, 409, 413, 415),
    openapi_extra=body_schema("ReportDoc", MSGPACK[0]),
)
async def reports(desk: AtDesk, request: Request) -> Response:
    """Takes in what a reporter saw, once per (reporter, incarnation, sequence). Another report under a key that was used is refused with 409."""
    kind = media_type(request)
    if kind not in (*MSGPACK, "application/json"):
        raise WebError(415, f"the body is {kind or 'of no type'}", hint=f"send Content-Type: {MSGPACK[0]} or application/json")
    raw = await body(request, REPORT_LIMIT)
    report = _checked(decoded(raw, ReportDoc) if kind == "application/json" else _unpacked(raw))
    told: AnswerDoc = await run_in_threadpool(desk.report, report)
    if told.answer == "refused":
        raise Refused(told.detail or "the report was refused", hint="do not send it again; a reporter that lost its numbering starts a new incarnation")
    return json_answer(told)


def _unpacked(raw: bytes) -> ReportDoc:
    try:
        return unpack(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as wrong:
        raise InputError(f"the report does not fit: {wrong}", hint="/openapi.json describes it") from wrong


def _checked(report: ReportDoc) -> ReportDoc:
    blank = [name for name, text in (("reporter", report.reporter), ("incarnation", report.incarnation), ("node.name", report.node.name)) if not text.strip()]
    if blank:
        raise InputError(f"{blank[0]} is empty", hint="a report names who reports, since when, and the node")
    times = {"sent_at": report.sent_at, "sent_mono": report.sent_mono}
    for number, each in enumerate(report.listings):
        times |= {f"listings[{number}].observed_at": each.observed_at, f"listings[{number}].cadence": each.cadence}
    for number, event in enumerate(report.events):
        times |= {f"events[{number}].first_at": event.first_at, f"events[{number}].last_at": event.last_at}
    for number, capture in enumerate(report.captures):
        times[f"captures[{number}].taken_at"] = capture.taken_at
    wrong = next((name for name, at in times.items() if not math.isfinite(at) or not 0 <= at <= LATEST), None)
    if wrong is not None:
        raise InputError(f"{wrong} is no time", hint="times are seconds since 1970 in UTC")
    if not 0 <= report.sequence < 2**63:
        raise InputError("sequence is out of range", hint="count reports from 0 or 1 up")
    return report


@router.post(
    "/acts",
    summary="Say something as an operator",
    **answers(ref("ActAnswer"), "The cards that were touched", 400, 403, 404, 409, 412, 413, 415, 422),
    openapi_extra=body_schema("ActRequest"),
)
async def act(desk: AtDesk, rooms: InRooms, request: Request) -> Response:
    """An operator's word, which goes into the audit with `by` and `reason`.

    `set` values, `store` or `retire` a card, `remove_source`, or say that two cards are the `same` or `not_same`.
    With `dry_run` it is tried, and nothing is changed. Two names of one record say by `not_same` that it is two cards.
    With `If-Match` it is done only while the card is as it was read; with `Idempotency-Key` it is done once, and answered the same for a day.
    """
    raw, told = await given(request, x.ActRequest)
    held = tags.wanted(request)

    async def work(under: Under | None) -> Response:
        cards = await run_in_threadpool(_act, rooms, desk, told, held, under)
        return json_answer(x.acted(told.what, cards, dry_run=told.dry_run))

    return await rooms.answers.once(request, desk, raw, work)


def _act(rooms: Rooms, desk: Desk, told: x.ActRequest, held: frozenset[str], under: Under | None) -> list[str]:
    if told.what not in set(ActKind):
        raise InputError(f"what={told.what!r} is no act", hint=f"acts are {', '.join(ActKind)}")
    rooms.views.settle()
    then = Then(desk=desk, views=rooms.views, at=None, now=desk.clock())
    card, other = _ids(then, told.card), _ids(then, told.other)
    if held:
        if "id" not in card:
            raise InputError("If-Match is for an act on one card", hint="name the card by a name that the roll knows, or leave If-Match out")
        tags.hold(held, tags.of_card(then.card(card["id"])), f"card {card['id']}")
    if told.what == ActKind.NOT_SAME and card and card == other:
        card, other = _apart(then, card["id"], str(told.card), str(told.other))
    doc = ActDoc(
        what=told.what,
        by=told.by.strip(),
        card=card,
        other=other,
        node=told.node,
        source=told.source,
        values=told.values,
        place=told.place,
        reason=told.reason,
    )
    touched = desk.act(doc, dry_run=told.dry_run, under=under)
    rooms.views.caught_up()
    return touched


def _ids(then: Then, said: str | dict[str, str]) -> dict[str, str]:
    if isinstance(said, dict):
        return said
    return {"id": then.card(said).id} if said else {}


def _apart(then: Then, id_: str, one: str, other: str) -> tuple[dict[str, str], dict[str, str]]:
    """Two names of one record, each by its kind. Raises InputError where they are not two names that can part it."""
    ids = then.card(id_).ids
    found = [_by_kind(ids, word) for word in (one, other)]
    if not all(found) or found[0] == found[1]:
        raise InputError(f"{one!r} and {other!r} are one card on the roll", hint="name its two halves by their UUIDs or serials")
    return found[0], found[1]


def _by_kind(ids: Mapping[str, Sequence[str]], word: str) -> dict[str, str]:
    wanted = ((kind, value) for kind in (NameKind.VENDOR_UUID, NameKind.SERIAL) for value in ids.get(kind, ()))
    return next(({kind.value: value} for kind, value in wanted if canonical(kind, value) == canonical(kind, word)), {})


AUDIT_LIST = {
    "title": "AuditList",
    "type": "object",
    "required": ["items"],
    "properties": {"items": {"type": "array", "items": ref("Audit")}},
}


@router.get("/acts", summary="The audit", **answers(ref("AuditList"), "Acts, newest first", 400))
def audit(desk: AtDesk, limit: Annotated[int, Query(ge=1, le=10_000)] = 500) -> Response:
    """What operators said and did, newest first."""
    return json_answer({"items": [_audit(row) for row in desk.reader.audit(limit)]})


def _audit(row: Mapping[str, Any]) -> x.Audit:
    at = row.get("at")
    return x.Audit(
        at=rfc3339(at) if isinstance(at, int | float) else None,
        by=str(row.get("by", "")),
        what=str(row.get("what", "")),
        reason=str(row.get("reason", "")),
        cards=[str(card) for card in row.get("cards", ())],
        detail=plain({key: value for key, value in row.items() if key not in _LISTED}),
    )
