# SPDX-License-Identifier: Apache-2.0
"""Tables drawn with ``+ - | = :`` (or the line-drawing characters), as management tools print them on a terminal.

What is understood:

- a ruler is a line of dashes, equal signs and corners; a row is a line that begins with a bar;
  everything else (log lines, prompts, blank lines) parts two tables;
- a row that does not end with its bar was cut: `Row.closed` is False and its last word cannot be trusted;
- a header cell may name several columns (``Power(W)   Temp(C)``); `pair` gives each column its word,
  by number where the numbers agree, else by where it stands;
- ``3411 / 65536``, ``61609/ 65536`` and ``0/0`` are one word each (`words`);
- widths may differ from table to table; nothing is read by a fixed offset.

Nothing raises: a line that is no row is no row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DRAWN = str.maketrans(
    dict.fromkeys("│┃║▏▕￨", "|") | dict.fromkeys("─━╌┄┈╴╶", "-") | {"═": "="} | dict.fromkeys("┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬╒╕╘╛╞╡╤╧╪╟╢╭╮╯╰┏┓┗┛┣┫┳┻╋╓╖╙╜", "+"),
)
_RULER = re.compile(r"^[|+\s:]*[-=]{3,}[-=+|\s:]*$")
_WORD = re.compile(r"[^\s/]+(?:\s*/\s*[^\s/]+)+|\S+")
_SLASH = re.compile(r"\s*/\s*")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table.

    ``cells`` keep their blanks (columns inside a cell are found by place). ``table`` counts tables from 0; ``band`` counts the parts between rulers within
    one table; ``line`` counts lines of the text from 0. ``closed`` is False when the line does not end with its bar.
    """

    line: int
    table: int
    band: int
    cells: tuple[str, ...]
    closed: bool = True

    def cell(self, place: int) -> str:
        """The cell at ``place`` without outer blanks, "" when the row has fewer."""
        return self.cells[place].strip() if place < len(self.cells) else ""


def rows(lines: Sequence[str]) -> Iterator[Row]:
    """All rows of all tables in ``lines``, in order."""
    table, band, ruled, inside = -1, 0, False, False
    for number, raw in enumerate(lines):
        line = raw.translate(_DRAWN).strip()
        if is_ruler(line):
            table, band, inside = (table, band + 1, True) if inside and not ruled else (table + 1, 0, True)
            ruled = True
        elif line[:1] == "|" and len(line) > 1:
            table += not inside
            ruled, inside = False, True
            yield _row(number, table, band, line)
        else:
            ruled, inside, band = False, False, 0


def _row(number: int, table: int, band: int, line: str) -> Row:
    closed = line[-1] == "|"
    cells = line[1:].split("|")
    return Row(number, table, band, tuple(cells[:-1] if closed else cells), closed)


def is_ruler(line: str) -> bool:
    """True for a line of dashes or equal signs with corners (three in a row at least)."""
    return _RULER.match(line.translate(_DRAWN)) is not None


def words(cell: str, gap: int = 1) -> list[tuple[int, str]]:
    """Words of a cell with the place where each begins; blanks around ``/`` part nothing.

    ``gap`` is how many blanks part two words (2 keeps ``Process id`` whole).
    """
    if gap > 1:
        return [(m.start(), m.group()) for m in re.finditer(rf"\S+(?:\s{{1,{gap - 1}}}\S+)*", cell)]
    return [(m.start(), _SLASH.sub("/", m.group())) for m in _WORD.finditer(cell)]


def pair(header: Row, row: Row, gap: int = 1) -> dict[str, str]:
    """Column name to text of ``row``, for every column that ``header`` names in its cells; "" where nothing stands.

    ``gap`` is how many blanks part two column names of one header cell. The last word of a row that is not closed is left out.
    """
    found: dict[str, str] = {}
    for place, cell in enumerate(header.cells):
        names = words(cell, gap)
        text = row.cells[place] if place < len(row.cells) else ""
        whole = row.closed or place < len(row.cells) - 1
        found.update(_share(names, text, whole=whole))
    return found


def _share(names: list[tuple[int, str]], text: str, *, whole: bool) -> dict[str, str]:
    if len(names) <= 1:
        value = text.strip() if whole else text.strip().rpartition(" ")[0].strip()
        return {name: value for _, name in names}
    have = words(text)
    owners = list(range(len(have))) if len(have) == len(names) else [_owner(names, start) for start, _ in have]
    if not whole:
        have, owners = have[:-1], owners[:-1]
    return {name: " ".join(word for owner, (_, word) in zip(owners, have, strict=True) if owner == column) for column, (_, name) in enumerate(names)}


def _owner(names: list[tuple[int, str]], start: int) -> int:
    owner = 0
    for column, (begin, _) in enumerate(names):
        if begin <= start + 1:
            owner = column
    return owner
