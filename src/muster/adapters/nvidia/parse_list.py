# SPDX-License-Identifier: Apache-2.0
"""``nvidia-smi -L`` and ``nvidia-smi nvlink --status``: a line per card, with instances or links below it."""

from __future__ import annotations

import re

from muster.adapters.nvidia.board import Board, Listing, Slice
from muster.domain.model.reading import Absent, Why
from muster.formats.text import decode

_GPU = re.compile(r"^GPU (\d{1,4}): (.*?)(?: \(UUID: ([^()]*)\))?\s*$")
_MIG = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^()]*)\)")
_LINK = re.compile(r"^\s+Link (\d{1,3}): (.+?)\s*$")
_OLD_UUID = re.compile(r"/(\d+)/(\d+)$")


def parse(payload: bytes) -> Listing:
    """Cards by index, with instances (``-L``) or links (``nvlink``). A last line without its closing bracket was cut and is left out."""
    text = decode(payload)
    found = Listing()
    boards: dict[tuple[str, str | None], Board] = {}
    board: Board | None = None
    rows = text.split("\n")
    for number, row in enumerate(rows):
        match = _GPU.match(row)
        if match is not None:
            if match.group(3) is None and number == len(rows) - 1:
                found.cut = True
                break
            board = _card(boards, match)
        elif row[:1].strip() and "(UUID: " in row:
            board, found.cut = None, True
        elif board is not None:
            found.cut |= _below(board, row, last=number == len(rows) - 1)
    found.boards = list(boards.values())
    counts = [len(links) for one in found.boards if isinstance(links := one.extra.get("links"), dict)]
    for one in found.boards:
        _count(one, (found.cut or bool(rows[-1].strip())) and one is found.boards[-1], max(counts, default=0))
    links = any(one.extra.get("links") or "links.total" in one.fields for one in found.boards)
    found.whole = not found.cut and not rows[-1] and not links and [index for index, _ in boards] == [str(place) for place in range(len(boards))]
    return found


def _card(boards: dict[tuple[str, str | None], Board], match: re.Match[str]) -> Board:
    """The card of a line. An index that comes again with another UUID is another card: the texts of two hosts are one behind the other."""
    index, name, uuid = match.groups()
    same = next((key for key in reversed(boards) if key[0] == index and (uuid is None or key[1] in (None, uuid))), None)
    board = boards.setdefault(same or (index, uuid), Board())
    board.offer("index", index)
    board.offer("name", name)
    board.offer("uuid", uuid)
    return board


def _below(board: Board, row: str, *, last: bool) -> bool:
    """Reads a line below a card; True when it was cut."""
    mig, link = _MIG.match(row), _LINK.match(row)
    if mig is not None:
        one = Slice(index=mig.group(2), uuid=mig.group(3), profile=mig.group(1))
        old = _OLD_UUID.search(one.uuid or "")
        if old is not None:
            one.gpu_instance, one.compute_instance = old.groups()
        if all(have.index != one.index for have in board.slices):
            board.slices.append(one)
            board.offer("mig.mode.current", "Enabled")
        return False
    if link is not None and (not last or link.group(2).endswith(("/s", ">"))):
        links = board.extra.setdefault("links", {})
        if isinstance(links, dict):
            links.setdefault(link.group(1), link.group(2))
        return False
    if "not supported" in row.lower() and "nvlink" in row.lower():
        for name in ("links.total", "links.active"):
            board.offer(name, Absent(Why.NOT_SUPPORTED, row.strip()[:120]))
    return last and bool(row.strip()) and row.lstrip().startswith(("MIG", "Link"))


def uncounted(board: Board) -> None:
    """Takes back how many links the card has: the text was cut among them."""
    links = board.extra.get("links")
    if isinstance(links, dict):
        absent = Absent(Why.UNREADABLE, f"{len(links)} links, then the text ends")
        board.fields.update({"links.total": absent, "links.active": absent})


def _count(board: Board, cut: bool, most: int) -> None:
    links = board.extra.get("links")
    if not isinstance(links, dict):
        return
    if cut or len(links) < most:
        uncounted(board)
        return
    active = [text for text in links.values() if "inactive" not in text.lower() and "disabled" not in text.lower()]
    board.offer("links.total", str(len(links)))
    board.offer("links.active", str(len(active)))
    if active and len(set(active)) == 1:
        board.offer("links.speed", active[0])
