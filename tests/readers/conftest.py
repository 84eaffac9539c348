# SPDX-License-Identifier: Apache-2.0
"""What the tests of the readers share: a clock that stands still, and sources written in a line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from muster.domain.model.source import Read, ReaderKind, Source, SourceId

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def clock() -> Callable[[], datetime]:
    """A clock that stands still."""
    return lambda: NOW


@pytest.fixture
def source() -> Callable[..., Source]:
    """Makes a source of the adapter ``acme`` from its locators."""

    def make(reader: str, *locators: tuple[str, ...], adapter: str = "acme", search: tuple[str, ...] = (), install: str = "", form: str = "text") -> Source:
        reads = tuple(Read(locator=locator, format=form) for locator in locators)
        return Source(id=SourceId(f"{adapter}.x"), adapter=adapter, reader=ReaderKind(reader), reads=reads, search=search, install=install)

    return make


@pytest.fixture
def second() -> timedelta:
    """A deadline of one second."""
    return timedelta(seconds=1)
