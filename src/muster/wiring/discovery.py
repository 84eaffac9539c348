# SPDX-License-Identifier: Apache-2.0
"""How a client on this machine finds the server without being told: a small file beside the socket, in a folder that only its user or root can write."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from muster.wiring.settings import runtime_folders

FILE = "server.json"
SOCKET = "muster.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A server that says it runs here. ``socket`` is empty when it has none."""

    url: str
    socket: str
    pid: int
    state: str
    version: str


def announce(runtime: Path, found: Found) -> None:
    """Writes the file, whole or not at all."""
    fresh = runtime / f"{FILE}.{os.getpid()}"
    fresh.write_text(json.dumps(asdict(found)) + "\n", encoding="utf-8")
    fresh.replace(runtime / FILE)


def withdraw(runtime: Path, pid: int) -> None:
    """Removes the file, if it is still that of ``pid``."""
    found = read(runtime)
    if found is not None and found.pid == pid:
        (runtime / FILE).unlink(missing_ok=True)


def find_server(folders: Iterable[Path] | None = None) -> Found | None:
    """The first server whose process is alive, or None. Files of other users than root and ourselves are not believed."""
    for folder in runtime_folders(os.environ) if folders is None else folders:
        found = read(folder)
        if found is not None and alive(found.pid):
            return found
    return None


def read(runtime: Path) -> Found | None:
    """What the file says; None when there is none, it is garbled, or another user wrote it."""
    path = runtime / FILE
    try:
        if path.stat().st_uid not in (0, os.geteuid()):
            return None
        told = json.loads(path.read_text(encoding="utf-8"))
        return Found(url=str(told["url"]), socket=str(told["socket"]), pid=int(told["pid"]), state=str(told["state"]), version=str(told["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def alive(pid: int) -> bool:
    """True when a process of that number runs."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
