# SPDX-License-Identifier: Apache-2.0
"""`muster get --watch`: a list that goes on. The server says when something happens; a terminal shows the list anew, a pipe gets the rows that changed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muster.domain.model.errors import InputError, Unavailable
from muster.interfaces.cli.cells import rfc3339, safe
from muster.interfaces.cli.documents import as_of, now
from muster.interfaces.cli.output import Column, Row, aligned, cell, note, render, to_csv, to_json, write
from muster.interfaces.cli.stream import News

Ask = Callable[[], Mapping[str, Any]]
_TABLES = ("table", "wide")


class Watch:
    """A list that is watched: what was seen of it last, and how changes of it are told."""

    def __init__(self, ask: Ask, columns: Sequence[Column], form: str, *, no_headers: bool) -> None:
        if form not in (*_TABLES, "json", "csv", "name"):
            raise InputError(f"-o {form} cannot be watched", hint="use table, wide, json (one document a line), csv or name")
        self._ask = ask
        self._form = form
        self._columns = [column for column in columns if form != "table" or not column.wide]
        self._headed = no_headers
        self._last: dict[str, tuple[str, ...]] = {}

    def follow(self, interval: float | None, news: News, *, only: bool) -> None:
        """Prints the rows (not with ``only``), then each that is new or changed: looked for when something happens, and every ``interval``. Does not end."""
        news.begin()
        items = self._items()
        self._last = self._marks(items)
        if not only:
            self._tell(items, items)
        trouble = ""
        while True:
            news.within(interval)
            try:
                items = self._items()
            except Unavailable as error:
                if error.message != trouble:
                    note(f"muster: {safe(error.message)}; it is asked again")
                trouble = error.message
                continue
            trouble = ""
            self._changes(items)

    def go_on(self, news: News, *, only: bool) -> None:
        """Prints entries of history (not with ``only``), then each as it comes. Does not end."""
        news.begin()
        items = self._items()
        last = max((int(each.get("number") or 0) for each in items), default=0)
        if not only:
            self._tell(items, items)
        while True:
            found = [each.document for each in news.within(None) if each.kind == "change"]
            new = [each for each in found if int(each.get("number") or 0) > last]
            last = max([last, *(int(each["number"]) for each in new)])
            self._tell(new, [*items, *new])

    def _changes(self, items: Sequence[Row]) -> None:
        marks = self._marks(items)
        self._tell([each for each in items if self._last.get(_id(each)) != marks[_id(each)]], items)
        for gone in self._last.keys() - marks.keys():
            note(f"muster: no longer listed: {safe(gone)}")
        self._last = marks

    def _items(self) -> list[Row]:
        document = self._ask()
        as_of(document)
        found: list[Row] = document.get("items", [document])
        return found

    def _marks(self, items: Sequence[Row]) -> dict[str, tuple[str, ...]]:
        """What makes a row another one, by its id: all but the times that move on by themselves."""
        columns = [column for column in self._columns if not column.passes]
        return {_id(row): tuple(repr(column.value(row)) for column in columns) for row in items}

    def _tell(self, rows: Sequence[Row], among: Sequence[Row]) -> None:
        """Prints ``rows``; a table is as wide as all that is listed needs."""
        if self._form in _TABLES:
            grid = [[cell(column, row, wide=self._form == "wide") for column in self._columns] for row in among]
            head, *lines = aligned(grid, self._columns, no_headers=False)
            wanted = {id(row) for row in rows}
            told = [line for row, line in zip(among, lines, strict=True) if id(row) in wanted]
            write("".join(f"{line}\n" for line in (told if self._headed or not told else [head, *told])))
        elif self._form == "json":
            write("".join(f"{to_json(row, None)}\n" for row in rows))
        elif self._form == "csv":
            write(to_csv(rows, self._columns, no_headers=self._headed or not rows))
        else:
            render(rows, self._columns, self._form, no_headers=True)
        self._headed = self._headed or bool(rows)
        sys.stdout.flush()

    def redraw(self, interval: float, news: News) -> None:
        """Shows the list on the whole terminal, anew when something happens and at each interval. Does not end."""
        news.begin()
        items, trouble = self._items(), ""
        while True:
            self._draw(items, interval, trouble)
            news.within(interval)
            try:
                items, trouble = self._items(), ""
            except Unavailable as error:
                trouble = f"  {safe(error.message)}"

    def _draw(self, items: Sequence[Row], interval: float, trouble: str) -> None:
        size = shutil.get_terminal_size()
        grid = [[cell(column, row, wide=self._form == "wide") for column in self._columns] for row in items]
        lines = [f"{rfc3339(now())}  every {interval:g} s  {len(items)} rows{trouble}", "", *aligned(grid, self._columns, no_headers=self._headed)]
        write("\x1b[H" + "".join(f"{line[: size.columns]}\x1b[K\n" for line in lines[: max(1, size.lines - 1)]) + "\x1b[J")
        sys.stdout.flush()


def _id(row: Row) -> str:
    return str(row.get("id"))
