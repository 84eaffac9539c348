# SPDX-License-Identifier: Apache-2.0
"""What strangers cause is said once a minute, each thing for itself."""

from __future__ import annotations

import pytest

from muster.wiring import seldom
from muster.wiring.seldom import AGAIN, Seldom


class Clock:
    """Stands still."""

    now = 5.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("muster.wiring.seldom.time.monotonic", lambda: made.now)
    return made


def test_once_a_minute(clock: Clock) -> None:
    said = Seldom()
    assert [said.may(), said.may(), said.may()] == [True, False, False]
    clock.now += AGAIN - 0.001
    assert not said.may()
    clock.now += 0.001
    assert [said.may(), said.may()] == [True, False]


def test_each_thing_for_itself(clock: Clock) -> None:
    said = Seldom()
    assert [said.may("one"), said.may("other"), said.may("one")] == [True, True, False]
    clock.now += AGAIN
    assert said.may("one")


def test_what_is_remembered_has_a_bound(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    del clock
    monkeypatch.setattr(seldom, "MANY", 3)
    said = Seldom()
    assert all(said.may(str(each)) for each in range(10))
    assert not said.may("9")
    assert said.may("0"), "it was forgotten"
