# SPDX-License-Identifier: Apache-2.0
"""Time passes in steps of a moment, so that reports come between."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from muster.interfaces.api.app import build
from muster.services.folding import never
from muster.services.inventory import Inventory
from muster.wiring.server import Server
from muster.wiring.settings import load_settings


class Long(Inventory):
    """A keeper with more to look at than there is time for."""

    turns = 0

    def tick(self, now: float, enough: Callable[[], bool] = never) -> bool:
        until = time.monotonic() + 20
        while not enough():
            assert time.monotonic() < until, "it is told when it is enough"
            time.sleep(0.001)
        type(self).turns += 1
        return self.turns < 20


def test_time_passes_in_steps_one_soon_after_the_other(tmp_path: Path) -> None:
    settings = load_settings(port=0, state=tmp_path / "state", runtime=tmp_path / "run", tick=2.0)
    with Server(settings, build, keeper=Long) as server:
        until = time.monotonic() + 10
        while Long.turns < 20:
            assert time.monotonic() < until, "the next step does not wait for the next tick"
            time.sleep(0.01)
        assert not server.broken
