# SPDX-License-Identifier: Apache-2.0
"""History: what changed on the roll, by running number, so that a reader can go on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from muster.domain.decide.select import Lookup, selects, stand
from muster.domain.model.errors import InputError, NotFound
from muster.domain.model.filters import And, Compare, Fields, In, Shape, Tree
from muster.interfaces.api import rows, streams, tags
from muster.interfaces.api.answers import AtDesk, answers, answers_page, ref
from muster.interfaces.api.paging import Page, Question, Selection, question, sealed, stranger
from muster.interfaces.api.params import Asked, Listing
from muster.interfaces.api.roll import Then
from muster.interfaces.api.rooms import InRooms, Rooms, upon
from muster.interfaces.api.telling import Form, Telling, tell
from muster.spi.store import ChangeRow
from muster.wire import documents as d

router = APIRouter(prefix="/api/v1/changes", tags=["history"])

CHANGE_FIELDS: Fields = {
    **dict.fromkeys(("id", "subject", "kind"), Shape.TEXT),
    **dict.fromkeys(("at", "learnt_at", "superseded_at"), Shape.TIME),
    "number": Shape.NUMBER,
}
"""What a filter may ask of a change; only its number gives an order."""
TABLE = ("number", "id", "subject", "kind", "at", "learnt_at", "superseded_at", "detail", "names")
MOST = 2**53
"""Numbers stay below this."""
CHUNK = 500
"""Entries read at once while a filter looks for its own."""
READ = 20_000
"""Entries that one page looks through for a filter that no index answers; its cursor goes on from there."""
Number = Annotated[int, Path(ge=1, lt=MOST, description="Its running number.")]


async def change_page(request: Request, rooms: Rooms, then: Then, subject: str | None, listing: Asked, form: str, after: int = 0) -> Response:
    """History as a response: of one subject or of all."""
    asked = question(f"changes {subject or ''}", listing, CHANGE_FIELDS, then.now, "number")
    if [key.path for key in asked.keys] != ["number"]:
        raise InputError("sort: history is in the order of its numbers", hint="sort=number or sort=-number")
    selection = Selection(listing.fields, d.Change)
    then = Then(desk=then.desk, views=then.views, at=asked.at, now=asked.now)

    def documents(found: Sequence[ChangeRow]) -> list[d.Change]:
        names = then.names(word for row in found for word in rows.change_words(row))
        return [rows.change(row, names) for row in found]

    told = Telling(page=lambda asked: _page(then, subject, asked, after), documents=documents, fields=TABLE)
    return await tell(request, rooms, form, asked, selection, told)


def _page(then: Then, subject: str | None, asked: Question, after: int) -> Page[ChangeRow]:
    start = None if asked.after is None else _number(asked.after[0][0])
    read = _read(then, subject, asked, after, start)
    found: list[ChangeRow] = []
    for seen, row in enumerate(read, 1):
        if asked.tree is None or selects(asked.tree, _lookup(row)):
            found.append(row)
        if len(found) > asked.limit:
            return Page(rows=found[:-1], next=_next(asked, found[-2]), total=None)
        if seen >= READ and asked.limit <= READ:
            return Page(rows=found, next=_next(asked, row), total=None)
    return Page(rows=found, next=None, total=None)


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


def _read(then: Then, subject: str | None, asked: Question, after: int, start: int | None) -> Iterator[ChangeRow]:
    """Entries in order from where the page begins, by the store's index of kinds where the filter names them."""
    reader, kinds = then.desk.reader, kinds_of(asked.tree)
    if asked.keys[0].down:
        before = start
        while found := reader.changes(subject, after, CHUNK, asked.at, before=before, kinds=kinds, newest=True):
            yield from found
            before = found[-1].number
        return
    number = after if start is None else start
    while found := reader.changes(subject, number, CHUNK, asked.at, kinds=kinds):
        yield from found
        number = found[-1].number


def kinds_of(tree: Tree | None) -> frozenset[str] | None:
    """The kinds that a filter lets through at most; None where it does not say."""
    match tree:
        case Compare(path="kind", op="==", value=str(kind)):
            return frozenset({kind})
        case In(path="kind", values=values):
            return frozenset(str(value) for value in values)
        case And(left=left, right=right):
            one, other = kinds_of(left), kinds_of(right)
            return one if other is None else other if one is None else one & other
        case _:
            return None


def only_kinds(tree: Tree) -> Tree | None:
    """The filter, where it asks for nothing but kinds."""
    return tree if isinstance(tree, Compare | In) and kinds_of(tree) is not None else None


@router.get("", summary="List changes", **answers_page("Change", 406))
async def changes(
    request: Request,
    desk: AtDesk,
    rooms: InRooms,
    listing: Listing,
    form: Form,
    subject: Annotated[str, Query(max_length=200, description="Only of this card or node, by our id.")] = "",
    after: Annotated[int, Query(ge=0, lt=MOST, description="Entries with a greater number only: keep the last number to go on from there later.")] = 0,
) -> Response:
    """All history by running number, oldest first, or newest first with `sort=-number`. Entries that a late report disproved are marked `superseded_at`.

    `total` is not counted. `/api/v1/changes/stream` tells what comes.
    """
    then = Then(desk=desk, views=rooms.views, at=None, now=desk.clock())
    return await change_page(request, rooms, then, subject or None, listing, form, after)


router.add_api_route("/stream", streams.stream, methods=["GET"], summary="Follow changes and findings", **streams.ANSWERS)


@router.get("/{number}", summary="One change", **answers(ref("Change"), "The change", 400, 404))
async def change(request: Request, desk: AtDesk, rooms: InRooms, number: Number) -> Response:
    """One entry of history."""
    then = Then(desk=desk, views=rooms.views, at=None, now=desk.clock())

    def told() -> d.Change:
        found = [row for row in islice(desk.reader.changes(after=number - 1, limit=1), 1) if row.number == number]
        if not found:
            raise NotFound(f"no change {number}", hint="`muster get changes` (/api/v1/changes) lists them")
        return rows.change(found[0], then.names(rows.change_words(found[0])))

    return tags.told(request, await upon(rooms, told))
