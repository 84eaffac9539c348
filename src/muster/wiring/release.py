# SPDX-License-Identifier: Apache-2.0
"""Handles of drivers let go on demand, before a reset or a driver upgrade that an open handle blocks: by SIGUSR1, or by a command that waits."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from muster.domain.model.errors import NotAllowed, NotFound, Unavailable
from muster.wiring.lock import holder

ASKED, ANSWERED = "release", "released"
PLAIN_S = 60.0
"""Seconds without a handle when nothing else was said."""
LONGEST_S = 3600.0
ANSWER_S = 15.0
"""Seconds that a command waits for the agent."""


class Releases:
    """The agent's side. ``let_go`` releases for so many seconds and gives the adapters that hold nothing now."""

    def __init__(self, folder: Path, let_go: Callable[[float], list[str]]) -> None:
        self._folder = folder
        self._let_go = let_go
        self._asked = threading.Event()

    def listen(self, wake: Callable[[], None]) -> None:
        """Hears SIGUSR1 from now on, and calls ``wake`` then; in the main thread only."""

        def heard(*_: object) -> None:
            self._asked.set()
            wake()

        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGUSR1, heard)

    def look(self) -> None:
        """Lets go when it was asked to."""
        if not self._asked.is_set():
            return
        self._asked.clear()
        told = _read(self._folder / ASKED)
        seconds = told.get("seconds")
        adapters = self._let_go(min(float(seconds), LONGEST_S) if isinstance(seconds, int | float) and seconds > 0 else PLAIN_S)
        with contextlib.suppress(OSError):
            (self._folder / ASKED).unlink(missing_ok=True)
            _write(self._folder / ANSWERED, {"asked": told.get("asked", ""), "adapters": adapters})


def release(folder: Path, seconds: float = PLAIN_S) -> list[str]:
    """Asks the agent on ``folder`` to let go for so long; the adapters whose handles are gone.

    Raises NotFound when no agent runs there, NotAllowed when it is another user's, Unavailable when it does not answer.
    """
    pid = holder(folder)
    if pid is None:
        raise NotFound(f"no agent runs on {folder}", hint="`muster agent status` shows it; name its folder with --state")
    asked = f"{os.getpid()}-{time.monotonic_ns()}"
    try:
        _write(folder / ASKED, {"seconds": seconds, "asked": asked})
        os.kill(pid, signal.SIGUSR1)
    except PermissionError as error:
        raise NotAllowed(f"the agent on {folder} is not this user's", hint="run this as the user of the agent, or as root") from error
    except (OSError, ProcessLookupError) as error:
        raise Unavailable(f"the agent on {folder} cannot be asked: {error}", hint="is the disk full?") from error
    until = time.monotonic() + ANSWER_S
    while time.monotonic() < until:
        told = _read(folder / ANSWERED)
        if told.get("asked") == asked:
            adapters = told.get("adapters")
            return [str(each) for each in adapters] if isinstance(adapters, list) else []
        time.sleep(0.05)
    raise Unavailable(f"the agent (process {pid}) did not answer within {ANSWER_S:.0f} s", hint="look into its log: a read of a driver may hang")


def _read(path: Path) -> dict[str, object]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _write(path: Path, told: dict[str, object]) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(told), encoding="utf-8")
    part.replace(path)
