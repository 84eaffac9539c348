# SPDX-License-Identifier: Apache-2.0
"""The gate of reporters on a store in memory, and on PostgreSQL: what holds for one holds for the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from muster.services.enrolment import Enrolment
from tests.postgres import postgres, postgres_store_url, postgres_template, postgres_url
from tests.services.gate import a_gate

__all__ = ["postgres", "postgres_store_url", "postgres_template", "postgres_url"]


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.slow)])
def site(request: pytest.FixtureRequest) -> Iterator[tuple[Enrolment, Any]]:
    """A gate and its store."""
    with a_gate(None if request.param == "memory" else request.getfixturevalue("postgres_store_url")) as found:
        yield found


@pytest.fixture
def gate(site: tuple[Enrolment, Any]) -> Enrolment:
    """A gate."""
    return site[0]
