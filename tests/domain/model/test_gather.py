# SPDX-License-Identifier: Apache-2.0
"""What collecting refuses: numbers that are none, and readings that contradict each other."""

from __future__ import annotations

import math
from typing import Any

import pytest

from muster.domain.decide.fold import fold
from muster.domain.model.attributes import Level
from muster.domain.model.gather import Gather
from muster.domain.model.names import names
from muster.domain.model.observation import Observation, Subject
from muster.domain.model.reading import Absent, Known, Reading, Why

GIB = 1024**3


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("wrap", [lambda odd: odd, lambda odd: {"a": odd}, lambda odd: [1, {"b": [odd]}], lambda odd: (odd,)])
def test_a_number_that_is_none_is_unreadable_wherever_it_stands(odd: float, wrap: Any) -> None:
    gather = Gather()
    card = gather.card(0).named(index=0).value("throttle.time", wrap(odd)).value("power.draw", wrap(odd)).tell("own", wrap(odd))
    (told,) = gather.observations()

    assert {getattr(reading, "why", None) for reading in card.readings.values()} == {Why.UNREADABLE}
    assert "nan" in str(told.vendor) or "inf" in str(told.vendor)
    assert told.vendor["own"] != wrap(odd) or isinstance(told.vendor["own"], str)


def _only(readings: dict[str, Reading]) -> dict[str, Reading]:
    (card,) = fold([Observation(subject=Subject(level=Level.CARD, names=names(index=0)), readings=readings)])
    return dict(card.readings)


def test_more_memory_in_use_than_there_is() -> None:
    odd = _only({"memory.total": Known(64 * GIB), "memory.used": Known(65 * GIB)})
    full = _only({"memory.total": Known(64 * GIB), "memory.used": Known(64 * GIB)})

    assert odd["memory.used"] == Absent(Why.IMPLAUSIBLE, f"{65 * GIB} bytes of {64 * GIB}")
    assert (odd["memory.total"], full["memory.used"]) == (Known(64 * GIB), Known(64 * GIB))


def test_power_far_above_its_limit_whatever_the_adapter() -> None:
    assert isinstance(_only({"power.limit": Known(400), "power.draw": Known(90000)})["power.draw"], Absent)
