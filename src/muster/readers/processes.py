# SPDX-License-Identifier: Apache-2.0
"""Ending processes for good, and remembering those that do not end.

A driver call can hang so that not even KILL ends the process. Then no second one is started beside it:
the adapter's reads are refused until the first is really gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Process: TypeAlias = "subprocess.Popen[Any]"

GRACE_S = 2.0
"""Seconds that a process has to end after TERM, and again after KILL."""


def end(process: Process, grace: float = GRACE_S) -> bool:
    """Ends the process and its group: TERM, then KILL. True when it is gone, False when it outlived both."""
    signal_group(process, signal.SIGTERM)
    if not wait(process, grace):
        signal_group(process, signal.SIGKILL)
        return wait(process, grace)
    return True


def wait(process: Process, seconds: float) -> bool:
    """True when the process ended within ``seconds``; whatever it left in its group is killed before it is reaped."""
    until = time.monotonic() + seconds
    while not exited(process):
        if time.monotonic() >= until:
            return False
        time.sleep(0.005)
    if process.returncode is None:
        signal_group(process, signal.SIGKILL)
        process.wait()
    return True


def exited(process: Process) -> bool:
    """True when the process has ended; it is not reaped, so that its group keeps its number."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        process.poll()
        return True


def signal_group(process: Process, number: signal.Signals) -> None:
    """Sends a signal to all processes of the group that ``process`` leads; none left is no error."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


@dataclass(frozen=True, slots=True)
class Stuck:
    """A process that outlived KILL: what it was doing, its number, and since when (monotonic seconds)."""

    what: str
    pid: int
    since: float

    def __str__(self) -> str:
        return f"{self.what} (process {self.pid}) has not ended for {time.monotonic() - self.since:.0f} s, although it was killed"


class Custody:
    """One turn at a time per adapter, and the processes of each adapter that would not end. Shared by all readers that start processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._stuck: dict[str, tuple[Process, Stuck]] = {}

    @contextlib.contextmanager
    def turn(self, adapter: str, until: float) -> Iterator[str]:
        """Holds the adapter's turn until the block ends. Gives why it may not start (an empty text when it may); ``until`` is in monotonic seconds."""
        with self._lock:
            turn = self._turns.setdefault(adapter, threading.Lock())
        held = turn.acquire(timeout=max(until - time.monotonic(), 0))
        try:
            yield self._refusal(adapter, held, until)
        finally:
            if held:
                turn.release()

    def _refusal(self, adapter: str, held: bool, until: float) -> str:
        stuck = self.stuck(adapter)
        if stuck is not None:
            return f"not started: {stuck}"
        return "" if held and time.monotonic() < until else "not started: the time of this source was used up while another read of it went on"

    def keep(self, adapter: str, process: Process, what: str) -> Stuck:
        """Remembers a process that outlived KILL."""
        stuck = Stuck(what, process.pid, time.monotonic())
        with self._lock:
            self._stuck[adapter] = (process, stuck)
        return stuck

    def stuck(self, adapter: str) -> Stuck | None:
        """The process that the adapter still waits for; None when there is none, or when it is gone at last."""
        with self._lock:
            entry = self._stuck.get(adapter)
            if entry is None:
                return None
            process, stuck = entry
            if not wait(process, 0):
                return stuck
            del self._stuck[adapter]
            return None

    def all_stuck(self) -> dict[str, Stuck]:
        """Every adapter that waits for a process that will not end, for the agent's own findings."""
        found = {adapter: self.stuck(adapter) for adapter in tuple(self._stuck)}
        return {adapter: stuck for adapter, stuck in found.items() if stuck is not None}
