# SPDX-License-Identifier: Apache-2.0
"""``nvidia-smi -q``: the long listing as indented text. The same keys stand in many sections, so every value is found by its whole path."""

from __future__ import annotations

import re

from muster.adapters.nvidia.board import Board, Fields, Listing, Process, Slice
from muster.adapters.nvidia.names_tree import TEXT
from muster.adapters.nvidia.unreported import mark
from muster.formats.text import decode
from muster.formats.tree import Node, fold, parse

_GPU = re.compile(r"^GPU ([0-9A-Fa-f]+:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])$")
_HEAD = {
    "driver version": "driver_version",
    "cuda version": "cuda_version",
    "kmd version": "kmd_version",
    "cuda umd version": "cuda_umd_version",
    "attached gpus": "attached_gpus",
    "timestamp": "timestamp",
}
_SLICE_FIELDS = {
    ("shared fb memory usage", "total"): "memory.total",
    ("shared fb memory usage", "reserved"): "memory.reserved",
    ("shared fb memory usage", "used"): "memory.used",
    ("shared fb memory usage", "free"): "memory.free",
    ("fb memory usage", "total"): "memory.total",
    ("fb memory usage", "used"): "memory.used",
    ("fb memory usage", "free"): "memory.free",
    ("device attributes", "shared", "multiprocessor count"): "multiprocessors",
    ("ecc errors", "volatile", "sram uncorrectable"): "ecc.errors.uncorrected.volatile.sram",
    ("utilization", "gpu"): "utilization.gpu",
}


def parse_text(payload: bytes) -> Listing:
    """Cards in order. A last line without its end is left out.

    A last card without its closing section is told as partial: its lines are right, its sets may lack members.
    """
    text = decode(payload)
    ended = text.endswith("\n")
    if not ended:
        text = text[: text.rfind("\n") + 1]
    root = parse(text)
    found = Listing(head=_head(root))
    boards: dict[str, Board] = {}
    nodes = [node for node in root.children if _GPU.match(node.key) and node.children]
    for node in nodes:
        last = node is nodes[-1]
        short = last and node.at("Product Name") is not None and (node.at("Processes") is None or (not ended and node.children[-1].key == "Processes"))
        found.cut |= short
        address = node.key.removeprefix("GPU ")
        board = _board(node, address)
        board.partial = short
        mark(board, [child.key for child in node.children if child.children])
        if address not in boards or not board.partial:
            boards[address] = board  # a tool that repeats its listing: the newer one
    found.boards = list(boards.values())
    attached = found.head.get("attached_gpus", "")
    found.attached = int(attached) if attached.isdecimal() and len(attached) < 6 else None
    found.whole = not found.cut and found.attached == len(found.boards)
    return found


def _head(root: Node) -> dict[str, str]:
    return {_HEAD[fold(node.key)]: node.value for node in root.children if fold(node.key) in _HEAD and node.value}


def _board(node: Node, address: str) -> Board:
    board = Board(slices=_slices(node), processes=_processes(node))
    for path, leaf in node.walk():
        folded = tuple(fold(key) for key in path)
        if folded[0] in ("mig device", "processes") or leaf.value is None:
            continue
        name = TEXT.get(folded)
        if name is not None and (leaf.value or not leaf.children):
            board.offer(name, leaf.value)
        elif name is None:
            board.extra.setdefault(".".join(folded), leaf.value)
    board.offer("pci.bus_id", address)
    return board


def _slices(node: Node) -> list[Slice]:
    found: dict[tuple[str | None, ...], Slice] = {}
    for part in node.all("MIG Device"):
        fields: Fields = {}
        for path, leaf in part.walk():
            name = _SLICE_FIELDS.get(tuple(fold(key) for key in path))
            if name is not None and leaf.value:
                fields.setdefault(name, leaf.value)
        one = Slice(
            index=part.text("Index"),
            gpu_instance=part.text("GPU Instance ID"),
            compute_instance=part.text("Compute Instance ID"),
            uuid=part.text("UUID"),
            fields=fields,
        )
        if one.index is not None or one.gpu_instance is not None:
            found.setdefault(one.key, one)
    return list(found.values())


def _processes(node: Node) -> list[Process] | None:
    sections = node.all("Processes")
    if not sections:
        return None
    found: dict[tuple[str, str | None], Process] = {}
    instance: dict[str, str | None] = {}
    for child in (child for section in sections for child in section.children):
        key = fold(child.key)
        if key in ("gpu instance id", "compute instance id"):
            instance[key] = child.value
        elif key == "process id" and child.value and child.value.isdecimal() and child.children:
            one = Process(
                pid=child.value,
                name=child.text("Name"),
                memory=child.text("Used GPU Memory"),
                kind=child.text("Type"),
                gpu_instance=instance.get("gpu instance id"),
                compute_instance=instance.get("compute instance id"),
            )
            found.setdefault((child.value, one.gpu_instance), one)
    return list(found.values())
