# SPDX-License-Identifier: Apache-2.0
"""``nvidia-smi dmon``, ``pmon`` and ``topo -m``: rows of words under a header row."""

from __future__ import annotations

import re

from muster.adapters.nvidia.board import Board, Listing, Process
from muster.formats.text import decode

_DMON = {
    "pwr": ("power.draw", "W"),
    "gtemp": ("temperature.gpu", "C"),
    "temp": ("temperature.gpu", "C"),
    "mtemp": ("temperature.memory", "C"),
    "sm": ("utilization.gpu", "%"),
    "mem": ("utilization.memory", "%"),
    "enc": ("utilization.encoder", "%"),
    "dec": ("utilization.decoder", "%"),
    "jpg": ("utilization.jpeg", "%"),
    "ofa": ("utilization.ofa", "%"),
    "mclk": ("clocks.current.memory", "MHz"),
    "pclk": ("clocks.current.graphics", "MHz"),
    "fb": ("memory.used", "MiB"),
    "rxpci": ("pcie.rx", "MB/s"),
    "txpci": ("pcie.tx", "MB/s"),
}
_TOPO_HEAD = re.compile(r"CPU Affinity|NUMA Affinity|GPU NUMA ID|\S+")
_TOPO_ROW = re.compile(r"^GPU\d+\s")
_PART = re.compile(r"^(?:GPU|NIC|CX)\d+$|^mlx\d\S*$")


def parse_monitor(payload: bytes) -> Listing:
    """The last sample of each card (``dmon``), or the processes of each card (``pmon``). Never a whole listing: both can be told to leave cards out."""
    found, boards, names = Listing(), dict[str, Board](), list[str]()
    text = decode(payload)
    rows = text.split("\n")
    if not text.endswith("\n"):
        found.cut = True
        rows = rows[:-1]
    for row in rows:
        if row.startswith("#"):
            words = row.lstrip("#").split()
            names = words if "gpu" in words else names
        elif names:
            _sample(row.split(), names, boards)
    found.boards = list(boards.values())
    return found


def _sample(cells: list[str], names: list[str], boards: dict[str, Board]) -> None:
    last = names[-1] in ("command", "name") and len(cells) >= len(names)
    if not last and len(cells) != len(names):
        return
    row = dict(zip(names, cells, strict=False))
    if last:
        row[names[-1]] = " ".join(cells[len(names) - 1 :])
    index = row.get("gpu", "")
    if not index.isdecimal():
        return
    board = boards.setdefault(index, Board())
    board.offer("index", index)
    if "pid" in names:
        _process(board, row)
        return
    for name, text in row.items():
        field, unit = _DMON.get(name, ("", ""))
        if field:
            board.fields[field] = f"{text} {unit}" if text[-1:].isdigit() else text
        elif name not in ("gpu", "Time", "Date", "HH:MM:SS", "YYYYMMDD"):
            board.extra[name] = text


def _process(board: Board, row: dict[str, str]) -> None:
    board.processes = board.processes if board.processes is not None else []
    pid = row.get("pid", "")
    if pid.isdecimal() and all(have.pid != pid for have in board.processes):
        memory = row.get("fb")
        board.processes.append(
            Process(pid=pid, name=row.get("command"), kind=row.get("type"), memory=f"{memory} MiB" if memory and memory.isdecimal() else None)
        )


def parse_topology(payload: bytes) -> Listing:
    """Cards with the kind of link to each peer and the NUMA node they are near."""
    found, boards, names = Listing(), dict[str, Board](), list[str]()
    rows = decode(payload).split("\n")
    for number, row in enumerate(rows):
        bare = row.strip()
        if bare.startswith("Legend"):
            break
        if not names:
            words = _TOPO_HEAD.findall(bare)
            names = words if words[:1] == ["GPU0"] and "X" not in words else names
        elif _TOPO_ROW.match(bare):
            _peers(bare.split(), names, boards, cut=number == len(rows) - 1)
    found.boards = list(boards.values())
    return found


def _peers(cells: list[str], names: list[str], boards: dict[str, Board], *, cut: bool) -> None:
    own, cells = cells[0], cells[1:]
    place = names.index(own) if own in names else len(cells)
    if cells[place : place + 1] != ["X"]:
        return
    board = boards.setdefault(own, Board())
    board.offer("index", own.removeprefix("GPU"))
    if cut and len(cells) < len(names):
        return
    for name, text in zip(names, cells, strict=False):
        if name == "NUMA Affinity":
            board.offer("numa.node", text)
        elif _PART.match(name) and name != own and text != "X":
            board.links.setdefault(name, text)
        elif not _PART.match(name):
            board.extra.setdefault(name, text)
    board.extra.setdefault("topology", True)
