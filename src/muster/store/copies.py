# SPDX-License-Identifier: Apache-2.0
"""Copies of a store: taken while a server writes it, and put back in its place. A copy is a folder of files that one kind of store understands."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from muster.domain.model.errors import InputError, NotFound, Unavailable
from muster.store.files import BESIDE
from muster.store.opening import Place
from muster.store.troubles import told

MAIN = "roll.sqlite"
"""The copy of a store's file."""
MINUTES = "minutes"
"""The folder of its segments."""
_PRESENT = (*BESIDE, "-journal", "-numbers", "-minutes")
"""Ends of the names of what lies beside a store's file and goes with it."""


def take(place: Place, folder: Path) -> Iterator[Path]:
    """Copies the store into ``folder``, file by file as they are asked for. Raises NotFound when there is none, Unavailable when it cannot be read."""
    if isinstance(place, Path):
        yield from _take_file(place, folder)
    elif place is None:
        raise InputError("a store in memory cannot be copied", hint="leave out --in-memory")
    else:
        from muster.store import dumps  # only who has such a database needs its tools

        yield dumps.take(place, folder)


def put(place: Place, folder: Path, stamp: str) -> list[Path]:
    """Puts the copy in ``folder`` in the place of the store; returns where what was there lies now. Nobody may have the store open.

    Raises InputError for a copy of another kind of store, Unavailable when it cannot be put there.
    """
    if isinstance(place, Path):
        return _put_file(place, folder, stamp)
    if place is None:
        raise InputError("a store in memory cannot be restored", hint="leave out --in-memory")
    from muster.store import dumps

    dumps.put(place, folder)
    return []


def _take_file(place: Path, folder: Path) -> Iterator[Path]:
    if not place.is_file():
        raise NotFound(f"no store at {place}", hint="name its folder with --state")
    yield _copied(place, folder / MAIN)  # rows first and segments after them: what was packed meanwhile is in both, and counts once
    segments = place.with_name(f"{place.name}-minutes")
    for segment in sorted(segments.glob("*.segment")) if segments.is_dir() else ():
        try:
            yield _copied(segment, folder / MINUTES / segment.name)
        except NotFound:
            continue  # it was dropped for its age


def _copied(file: Path, target: Path) -> Path:
    """A copy as of one moment, of a file that others may be writing."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.touch(mode=0o600)
    if not file.exists():
        raise NotFound(f"{file} is gone")
    with told(str(file)), closing(_opened(file)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
    return target


def _opened(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=10.0)
    connection.execute("PRAGMA query_only=ON")
    return connection


def _put_file(place: Path, folder: Path, stamp: str) -> list[Path]:
    main = folder / MAIN
    if not main.is_file():
        raise InputError("it is a copy of another kind of store", hint="restore it into a PostgreSQL database, as it came from one")
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    coming = place.with_name(f"{place.name}.coming")
    try:
        _moved(main, coming)
        moved = _aside(place, stamp)
        if (folder / MINUTES).is_dir():
            shutil.copytree(folder / MINUTES, place.with_name(f"{place.name}-minutes"))
        coming.replace(place)
        _settle(place.parent)
    except OSError as error:
        raise Unavailable(f"the copy cannot be put at {place}: {error.strerror or error}", hint="make room on its disk and try again") from error
    return moved


def _moved(file: Path, to: Path) -> None:
    shutil.copyfile(file, to)
    to.chmod(0o600)
    with to.open("rb+") as written:
        os.fsync(written.fileno())


def _aside(place: Path, stamp: str) -> list[Path]:
    """Moves the store that is there, and what goes with it, out of the way; nothing is removed."""
    moved = []
    for end in (*_PRESENT, ""):
        there = place.with_name(place.name + end)
        if there.exists():
            moved.append(there.rename(there.with_name(f"{place.name}.before-{stamp}{end}")))
    return moved[::-1]


def _settle(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
