# SPDX-License-Identifier: Apache-2.0
"""`python -m pytest -p tests.on_postgres tests/cases tests/services`: stores that a test keeps in memory are PostgreSQL databases instead.

Nothing of those tests changes: the store that they open with ``open_store(None)`` is a new database of a private server. How many there were is told at
the end, and a run in which there was none fails. Where PostgreSQL is lacking all is skipped with the reason, but fails when CI=true.
"""

from __future__ import annotations

import atexit
import os
import shutil
from collections import Counter, deque
from pathlib import Path
from typing import Any

import pytest

import muster.store
from muster.store import Store
from tests.postgres import Postgres, binaries, lacking, new_folder

AT_ONCE = 8
"""Databases that are kept: one more drops the oldest, whoever forgot to close it."""
_open_store = muster.store.open_store
_running: list[tuple[Postgres, str]] = []
_made: deque[str] = deque()
_counted: Counter[str] = Counter()
_KEY = "muster_databases"


def open_store(place: Any, **more: Any) -> Store:
    """The store at ``place``; in the place of memory a new database."""
    if place is not None:
        return _open_store(place, **more)
    server, template = _server()
    _counted["made"] += 1
    while len(_made) >= AT_ONCE:
        server.drop(_made.popleft())
    _made.append(server.database(template))
    return _open_store(server.url(_made[-1]), **more)


def pytest_configure(config: pytest.Config) -> None:
    """Before the first test is read."""
    del config
    if lacking() and os.environ.get("CI") == "true":
        raise pytest.UsageError(lacking())
    muster.store.open_store = open_store


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nothing can be done without the binaries."""
    if lacking():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=lacking()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A process that ran a part of the tests tells how many databases it made."""
    del error
    _counted.update(made=getattr(node, "workeroutput", {}).get(_KEY, 0))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that made no database has shown nothing."""
    told: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if told is not None:
        told[_KEY] = _counted["made"]
    elif session.testscollected and not _counted["made"] and not lacking() and not session.config.option.collectonly:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says how much of it was PostgreSQL."""
    terminalreporter.write_line(f"{_counted['made']} stores were databases of PostgreSQL")


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
