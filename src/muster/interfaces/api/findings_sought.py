# SPDX-License-Identifier: Apache-2.0
"""Findings and events as they are looked for: newest first from the store, part by part, each page within a bound; other orders only of what is few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from muster.domain.decide.select import Lookup, selects
from muster.domain.model.errors import InputError
from muster.domain.model.filters import And, Compare, Contains, In, Tree
from muster.interfaces.api.paging import Page, Question, page, sealed, stranger

T = TypeVar("T")
Before: TypeAlias = "tuple[float, str] | None"
READ = 10_000
"""Rows that one page looks through for a filter that no index answers; its cursor goes on from there."""
SORTED = 10_000
"""Rows among which another order than that of the store is answered."""
CHUNK = 500
"""Rows that are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought(Generic[T]):
    """A list that the store keeps by ``path``, newest first."""

    what: str
    path: str
    read: Callable[[int, Before], Sequence[T]]
    """So many rows before a place, of those that an index of the store lets through."""
    lookups: Callable[[Sequence[T]], Sequence[Lookup]]
    place: Callable[[T], tuple[float, str]]
    fits: Callable[[T], bool] = lambda _: True
    """What holds beside the filter."""

    def page(self, asked: Question) -> Page[T]:
        """The page that was asked for. Raises InputError for an order that no index gives, of more than SORTED."""
        if [(key.path, key.down) for key in asked.keys] == [(self.path, True)]:
            return self._newest(asked)
        return self._ordered(asked)

    def _newest(self, asked: Question) -> Page[T]:
        before, found, seen = _place(asked), list[T](), 0
        size = CHUNK if asked.tree is not None else min(asked.limit + 1, READ)
        while rows := self.read(size, before):
            for row, look in zip(rows, self.lookups(rows), strict=True):
                if self.fits(row) and (asked.tree is None or selects(asked.tree, look)):
                    found.append(row)
                if len(found) > asked.limit:
                    return Page(rows=found[:-1], next=self._sealed(asked, self.place(found[-2])), total=None)
            seen, before = seen + len(rows), self.place(rows[-1])
            if seen >= READ > asked.limit:
                return Page(rows=found, next=self._sealed(asked, before), total=None)
        return Page(rows=found, next=None, total=len(found) if asked.after is None else None)

    @staticmethod
    def _sealed(asked: Question, place: tuple[float, str]) -> str:
        return sealed(asked, ((place[0],), place[1]))

    def _ordered(self, asked: Question) -> Page[T]:
        before: Before = None
        found: list[tuple[T, Lookup]] = []
        while rows := self.read(CHUNK, before):
            found += [(row, look) for row, look in zip(rows, self.lookups(rows), strict=True) if self.fits(row)]
            before = self.place(rows[-1])
            if len(found) > SORTED:
                hint = f"sort=-{self.path} goes through all of them page by page; or narrow it by what has an index: kind, node, a card"
                raise InputError(f"sort: more than {SORTED} {self.what} are to be put in order", hint=hint)
        chosen = page(found, asked, lambda each: each[1], lambda each: "{1} {0!r}".format(*self.place(each[0])))
        return Page(rows=[row for row, _ in chosen.rows], next=chosen.next, total=chosen.total)


def _place(asked: Question) -> Before:
    """Where the page before ended."""
    if asked.after is None:
        return None
    at, id_ = asked.after[0][0], asked.after[1]
    if isinstance(at, bool) or not isinstance(at, int | float):
        raise stranger()
    return float(at), id_


def named(tree: Tree | None, path: str) -> frozenset[str] | None:
    """The values of ``path`` that a filter lets through at most, where it names them; None where it does not."""
    match tree:
        case Compare(path=own, op="==", value=str(value)) if own == path:
            return frozenset({value})
        case In(path=own, values=values) if own == path:
            return frozenset(str(value) for value in values)
        case And(left=left, right=right):
            one, other = named(left, path), named(right, path)
            return one if other is None else other if one is None else one & other
        case _:
            return None


def held(tree: Tree | None, path: str) -> str | None:
    """A value that the list at ``path`` must hold for a filter to let its row through; None where it asks for none."""
    match tree:
        case Contains(path=own, value=str(value)) if own == path:
            return value
        case And(left=left, right=right):
            one = held(left, path)
            return held(right, path) if one is None else one
        case _:
            return None


def only(values: frozenset[str] | None) -> str | None:
    """The one value that is named; None where it is not one."""
    return next(iter(values)) if values is not None and len(values) == 1 else None
