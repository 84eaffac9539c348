# SPDX-License-Identifier: Apache-2.0
"""Indented "key : value" text, as management tools print it, read into a tree.

The same key stands in many sections of such a text ("Current", "Max", "Total"), so a value is found by its path, never by its key alone.

What is understood, line by line:

- ``Key   : value`` and ``KEY: value``: the first colon that is followed by a blank or the end of the line parts key and value,
  so ``GPU 00000000:01:00.0`` is a key without a value;
- a line that is indented further than the one before it belongs to that one; tabs count to the next multiple of eight;
- the same key may come again: each is kept, in order (`Node.all`), and a path looks through all of them (`Node.find`), so a line printed twice hides nothing;
- pairs that repeat flat (``ID: 0``, ``NAME: a``, ``ID: 1``, ``NAME: b``) are parted by `Node.records`;
- ``- key: value`` opens a list item: a node with the key ``-`` that holds the rest;
- a value that opens a bracket and does not close it goes on in the lines below until it does (`items` parts it).

Keys are compared without case, with runs of blanks and underscores as one blank. Nothing raises: what is no pair is a key without a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.formats.text import decode, lines

DEPTH_LIMIT = 32
"""Levels that are kept apart; deeper lines become brothers at this level."""
CONTINUATION_LIMIT = 64
"""Lines that a bracketed value may go on for."""

_PAIR = re.compile(r"(?:(?<!\s)\s+)?:(?:\s+|$)")
_BLANKS = re.compile(r"[\s_]+")


def fold(key: str) -> str:
    """The form in which two spellings of a key are compared."""
    return _BLANKS.sub(" ", key).strip().lower()


@dataclass(slots=True, eq=False)
class Node:
    """One line and what is indented below it.

    ``value`` is the text behind the colon ("" when nothing stands there), or None when the line has no colon. ``line`` counts from 1; the root's is 0.
    """

    key: str
    value: str | None = None
    line: int = 0
    children: list[Node] = field(default_factory=list, repr=False)
    _by_key: dict[str, list[Node]] = field(default_factory=dict, repr=False)

    def add(self, child: Node) -> Node:
        """Hangs ``child`` under this node and returns it."""
        self.children.append(child)
        self._by_key.setdefault(fold(child.key), []).append(child)
        return child

    def all(self, key: str) -> list[Node]:
        """Children with this key, in order."""
        return self._by_key.get(fold(key), [])

    def find(self, *path: str) -> Iterator[Node]:
        """Every node at ``path`` below this one, in order of appearance, through all lines that share a key."""
        found: list[Node] = [self]
        for key in path:
            found = [child for node in found for child in node.all(key)]
        return iter(found)

    def at(self, *path: str) -> Node | None:
        """The first node at ``path`` below this one that has a value or children; else the first; None when there is none."""
        first = None
        for node in self.find(*path):
            if node.value or node.children:
                return node
            first = first or node
        return first

    def text(self, *path: str) -> str | None:
        """The value at ``path``: the first that is not blank, else "" where only blank ones stand, else None (the text does not speak of it)."""
        blank = None
        for node in self.find(*path):
            if node.value:
                return node.value
            if node.value is not None:
                blank = node.value
        return blank

    def starting(self, prefix: str) -> list[Node]:
        """Children whose key starts with ``prefix`` ("GPU ")."""
        start = prefix.lower()
        return [child for child in self.children if child.key.lower().startswith(start)]

    def walk(self) -> Iterator[tuple[tuple[str, ...], Node]]:
        """Every node below this one with its path, in the order of the text."""
        stack: list[tuple[tuple[str, ...], Node]] = [((child.key,), child) for child in reversed(self.children)]
        while stack:
            path, node = stack.pop()
            yield path, node
            stack.extend(((*path, child.key), child) for child in reversed(node.children))

    def records(self, *starts: str) -> list[Node]:
        """Children parted into records, each a node of its own; a new record begins where one of ``starts``, or a key that the record has already, comes.

        With ``starts`` only those begin a record, and children before the first of them are left out.
        """
        wanted = {fold(start) for start in starts}
        parts: list[Node] = []
        for child in self.children:
            key = fold(child.key)
            fresh = key in wanted if wanted else not parts or bool(parts[-1].all(child.key))
            if fresh:
                parts.append(Node(child.key, child.value, child.line))
            if parts:
                parts[-1].add(child)
        return parts

    def as_dict(self) -> dict[str, object]:
        """Plain values for keeping: key to text, to a dict where there are children, to a list where the key repeats."""
        told: dict[str, object] = {}
        for child in self.children:
            value: object = child.as_dict() if child.children else (child.value or "")
            if child.key not in told:
                told[child.key] = value
                continue
            old = told[child.key]
            told[child.key] = [*old, value] if isinstance(old, list) else [old, value]
        return told


def parse(payload: bytes | str) -> Node:
    """The root of the tree in ``payload``; its key is empty. Reads any text; what comes out of one that is no tree is a flat row of keys."""
    rows = lines(payload) if isinstance(payload, bytes) else lines(payload.encode("utf-8", errors="replace"))
    root = Node("")
    stack: list[tuple[int, Node]] = [(-1, root)]
    at = 0
    while at < len(rows):
        row, used = _whole(rows, at)
        _place(stack, row, at + 1)
        at += used
    return root


def _place(stack: list[tuple[int, Node]], row: str, line: int) -> None:
    text = row.expandtabs(8)
    bare = text.lstrip()
    if not bare:
        return
    indent = len(text) - len(bare)
    while bare.startswith("- ") and len(stack) < DEPTH_LIMIT:
        _hang(stack, indent, Node("-", None, line))
        rest = bare[2:].lstrip()
        indent += len(bare) - len(rest)
        bare = rest
    if bare:
        _hang(stack, indent, _node(bare.rstrip(), line))


def _hang(stack: list[tuple[int, Node]], indent: int, node: Node) -> None:
    while stack[-1][0] >= indent:
        stack.pop()
    stack[-1][1].add(node)
    if len(stack) < DEPTH_LIMIT:
        stack.append((indent, node))


def _node(text: str, line: int) -> Node:
    match = _PAIR.search(text)
    if match is None or match.start() == 0:
        return Node(text, None, line)
    return Node(text[: match.start()], text[match.end() :].strip(), line)


def _whole(rows: list[str], at: int) -> tuple[str, int]:
    """The row at ``at`` with the rows that go on with its bracketed value, and how many rows that took."""
    row = rows[at]
    match = _PAIR.search(row)
    if match is None or not row[match.end() :].startswith("[") or row.count("[") <= row.count("]"):
        return row, 1
    for more in range(1, min(CONTINUATION_LIMIT, len(rows) - at)):
        follows = rows[at + more].strip()
        if not follows or _PAIR.search(follows):
            break
        row += " " + follows
        if row.count("[") <= row.count("]"):
            return row, more + 1
    return rows[at], 1


def items(value: str) -> list[str]:
    """The parts of a bracketed list (``[0 %, N/A]``), or the one value where there is no bracket; brackets inside brackets stay together."""
    text = value.strip()
    if not text.startswith("["):
        return [text] if text else []
    text = text[1:-1] if text.endswith("]") else text[1:]
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "[(") - (sign in "])")
        if sign == "," and depth <= 0:
            parts.append(text[start:place].strip())
            start = place + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def looks_like(head: bytes) -> bool:
    """True when at least a third of the first lines are pairs, and some line is indented below another."""
    seen = [line for line in decode(head[:16384]).split("\n")[:200] if line.strip()]
    pairs = sum(1 for line in seen if _PAIR.search(line))
    return pairs * 3 >= len(seen) > 1 and any(line[0] in " \t" for line in seen[1:])
