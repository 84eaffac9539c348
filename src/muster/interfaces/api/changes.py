# SPDX-License-Identifier: Apache-2.0
"""History: what changed on the roll, by running number, so that a reader can go on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from muster.domain.decide.select import Lookup, selects, stand
from muster.domain.model.errors import InputError, NotFound
from muster.domain.model.filters import Fields, Shape
from muster.interfaces.api import rows
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.paging import Page, Question, Selection, json_answer, page_answer, question, sealed, stranger
from muster.interfaces.api.params import Asked, Listing
from muster.interfaces.api.roll import Then
from muster.spi.store import ChangeRow
from muster.wire import documents as d
from muster.wiring.desk import Desk

router = APIRouter(prefix="/api/v1/changes", tags=["history"])

CHANGE_FIELDS: Fields = {
    **dict.fromkeys(("id", "subject", "kind"), Shape.TEXT),
    **dict.fromkeys(("at", "learnt_at", "superseded_at"), Shape.TIME),
    "number": Shape.NUMBER,
}
"""What a filter may ask of a change; only its number gives an order."""
MOST = 2**53
"""Numbers stay below this."""
CHUNK = 500
"""Entries read at once while a filter looks for its own."""
Number = Annotated[int, Path(ge=1, lt=MOST, description="Its running number.")]


def change_page(desk: Desk, subject: str | None, listing: Asked, after: int = 0) -> Response:
    """History as a response: of one subject or of all."""
    asked = question(f"changes {subject or ''}", listing, CHANGE_FIELDS, desk.clock(), "number")
    if [key.path for key in asked.keys] != ["number"]:
        raise InputError("sort: history is in the order of its numbers", hint="sort=number or sort=-number")
    selection = Selection(listing.fields, d.Change)
    start = None if asked.after is None else _number(asked.after[0][0])
    read = _back(desk, subject, asked.at, start) if asked.keys[0].down else _on(desk, subject, asked.at, after if start is None else start)
    chosen = (row for row in read if asked.tree is None or selects(asked.tree, _lookup(row)))
    found = list(islice(chosen, asked.limit + 1))
    items = found[: asked.limit]
    page = Page(rows=items, next=_next(asked, items[-1]) if len(found) > asked.limit else None, total=None)
    names = Then(desk=desk, at=asked.at, now=asked.now).names(word for row in items for word in rows.change_words(row))
    return page_answer(asked, page, [rows.change(row, names) for row in items], selection)


def _number(told: Any) -> int:
    if isinstance(told, int) and 0 < told < MOST:
        return told
    raise stranger()


def _lookup(row: ChangeRow) -> Lookup:
    return lambda path: _own(row, path)


def _own(row: ChangeRow, path: str) -> Any:
    value = getattr(row if path in ("number", "superseded_at") else row.change, path)
    return str(value) if path == "kind" else value


def _next(asked: Question, row: ChangeRow) -> str:
    return sealed(asked, stand(_lookup(row), row.change.id, asked.keys))


def _on(desk: Desk, subject: str | None, at: float | None, after: int) -> Iterator[ChangeRow]:
    """Entries after a number, oldest first."""
    while found := desk.reader.changes(subject, after, CHUNK, at):
        yield from found
        after = found[-1].number


def _back(desk: Desk, subject: str | None, at: float | None, before: int | None) -> Iterator[ChangeRow]:
    """Entries before a number, newest first."""
    if subject is not None:
        yield from (row for row in reversed(list(_on(desk, subject, at, 0))) if before is None or row.number < before)
        return
    end = _last(desk) + 1 if before is None else before
    while end > 1:
        begin = max(0, end - 1 - CHUNK)
        yield from (row for row in reversed(desk.reader.changes(None, begin, CHUNK, at)) if row.number < end)
        end = begin + 1


def _last(desk: Desk) -> int:
    """A number that no entry is beyond, by doubling and halving."""
    low, high = 0, 1
    while desk.reader.changes(None, high, 1):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if desk.reader.changes(None, middle, 1) else (low, middle)
    return high


@router.get("", summary="List changes", **answers_page("Change"))
def changes(
    desk: AtDesk,
    listing: Listing,
    subject: Annotated[str, Query(max_length=200, description="Only of this card or node, by our id.")] = "",
    after: Annotated[int, Query(ge=0, lt=MOST, description="Entries with a greater number only: keep the last number to go on from there later.")] = 0,
) -> Response:
    """All history by running number, oldest first, or newest first with `sort=-number`. Entries that a late report disproved are marked `superseded_at`.

    `total` is not counted.
    """
    return change_page(desk, subject or None, listing, after)


@router.get("/{number}", summary="One change", **answers(ref("Change"), "The change", 400, 404))
def change(desk: AtDesk, number: Number) -> Response:
    """One entry of history."""
    found = [row for row in desk.reader.changes(after=number - 1, limit=1) if row.number == number]
    if not found:
        raise NotFound(f"no change {number}", hint="`/api/v1/changes` lists them")
    return json_answer(rows.change(found[0], Then(desk=desk, at=None, now=desk.clock()).names(rows.change_words(found[0]))))
