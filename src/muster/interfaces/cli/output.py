# SPDX-License-Identifier: Apache-2.0
"""The forms of output, for every command that prints rows: table, wide, json, yaml, csv, name, jsonpath.

Tables are for people; json, yaml and jsonpath give the API's own documents, csv the columns in the dictionary's units with times as RFC 3339.
A terminal gets a table from rich; a pipe gets plain aligned columns without borders or colours.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from muster.domain.model.errors import InputError
from muster.formats import formula
from muster.interfaces.cli.cells import UNSAFE, Missing, missing, plain, safe, word

Row: TypeAlias = Mapping[str, Any]
FORMS = ("table", "wide", "json", "yaml", "csv", "name")
JSONPATH = "jsonpath="
_GAP = 2
"""Blanks between two columns on a terminal."""
_ENDLESS = 100_000
"""Letters of a line where no terminal ends it."""
_NARROWEST = 18
"""Letters that are left of a text on a narrow terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: the title of a table, the key of csv, where the value stands in a row, and how it is shown to people.

    ``value`` gives plain data, or a `Missing` (or None) where it is not known. ``name`` marks the column that ``-o name`` prints.
    """

    title: str
    key: str
    value: Callable[[Row], Any]
    show: Callable[[Any], str] = plain
    data: Callable[[Any], Any] | None = None
    """The value in csv where it is not the value itself (a time as RFC 3339)."""
    brief: Callable[[Any], str] | None = None
    """How it is shown in a table that is not wide, where the whole would make lines too long."""
    wide: bool = False
    right: bool = False
    name: bool = False
    needs: tuple[str, ...] = ()
    """Fields and reading keys of the document that it is made of; the key itself where left out."""
    passes: bool = False
    """It moves on by itself: a change of it alone is no change of the row."""
    style: Callable[[Any], str] | None = None
    """Style on a terminal; the words never depend on it."""


def check_form(form: str) -> str:
    """The form, when there is one of that name. Raises InputError with the list."""
    if form in FORMS or form.startswith(JSONPATH):
        return form
    raise InputError(f"no output form {form!r}", hint=f"use one of {', '.join(FORMS)}, or jsonpath={{.items[*].id}}")


def render(rows: Sequence[Row], columns: Sequence[Column], form: str, *, no_headers: bool, document: Any = None, empty: str = "") -> None:
    """Prints ``rows`` in ``form``.

    ``document`` is what json, yaml and jsonpath print; left out it is ``{"items": rows}``. ``empty`` is told on stderr where a table has no row.
    Raises InputError for a form that does not exist.
    """
    check_form(form)
    body = {"items": list(rows)} if document is None else document
    if form == "json":
        write(to_json(body) + "\n")
    elif form == "yaml":
        write(to_yaml(body))
    elif form.startswith(JSONPATH):
        from muster.interfaces.cli.jsonpath import jsonpath

        write(safe_lines(jsonpath(form.removeprefix(JSONPATH), body)) + "\n")
    elif form == "csv":
        write(to_csv(rows, columns, no_headers=no_headers))
    elif form == "name":
        write("".join(f"{_name(row, columns)}\n" for row in rows))
    else:
        _table(rows, columns, form, no_headers=no_headers, empty=empty)


def write(text: str) -> None:
    """To stdout, whatever its encoding can say."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding, errors="replace") if encoding.lower() != "utf-8" else text)


def note(text: str) -> None:
    """A line of talk, to stderr."""
    print(text, file=sys.stderr)


def to_json(body: Any, indent: int | None = 1) -> str:
    """JSON in which no control or reordering character stands bare; the values are unchanged. On one line where ``indent`` is None."""
    text = json.dumps(body, ensure_ascii=False, indent=indent, default=str)
    return re.sub(r"[^\n]", lambda m: m.group() if not UNSAFE.match(m.group()) else f"\\u{ord(m.group()):04x}", text) if UNSAFE.search(text) else text


def to_yaml(body: Any) -> str:
    """YAML of plain data, control and reordering characters as escapes."""
    import yaml

    class Careful(yaml.SafeDumper):
        """Double quotes around text with characters that must be escaped."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if UNSAFE.search(value) else None)

    Careful.add_representer(str, text)
    told = str(yaml.dump(body, Dumper=Careful, sort_keys=False, allow_unicode=True, width=160))
    return "".join(c if c == "\n" or not UNSAFE.match(c) else f"\\u{ord(c):04x}" for c in told) if UNSAFE.search(told) else told


def to_csv(rows: Sequence[Row], columns: Sequence[Column], *, no_headers: bool) -> str:
    """All columns, wide ones too; an unknown value is an empty cell, and text that a spreadsheet would run is quoted with ``'``."""
    import csv
    import io

    stream = io.StringIO()
    told = csv.writer(stream, lineterminator="\n")
    if not no_headers:
        told.writerow([column.key for column in columns])
    for row in rows:
        told.writerow([_csv_cell(column, row) for column in columns])
    return stream.getvalue()


