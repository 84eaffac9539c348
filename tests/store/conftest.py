# SPDX-License-Identifier: Apache-2.0
"""A store in memory and one in a file: what holds for one holds for the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.store import Store, open_store


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    opened = open_store(None if request.param == "memory" else tmp_path / "var" / "roll.db")
    yield opened
    opened.close()
