# SPDX-License-Identifier: Apache-2.0
"""``nvidia-smi -q -x``: one element per card, read card by card, so that one that is broken or cut never costs its sisters.

The schema number in the DOCTYPE says little: elements were renamed inside one number, and old names stand in new documents. So every known name is tried.
The document type itself is never read; entities that it could declare do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

from muster.adapters.nvidia.board import Board, Fields, Listing, Process, Slice
from muster.adapters.nvidia.names_tree import XML
from muster.adapters.nvidia.unreported import mark
from muster.formats.text import decode

DEPTH = 48
"""Levels of elements that are followed; no version of the tool nests more than eight."""

_GPU = re.compile(r"<gpu(\s[^<>]{0,1000})?>")
_ID = re.compile(r"\sid\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|[\"']?([^\s\"'<>]*))")
_OPENING = re.compile(r"<!--|<!\[CDATA\[")
_CLOSING = {"<!--": "-->", "<![CDATA[": "]]>"}
_END = re.compile(r"</\s*nvidia_smi_log\s*>")
_TWICE = re.compile(r"^([ \t]*(?:<[^/<>\n][^<>\n]*>[^<>\n]*|</[^<>\n]*>[ \t]*))\n(?:\1(?:\n|\Z))+", re.MULTILINE)
"""A line that only opens or only closes an element, printed again right below: no version of the tool does that, a capture that doubled its lines does."""
_HEAD = re.compile(r"<([a-z_]+)>([^<>]*)</\1>")
_LISTS = ("supported_clocks", "processes", "accounted_processes", "mig_devices")
_SLICE = {"index": "index", "gpu_instance_id": "gpu_instance", "compute_instance_id": "compute_instance", "uuid": "uuid", "profile": "profile"}
_SLICE_FIELDS = {
    "fb_memory_usage/total": "memory.total",
    "fb_memory_usage/reserved": "memory.reserved",
    "fb_memory_usage/used": "memory.used",
    "fb_memory_usage/free": "memory.free",
    "device_attributes/shared/multiprocessor_count": "multiprocessors",
    "ecc_error_count/volatile_count/sram_uncorrectable": "ecc.errors.uncorrected.volatile.sram",
    "utilization/gpu_util": "utilization.gpu",
}


def parse(payload: bytes) -> Listing:
    """Cards in the order of the document. Broken XML gives what could be read, with ``cut`` set."""
    text = _TWICE.sub(r"\1\n", decode(payload))
    found = Listing(head=_head(text), cut=_END.search(text) is None)
    starts = list(_GPU.finditer(_blanked(text, cut=found.cut)))
    boards: dict[str, Board] = {}
    for number, start in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        root = _element(text[start.start() : end])
        if root is None or not root.children:
            continue
        named = _ID.search(start.group(1) or "")
        address = next((each.strip() for each in named.groups() if each), "") if named else ""
        board = _board(root, address)
        board.partial = not root.ended
        mark(board, [child.tag for child in _inner(root).children if child.children])
        same = boards.get(address)
        key = address if address and (same is None or same.text("uuid") == board.text("uuid")) else f"#{number}"
        if key not in boards or not board.partial:
            boards[key] = board  # a tool that repeats its listing: the newer one
        found.cut |= not root.ended
    found.boards = list(boards.values())
    attached = found.head.get("attached_gpus", "")
    found.attached = int(attached) if attached.isdecimal() and len(attached) < 6 else None
    found.whole = not found.cut and found.attached == len(found.boards)
    return found


def _blanked(text: str, *, cut: bool) -> str:
    """The text with blanks in place of comments and of plain text between marks: what looks like an element in them is none.

    One that does not end goes on to the end of a text that is ``cut``, and is a slip of the pen in any other.
    """
    parts, at, endless = [], 0, set[str]()
    for opening in _OPENING.finditer(text):
        mark = opening.group()
        if opening.start() < at or mark in endless:
            continue
        close = text.find(_CLOSING[mark], opening.end())
        if close < 0 and not cut:
            endless.add(mark)
            continue
        end = close + len(_CLOSING[mark]) if close >= 0 else len(text)
        parts += [text[at : opening.start()], " " * (end - opening.start())]
        at = end
    return "".join([*parts, text[at:]])


def _head(text: str) -> dict[str, str]:
    bare = _blanked(text, cut=False)
    first = _GPU.search(bare)
    return {tag: value.strip() for tag, value in _HEAD.findall(bare[: first.start() if first else 65536])}


@dataclass(slots=True, eq=False)
class _Element:
    """One element; ``ended`` tells whether its end was read."""

    tag: str
    text: str = ""
    children: list[_Element] = field(default_factory=list, repr=False)
    ended: bool = False

    def iter(self, tag: str) -> Iterator[_Element]:
        """Every element of this name below, in order."""
        stack = list(reversed(self.children))
        while stack:
            element = stack.pop()
            if element.tag == tag:
                yield element
            stack.extend(reversed(element.children))


class _Builder:
    """Takes the parser's events; what was read before a fault stays."""

    def __init__(self) -> None:
        self.root: _Element | None = None
        self._stack: list[_Element] = []
        self._deeper = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element opens; levels beyond `DEPTH` are passed over."""
        del attributes
        if len(self._stack) >= DEPTH:
            self._deeper += 1
            return
        element = _Element(tag)
        if self._stack:
            self._stack[-1].children.append(element)
        elif self.root is None:
            self.root = element
        self._stack.append(element)

    def end(self, tag: str) -> None:
        """An element closes."""
        del tag
        if self._deeper:
            self._deeper -= 1
        else:
            self._stack.pop().ended = True

    def data(self, text: str) -> None:
        """Text inside the open element."""
        if self._stack and not self._deeper:
            self._stack[-1].text += text

    def close(self) -> None:
        """The text is over."""


def _element(text: str) -> _Element | None:
    """The first element of ``text`` with what ended inside it, a fault or early end notwithstanding."""
    builder = _Builder()
    parser = ElementTree.XMLParser(target=builder)  # noqa: S314 (one element, no document type: no entity can be declared; the builder bounds depth)
    try:
        parser.feed(text)
        parser.close()
    except ElementTree.ParseError:
        pass
    root = builder.root
    if root is not None and not root.ended:
        # an open group would be half a set
        root.children = [child for child in root.children if child.ended or child.tag == root.tag]
    return root


def _leaves(root: _Element) -> Iterator[tuple[str, str]]:
    """Path and text of every element without children; an element right inside one of its own name (a line printed twice) counts once."""
    stack = [(child, child.tag) for child in reversed(root.children)]
    while stack:
        element, path = stack.pop()
        if not element.children:
            yield path, element.text.strip()
        for child in reversed(element.children):
            same = child.tag == element.tag
            stack.append((child, path if same else f"{path}/{child.tag}"))


def _inner(root: _Element) -> _Element:
    """The element itself, however often its first line was printed."""
    while len(root.children) == 1 and root.children[0].tag == "gpu":
        root = root.children[0]
    return root


def _board(root: _Element, address: str) -> Board:
    root = _inner(root)
    board = Board(processes=_processes(root), slices=_slices(root))
    for path, text in _leaves(root):
        name = XML.get(path)
        if name is not None:
            board.offer(name, text)
        elif not path.startswith(_LISTS):
            board.extra.setdefault(path.replace("/", "."), text)
    if address:
        board.offer("pci.bus_id", address)
    return board


def _slices(root: _Element) -> list[Slice]:
    found: dict[tuple[str | None, ...], Slice] = {}
    for element in root.iter("mig_device"):
        one = Slice()
        fields: Fields = {}
        for path, text in _leaves(element):
            if path in _SLICE:
                if getattr(one, _SLICE[path]) is None:
                    setattr(one, _SLICE[path], text)
            elif path in _SLICE_FIELDS:
                fields.setdefault(_SLICE_FIELDS[path], text)
        one.fields = fields
        if one.index is not None or one.gpu_instance is not None:
            found.setdefault(one.key, one)
    return list(found.values())


def _processes(root: _Element) -> list[Process] | None:
    section = next((child for child in root.children if child.tag == "processes"), None)
    if section is None:
        return None
    found: dict[tuple[str, str | None], Process] = {}
    for element in section.iter("process_info"):
        parts = dict(_leaves(element))
        pid = parts.get("pid", "")
        if not pid.isdecimal():
            continue
        one = Process(
            pid=pid,
            name=parts.get("process_name"),
            memory=parts.get("used_memory"),
            kind=parts.get("type"),
            gpu_instance=parts.get("gpu_instance_id"),
            compute_instance=parts.get("compute_instance_id"),
        )
        found.setdefault((pid, one.gpu_instance), one)
    return list(found.values())
