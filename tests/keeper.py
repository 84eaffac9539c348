# SPDX-License-Identifier: Apache-2.0
"""No process that a test began outlives the tests, however these end: also by Ctrl-C, SIGTERM or SIGKILL.

Each process has a mark in its environment. A shell waits at a pipe that only this process holds open, and ends all that have the mark when it is closed.
"""

from __future__ import annotations

import os
import subprocess
import time
from functools import wraps
from typing import Any

import pytest

MARK = "BEGUN_BY_TESTS"
_KEEPER = f"""
exec 3<&0
(
  read -r _ <&3
  for signal in TERM KILL; do
    found=$(grep -lzxF "{MARK}=$1" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n')
    [ -n "$found" ] || exit 0
    kill -$signal $found
    [ $signal = KILL ] || sleep 2
  done
) &
"""


def guard() -> None:
    """Begins to keep watch over this process. The watch is no child of it, and nothing of it is left in the way."""
    mark = f"{os.getpid()}-{time.time_ns()}"
    _watch(mark)
    os.environ[MARK] = mark
    plain: Any = subprocess.Popen.__init__

    @wraps(plain)
    def begun(self: Any, *words: Any, env: Any = None, **more: Any) -> None:
        plain(self, *words, env=env if env is None else {**env, MARK: mark}, **more)

    pytest.MonkeyPatch().setattr(subprocess.Popen, "__init__", begun)


def _watch(mark: str) -> None:
    listening, _ = os.pipe()  # the other end is closed when this process is gone
    clean = {name: value for name, value in os.environ.items() if name != MARK}
    quiet = [(os.POSIX_SPAWN_OPEN, out, os.devnull, os.O_WRONLY, 0) for out in (1, 2)]
    shell = os.posix_spawn("/bin/sh", ["sh", "-c", _KEEPER, "keeper", mark], clean, file_actions=[(os.POSIX_SPAWN_DUP2, listening, 0), *quiet], setsid=True)
    os.waitpid(shell, 0)
    os.close(listening)
