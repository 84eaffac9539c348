# SPDX-License-Identifier: Apache-2.0
"""The ``Key : value`` answers of `npu-smi info -t ...` and `-l`: sections per NPU, blocks per chip.

The line ``Chip ID`` stands before its block in some views and behind it in others; the first block of a section tells which.
A block named ``mcu`` is the board's controller, never a chip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from muster.adapters.huawei.names import digits
from muster.adapters.huawei.said import Of, Process, Record, Said

_PAIR = re.compile(r"^\s*([A-Za-z][A-Za-z0-9 ()/%._-]{0,60}?)\s*:(?:\s+|$)(.*)$")
_MORE = re.compile(r"^\s+:\s*(.*)$")
_PROCESS = re.compile(r"Process id\s*:\s*(\d{1,18})\s+Process name\s*:\s*(.*?)\s*Process memory\(MB\)\s*:\s*(\d+)", re.IGNORECASE)
_NO_PROCESS = re.compile(r"^\s*No (?:running )?process", re.IGNORECASE)
_SUMMED = re.compile(r"(?:error count|err cnt|pages count)$", re.IGNORECASE)
"""Counters that are added up over memories: of a block that was cut the sum would be too small."""
_USAGE = re.compile(r"^\s*Usage\b", re.IGNORECASE)
"""What the tool prints for a card that is lost, or for a view that it does not know."""
_CONTROLLERS = {"mcu", "3559"}
SIGNS = re.compile(
    r"^\s*(?:NPU ID|Chip ID|Chip Count|Total Count|Card Count|Health Status|Health|HBM Capacity\(MB\)|DDR Capacity\(MB\)|"
    r"NPU Real-time Power\(W\)|Aicore Usage Rate\(%\)|(?:DDR|HBM) Single Bit Error Count|VDie ID|PCIe Bus Info|NPU Temperature ?\(C\))\s*:",
)
"""Lines that show that a text is such an answer."""
_OF_BOARD = {
    "product name", "model", "manufacturer", "serial number", "software version", "firmware version", "compatibility", "board id", "main board id",
    "pcb id", "bom id", "pcie bus info", "slot id", "class id", "pci vendor id", "pci device id", "subsystem vendor id", "subsystem device id",
    "chip fault", "faulty chip count", "vendor id", "device id", "module vendor id", "module id",
}  # fmt: skip


class _View:
    """State of one pass over the pairs of a text."""

    def __init__(self, said: Said, npu: str | None, chip: str | None) -> None:
        self.said = said
        self.npu = npu
        self.asked = chip
        self.npus: set[str] = set()
        self.begin()

    def begin(self) -> None:
        """A new NPU's section."""
        self.held: dict[str, str] = {}
        self.processes: list[Process] = []
        self.leading: bool | None = None
        self.chip = self.asked
        self.of = Of.CHIP
        self.count = ""
        self.closed = 0

    def pair(self, key: str, text: str) -> None:
        """Takes one pair."""
        word = key.lower()
        if word in ("total count", "card count"):
            self.said.total = int(text) if digits(text) and len(text) < 6 else self.said.total
        elif word == "npu id":
            self.end()
            self.npu = text if digits(text) else self.npu
            self.npus.update([text] if digits(text) else [])
        elif word == "chip count":
            self.count = text
            self._say(Of.NPU, None, {key: text})
        elif word == "chip id":
            self._chip(text)
        elif word == "chip name" and text.lower() in _CONTROLLERS:
            self._controller()
        else:
            self.held.setdefault(key, text)

    def more(self, text: str) -> None:
        """A line without a key goes on with the value above it."""
        if self.held and text.strip():
            last = next(reversed(self.held))
            self.held[last] = f"{self.held[last]} {text.strip()}"

    def _chip(self, text: str) -> None:
        if self.leading is None:
            self.leading = not (self.held or self.processes)
        if self.leading:
            self._flush()
            self.chip, self.of = text, Of.CHIP
            self._say(Of.CHIP, text, {})
        else:
            self.chip, self.of = text, Of.CHIP
            self._flush()
        self.closed += 1

    def _controller(self) -> None:
        if self.leading is False:
            self.of = Of.BOARD
            self._flush()
        else:
            self._flush()
            self.of = Of.BOARD

    def _flush(self) -> None:
        board = {key: text for key, text in self.held.items() if key.lower() in _OF_BOARD}
        rest = {key: text for key, text in self.held.items() if key not in board}
        if self.leading and self.of is Of.CHIP and self.chip is not None:
            board, rest = {}, dict(self.held)
        if board:
            self._say(Of.NPU, None, board)
        if rest or self.processes:
            self._say(self.of, self.chip, rest)
        self.said.processes.extend(self.processes)
        self.held, self.processes = {}, []

    def _say(self, of: Of, chip: str | None, fields: dict[str, str]) -> None:
        chip = chip if of is Of.CHIP else None
        self.said.records.append(Record(of=Of.NPU if of is Of.CHIP and chip is None else of, npu=self.npu, chip=chip, fields=fields, listed="view"))

    def end(self) -> None:
        """The section is over. What is left behind the last ``Chip ID`` of a section whose blocks end with it belongs to a chip that was cut off."""
        if self.leading is False and self.held and self.of is Of.CHIP and self.count != "1" and self.asked is None:
            self.said.cut = True
            self.held = {key: text for key, text in self.held.items() if key.lower() in _OF_BOARD}
            self.processes = []
        if self.count and not self.closed and any(_SUMMED.search(key) for key in self.held):
            self.said.cut = True
            self.held = {key: text for key, text in self.held.items() if not _SUMMED.search(key)}
        if self.leading is False and self.asked is None:
            self.chip = None
        self._flush()
        self.begin()

    def process(self, line: str) -> bool:
        """Takes a line of the process view; True when it was one."""
        found = _PROCESS.search(line)
        if found:
            chip = self.chip if self.leading is not False else None
            self.processes.append(Process(npu=self.npu, chip=chip, pid=int(found.group(1)), name=found.group(2), memory=found.group(3)))
        elif _NO_PROCESS.match(line) and self.npu is not None:
            self.said.idle.append((self.npu, self.chip))
        else:
            return False
        return True


def pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Key and value of each line that is a pair; the key is "" for a line that goes on with the value above."""
    for line in lines:
        found = _PAIR.match(line)
        if found:
            yield " ".join(found.group(1).split()), found.group(2).strip()
        elif more := _MORE.match(line):
            yield "", more.group(1)


def read(lines: Sequence[str], said: Said, npu: str | None = None, chip: str | None = None, *, open_end: bool = False) -> bool:
    """Adds what the pairs in ``lines`` say; True when they are such an answer.

    ``npu`` and ``chip`` are what the command asked for; ``open_end`` says that the last line has no line end, so that its value may be cut.
    """
    body = [line for line in lines if not line.lstrip().startswith(("|", "+", "["))]
    if not any(SIGNS.match(line) for line in body) and (npu is None or any(_USAGE.match(line) for line in body)):
        return False
    view = _View(said, npu, chip)
    if open_end and body and lines and body[-1] == lines[-1] and body[-1].strip():
        said.cut = True
        body = body[:-1]
    for line in body:
        if view.process(line):
            continue
        for key, text in pairs([line]):
            if key:
                view.pair(key, text)
            else:
                view.more(text)
    view.end()
    if said.total is not None and len(view.npus) >= said.total:
        said.whole = True
    return True
