# SPDX-License-Identifier: Apache-2.0
"""Texts of ``dcgmi``: the list of ``discovery -l``, samples of ``dmon``, and the reports of ``diag`` and ``health``.

The reports are words for a later judgement: they are kept as the vendor's text on the card that they name, and the rest on the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from muster.adapters.nvidia.board import Board, Listing
from muster.formats.boxes import Row, rows
from muster.formats.text import decode

_CODES = "GPUTL|MCUTL|POWER|TMPTR|MMTMP|FBUSD|FBFRE|FBTTL|GRACT|SMACT|SMOCC|TENSO|DRAMA|TOTEC|SMCLK|MMCLK|ESVTL|EDVTL|ESATL|EDATL"
SIGN = re.compile(
    r"^\| GPU ID\s*\| Device Information\s*\|"
    rf"|^#\s?Entity\s+(?:\w+\s+){{0,60}}?(?:{_CODES})\b"
    r"|^\| (?:Health Monitor Report|Overall Health)\s*\||^\| Diagnostic\s*\| Result\s*\|"
    r"|^\|[^|\n]{3,40}\|\s*(?:Pass|Fail|Skip|Warn) - (?:GPUs?: \d|All\b)",
    re.MULTILINE,
)
"""Lines that no other tool prints."""
REPORT = "dcgm "
"""What the names of a report's rows begin with."""
_DRIVER = "Driver Version Detected"
_COUNT = re.compile(r"^\s*(\d{1,5}) GPUs? found", re.MULTILINE)
_DETAIL = {"Name": "name", "PCI Bus ID": "pci.bus_id", "Device UUID": "uuid"}
_UUID = re.compile(r"GPU-[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SAMPLES: dict[str, tuple[str, str]] = {
    "GPUTL": ("utilization.gpu", "%"),
    "MCUTL": ("utilization.memory", "%"),
    "TENSO": ("utilization.tensor", "ratio"),
    "POWER": ("power.draw", "W"),
    "PMLMT": ("power.limit", "W"),
    "TOTEC": ("energy.total", "mJ"),
    "TMPTR": ("temperature.gpu", "C"),
    "MMTMP": ("temperature.memory", "C"),
    "SMCLK": ("clocks.current.graphics", "MHz"),
    "MMCLK": ("clocks.current.memory", "MHz"),
    "FBTTL": ("memory.total", "MiB"),
    "FBFRE": ("memory.free", "MiB"),
    "FBUSD": ("memory.used", "MiB"),
    "PCITX": ("pcie.tx", "B/s"),
    "PCIRX": ("pcie.rx", "B/s"),
    "ESVTL": ("ecc.errors.corrected.volatile.total", ""),
    "EDVTL": ("ecc.errors.uncorrected.volatile.total", ""),
    "ESATL": ("ecc.errors.corrected.aggregate.total", ""),
    "EDATL": ("ecc.errors.uncorrected.aggregate.total", ""),
}
_FIGURE = re.compile(r"^\d+(?:\.\d+)?$")
_GROUP = re.compile(r"\b(Pass|Fail|Skip|Warn)\w* - GPUs?: ([\d, ]+)")
_SINGLE = re.compile(r"^GPU ?(\d{1,4}): (Pass|Fail|Skip|Warn)")
_OF_CARD = re.compile(r"\bGPU (\d{1,4})\b")
_ARROW = re.compile(r"^-> (\d{1,4})$")


def parse(payload: bytes) -> Listing:
    """Cards by their id in DCGM. Whole only for a list that shows as many as it counts."""
    text = decode(payload)
    lines = text.split("\n")
    found, boards = Listing(), dict[str, Board]()
    table = list(rows(lines))
    if any(row.cell(1) == "Device Information" and row.cell(0) == "GPU ID" for row in table):
        _listing(table, boards)
        counts = _COUNT.findall(text)
        last = text.rstrip().rpartition("\n")[2].lstrip()
        found.cut = not text.endswith("\n") or last.startswith("|") or any(not row.closed for row in table)
        found.attached = int(counts[0]) if counts else None
        found.whole = not found.cut and found.attached == len(boards)
    elif table:
        _report([row for row in table if row.closed], boards, found)
    _samples(lines if text.endswith("\n") else lines[:-1], boards)
    found.boards = [boards[ident] for ident in sorted(boards, key=int)]
    return found


