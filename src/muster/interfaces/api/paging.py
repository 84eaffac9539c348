# SPDX-License-Identifier: Apache-2.0
"""Lists: filter, order, keyset pages and the choice of fields. A page starts after the last row's values, so rows that come and go shift nothing."""

from __future__ import annotations

import base64
import binascii
import hashlib
import heapq
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cmp_to_key, partial
from typing import Any, Generic, TypeVar

import msgspec
from fastapi import Response

from muster.domain.decide.pick import mask
from muster.domain.decide.pick_order import page as page_of_columns
from muster.domain.decide.pick_order import place
from muster.domain.decide.select import Lookup, Place, SortKey, earlier, order, selects, stand
from muster.domain.decide.understand import understand
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.errors import InputError
from muster.domain.model.filters import Fields, Tree, paths
from muster.domain.model.moments import LATEST
from muster.domain.model.snapshot import Mask, Snapshot
from muster.interfaces.api import vocabulary
from muster.interfaces.api.params import Asked
from muster.wire.documents import encode

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A list as it was asked for, understood. ``at`` None is now; a cursor keeps the time of its first page."""

    name: str
    tree: Tree | None
    keys: tuple[SortKey, ...]
    limit: int
    after: Place | None
    at: float | None
    now: float
    seal: str

    @property
    def paths(self) -> frozenset[str]:
        """What filter and order ask of a row."""
        return frozenset(paths(self.tree) if self.tree else ()) | {key.path for key in self.keys}


def question(name: str, asked: Asked, fields: Fields, now: float, default: str) -> Question:
    """The list that ``asked`` means. Raises InputError naming the parameter's part that is not understood."""
    keys = order(asked.sort or default, fields)
    seal = hashlib.sha256("\0".join((name, asked.filter, asked.sort, asked.at)).encode("utf-8", "replace")).hexdigest()[:12]
    at, after = _opened(asked.cursor, seal, keys) if asked.cursor else (asked.time(now), None)
    seen_from = now if at is None else at
    tree = understand(asked.filter, fields, seen_from) if asked.filter.strip() else None
    if tree is not None:
        vocabulary.check(name.partition(" ")[0], tree)
    return Question(name=name, tree=tree, keys=keys, limit=asked.limit, after=after, at=at, now=seen_from, seal=seal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """Rows of a page, the cursor of the next, and how many there are in all (None where that is not counted)."""

    rows: list[Row]
    next: str | None
    total: int | None


def picked(snapshot: Snapshot, among: Mask, asked: Question) -> Page[int]:
    """The page that was asked for, by columns: places of rows of ``snapshot``."""
    chosen = mask(asked.tree, snapshot) & among
    found = page_of_columns(snapshot, chosen, asked.keys, asked.after, asked.limit + 1).tolist()
    full = len(found) > asked.limit
    found = found[: asked.limit]
    following = sealed(asked, place(snapshot, found[-1], asked.keys)) if full else None
    return Page(rows=found, next=following, total=int(chosen.sum()))


def page(rows: Iterable[Row], asked: Question, lookup: Callable[[Row], Lookup], id_: Callable[[Row], str]) -> Page[Row]:
    """The page that was asked for, of ``rows`` in any order."""
    looked = ((lookup(row), row) for row in rows)
    chosen = [(stand(look, id_(row), asked.keys), row) for look, row in looked if asked.tree is None or selects(asked.tree, look)]
    after = asked.after
    rest = [each for each in chosen if earlier(each[0], after, asked.keys) > 0] if after is not None else chosen
    by_place = cmp_to_key(partial(_earlier, asked.keys))
    found = heapq.nsmallest(asked.limit + 1, rest, key=lambda each: by_place(each[0]))
    full = len(found) > asked.limit
    found = found[: asked.limit]
    return Page(rows=[row for _, row in found], next=sealed(asked, found[-1][0]) if full else None, total=len(chosen))


def _earlier(keys: Sequence[SortKey], one: Place, other: Place) -> int:
    return earlier(one, other, keys)


def sealed(asked: Question, place: Place) -> str:
    """The cursor of what comes after ``place``."""
    return base64.urlsafe_b64encode(json.dumps([asked.seal, asked.at, list(place[0]), place[1]]).encode()).decode().rstrip("=")


def _opened(cursor: str, seal: str, keys: Sequence[SortKey]) -> tuple[float | None, Place]:
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError) as wrong:
        raise stranger() from wrong
    match found:
        case [str(told), None | float() | int() as at, list(values), str(id_)] if told == seal and len(values) == len(keys) and _dated(at):
            return at, (tuple(values), id_)
        case _:
            raise stranger()


def _dated(at: float | None) -> bool:
    return at is None or 0 <= at < LATEST


def stranger() -> InputError:
    """What is said of a cursor that this list did not give."""
    return InputError(
        "the cursor is not of this list", hint="take `next` of the page before and keep resource, filter, sort and at; or start again without a cursor"
    )


_READINGS = "readings"


@cache
def _names(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The fields of a document."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind))


class Selection:
    """The fields that `fields=` asks for, of documents of one kind."""

    def __init__(self, text: str, kind: type[msgspec.Struct]) -> None:
        names = _names(kind)
        wanted = [word for word in (w.strip() for w in text.split(",")) if word]
        self.plain = [word for word in wanted if word in names]
        self.keys = [word.removeprefix("readings.") for word in wanted if word not in names]
        unknown = [key for key in self.keys if "readings" not in names or key not in ATTRIBUTES]
        if unknown:
            known = f"fields are {', '.join(sorted(names))}" + (" and reading keys" if "readings" in names else "")
            raise InputError(f"fields: no field {unknown[0]!r}", hint=known)

    @property
    def whole(self) -> bool:
        """True when documents are given as they are."""
        return not self.plain and not self.keys

    def reads(self, key: str) -> bool:
        """True when the reading ``key`` is given."""
        return self.whole or _READINGS in self.plain or key in self.keys

    def of(self, document: msgspec.Struct) -> Any:
        """The document, or what was asked for of it."""
        if self.whole:
            return document
        found = {name: getattr(document, name) for name in ("id", *self.plain)}
        if self.keys and _READINGS not in found:
            readings = getattr(document, _READINGS)
            found[_READINGS] = {key: readings[key] for key in self.keys if key in readings}
        return found


def json_answer(document: Any, status: int = 200) -> Response:
    """A document as a response."""
    return Response(encode(document), status, media_type="application/json")
