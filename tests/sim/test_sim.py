# SPDX-License-Identifier: Apache-2.0
"""A short seeded run of the simulation; long ones by hand with `make sim`. A failing seed reproduces: ``python -m tests.sim.run --seed N``."""

from __future__ import annotations

import pytest

from tests.sim.run import run
from tests.sim.world import Rates

BUSY = Rates(move=0.4, swap=0.3, replace=0.2, shelve=0.3, silence=0.5, late=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_seed(seed: int) -> None:
    outcome = run(seed, machines=4, cards=3, hours=1.0, rates=BUSY, deaths=0.004)

    assert outcome.faults == []
    assert outcome.deliveries > 400


def test_the_checker_sees_a_lost_board() -> None:
    """The checker is no decoration: a board that its machine never reports is found."""
    outcome = run(5, machines=2, cards=2, hours=0.2, rates=Rates(move=0, swap=0, replace=0, shelve=0, silence=0), deaths=0.0)
    assert outcome.faults == []

    from muster.store import open_store
    from tests.sim.run import check
    from tests.sim.world import World

    store = open_store(None)
    assert any("is lost" in fault for fault in check(World(5, 2, 2, Rates()), store, 0.0))
    store.close()
