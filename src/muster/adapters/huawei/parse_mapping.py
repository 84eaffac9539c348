# SPDX-License-Identifier: Apache-2.0
"""`npu-smi info -m`: a header line and one line per chip, in columns that differ from generation to generation. Read by header words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muster.adapters.huawei.names import digits
from muster.adapters.huawei.said import Of, Record, Said
from muster.formats.numbers import marker

_ENDS = {"id", "phy-id", "name", "count", "type"}
_NOT_CHIPS = ("mcu", "3559", "cpu")


def columns(line: str) -> list[str]:
    """Column names of a header line, [] when it is none. Blanks inside a name are one; two names may be parted by a single blank."""
    if not re.match(r"^\s*NPU\s+ID\b", line, re.IGNORECASE) or not re.search(r"Chip\s+(ID|Name|Logic|Phy)", line, re.IGNORECASE):
        return []
    if ":" in line:
        return []
    names: list[str] = []
    held: list[str] = []
    for word in line.split():
        held.append(word)
        if word.lower() in _ENDS:
            names.append(" ".join(held))
            held = []
    return names


def read(lines: Sequence[str], said: Said, *, open_end: bool = False) -> bool:
    """Adds one record per chip; True when there was a mapping. ``open_end`` says that the last line has no line end, so that its last word may be cut."""
    names: list[str] = []
    seen = False
    for number, line in enumerate(lines):
        found = columns(line)
        if found:
            names, seen = found, True
        elif names and line.strip():
            _row(names, line.split(), said, cut=open_end and number == len(lines) - 1)
    said.whole = said.whole or (seen and not open_end)
    return seen


def _row(names: list[str], cells: list[str], said: Said, *, cut: bool) -> None:
    if cut:
        cells = cells[:-1]
        said.cut = True
    if len(cells) < 2 or not digits(cells[0]):
        said.cut = said.cut or (len(cells) >= len(names) and marker(cells[0]) is not None and digits(cells[1]))
        return
    fields = dict(zip(names, cells, strict=False))
    if cut:
        fields.pop(names[-1], None)
    elif len(cells) >= len(names):
        fields[names[-1]] = " ".join(cells[len(names) - 1 :])
    if not all(digits(text) or text == "-" for key, text in fields.items() if key.lower().endswith("id")):
        said.cut = True
        fields = {names[0]: cells[0]}
    name = fields.get("Chip Name", "").lower()
    if name.startswith(_NOT_CHIPS) or fields.get("Chip Logic ID") == "-":
        return
    fields.pop(names[0], None)
    chip = fields.pop("Chip ID", None)
    said.records.append(Record(of=Of.CHIP, npu=cells[0], chip=chip, fields=fields, listed="mapping"))
