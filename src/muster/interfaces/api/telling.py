# SPDX-License-Identifier: Apache-2.0
"""How a list is told: a page of JSON, or all of it as lines of JSON or CSV, streamed. Only as many documents as one part needs are made at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from fastapi import Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.moments import rfc3339
from muster.formats import formula
from muster.interfaces.api import tags
from muster.interfaces.api.lasting import Export
from muster.interfaces.api.paging import Page, Question, Selection
from muster.interfaces.api.problems import WebError
from muster.interfaces.api.rooms import Rooms, upon
from muster.wire.documents import encode
from muster.wiring.snapshot_printing import Printed

Key = TypeVar("Key")
EVERYTHING = 2**31 - 1
PART = 200
"""Documents of an export that are made at once."""
MEDIA = {"json": "application/json", "ndjson": "application/x-ndjson", "csv": "text/csv"}
_UNSAFE = str.maketrans(dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160))))


async def form(
    request: Request,
    format_: Annotated[
        str,
        Query(
            alias="format",
            pattern="^(|json|ndjson|csv)$",
            description="json: a page. ndjson, csv: the whole list, streamed, or its first `limit` rows. `Accept` says it too; left out, json.",
        ),
    ] = "",
) -> str:
    """The form in which a list is wanted. Raises WebError 406 for one that is not made."""
    if format_:
        return format_
    accept = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    for media in accept:
        if media in ("", "*/*", "application/*", "application/json"):
            return "json"
        for name, own in MEDIA.items():
            if media in (own, "text/*" if name == "csv" else own):
                return name
    raise WebError(406, f"lists are not made as {', '.join(accept)[:200]}", code="not_acceptable", hint=f"Accept one of {', '.join(MEDIA.values())}")


Form = Annotated[str, Depends(form)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling(Generic[Key]):
    """A list: the page that answers a question, the documents of some of its rows, and the fields that a table of it has."""

    page: Callable[[Question], Page[Key]]
    documents: Callable[[Sequence[Key]], Sequence[msgspec.Struct]]
    fields: Sequence[str]
    printed: Callable[[Sequence[Key]], Sequence[Printed]] | None = None
    """The same documents as they are sent, where they are kept so."""
    readings: bool = False
    heavy: bool = False
    """The page is not a matter of milliseconds."""


async def tell(request: Request, rooms: Rooms, form: str, asked: Question, selection: Selection, telling: Telling[Any]) -> Response:
    """The list as it was asked for."""
    if form == "json":

        def page() -> Response:
            found = telling.page(asked)
            if telling.printed is not None:
                return _sent(request, asked, found, telling.printed(found.rows))
            items = [selection.of(each) for each in telling.documents(found.rows)]
            return tags.told(request, {"items": items, "next": found.next, "total": found.total, "at": rfc3339(asked.now)})

        return await upon(rooms, page, EVERYTHING if telling.heavy else asked.limit, then=asked.at is not None)
    limited = "limit" in request.query_params
    found = await upon(rooms, lambda: telling.page(asked if limited else replace(asked, limit=EVERYTHING)), EVERYTHING, then=asked.at is not None)
    headers = {
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "content-disposition": f'attachment; filename="{asked.name.split()[0]}.{form}"',
    }
    if found.total is not None:
        headers["x-total-count"] = str(found.total)
    return Export(request, _parts(form, found.rows, selection, telling), MEDIA[form], headers)


def _sent(request: Request, asked: Question, found: Page[Any], items: Sequence[Printed]) -> Response:
    end = encode({"next": found.next, "total": found.total, "at": rfc3339(asked.now)})[1:]
    body, still = (b'{"items":[' + b",".join(each) + b"]," for each in ([one.body for one in items], [one.still for one in items]))
    return tags.sent(request, body + end, still + tags.still(end))


async def _parts(form: str, rows: Sequence[Any], selection: Selection, telling: Telling[Any]) -> AsyncIterator[bytes]:
    """The list part by part; who stops reading stops the work."""
    table = _Table(selection, telling)
    if form == "csv":
        yield table.head()
    for begin in range(0, len(rows), PART):
        some = rows[begin : begin + PART]
        yield await run_in_threadpool(_part, form, some, selection, telling, table)


def _part(form: str, rows: Sequence[Any], selection: Selection, telling: Telling[Any], table: _Table) -> bytes:
    documents = telling.documents(rows)
    if form == "csv":
        return table.rows(documents)
    return b"".join(encode(selection.of(each)) + b"\n" for each in documents)


class _Table:
    """Documents as lines of CSV: columns always in the same order, an unknown value an empty cell, and no text that a spreadsheet would run."""

    def __init__(self, selection: Selection, telling: Telling[Any]) -> None:
        if selection.whole:
            self._fields = [*telling.fields]
            self._keys = [*ATTRIBUTES] if telling.readings else []
        else:
            self._fields = list(dict.fromkeys(("id", *(name for name in selection.plain if name != "readings"))))
            self._keys = [*ATTRIBUTES] if "readings" in selection.plain else list(selection.keys)

    def head(self) -> bytes:
        """The line of titles."""
        return self._lines([[*self._fields, *self._keys]])

    def rows(self, documents: Sequence[msgspec.Struct]) -> bytes:
        """A line for each document."""
        return self._lines([self._row(each) for each in documents])

    def _row(self, document: msgspec.Struct) -> list[Any]:
        readings = getattr(document, "readings", {}) if self._keys else {}
        values = [cell(getattr(document, name)) for name in self._fields]
        return values + [cell(getattr(readings.get(key), "value", None)) for key in self._keys]

    @staticmethod
    def _lines(rows: Sequence[Sequence[Any]]) -> bytes:
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\r\n").writerows(rows)
        return stream.getvalue().encode("utf-8", "replace")


def cell(value: Any) -> Any:
    """A value as a cell: numbers as they are, lists and objects as JSON, text that begins like a formula behind a quote."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        value = encode(value).decode()
    text = value.translate(_UNSAFE)
    return f"'{text}" if formula.runs(text) else text
