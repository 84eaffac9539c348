# SPDX-License-Identifier: Apache-2.0
"""The newest numbers in arrays, in a file that other processes of the machine map, or in memory alone.

The file is only a mirror: the writer makes it anew at each start and whenever it must grow, and puts it in place whole. It says in the old one that it
is retired; a reader that sees this opens the new one. A number is eight aligned bytes, so none is ever seen half written; a reader may see one round of a
source begun and not ended, never a number that was not committed.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muster.store.pack import Floats, Ints

_MAGIC = b"MUSTERN1"
_HEAD = 4096
_SIZES = struct.Struct("<8sQQ")
_RETIRED, _LAYOUTS, _JOINS, _PLACES = 4, 5, 6, 7
"""Words of the head: not 0 when another file took its place; the last layout; how often cards were joined; how often places changed."""
_BY_SLOT = ("layout", "offset", "at", "since", "again_at")
_BY_NUMBER = ("newest", "told")
NONE = -np.inf
"""Time of what was never told."""


class Arrays:
    """Arrays by slot and by number, all of them eight bytes wide. ``path`` None: in memory."""

    def __init__(self, buffer: mmap.mmap | bytearray, slots: int, numbers: int) -> None:
        self.slots, self.numbers = slots, numbers
        self._buffer = buffer
        self._head: Ints = np.frombuffer(buffer, np.int64, _HEAD // 8)
        at = _HEAD
        found: dict[str, NDArray[np.generic]] = {}
        for names, size in ((_BY_SLOT, slots), (_BY_NUMBER, numbers)):
            for name in names:
                found[name] = np.frombuffer(buffer, np.int64 if name in ("layout", "offset") else np.float64, size, at)
                at += 8 * size
        self.layout: Ints = found["layout"].view(np.int64)
        """Number of the layout that holds for the slot; 0 for none."""
        self.offset: Ints = found["offset"].view(np.int64)
        """Where its numbers stand."""
        self.at: Floats = found["at"].view(np.float64)
        self.since: Floats = found["since"].view(np.float64)
        self.again_at: Floats = found["again_at"].view(np.float64)
        self.newest: Floats = found["newest"].view(np.float64)
        """NaN: not told."""
        self.told: Floats = found["told"].view(np.float64)
        """When each was told; NONE: never."""

    @property
    def retired(self) -> bool:
        """True when another file took the place of this one."""
        return bool(self._head[_RETIRED])

    @property
    def layouts(self) -> int:
        """The last layout that was given."""
        return int(self._head[_LAYOUTS])

    @layouts.setter
    def layouts(self, number: int) -> None:
        self._head[_LAYOUTS] = number

    @property
    def joins(self) -> int:
        """How often cards were joined or vanished."""
        return int(self._head[_JOINS])

    @joins.setter
    def joins(self, many: int) -> None:
        self._head[_JOINS] = many

    @property
    def places(self) -> int:
        """Grows when slots are given other places: odd while it is being done."""
        return int(self._head[_PLACES])

    @places.setter
    def places(self, number: int) -> None:
        self._head[_PLACES] = number

    def retire(self) -> None:
        """Says to readers that another file takes the place of this one."""
        self._head[_RETIRED] = 1

    def take(self, other: Arrays) -> None:
        """What another, smaller one has."""
        for name in _BY_SLOT:
            getattr(self, name)[: other.slots] = getattr(other, name)
        for name in _BY_NUMBER:
            getattr(self, name)[: other.numbers] = getattr(other, name)
        self.layouts, self.joins = other.layouts, other.joins


def blank(path: Path | None, slots: int, numbers: int) -> Arrays:
    """Empty arrays; in a file that is not yet in its place (`publish`) where there is a ``path``. Raises OSError when the disk has no room for it."""
    size = _HEAD + 8 * (len(_BY_SLOT) * slots + len(_BY_NUMBER) * numbers)
    buffer: mmap.mmap | bytearray = bytearray(size) if path is None else _made(_beside(path), size)
    struct.pack_into(_SIZES.format, buffer, 0, _MAGIC, slots, numbers)
    arrays = Arrays(buffer, slots, numbers)
    for each in (arrays.at, arrays.since, arrays.again_at, arrays.newest):
        each.fill(np.nan)
    arrays.told.fill(NONE)
    return arrays


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _made(path: Path, size: int) -> mmap.mmap:
    """A file of our own whose bytes are all there: a full disk is said now, and not by a signal at some write."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.posix_fallocate(handle, 0, size)
        return mmap.mmap(handle, size)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def publish(path: Path) -> None:
    """Puts the file that `blank` made in its place, and sends readers of the one before to it."""
    before = opened(path, write=True)
    _beside(path).replace(path)
    if before is not None:
        before.retire()


def withdraw(path: Path) -> None:
    """Takes the file away: readers go to the rows of the store."""
    before = opened(path, write=True)
    path.unlink(missing_ok=True)
    if before is not None:
        before.retire()


def opened(path: Path, *, write: bool = False) -> Arrays | None:
    """The arrays of a file; None when there is none, or one of another form."""
    try:
        with path.open("r+b" if write else "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _HEAD:
                return None
            buffer = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_WRITE if write else mmap.ACCESS_READ)
    except OSError:
        return None
    magic, slots, numbers = _SIZES.unpack_from(buffer)
    if magic != _MAGIC or size != _HEAD + 8 * (len(_BY_SLOT) * slots + len(_BY_NUMBER) * numbers):
        return None
    return Arrays(buffer, slots, numbers)
