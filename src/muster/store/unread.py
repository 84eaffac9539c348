# SPDX-License-Identifier: Apache-2.0
"""Rows that cannot be read: passed over, so that one of them never hides the others; logged once, and counted for who asks how the store is."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from muster.store.mapping import Row

T = TypeVar("T")
UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError)
"""What a row raises whose text or number is not what was once written there."""
_log = logging.getLogger("muster.store")


def lenient(text: bytes) -> str:
    """A text of a table whose bytes are no UTF-8: they show as escapes, which no JSON takes, so that its row is passed over and not the whole table."""
    return text.decode("utf-8", "backslashreplace")


class Unread:
    """The rows of one store that could not be read when they were last asked for. For several threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._rows: set[tuple[str, str]] = set()

    def readable(self, table: str, keys: tuple[str, ...], rows: Iterable[Row], make: Callable[[Any], T], *, whole: bool = False) -> list[T]:
        """What ``make`` makes of the rows that can be read; the others are told by their values of ``keys``. ``whole``: the table has no other rows."""
        found: list[T] = []
        lost: set[tuple[str, str]] = set()
        for row in rows:
            key = (table, "/".join(str(row[name]) for name in keys))
            try:
                found.append(make(row))
            except UNREADABLE as error:
                lost.add(key)
                self._lost(key, error)
            else:
                if self._rows:
                    self._rows.discard(key)
        if whole and self._rows:
            with self._lock:
                self._rows = {key for key in self._rows if key[0] != table or key in lost}
        return found

    def _lost(self, key: tuple[str, str], error: BaseException) -> None:
        with self._lock:
            if key in self._rows:
                return
            self._rows.add(key)
        _log.error("%s: row %s of the table %s cannot be read and is passed over: %s", self._name, key[1], key[0], error)

    def told(self) -> str:
        """How many rows of which tables; empty when all could be read."""
        counts = Counter(table for table, _ in tuple(self._rows))
        return ", ".join(f"{count} {'row' if count == 1 else 'rows'} of {table} cannot be read" for table, count in sorted(counts.items()))
