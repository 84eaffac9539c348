# SPDX-License-Identifier: Apache-2.0
"""What the tests of the API stand on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import Clock, client, fleet

from muster.wiring.desk import Desk


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(clock: Clock) -> Iterator[Desk]:
    with fleet(clock) as found:
        yield found


@pytest.fixture
def api(desk: Desk) -> TestClient:
    return client(desk)
