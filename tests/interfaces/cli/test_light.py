# SPDX-License-Identifier: Apache-2.0
"""What a command may load: those that a person waits for load nothing of the server's, not even when they do their work; each other one what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from muster.interfaces.cli.main import COMMANDS
from muster.wiring.adapters import TREE

SERVERS = frozenset({"fastapi", "starlette", "uvicorn", "uvloop", "pydantic", "pydantic_settings", "sqlalchemy", "alembic", "structlog", "psycopg"})
HEAVY = SERVERS | {"numpy", "cryptography", "joserfc", "httpx2", "prometheus_client", "opentelemetry", "muster.store", "muster.wiring.server"}
LIBRARIES = HEAVY - {"fastapi", "starlette", "uvloop", "alembic", "psycopg", "prometheus_client", "opentelemetry"}
"""What it takes to put a server together, without the doors that are opened and the stores that are asked for."""
STORE = frozenset({"muster.store", "sqlalchemy", "alembic", "numpy"})
AT_IMPORT = {"demo": LIBRARIES}
"""What the module of a command may load before it does anything, of all that is heavy. All others: nothing."""
MACHINE = next(path.parent for path in sorted(TREE.glob("*/machines/*-8/machine.toml")))
AT_WORK = {
    ("interpret", str(MACHINE)): frozenset[str](),
    ("adapter", "list"): frozenset[str](),
    ("get", "cards"): frozenset[str](),
    ("get", "nodes", "--help"): frozenset[str](),
    ("agent", "status"): frozenset[str](),
    ("config", "-o", "json"): frozenset({"pydantic", "pydantic_settings"}),
    ("scan", "--machine", str(MACHINE), "-o", "json"): STORE,
    ("server", "--help"): LIBRARIES,
    ("demo", "--help"): LIBRARIES,
}
"""What a command may load in all, of what is heavy: `config` asks what a server goes by, and `scan` puts a roll together in memory."""


def loaded(code: str, *words: str, **environment: str) -> set[str]:
    """Modules that are there after the code ran in a process of its own."""
    command = [sys.executable, "-c", f"{code}\nprint(*sys.modules, file=sys.stderr)", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_loads_nothing_heavy(command: str) -> None:
    module, _, name = COMMANDS[command][0].partition(":")
    found = loaded(f"import sys, muster.interfaces.cli.main, importlib; getattr(importlib.import_module({module!r}), {name!r})")

    assert sorted((HEAVY & found) - AT_IMPORT.get(command, frozenset())) == []


@pytest.mark.parametrize("words", AT_WORK, ids=lambda words: " ".join(words[:1] + words[-1:] if "--help" in words else words[:1]))
def test_a_command_that_does_its_work_loads_what_it_needs_and_no_more(words: tuple[str, ...], tmp_path: Path) -> None:
    found = loaded("import sys\nfrom muster.interfaces.cli.main import run\nrun(sys.argv[1:])", *words, HOME=str(tmp_path), MUSTER_RUNTIME=str(tmp_path))

    assert sorted((HEAVY & found) - AT_WORK[words]) == []
