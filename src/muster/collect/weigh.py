# SPDX-License-Identifier: Apache-2.0
"""What the agent itself takes: memory and processor time of all its processes, from ``/proc``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

_PROC = Path("/proc")


SELDOM_S = 300.0
"""Seconds after which memory is counted again, where it has been for long: the count goes through all pages."""

OFTEN_S = 60.0
"""The same at the beginning."""


class Scales:
    """Memory of a process and its children, as it was counted last: the younger the process, the more often."""

    def __init__(self, pid: int, mono: Callable[[], float], count: Callable[[int], int] | None = None) -> None:
        self._pid = pid
        self._mono = mono
        self._count = count or memory
        self._began = mono()
        self._next = self._began
        self._last = 0

    def memory(self) -> int:
        """Bytes."""
        now = self._mono()
        if now >= self._next:
            self._next = now + min(max(now - self._began, OFTEN_S), SELDOM_S) - 1.0
            self._last = self._count(self._pid)
        return self._last


def memory(pid: int, proc: Path = _PROC) -> int:
    """Bytes of a process and all its children, each page shared counted in part."""
    return sum(_proportion(each, proc) for each in (pid, *children(pid, proc)))


def processor(pid: int, proc: Path = _PROC) -> float:
    """Seconds of processor time of a process and its children, those that ended and were waited for included."""
    return sum(_seconds(each, proc) for each in (pid, *children(pid, proc)))


def children(pid: int, proc: Path = _PROC) -> Iterator[int]:
    """Children of a process, and theirs."""
    for task in _listed(proc / str(pid) / "task"):
        for word in _text(task / "children").split():
            yield int(word)
            yield from children(int(word), proc)


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _proportion(pid: int, proc: Path) -> int:
    for name in ("smaps_rollup", "status"):
        for line in _text(proc / str(pid) / name).splitlines():
            words = line.split()
            if words[:1] in (["Pss:"], ["VmRSS:"]) and len(words) == 3:
                return int(words[1]) * 1024
    return 0


def _seconds(pid: int, proc: Path) -> float:
    """User and system time, own and of children that were waited for: fields 14 to 17 behind the name in brackets."""
    fields = _text(proc / str(pid) / "stat").rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK") if len(fields) > 14 else 0.0
