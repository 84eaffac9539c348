# SPDX-License-Identifier: Apache-2.0
"""Blocks of roll-ups come back within the error that is stated for their unit."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from muster.domain.model.attributes import ATTRIBUTES
from muster.store.pack import SPAN, Grid, bounds, pack, rules, unpack

KEYS = ["utilization.core", "temperature.core", "power.draw", "memory.used", "clock.core", "energy.total", "errors.memory.corrected", "voltage.core"]
KEYS.append("x.unknown")
VALUES = st.one_of(
    st.floats(-1e3, 1e3),
    st.integers(0, 2**53 - 1).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 0.1, -40.0, 85899345920.0, 2.0**52, -(2.0**60), 1e300, 5e-324]),
)


def grid(rows: list[list[list[float]]]) -> Grid:
    """From what was told in each minute: columns of minutes of values, in order of time."""
    shape = (len(rows), SPAN)
    made = Grid(np.full(SPAN, np.nan), np.zeros(shape, dtype=np.int64), *(np.full(shape, np.nan) for _ in range(4)))
    for column, minutes in enumerate(rows):
        for minute, told in enumerate(minutes):
            if told:
                made.at[minute] = 59.5
                made.count[column, minute] = len(told)
                made.low[column, minute], made.high[column, minute] = min(told), max(told)
                made.total[column, minute], made.last[column, minute] = sum(told), told[-1]
    return made


def check(before: Grid, after: Grid, keys: list[str]) -> None:
    np.testing.assert_array_equal(before.count, after.count)
    np.testing.assert_allclose(before.at, after.at, atol=0.0006)
    for column, key in enumerate(keys):
        absolute, relative = bounds(key)
        told = before.count[column] > 0
        many = before.count[column][told]
        for name in ("low", "high", "last", "total"):
            was, now = getattr(before, name)[column][told], getattr(after, name)[column][told]
            if name == "total":
                was, now = was / many, now / many
            # a mean that lies between values of both signs is off by what the values are off
            size = np.maximum(np.abs(before.low[column][told]), np.abs(before.high[column][told])) if name == "total" else np.abs(was)
            assert (np.abs(was - now) <= np.maximum(absolute, relative * size) + 4e-16 * size).all(), (key, name, was, now)
        assert (after.low[column][told] <= after.last[column][told]).all()
        assert (after.last[column][told] <= after.high[column][told]).all()
        assert np.isnan(after.low[column][~told]).all()
        assert np.isnan(after.last[column][~told]).all()


@given(st.lists(VALUES, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_any_values_come_back_within_the_error_of_their_unit(values: list[float], dice: Random) -> None:
    rows = [[[dice.choice(values) for _ in range(dice.randrange(4))] for _ in range(SPAN)] for _ in KEYS]
    before = grid([[told if math.isfinite(sum(told)) else [] for told in column] for column in rows])

    check(before, unpack(pack([before], [rules(KEYS)])[0]), KEYS)


@given(arrays.arrays(np.float64, (4, SPAN), elements=st.floats(-300, 5e12)), st.sampled_from(sorted(KEYS)))
def test_plain_values_of_one_unit(values: np.ndarray, key: str) -> None:
    before = grid([[[float(value)] for value in column] for column in values])

    check(before, unpack(pack([before], [rules([key] * 4)])[0]), [key] * 4)


def test_relative_error_is_below_a_thousandth_where_values_are_large() -> None:
    for key, entry in ATTRIBUTES.items():
        if entry.numeric:
            absolute, relative = bounds(key)
            assert relative < 1e-3
            assert absolute <= 0.5


def test_counts_are_exact_with_their_sums() -> None:
    told = [[[7.0, 9.0, 9007199254740.0]] * SPAN]
    after = unpack(pack([grid(told)], [rules(["errors.memory.corrected"])])[0])

    assert (after.total == 7.0 + 9.0 + 9007199254740.0).all()
    assert (after.high == 9007199254740.0).all()


def test_decimals_come_back_as_they_are_written() -> None:
    told = [[[round(30.1 + minute / 10, 1)] for minute in range(SPAN)]]
    after = unpack(pack([grid(told)], [rules(["temperature.core"])])[0])

    assert after.last[0].tolist() == [row[0] for row in told[0]]


def test_whole_mebibytes_and_megahertz_come_back_exact() -> None:
    rows = [[[80 * 2.0**30 + 2.0**20 * minute] for minute in range(SPAN)], [[1.41e9 + 1e6 * minute] for minute in range(SPAN)]]
    after = unpack(pack([grid(rows)], [rules(["memory.used", "clock.core"])])[0])

    assert after.last.tolist() == [[each[0] for each in row] for row in rows]


def test_some_columns_of_a_block() -> None:
    rows = [[[float(column * 100 + minute)] for minute in range(SPAN)] for column in range(5)]
    keys = ["power.draw", "x.unknown", "errors.memory.corrected", "x.other", "memory.used"]
    block = pack([grid(rows)], [rules(keys)])[0]
    whole = unpack(block)

    for wanted in ([3], [1], [4, 0], [2, 3, 1]):
        part = unpack(block, wanted)
        np.testing.assert_array_equal(part.last, whole.last[wanted])
        np.testing.assert_array_equal(part.total, whole.total[wanted])


def test_several_blocks_at_once_are_the_same_as_one_by_one() -> None:
    grids = [grid([[[float(number + minute)] for minute in range(SPAN)]] * 2) for number in range(3)]
    each = [rules(["power.draw", "memory.used"]), rules(["errors.memory.corrected", "x.unknown"]), rules(["clock.core", "fan.rpm"])]

    assert pack(grids, each) == [pack([one], [rule])[0] for one, rule in zip(grids, each, strict=True)]


def test_nothing_told_at_all() -> None:
    after = unpack(pack([grid([[[]] * SPAN] * 3)], [rules(["power.draw", "memory.used", "x.unknown"])])[0])

    assert after.count.sum() == 0
    assert np.isnan(after.at).all()


def test_a_steady_value_costs_little() -> None:
    block = pack([grid([[[412.0] * 6] * SPAN] * 128)], [rules(["power.draw"] * 128)])[0]

    assert len(block) < 300


@pytest.mark.parametrize("damage", [b"", b"\x01", b"\x09" + bytes(30), b"\x01\x02\x00\x00\x00\x01\x01\x01\x01\x01nonsense"])
def test_what_is_no_block_is_said_to_be_none(damage: bytes) -> None:
    with pytest.raises(ValueError, match="block of roll-ups"):
        unpack(damage)
