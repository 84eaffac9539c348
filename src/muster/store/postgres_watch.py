# SPDX-License-Identifier: Apache-2.0
"""A database that is reached but answers nothing holds up the writer only so long: then its line is cut, and the caller is told."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import psycopg

LONGEST = 60.0
"""Seconds that a transaction may last."""
_LOOKS = 4
"""How often within that time it is looked."""


class Watch:
    """Looks after one connection at a time, by a thread that is there once it was needed. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: tuple[psycopg.Connection, float] | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, connection: psycopg.Connection) -> Iterator[None]:
        """While this lasts, the connection is cut when it lasts too long."""
        with self._lock:
            self._watched = (connection, time.monotonic() + LONGEST)
            if self._thread is None:
                self._ended.clear()
                self._thread = threading.Thread(target=self._look, name="muster-database", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._watched = None

    def _look(self) -> None:
        while not self._ended.wait(LONGEST / _LOOKS):
            with self._lock:
                if self._watched is not None and time.monotonic() > self._watched[1]:
                    _cut(self._watched[0])
                    self._watched = None

    def close(self) -> None:
        """Ends the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _cut(connection: psycopg.Connection) -> None:
    with suppress(OSError, psycopg.Error), closing(socket.socket(fileno=os.dup(connection.fileno()))) as line:
        line.shutdown(socket.SHUT_RDWR)
