# SPDX-License-Identifier: Apache-2.0
"""Which process took something, in words that another of the same machine can check: whether that one still is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_DEAD = frozenset("ZX")
"""States of a process that has ended and that nobody has fetched yet."""


def mark() -> str:
    """This process, as none other ever was or will be; empty where that cannot be told. Made of the machine's boot, the space that its number is of, the
    number, and when it began.
    """
    with suppress(OSError):
        if os.readlink("/proc/self") == str(os.getpid()) and (began := _seen(os.getpid())):
            return f"{_here()} {os.getpid()} {began[1]}"
    return ""


def gone(marked: str) -> bool:
    """True when the process can be no more: it ran here since the machine was started, and is not there. False also where nobody can tell."""
    boot, space, pid, began = (*marked.split(), "", "", "", "")[:4]
    if not mark().startswith(f"{boot} {space} ") or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # it is somebody else's, or no number of a process
    there = _seen(int(pid))
    return there is not None and (there[0] in _DEAD or there[1] != began)


def _here() -> str:
    """The machine since it was started, and the space of its processes that we are in."""
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()} {os.readlink('/proc/self/ns/pid')}"


def _seen(pid: int) -> tuple[str, str] | None:
    """State of a process, and when it began, in ticks since the machine was started."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return told[0], told[19]
