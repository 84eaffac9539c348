# SPDX-License-Identifier: Apache-2.0
"""Files of the node, flattened to one text. Runs inside a worker, because a read of a driver's file can hang.

The text has one line per line of a file: ``path: content``. What is no plain file, or cannot be read, has one line with a mark:

- ``path: -> target``: a symbolic link to a folder or to nothing, as the link says it (a link to a file is read as that file)
- ``path: !not_permitted``, ``path: !error EIO``: the read failed; ``!error ENODEV`` and the like name the reason
- ``path: !directory``, ``path: !device``: it is there, and there is nothing to read in it
- ``path: !cut``: after the lines of a file longer than `FILE_LIMIT`
"""

from __future__ import annotations

import errno
import glob
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

FILE_LIMIT = 64 * 1024
"""Bytes read of one file."""

FILES_LIMIT = 20_000
"""Files told of one read."""

TEXT_LIMIT = 8 * 1024 * 1024
"""Bytes of the text; behind it the read is cut."""

_BRACES = re.compile(r"\{([^{}]*)\}")
_DIGITS = re.compile(r"(\d+)")
_DENIED = frozenset({errno.EACCES, errno.EPERM})


def read(root: str, *patterns: str) -> dict[str, Any]:
    """The files under ``root`` that match ``patterns`` (globs with ``*``, ``?``, ``[..]`` and ``{a,b}``), in natural order of their paths.

    Gives ``{"text": str, "cut": bool, "files": int}``; bytes that are no UTF-8 stand in the text as lone surrogates.
    """
    lines: list[str] = []
    size = files = 0
    for path in itertools.islice(_matches(root, patterns), FILES_LIMIT):
        files += 1
        for line in _told(root, path):
            lines.append(f"{path}: {line}\n")
            size += len(lines[-1])
        if size > TEXT_LIMIT:
            break
    text = "".join(lines)
    return {"text": text, "cut": size > TEXT_LIMIT or files == FILES_LIMIT, "files": files}


def expand(pattern: str) -> list[str]:
    """``a{b,c}`` as ``ab`` and ``ac``; braces may follow one another and may stand in each other."""
    match = _BRACES.search(pattern)
    if match is None:
        return [pattern]
    head, tail = pattern[: match.start()], pattern[match.end() :]
    return list(itertools.chain.from_iterable(expand(head + choice + tail) for choice in match.group(1).split(",")))


def _matches(root: str, patterns: Sequence[str]) -> list[str]:
    prefix = root.rstrip("/")
    found: set[str] = set()
    for pattern in itertools.chain.from_iterable(expand(pattern) for pattern in patterns):
        found.update(path[len(prefix) :] for path in glob.iglob(glob.escape(prefix) + "/" + pattern.lstrip("/")))
    return sorted(found, key=_natural)


def _natural(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in _DIGITS.split(path)]


def _told(root: str, path: str) -> Iterable[str]:
    full = root.rstrip("/") + path
    try:
        return _lines_of(full)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        return ["!not_permitted"] if error.errno in _DENIED else [f"!error {name}"]


def _lines_of(full: str) -> Iterable[str]:
    if os.path.islink(full) and not os.path.isfile(full):
        return [f"-> {os.readlink(full)}"]
    mode = os.stat(full).st_mode
    if stat.S_ISDIR(mode):
        return ["!directory"]
    if not stat.S_ISREG(mode):
        return ["!device"]
    return list(_content(full))


def _content(full: str) -> Iterator[str]:
    handle = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        data = b""
        while len(data) <= FILE_LIMIT and (more := os.read(handle, FILE_LIMIT + 1 - len(data))):
            data += more
    finally:
        os.close(handle)
    text = data[:FILE_LIMIT].decode("utf-8", "surrogateescape")
    yield from text.removesuffix("\n").split("\n")
    if len(data) > FILE_LIMIT:
        yield "!cut"
