# SPDX-License-Identifier: Apache-2.0
"""The first start of a server is killed at any moment: the next one begins as if nothing had been."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from tests.faults.site import RUNS, Server, few, until
from tests.postgres import Postgres

MAKING = 0.4
"""Seconds in which the store is made, once its folder is there."""


def killed_and_started(folder: Path, after: float, **settings: str) -> tuple[str, ...]:
    """A first start that is killed so many seconds after its state folder appeared, and one after it. Returns what the first one left."""
    site = Server(folder, settings)
    try:
        site.begin()
        until(site.store.is_dir, "the server makes its state folder", every=0.002)
        time.sleep(after)
        site.kill()
        left = tuple(sorted(each.name for each in site.store.iterdir() if each.name.startswith("roll")))
        site.start()
        until(lambda: not site.ready(), "it writes: the lease of the one that was killed has ended")
        site.kill()
        assert site.checked().problems == ()
    finally:
        site.end()
    return left


@pytest.mark.slow
def test_a_first_start_that_is_killed_is_followed_by_one_that_begins(tmp_path: Path) -> None:
    dice = random.Random(11)
    left = [killed_and_started(tmp_path / str(run), dice.random() * MAKING) for run in range(RUNS)]
    print(f"killed {RUNS} times while it first started; left behind: {sorted(set(left))}")
    assert any("roll.sqlite.making" in each for each in left), "no run was killed while the file was made"


@pytest.mark.slow
def test_the_same_on_a_database(tmp_path: Path, postgres: Postgres) -> None:
    dice = random.Random(12)
    for run in range(few(5)):
        killed_and_started(tmp_path / str(run), dice.random() * 2 * MAKING, database=postgres.url(postgres.database()))
