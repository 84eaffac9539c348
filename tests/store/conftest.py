# SPDX-License-Identifier: Apache-2.0
"""A store in memory, one in a file, one in PostgreSQL: what holds for one holds for the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres import postgres, postgres_store_url, postgres_template, postgres_url

from muster.store import Store, open_store

__all__ = ["postgres", "postgres_store_url", "postgres_template", "postgres_url"]
KINDS = ["memory", "file", "postgres"]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    match request.param:
        case "memory":
            place: Path | str | None = None
        case "file":
            place = tmp_path / "var" / "roll.db"
        case _:
            place = request.getfixturevalue("postgres_store_url")
    opened = open_store(place)
    yield opened
    opened.close()