def _board(boards: dict[str, Board], ident: str) -> Board:
    board = boards.setdefault(ident, Board())
    board.offer("index", ident)
    return board


def _listing(table: list[Row], boards: dict[str, Board]) -> None:
    """Rows under the header ``GPU ID``; other tables (switches, processors) follow under headers of their own."""
    board: Board | None = None
    inside = False
    for row in table:
        head = row.cell(0)
        if head.endswith("ID"):
            inside, board = head == "GPU ID", None
        elif inside and row.closed:
            board = _board(boards, head) if head.isdecimal() and len(head) < 5 else board if not head else None
            key, _, value = row.cell(1).partition(":")
            if board is not None and key in _DETAIL and value.strip() and (key != "Device UUID" or _UUID.fullmatch(value.strip())):
                board.offer(_DETAIL[key], value.strip())


def _samples(lines: list[str], boards: dict[str, Board]) -> None:
    """The last sample of each card. Rows of instances, switches and processors are not the card's."""
    names: list[str] = []
    for line in lines:
        words = line.lstrip("#").split()
        if line.lstrip().startswith("#"):
            names = words[1:] if words[:1] == ["Entity"] else names
        elif names and len(words) == len(names) + 2 and words[0] == "GPU" and words[1].isdecimal() and len(words[1]) < 5:
            board = _board(boards, words[1])
            for name, text in zip(names, words[2:], strict=True):
                field, unit = _SAMPLES.get(name, ("", ""))
                if field:
                    board.fields[field] = f"{text} {unit}".strip() if unit != "ratio" and _FIGURE.match(text) else _ratio(text) if unit == "ratio" else text
                else:
                    board.extra[name] = text


def _ratio(text: str) -> str:
    return f"{float(text) * 100:g} %" if _FIGURE.match(text) and len(text) < 12 else text


def _report(table: list[Row], boards: dict[str, Board], found: Listing) -> None:
    told: dict[str, str] = {}
    current = ""
    for name, texts in _entries(table):
        arrow = _ARROW.match(name)
        current = arrow.group(1) if arrow else current if name.startswith("->") else ""
        key = "health" if arrow else name.removeprefix("-> ")
        for word, idents in _GROUP.findall(" ".join(texts)):
            for ident in re.findall(r"\d{1,4}", idents):
                _say(boards, ident, key, word)
        for text in texts:
            single, named = _SINGLE.match(text), _OF_CARD.search(text)
            if single:
                _say(boards, single.group(1), key, single.group(2))
            elif text and not _GROUP.search(text):
                ident = named.group(1) if named else current
                if ident:
                    _say(boards, ident, key, text)
                else:
                    told[key] = f"{told[key]}; {text}" if key in told else text
    if _DRIVER in told:
        found.head["driver_version"] = told[_DRIVER]
    found.head.update({f"{REPORT}{key}": text for key, text in told.items()})


def _say(boards: dict[str, Board], ident: str, key: str, text: str) -> None:
    extra = _board(boards, ident).extra
    name = f"{REPORT}{key}"
    extra[name] = f"{extra[name]}; {text}" if name in extra else text


def _entries(table: list[Row]) -> Iterator[tuple[str, list[str]]]:
    """Each named row with its texts. A row without a name goes on with the one above; where that was full to its end, inside a word."""
    key, texts, full = "", list[str](), False
    for row in table:
        name, text = row.cell(0), row.cell(1)
        if len(row.cells) != 2 or name in ("Diagnostic", "GPU ID"):
            continue
        if name:
            if key:
                yield key, texts
            key, texts = name, [text]
        elif texts and not _SINGLE.match(text) and not _GROUP.search(text):
            texts[-1] += text if full else f" {text}"
        elif texts:
            texts.append(text)
        full = len(text) >= len(row.cells[1]) - 3
    if key:
        yield key, texts
