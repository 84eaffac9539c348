# SPDX-License-Identifier: Apache-2.0
"""A listener that runs, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.interfaces.ingest.door import Client, Site, open_site


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


@pytest.fixture
def client(site: Site) -> Iterator[Client]:
    with site.client() as found:
        yield found
