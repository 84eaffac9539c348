# SPDX-License-Identifier: Apache-2.0
"""How a client on this machine finds the server without being told: a small file beside the socket, in a folder that only its user or root can write.

Clients read it themselves, without this module: `interfaces.cli.client`, `collect.post`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "server.json"
SOCKET = "muster.sock"
SYSTEM = Path("/run/muster")
"""The folder of a server that runs as a service: only root can make it, so whoever it was made for is believed."""


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


def read(runtime: Path) -> Found | None:
    """What the file says; None when there is none, it is garbled, or another user wrote it."""
    path = runtime / FILE
    try:
        if path.stat().st_uid not in (0, os.geteuid()) and path.parent != SYSTEM:
            return None
        told = json.loads(path.read_text(encoding="utf-8"))
        return Found(url=str(told["url"]), socket=str(told["socket"]), pid=int(told["pid"]), state=str(told["state"]), version=str(told["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
