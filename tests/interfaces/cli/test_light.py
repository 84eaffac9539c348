# SPDX-License-Identifier: Apache-2.0
"""What a command may load before it does anything: those that a person waits for load nothing of the server's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from muster.interfaces.cli.main import COMMANDS

SERVERS = frozenset({"fastapi", "starlette", "uvicorn", "uvloop", "pydantic", "pydantic_settings", "sqlalchemy", "alembic", "structlog", "psycopg"})
HEAVY = SERVERS | {"numpy", "cryptography", "joserfc", "httpx2", "prometheus_client", "opentelemetry", "muster.store", "muster.wiring.server"}
AT_HOME = frozenset({"server", "demo", "config", "scan"})
"""Commands that open a store themselves, or ask what a server goes by."""


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - AT_HOME))
def test_a_command_loads_nothing_heavy(command: str) -> None:
    module, _, name = COMMANDS[command][0].partition(":")
    code = f"import sys, muster.interfaces.cli.main, importlib; getattr(importlib.import_module({module!r}), {name!r}); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert sorted(HEAVY & set(loaded)) == []
