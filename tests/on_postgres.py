# SPDX-License-Identifier: Apache-2.0
"""`python -m pytest -p tests.on_postgres tests/cases tests/services`: stores that a test keeps in memory are PostgreSQL databases instead.

Nothing of those tests changes: the store that they open with ``open_store(None)`` is a new database of a private server.
"""

from __future__ import annotations

import atexit
import shutil
from collections import deque
from pathlib import Path
from typing import Any

import pytest

import muster.store
from muster.store import Store
from tests.postgres import Postgres, binaries, new_folder

AT_ONCE = 8
"""Databases that are kept: one more drops the oldest, whoever forgot to close it."""
_open_store = muster.store.open_store
_running: list[tuple[Postgres, str]] = []
_made: deque[str] = deque()


def open_store(place: Any, **more: Any) -> Store:
    """The store at ``place``; in the place of memory a new database."""
    if place is not None:
        return _open_store(place, **more)
    server, template = _server()
    while len(_made) >= AT_ONCE:
        server.drop(_made.popleft())
    _made.append(server.database(template))
    return _open_store(server.url(_made[-1]), **more)


def pytest_configure(config: pytest.Config) -> None:
    """Before the first test is read."""
    del config
    muster.store.open_store = open_store


def _server() -> tuple[Postgres, str]:
    if not _running:
        found = binaries()
        if found is None:
            pytest.fail("no binaries of PostgreSQL on this machine")
        folder: Path = new_folder()
        server = Postgres(folder, found)
        server.make()
        server.start()
        atexit.register(_ended, server)
        template = server.database()
        _open_store(server.url(template)).close()
        _running.append((server, template))
    return _running[0]


def _ended(server: Postgres) -> None:
    server.stop()
    shutil.rmtree(server.folder, ignore_errors=True)
