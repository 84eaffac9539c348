# SPDX-License-Identifier: Apache-2.0
"""The server's clock stands by its time when the wall clock leaps, and takes on a new one only when that lasts."""

from __future__ import annotations

import pytest

from muster.wiring.clock import PATIENCE, SteadyClock

T0 = 1_800_000_000.0


class Clocks:
    """A wall clock and a monotonic one, set by hand."""

    def __init__(self) -> None:
        self.mono, self.off = 100.0, T0 - 100.0
        self.leaps: list[float] = []
        self.steady = SteadyClock(lambda: self.mono + self.off, lambda: self.mono, leapt=self.leaps.append)

    def after(self, seconds: float) -> float:
        self.mono += seconds
        return self.steady()


@pytest.mark.parametrize("leap", [3600.0, -3600.0, 10 * 365 * 86400.0, -T0])
def test_a_leap_is_not_followed_before_it_lasts(leap: float) -> None:
    clocks = Clocks()
    clocks.off += leap
    assert clocks.after(10) == T0 + 10
    assert "leapt" in clocks.steady.trouble
    assert clocks.after(PATIENCE - 1) == T0 + 10 + PATIENCE - 1
    assert clocks.leaps == []
    assert clocks.after(1) == pytest.approx(T0 + 10 + PATIENCE + leap)
    assert clocks.leaps == [pytest.approx(leap)]
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
    assert clocks.leaps == []


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
        clocks.after(60)
    assert clocks.steady() == T0 + 6000


def test_who_is_told_of_a_leap_may_ask_for_the_time() -> None:
    wall, mono, seen = [T0], [100.0], list[float]()
    steady = SteadyClock(lambda: wall[0], lambda: mono[0], leapt=lambda _: seen.append(steady()))
    wall[0] += 3600
    steady()
    wall[0] += PATIENCE
    mono[0] += PATIENCE
    assert steady() == T0 + 3600 + PATIENCE
    assert seen == [T0 + 3600 + PATIENCE]