def _csv_cell(column: Column, row: Row) -> Any:
    value = column.value(row)
    if missing(value):
        return ""
    value = column.data(value) if column.data else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    raw = value if isinstance(value, str) else plain(value)
    text = safe(raw) if raw.strip(" ") else ""
    return f"'{text}" if formula.runs(raw) else text


def _name(row: Row, columns: Sequence[Column]) -> str:
    named = next((column for column in columns if column.name), columns[0])
    value = named.value(row)
    return "-" if missing(value) else safe(str(value))


def cell(column: Column, row: Row, *, wide: bool) -> str:
    """The text of a cell: ``-`` where nothing is known, with the reason where there is room."""
    value = column.value(row)
    if isinstance(value, Missing):
        return f"- ({word(value.why)})" if wide and value.why else "-"
    if missing(value):
        return "-"
    return column.brief(value) if column.brief and not wide else column.show(value)


def _table(rows: Sequence[Row], columns: Sequence[Column], form: str, *, no_headers: bool, empty: str) -> None:
    wide = form == "wide"
    shown = [column for column in columns if wide or not column.wide]
    if not rows:
        if empty:
            note(empty)
        return
    grid = [[cell(column, row, wide=wide) for column in shown] for row in rows]
    if fancy():
        _terminal(rows, shown, grid, no_headers=no_headers, wide=wide)
    else:
        write("".join(f"{line}\n" for line in aligned(grid, shown, no_headers=no_headers)))


def fancy() -> bool:
    """True when stdout is a terminal that can do more than lines, or FORCE_COLOR says that what reads it can."""
    if os.environ.get("FORCE_COLOR") and not os.environ.get("NO_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def aligned(grid: Sequence[Sequence[str]], columns: Sequence[Column], *, no_headers: bool, widest: int = 10_000) -> list[str]:
    """Lines with columns two blanks apart; the last one is not padded, and a text beyond ``widest`` makes its own line longer but not its column."""
    lines = ([[column.title for column in columns]] if not no_headers else []) + [list(line) for line in grid]
    widths = [max((width for line in lines if (width := _width(line[place])) <= widest), default=0) for place in range(len(columns))]
    return ["  ".join(_pad(text, width, column.right) for text, width, column in zip(line, widths, columns, strict=True)).rstrip() for line in lines]


def _pad(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _terminal(rows: Sequence[Row], columns: Sequence[Column], grid: Sequence[Sequence[str]], *, no_headers: bool, wide: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    widths = fitted(grid, columns, console.width if sys.stdout.isatty() else _ENDLESS)
    console.width = max(console.width, sum(widths) + _GAP * len(widths))
    table = Table(box=box.SIMPLE_HEAD, show_header=not no_headers, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for column, width in zip(columns, widths, strict=True):
        folds = wide or column is columns[-1]
        table.add_column(column.title, justify="right" if column.right else "left", width=width, no_wrap=not folds, overflow="fold" if folds else "ellipsis")
    for row, line in zip(rows, grid, strict=True):
        styles = (column.style(column.value(row)) if column.style else "" for column in columns)
        table.add_row(*(Text(text, style="dim" if text.startswith("-") else style) for text, style in zip(line, styles, strict=True)))
    console.print(table)


def fitted(grid: Sequence[Sequence[str]], columns: Sequence[Column], room: int) -> list[int]:
    """Widths for a terminal ``room`` letters wide: the widest texts give way first, and numbers never. Where that is not enough, lines are longer."""
    widths = [max([_width(column.title), *(_width(line[place]) for line in grid)]) for place, column in enumerate(columns)]
    while sum(widths) + _GAP * len(widths) > room:
        widest = max((place for place, column in enumerate(columns) if not column.right), key=lambda place: widths[place], default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def safe_lines(text: str) -> str:
    """Text of a jsonpath: tabs and line ends are the template's own, every other control character is escaped."""
    return "".join(c if c in "\n\t" else safe(c) for c in text)
