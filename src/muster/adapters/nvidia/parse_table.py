# SPDX-License-Identifier: Apache-2.0
"""The default table of ``nvidia-smi``: for people, yet often all there is. Three lines per card, then instances, then processes."""

from __future__ import annotations

import re

from muster.adapters.nvidia.board import Board, Listing, Process, Slice
from muster.domain.model.reading import Absent, Why
from muster.formats.text import lines

_DRIVER = re.compile(r"\b(?:Driver|KMD) Version:\s*([\w.]+)")
_BANNER = re.compile(r"\bNVIDIA-SMI\b.*\b(?:Driver|KMD) Version:")
_RUNTIME = re.compile(r"\bCUDA(?: UMD)? Version:\s*([\w./]+)")
_FIRST = re.compile(r"^\s*(\d{1,4})\s+(.+?)(?:\s+(On|Off|N/A|WDDM|TCC|MCDM|ERR!))?\s*$")
_BUS = re.compile(r"^\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s+(\S+)\s*$")
_SECOND = re.compile(r"^\s*(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*/\s*(\S+)\s*$")
_MEMORY = re.compile(r"^\s*(\S+)\s*/\s*(\S+)\s*$")
_MIG = re.compile(r"^\s*(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s*$")
_PROCESS = re.compile(r"^\|\s+(\d{1,4})\s+(?:(N/A|\d+)\s+(N/A|\d+)\s+)?(\d+)\s+([CGM]\S{0,3})\s+(.*?)\s+(\S+)\s*\|$")


def parse(payload: bytes) -> Listing:
    """Cards by index. A table without its process part was cut."""
    found = Listing()
    boards: dict[str, Board] = {}
    card: Board | None = None
    step, section = 0, "cards"
    rows = lines(payload)
    for number, line in enumerate(rows):
        if number and line == rows[number - 1]:
            continue
        _head(line, found)
        if _BANNER.search(line):
            section, card = "cards", None
        if "MIG devices:" in line:
            section = "slices"
        elif "Processes:" in line:
            section = "processes"
        if section == "processes":
            _process(line, boards)
            continue
        cells = line.strip().strip("|").split("|") if line.lstrip().startswith("|") else []
        if section == "slices":
            _slice(cells, boards)
            continue
        opened = _open(cells, boards, found)
        if opened is not None:
            card, step = opened, 1
        elif len(cells) == 3 and _strange(cells, step):
            card, found.cut = None, True
        elif card is not None and len(cells) == 3:
            step += 1
            _more(card, cells, step)
    last = next((line for line in reversed(rows) if line.strip()), "")
    _finish(found, section == "processes" and last.startswith("+") and last.endswith("+"))
    return found


def _finish(found: Listing, ended: bool) -> None:
    found.cut = found.cut or not ended
    for board in found.boards:
        if not found.cut and board.processes is None:
            board.processes = []
    found.whole = not found.cut and [board.text("index") for board in found.boards] == [str(place) for place in range(len(found.boards))]


def _head(line: str, found: Listing) -> None:
    for key, pattern in (("driver_version", _DRIVER), ("cuda_version", _RUNTIME)):
        match = pattern.search(line)
        if match is not None:
            found.head.setdefault(key, match.group(1))


def _open(cells: list[str], boards: dict[str, Board], found: Listing) -> Board | None:
    """The card of a first line. An index that comes again with another address is another card: the table of another host stands below."""
    if len(cells) != 3:
        return None
    first, bus = _FIRST.match(cells[0]), _BUS.match(cells[1])
    if first is None or bus is None:
        return None
    same = (each for each in found.boards if (each.text("index"), each.text("pci.bus_id")) == (first.group(1), bus.group(1)))
    board = next(same, None)
    if board is None:
        board = Board()
        found.boards.append(board)
    boards[first.group(1)] = board
    board.offer("index", first.group(1))
    board.offer("name", first.group(2))
    board.offer("pci.bus_id", bus.group(1))
    board.offer("display_active", bus.group(2))
    _ecc(board, cells[2].strip())
    return board


def _strange(cells: list[str], step: int) -> bool:
    """True for a line of a card whose first line does not read: its address, or its readings where no first line stands above."""
    return _BUS.match(cells[1]) is not None or (step != 1 and _SECOND.match(cells[0]) is not None and _MEMORY.match(cells[1]) is not None)


def _ecc(board: Board, text: str) -> None:
    """The column holds a count where ECC runs, On in instance mode, Off, or nothing."""
    if text.isdecimal():
        board.offer("ecc.mode.current", "Enabled")
        board.offer("ecc.errors.uncorrected.volatile.total", text)
    elif text in ("On", "Off"):
        board.offer("ecc.mode.current", "Enabled" if text == "On" else "Disabled")
        board.offer("ecc.errors.uncorrected.volatile.total", Absent(Why.NOT_REPORTED if text == "On" else Why.NOT_SUPPORTED, text))
    elif text:
        board.offer("ecc.mode.current", text)
        board.offer("ecc.errors.uncorrected.volatile.total", text)


def _more(board: Board, cells: list[str], step: int) -> None:
    if step == 2:
        state, memory = _SECOND.match(cells[0]), _MEMORY.match(cells[1])
        if state is not None:
            for name, text in zip(("fan.speed", "temperature.gpu", "pstate", "power.draw", "enforced.power.limit"), state.groups(), strict=True):
                board.offer(name, text)
        if memory is not None:
            board.offer("memory.used", memory.group(1))
            board.offer("memory.total", memory.group(2))
        elif cells[1].strip():
            board.offer("memory.used", cells[1].strip())
            board.offer("memory.total", cells[1].strip())
        board.offer("utilization.gpu", cells[2].split()[0] if cells[2].split() else None)
    elif step == 3 and cells[2].strip():
        board.offer("mig.mode.current", cells[2].strip().rstrip("*"))


def _slice(cells: list[str], boards: dict[str, Board]) -> None:
    if len(cells) != 4:
        return
    ids, memory, counts = _MIG.match(cells[0]), _MEMORY.match(cells[1]), cells[2].split()
    if ids is None or not (memory is not None or cells[1].strip() == ""):
        return
    card, instance, compute, index = ids.groups()
    board = boards.get(card)
    if board is None or any(have.index == index for have in board.slices):
        return
    shared = Absent(Why.NOT_REPORTED, "told with the first instance that shares this memory")
    used, total = memory.groups() if memory is not None else (shared, shared)
    fields: dict[str, str | Absent] = {"memory.used": used, "memory.total": total}
    if counts and counts[0].isdecimal():
        fields["multiprocessors"] = counts[0]
    board.slices.append(Slice(index=index, gpu_instance=instance, compute_instance=compute, fields=fields))


def _process(line: str, boards: dict[str, Board]) -> None:
    match = _PROCESS.match(line.strip())
    if match is None:
        return
    card, instance, compute, pid, kind, name, memory = match.groups()
    board = boards.get(card)
    if board is None:
        return
    board.processes = board.processes if board.processes is not None else []
    if all((have.pid, have.gpu_instance) != (pid, instance) for have in board.processes):
        board.processes.append(Process(pid=pid, name=name, memory=memory, kind=kind, gpu_instance=instance, compute_instance=compute))
