# SPDX-License-Identifier: Apache-2.0
"""Tells the service manager that we are up and well, by the socket it names (``NOTIFY_SOCKET``). Without one nothing happens."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping


class Notify:
    """Says ``READY=1`` once and ``WATCHDOG=1`` as often as the manager wants it, twice as often to be safe."""

    def __init__(self, environ: Mapping[str, str], mono: Callable[[], float]) -> None:
        self._path = environ.get("NOTIFY_SOCKET", "")
        self._mono = mono
        micros = environ.get("WATCHDOG_USEC", "")
        self._every = int(micros) / 2e6 if micros.isdecimal() and int(micros) > 0 else float("inf")
        self._next = float("-inf")

    def ready(self) -> None:
        """We are up."""
        self._say("READY=1")

    def alive(self) -> float:
        """We go on; said when it is time. Gives the seconds after which it must be said again; infinite where nobody wants to hear it."""
        if self._every == float("inf"):
            return self._every
        now = self._mono()
        if now >= self._next:
            self._next = now + self._every
            self._say("WATCHDOG=1")
        return self._next - now

    def stopping(self) -> None:
        """We end."""
        self._say("STOPPING=1")

    def _say(self, text: str) -> None:
        if not self._path:
            return
        path = f"\0{self._path[1:]}" if self._path.startswith("@") else self._path
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.settimeout(1)
            to.sendto(text.encode(), path)
