# SPDX-License-Identifier: Apache-2.0
"""Which agent holds a state folder: one at a time does, and others see which process it is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from muster.domain.model.errors import Conflict, NotAllowed, Unavailable

LOCK = "lock"
TRIES, PAUSE_S = 5, 0.05
"""Whoever only looks holds the lock for a moment: it is tried again."""


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds the folder. Raises Conflict when another agent does, Unavailable when it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        why = "it is no folder" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise Unavailable(f"{folder}: {why}", hint="name another folder with --state or MUSTER_STATE") from error
    try:
        if not _taken(handle, TRIES):
            raise Conflict(f"another agent uses {folder}", hint="stop it, or name another folder with --state or MUSTER_STATE")
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def holder(folder: Path) -> int | None:
    """The process that holds the folder; None when nobody does. Raises NotAllowed when that may not be seen."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NotAllowed(f"{folder / LOCK}: {error.strerror}", hint="run this as the user of the agent, or as root") from error
    try:
        if not _taken(handle, 1):
            text = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
            return int(text) if text.isdecimal() else None
    finally:
        os.close(handle)
    return None


def running(folder: Path) -> int | None:
    """The process that holds the folder; None when nobody does, or when that may not be seen."""
    with contextlib.suppress(NotAllowed):
        return holder(folder)
    return None


def _taken(handle: int, tries: int) -> bool:
    for left in reversed(range(tries)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if left:
                time.sleep(PAUSE_S)
        else:
            return True
    return False
