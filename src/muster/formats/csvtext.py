# SPDX-License-Identifier: Apache-2.0
"""CSV as tools print it: separator sniffed, units in header cells, decimal sign found from the document itself.

``,`` and ``.`` mean what the producer's locale made of them. A cell whose sign is plain (``228,82``, ``96.5``) decides for itself;
one that could be both (``1,024``) follows the plain cells of its row, then those of the document where they all agree; else it stays ambiguous.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from muster.domain.model.reading import Reading
from muster.formats.numbers import quantity
from muster.formats.text import lines

_HEADER_UNIT = re.compile(r"^(.*?)\s*[\[(]([^\[\]()]*)[\])]\s*$")
_FIGURE = re.compile(r"^\s*[+-]?(\d[\d.,]*)(?:\s*[^\d.,\s][^,;]*)?\s*$")
_SEPARATORS = (", ", ";", "\t", ",", "|")


class Sign(Enum):
    """Which sign parts whole from fraction."""

    POINT = "point"
    COMMA = "comma"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Column:
    """A header cell: name and the unit in its brackets ("power.draw [W]"), "" where it has none."""

    name: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: cells by column name, and the decimal sign of its ambiguous numbers.

    ``ragged`` is True when the line has more or fewer cells than the header: with more, no cell can be trusted to stand under its name, so ``cells`` is empty
    and only ``raw`` says something; with fewer (a line cut short) the last cell present may be cut as well and is left out.
    """

    cells: dict[str, str]
    raw: tuple[str, ...]
    line: int
    sign: Sign = Sign.UNKNOWN
    ragged: bool = False

    def quantity(self, key: str, column: str, *, unit: str = "", factor: float | None = None) -> Reading | None:
        """The reading of attribute ``key`` in ``column``, or None when the row has no such cell. ``unit`` is what the tool means where the cell has none."""
        text = self.cells.get(column)
        if text is None:
            return None
        sign = sign_of(text)
        if sign is Sign.UNKNOWN:
            sign = self.sign
        return quantity(key, text, unit=unit, factor=factor, comma=sign is Sign.COMMA, point=sign is Sign.POINT)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of one document. ``cut`` is True when the last line does not end with a line end and is short of cells."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    separator: str = ","
    sign: Sign = Sign.UNKNOWN
    cut: bool = False
    units: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)


def column(cell: str) -> Column:
    """The column of a header cell such as ``memory.total [MiB]`` or ``Temperature (C)``; a bracket that is no unit ("(Sensor edge) (C)") stays in the name."""
    match = _HEADER_UNIT.match(cell.strip())
    return Column(match.group(1).strip(), match.group(2).strip()) if match and match.group(1).strip() else Column(cell.strip())


def sniff(header: str) -> str:
    """The separator of a header line: of blank-comma, semicolon, tab, comma and bar the one that parts it most; "," where nothing does."""
    counts = {separator: header.count(separator) for separator in _SEPARATORS}
    if counts[", "] == header.count(","):
        counts[","] = 0
    best = max(_SEPARATORS, key=lambda separator: counts[separator])
    return best if counts[best] else ","


def split(line: str, separator: str, width: int | None = None) -> list[str]:
    """Cells of a line, trimmed, quotes taken off. With ``width`` a blank-comma separator gives way to a bare comma where that fits better."""
    found = _split(line, separator)
    if separator == ", " and width is not None and len(found) != width:
        other = _split(line, ",")
        if len(other) == width:
            return other
    return found


def _split(line: str, separator: str) -> list[str]:
    if separator == ", " and '"' not in line:
        return [cell.strip() for cell in line.split(", ")]
    if '"' in line and line.count('"') % 2 == 0:
        try:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=separator[0], skipinitialspace=True), [])]
        except csv.Error:
            pass
    return [cell.strip() for cell in line.split(separator)]


def sign_of(text: str) -> Sign:
    """The decimal sign that a cell shows beyond doubt, or ``UNKNOWN`` (no number, a whole number, or one like ``1,024`` and ``1.024``)."""
    match = _FIGURE.match(text)
    if match is None:
        return Sign.UNKNOWN
    digits = match.group(1)
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return Sign.UNKNOWN
    here, other = digits[last], "," if digits[last] == "." else "."
    tail = len(digits) - last - 1
    plain = digits.count(here) == 1 and (other in digits or tail != 3 or last > 3 or digits[:last].lstrip("0") == "")
    if not plain or tail == 0:
        return Sign.UNKNOWN
    return Sign.POINT if here == "." else Sign.COMMA


def common(signs: Iterable[Sign]) -> Sign:
    """The sign on which all that are known agree."""
    known = set(signs) - {Sign.UNKNOWN}
    return known.pop() if len(known) == 1 else Sign.UNKNOWN


def read(payload: bytes, columns: Sequence[str] | None = None) -> Table | None:
    """The table in ``payload``, or None when there is no line. ``columns`` are the header cells where the document was printed without one.

    Blank lines, a repeated header and lines that start with ``$`` (a command) are passed over.
    """
    rows = [(number, line) for number, line in enumerate(lines(payload), 1) if line.strip() and not line.startswith("$ ")]
    if not rows:
        return None
    header = rows[0][1] if columns is None else ""
    separator = sniff(header or rows[0][1])
    cells = split(header, separator) if columns is None else list(columns)
    named = tuple(column(cell) for cell in cells)
    body = [(number, line) for number, line in rows[columns is None :] if line.strip() != header.strip()]
    ended = payload.rstrip(b"\x00")[-1:] in (b"\n", b"\r")
    found = [_row(named, number, split(line, separator, len(named)), last=not ended and number == rows[-1][0]) for number, line in body]
    cut = bool(found) and not ended and len(found[-1].raw) < len(named)
    whole = common(sign_of(cell) for row in found for cell in row.cells.values())
    return Table(
        columns=named,
        rows=tuple(_signed(row, whole) for row in found),
        separator=separator,
        sign=whole,
        cut=cut,
        units={one.name: one.unit for one in named},
    )


def _row(columns: Sequence[Column], line: int, raw: list[str], *, last: bool) -> Row:
    if len(raw) > len(columns):
        spare = raw[len(columns) :]
        if any(spare):
            return Row({}, tuple(raw), line, ragged=True)
        raw = raw[: len(columns)]
    short = len(raw) < len(columns)
    kept = raw[:-1] if short and last else raw
    cells: dict[str, str] = {}
    for name, text in zip((one.name for one in columns), kept, strict=False):
        cells.setdefault(name, text)
    return Row(cells, tuple(raw), line, ragged=short)


def _signed(row: Row, whole: Sign) -> Row:
    signs = [sign_of(cell) for cell in row.cells.values()]
    own = common(signs)
    mixed = len(set(signs) - {Sign.UNKNOWN}) > 1
    return Row(row.cells, row.raw, row.line, Sign.UNKNOWN if mixed else own if own is not Sign.UNKNOWN else whole, row.ragged)
