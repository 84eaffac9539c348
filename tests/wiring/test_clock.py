# SPDX-License-Identifier: Apache-2.0
"""The server's clock stands by its time when the wall clock leaps, and follows a new one only when that lasts, and never in a leap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.wiring.clock import FARTHEST, PATIENCE, SLEW, STEP, SteadyClock

T0 = 1_800_000_000.0
YEARS = 10 * 365 * 86_400.0


class Clocks:
    """A wall clock and a monotonic one, set by hand."""

    def __init__(self) -> None:
        self.mono, self.off = 100.0, T0 - 100.0
        self.steady = SteadyClock(lambda: self.mono + self.off, lambda: self.mono)

    def after(self, seconds: float, every: float = 1.0) -> float:
        left = seconds
        while left > 0:
            self.mono += min(every, left)
            left -= every
            self.steady()
        return self.steady()


@pytest.mark.parametrize("leap", [3600.0, -3600.0, YEARS, -T0])
def test_a_leap_is_not_followed_before_it_lasts(leap: float) -> None:
    clocks = Clocks()
    clocks.off += leap
    assert clocks.after(10) == T0 + 10
    assert "leapt" in clocks.steady.trouble
    assert ("ahead of" if leap > 0 else "behind") in clocks.steady.trouble
    assert clocks.after(PATIENCE - 10) == T0 + PATIENCE


@pytest.mark.parametrize("leap", [3600.0, -3600.0, 86_400.0, -86_400.0])
def test_one_that_lasts_is_followed_little_by_little_and_reached(leap: float) -> None:
    clocks = Clocks()
    clocks.off += leap
    begins = clocks.after(PATIENCE + 1)
    assert clocks.after(100) == pytest.approx(begins + 100 + SLEW * (100 if leap > 0 else -100), abs=2)
    assert "follows it" in clocks.steady.trouble
    clocks.after(abs(leap) / SLEW, every=7.0)
    assert clocks.steady.trouble == ""
    assert clocks.steady() == pytest.approx(clocks.mono + clocks.off)


@pytest.mark.parametrize("leap", [YEARS, -T0, FARTHEST + STEP + 1])
def test_one_that_is_too_far_is_never_followed_and_said(leap: float) -> None:
    clocks = Clocks()
    clocks.off += leap
    assert clocks.after(PATIENCE * 100, every=60) == pytest.approx(T0 + PATIENCE * 100)
    assert "restart" in clocks.steady.trouble
    clocks.off -= leap
    clocks.after(1)
    assert clocks.steady.trouble == ""


def test_a_leap_that_is_taken_back_leaves_nothing() -> None:
    clocks = Clocks()
    clocks.off += 3600
    clocks.after(600)
    clocks.off -= 3600
    assert clocks.after(1) == T0 + 601
    clocks.off += 3600
    clocks.after(600)
    assert clocks.after(299) == T0 + 1500


def test_small_steps_are_followed_at_once() -> None:
    clocks = Clocks()
    for _ in range(10):
        clocks.off += 1.5
        clocks.after(1)
    assert clocks.steady() == pytest.approx(T0 + 10 + 15)


def test_a_clock_that_goes_on_leaping_is_never_believed() -> None:
    clocks = Clocks()
    for step in range(100):
        clocks.off += 1000 if step % 2 else -900
        clocks.after(60, every=60)
    assert clocks.steady() == T0 + 6000


@given(st.lists(st.tuples(st.floats(-1e9, 1e9) | st.floats(-4000, 4000), st.floats(0.1, 5000)), max_size=12))
def test_whatever_the_wall_clock_does_time_goes_on_at_half_to_one_and_a_half_times_its_pace(turns: list[tuple[float, float]]) -> None:
    clocks = Clocks()
    before = clocks.steady()
    for leap, lasts in turns:
        clocks.off += leap
        for part in (0.01, 0.29, 0.7):
            clocks.mono += lasts * part
            now = clocks.steady()
            assert lasts * part * (1 - SLEW) - STEP - 1e-3 <= now - before <= lasts * part * (1 + SLEW) + STEP + 1e-3
            before = now


def test_what_was_written_lies_behind() -> None:
    clocks = Clocks()
    clocks.steady.reach(T0 - 50)
    assert clocks.after(1) == T0 + 1
    clocks.steady.reach(T0 + 3600)
    assert clocks.after(1) == pytest.approx(T0 + 3601)
    assert "behind" in clocks.steady.trouble
    assert clocks.after(PATIENCE + 3600 / SLEW) == pytest.approx(clocks.mono + clocks.off)
    clocks.steady.reach(T0 + YEARS)
    assert clocks.after(PATIENCE * 3, every=60) == pytest.approx(T0 + YEARS + PATIENCE * 3)
    assert "too far" in clocks.steady.trouble


def test_who_only_asks_is_told_the_same_and_follows_nothing() -> None:
    clocks = Clocks()
    clocks.off += 1.0
    clocks.mono += 5
    assert clocks.steady.told() == T0 + 5
    assert clocks.steady() == clocks.steady.told() == T0 + 6
