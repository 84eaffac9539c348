# SPDX-License-Identifier: Apache-2.0
"""Whether a round only moves numbers: what was found for one round holds for no other, and equal bounds are one object."""

from __future__ import annotations

import numpy as np

from muster.domain.model.roll import NodeNames
from muster.services.sources import Bounds, Source, bounds

COLUMNS = (("card-1", "card-1", "energy.total", 0), ("card-1", "card-1", "utilization.core", 1))
NOTHING = frozenset[str]()


def made(width: int = 2, columns: tuple[tuple[str, str, str, int], ...] = COLUMNS, *, watched: bool = False) -> Bounds:
    return bounds(width, columns, NOTHING, watched=watched, whole=True)


def running() -> Source:
    source = Source(key=("r", "s", "n"), slot=1, names=NodeNames(name="n"), facts=b"f", at=100.0, steady=True, promise=60.0, bounds=made())
    source.took(np.array([10.0, 0.5]))
    return source


def test_a_round_that_was_looked_at_is_taken() -> None:
    source, numbers = running(), np.array([11.0, 0.6])
    assert source.takes(b"f", numbers, 101.0)
    assert source.takes(b"f", numbers, 101.0)


def test_what_was_found_for_a_round_holds_for_no_other() -> None:
    source, numbers = running(), np.array([11.0, 0.6])
    assert source.takes(b"f", numbers, 101.0)
    assert not source.takes(b"f", np.array([9.0, 0.6]), 101.0), "a counter fell"
    assert not source.takes(b"f", np.array([11.0, 7.0]), 101.0), "out of its range"
    assert not source.takes(b"g", numbers, 101.0), "other facts"
    assert not source.takes(b"f", numbers, 99.0), "out of its turn"


def test_what_was_found_holds_no_more_when_something_came_between() -> None:
    source, numbers = running(), np.array([11.0, 0.6])
    assert source.takes(b"f", numbers, 101.0)
    source.took(np.array([12.0, 0.5]))
    assert not source.takes(b"f", numbers, 101.0), "a counter fell since"
    source = running()
    assert source.takes(b"f", numbers, 101.0)
    source.bounds = made(columns=(("card-1", "card-1", "utilization.core", 0), ("card-1", "card-1", "utilization.core", 1)))
    assert not source.takes(b"f", numbers, 101.0), "other bounds"
    source = running()
    assert source.takes(b"f", numbers, 101.0)
    source.steady = False
    assert not source.takes(b"f", numbers, 101.0), "news in its part"


def test_bounds_of_the_same_columns_are_one_object_whatever_the_cards() -> None:
    others = tuple((f"card-{place}", f"card-{place}", key, place) for _, _, key, place in COLUMNS)
    assert made() is made(columns=others)
    assert made(watched=True) is not made()
    assert made(columns=COLUMNS[:1]) is not made()
    swapped = tuple((subject, card, key, 1 - place) for subject, card, key, place in COLUMNS)
    assert made(columns=swapped).counters.tolist() == [False, True]
    assert made().counters.tolist() == [True, False]
