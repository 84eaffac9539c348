# SPDX-License-Identifier: Apache-2.0
"""Flattened files of the kernel to lines by path: ``path: line``, ``path:line``, ``path:`` and an indented block, ``== path`` or ``==> path <==`` above."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muster.formats.text import lines

Files = dict[str, list[str]]

_HEAD = re.compile(r"^==>? (\S.*?)(?: <==)?\s*$")
_TIGHT = re.compile(r"^(/(?:[^/\s]+/)+[^/:\s]+):(.*)$")
_PATH = re.compile(r"^((?:/|\./)?[A-Za-z0-9_.@:+-]+(?:/[A-Za-z0-9_.@:+-]+)*):(?:\s(.*))?$")
REFUSED = "!"
"""A line that begins so is the reader's word for a file that it could not read."""


def files(payload: bytes) -> Files:
    """Lines by path, in order. A line that names no path belongs to the file above it."""
    told: Files = {}
    current: str | None = None
    for line in lines(payload):
        head = _HEAD.match(line)
        if head is not None:
            current = head.group(1)
            told.setdefault(current, [])
            continue
        match = (_PATH.match(line) or _TIGHT.match(line)) if line[:1] not in (" ", "\t") else None
        if match is not None and _is_path(match.group(1), current):
            current = match.group(1)
            content = match.group(2)
            told.setdefault(current, [])
            if content is not None and content.strip():
                told[current].append(content.strip())
        elif current is not None and line.strip() and not line.startswith("#"):
            told[current].append(line.strip())
    return told


def _is_path(text: str, current: str | None) -> bool:
    """True for a path; a key of a file's own lines ("ue: 1") is none."""
    return "/" in text or current is None


def one(found: Mapping[str, list[str]], path: str) -> str | None:
    """The single line of a file, "" when it is empty, None when it was not read."""
    rows = found.get(path)
    return None if rows is None else rows[0] if rows else ""


def below(found: Mapping[str, list[str]], folder: str) -> Files:
    """The files below ``folder``, by their path from there."""
    start = folder.rstrip("/") + "/"
    return {path[len(start) :]: rows for path, rows in found.items() if path.startswith(start)}


def properties(rows: list[str]) -> dict[str, str]:
    """``name value`` lines as a mapping; the first print of a name counts."""
    told: dict[str, str] = {}
    for row in rows:
        name, _, value = row.partition(" ")
        if value.strip():
            told.setdefault(name, value.strip())
    return told
