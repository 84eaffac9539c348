# SPDX-License-Identifier: Apache-2.0
"""History: what changed on the roll, by running number, so that a reader can go on where it stopped."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from muster.domain.model.errors import NotFound
from muster.domain.model.moments import rfc3339
from muster.interfaces.api import rows
from muster.interfaces.api.answers import AtDesk, answers, ref
from muster.interfaces.api.paging import json_answer
from muster.interfaces.api.params import At, asked_time
from muster.wire import documents as d
from muster.wiring.desk import Desk

router = APIRouter(prefix="/api/v1/changes", tags=["history"])

CHANGE_PAGE = {
    "title": "ChangePage",
    "type": "object",
    "required": ["items", "next", "at"],
    "properties": {
        "items": {"type": "array", "items": ref("Change")},
        "next": {
            "anyOf": [{"type": "integer"}, {"type": "null"}],
            "description": "The last number of the page, for `after=`; null when there is no more yet.",
        },
        "at": {"type": "string", "format": "date-time"},
    },
}
Number = Annotated[int, Path(ge=1, le=2**53, description="Its running number.")]


def change_page(desk: Desk, subject: str | None, after: int, limit: int, at: float | None, now: float) -> Response:
    """History as a response: of one subject or of all."""
    found = desk.reader.changes(subject, after, limit + 1, at)
    items = [rows.change(row) for row in found[:limit]]
    return json_answer({"items": items, "next": items[-1].number if len(found) > limit else None, "at": rfc3339(now if at is None else at)})


@router.get("", summary="List changes", **answers(ref("ChangePage"), "A page of Change documents", 400))
def changes(
    desk: AtDesk,
    subject: Annotated[str, Query(max_length=200, description="Only of this card or node, by our id.")] = "",
    after: Annotated[int, Query(ge=0, le=2**53, description="Entries with a greater number only; keep the last to go on from there.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
    at: At = "",
) -> Response:
    """All history by running number, oldest first. Entries that a late report disproved are marked `superseded_at`."""
    now = desk.clock()
    return change_page(desk, subject or None, after, limit, asked_time(at, now), now)


@router.get("/{number}", summary="One change", **answers(ref("Change"), "The change", 400, 404))
def change(desk: AtDesk, number: Number) -> Response:
    """One entry of history."""
    found: list[d.Change] = [rows.change(row) for row in desk.reader.changes(after=number - 1, limit=1) if row.number == number]
    if not found:
        raise NotFound(f"no change {number}", hint="`/api/v1/changes` lists them")
    return json_answer(found[0])
