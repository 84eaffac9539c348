# SPDX-License-Identifier: Apache-2.0
"""The boxes of `npu-smi info`: two lines per chip, then processes; and the vNPU box. Read by header words, whatever the widths.

A card is a line with a name, followed by a line with a bus id. Rows that have no name, and no bus id behind them, are no cards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from muster.adapters.huawei.names import digits
from muster.adapters.huawei.said import Of, Process, Record, Said, Slice
from muster.domain.model.names import pci_address
from muster.formats.boxes import Row, is_ruler, pair, rows, words
from muster.formats.numbers import marker

_BANNER = re.compile(r"npu-smi\s*v?(\S+)\s+Version\s*:\s*(\S+)", re.IGNORECASE)
_IDLE = re.compile(r"No running processes found in NPU\s+(\d+)", re.IGNORECASE)
_TOP = Row(0, 0, 0, (" NPU Name ", " Health ", " Power(W) Temp(C) Hugepages-Usage(page) "))
_BOTTOM = {
    2: Row(0, 0, 0, (" Chip Device ", " Bus-Id ", " AICore(%) Memory-Usage(MB) ")),
    3: Row(0, 0, 0, (" Chip Device ", " Bus-Id ", " AICore(%) Memory-Usage(MB) HBM-Usage(MB) ")),
}


class _Table:
    """State of one pass over the rows of a text."""

    def __init__(self, said: Said) -> None:
        self.said = said
        self.top_header: Row | None = None
        self.bottom_header: Row | None = None
        self.top: Record | None = None
        self.chip: tuple[str | None, str] | None = None
        self.mode = "chips"
        self.processes = False
        self.known = {record.npu for record in said.records}
        self.seen = set(said.processes)
        self.npu_of_slices: str | None = None

    def row(self, row: Row) -> None:
        """Takes one row, whatever it is."""
        first, second = row.cell(0), row.cell(1)
        if self._banner(first) or self._header(row, first.lower(), second.lower()):
            return
        if self.mode == "processes":
            self._process(row, first, second)
        elif self.mode == "slices":
            self._slice(row, first)
        elif self._is_bottom(second):
            self._bottom(row)
        else:
            self._top(row, first)

    def _banner(self, text: str) -> bool:
        found = _BANNER.search(text)
        if found:
            self.said.tool = self.said.tool or f"npu-smi {found.group(1)}"
            self.said.node.setdefault("driver", found.group(2).strip("|"))
        idle = _IDLE.search(text)
        if idle:
            self.said.idle.append((idle.group(1), None))
        return bool(found or idle)

    def _header(self, row: Row, first: str, second: str) -> bool:
        if any(cell.strip().lower().startswith("process id") for cell in row.cells):
            self.mode, self.processes = "processes", True
        elif first.startswith("vnpu id"):
            self.mode = "slices"
        elif first.startswith("npu") and (second.startswith("health") or "name" in first):
            self.top_header, self.mode = row, "chips"
        elif second.startswith(("bus-id", "bus id")):
            self.bottom_header, self.mode = row, "chips"
        else:
            return False
        return True

    def _is_bottom(self, second: str) -> bool:
        if pci_address(second) is not None:
            return True
        return self.top is not None and self.chip is None and second != "" and marker(second) is not None

    def _top(self, row: Row, first: str) -> None:
        ident, _, name = first.partition(" ")
        name = name.strip()
        if not digits(ident) or not name or (digits(name) and len(name) < 3) or len(row.cells) < 2:
            return
        fields = pair(self.top_header or _TOP, row)
        fields["Name"] = name if row.closed or len(row.cells) > 1 else ""
        top = Record(of=Of.CHIP, npu=ident, fields=fields, listed="table", cut=_cut(row, fields))
        if top == self.top and self.chip is None:
            return
        self.flush()
        self.top = top
        self.chip = None

    def _bottom(self, row: Row) -> None:
        fields = pair(self._bottom_header_for(row), row)
        cut = _cut(row, fields)
        chip = fields.pop("Chip", "").split(" ")[0]
        again = self.chip is not None and self.chip != (fields.get("Bus-Id"), chip)
        top = None if again else self.top
        self.chip = (fields.get("Bus-Id"), chip)
        self.said.cut = self.said.cut or top is None or bool(cut)
        above = top or Record(of=Of.CHIP, fields={})
        self.known.add(above.npu)
        self.said.records.append(
            Record(of=Of.CHIP, npu=above.npu, chip=chip or None, fields={**above.fields, **fields}, listed="table", cut=above.cut | cut),
        )

    def _bottom_header_for(self, row: Row) -> Row:
        if self.bottom_header is not None:
            return self.bottom_header
        return _BOTTOM[3 if len(words(row.cells[2] if len(row.cells) > 2 else "")) > 2 else 2]

    @property
    def columns(self) -> list[str]:
        """Column names of the second header line."""
        return [word for cell in (self.bottom_header.cells if self.bottom_header else ()) for _, word in words(cell)]

    def flush(self) -> None:
        """A name line whose bus line never came: the NPU is there, and the text was cut."""
        if self.top is not None and self.chip is None:
            self.said.cut = True
            if self.top.npu not in self.known:
                self.known.add(self.top.npu)
                board = {key: text for key, text in self.top.fields.items() if key in ("Name", "Power(W)") or "Phy-ID" not in self.columns}
                self.said.records.append(Record(of=Of.NPU, npu=self.top.npu, fields=board, cut=self.top.cut, listed="table"))
        self.top = None

    def _process(self, row: Row, first: str, second: str) -> None:
        if len(row.cells) < 3 or not digits(second):
            return
        ids = [word for _, word in words(first)]
        memory = row.cell(len(row.cells) - 1) if row.closed and len(row.cells) > 3 else ""
        process = Process(npu=ids[0] if ids else None, chip=ids[1] if len(ids) > 1 else None, pid=int(second[:18]), name=row.cell(2), memory=memory)
        if process not in self.seen:
            self.seen.add(process)
            self.said.processes.append(process)

    def _slice(self, row: Row, first: str) -> None:
        if digits(first) and row.closed and len(row.cells) > 1:
            self.said.slices.append(Slice(npu=self.npu_of_slices, chip=None, ident=first, template=row.cell(len(row.cells) - 1)))


def _cut(row: Row, fields: dict[str, str]) -> frozenset[str]:
    """Columns whose text is missing because the line ends too early."""
    return frozenset(name for name, text in fields.items() if not text and name != "Name") if not row.closed or len(row.cells) < 3 else frozenset()


def read(lines: Sequence[str], said: Said, npu: str | None = None) -> bool:
    """Adds what the boxes in ``lines`` say; True when there was one. ``npu`` is the NPU that the command asked for."""
    table, seen = _Table(said), False
    table.npu_of_slices = npu
    before = len(said.records)
    for row in rows(lines):
        seen = True
        table.row(row)
    table.flush()
    cards = len(said.records) > before
    if cards:
        said.records[before:] = _adopt(said.records[before:])
        _packages(said.records[before:], said)
    ended = _ended(lines)
    if cards and not ended and "Phy-ID" in table.columns:
        said.packages.update([r.npu for r in said.records[-1:] if r.npu is not None])
    if cards and (table.top_header is None or not ended):
        said.cut = True
    listed = cards and ended and table.top_header is not None and npu is None
    said.ended = said.ended or listed
    said.whole = said.whole or (listed and table.processes)
    return seen


def _ended(lines: Sequence[str]) -> bool:
    """True when the last line of the boxes is a ruler as long as the others."""
    drawn = [line.strip() for line in lines if line.strip()[:1] in ("|", "+")]
    rulers = [len(line) for line in drawn if is_ruler(line)]
    return bool(rulers) and is_ruler(drawn[-1]) and rulers[-1] >= max(rulers)


def _adopt(records: list[Record]) -> list[Record]:
    """Chip lines whose name line was lost, given to the NPU they stand with; only where NPUs of this table have several chips."""
    chips = Counter(record.npu for record in records if record.npu is not None)
    if max(chips.values(), default=0) < 2:
        return records
    found = list(records)
    for place, record in enumerate(records):
        if record.npu is None and record.chip is not None and digits(record.chip):
            chip = int(record.chip[:6])
            before = found[place - 1] if place else None
            after = records[place + 1] if place + 1 < len(records) else None
            if before is not None and before.npu is not None and before.chip == str(chip - 1):
                found[place] = replace(record, npu=before.npu)
            elif after is not None and after.npu not in (None, before.npu if before else None) and after.chip == str(chip + 1):
                found[place] = replace(record, npu=after.npu)
    return found


def _packages(records: list[Record], said: Said) -> None:
    """A table that ends with one chip of an NPU, where every NPU before it has several, was cut inside a package."""
    chips: dict[str, set[str]] = {}
    for record in records:
        if record.npu is not None and record.chip is not None:
            chips.setdefault(record.npu, set()).add(record.chip)
    names = {record.fields.get("Name") for record in records}
    *before, last = [len(found) for found in chips.values()] or [0]
    if before and min(before) > last and len(names) == 1:
        said.cut = True
        said.packages.add(list(chips)[-1])
