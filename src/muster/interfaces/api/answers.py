# SPDX-License-Identifier: Apache-2.0
"""What each operation answers, for the OpenAPI document; and how an operation gets the desk."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request

from muster.wiring.desk import Desk


async def desk_of(request: Request) -> Desk:
    """The desk that the application stands on, as the user sees it who asks."""
    desk: Desk = request.app.state.desk
    return desk.of(request.state.user)


AtDesk = Annotated[Desk, Depends(desk_of)]

_PROBLEM = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_TROUBLES = {
    400: "What was given cannot be used",
    401: "Not signed in",
    403: "Not allowed",
    404: "Nothing of that name",
    406: "Not in that form",
    409: "The state forbids it",
    412: "It has changed since it was read",
    413: "Too large",
    415: "Another media type is wanted",
    422: "The key was used for another body",
    429: "Too often",
    421: "This server does not answer to that host name",
    500: "An unexpected error",
    503: "Something does not answer now",
}


def ref(name: str) -> dict[str, Any]:
    """A reference to a document's schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def answers(schema: dict[str, Any], about: str, *troubles: int, media: str = "application/json") -> dict[str, Any]:
    """The keyword arguments of a route that answers ``schema`` or one of the problems ``troubles`` (400, 401, 403, 421, 429, 500 and 503 always)."""
    responses: dict[int | str, dict[str, Any]] = {200: {"description": about, "content": {media: {"schema": schema}}}}
    for status in sorted({*troubles, 400, 401, 403, 421, 429, 500, 503}):
        responses[status] = {"description": _TROUBLES[status], **_PROBLEM}
    return {"responses": responses, "response_model": None}


def answers_page(name: str, *troubles: int) -> dict[str, Any]:
    """The keyword arguments of a route that answers a page of ``name``, or the whole list as lines."""
    told = answers(ref(f"{name}Page"), f"A page of {name} documents, or all of them as lines", 400, *troubles)
    told["responses"][200]["content"] |= {media: {"schema": {"type": "string"}} for media in ("application/x-ndjson", "text/csv")}
    return told


def page_schema(name: str) -> dict[str, Any]:
    """The schema of a page: whole documents, or what `fields=` asked for of them."""
    return {
        "title": f"{name}Page",
        "type": "object",
        "required": ["items", "next", "total", "at"],
        "properties": {
            "items": {"type": "array", "items": {"anyOf": [ref(name), ref("Selected")]}},
            "next": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "The cursor of the next page; null on the last."},
            "total": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "How many there are in all pages; null where that is not counted."},
            "at": {"type": "string", "format": "date-time", "description": "The time for which the page was made."},
        },
    }


SELECTED = {
    "title": "Selected",
    "description": "A document of which only the fields of `fields=` are given; `id` always.",
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "string"}},
}
