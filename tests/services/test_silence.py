# SPDX-License-Identifier: Apache-2.0
"""A source that fell silent goes on by numbers alone, as it may, also after a new start of its server: what was said of its silence ends all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.wire.lanes import part
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from tests.services.test_outage import Quiet
from tests.services.test_two_ways import CADENCE, T0


class _Agent:
    def __init__(self, side: Quiet) -> None:
        self.side = side

    def say(self, turn: int, now: float) -> None:
        row = ObservationDoc(level="card", ids=[("serial", "S1")], readings={"power.draw": {"v": 100.0 + turn}})
        at = T0 + turn * CADENCE
        told = ListingDoc(
            source="one.library", channel="in_band", witness="driver", cadence=CADENCE, outcome="devices", complete=True, observed_at=at, observed_mono=at,
            boot_id="b", observations=[row],
        )  # fmt: skip
        doc = ReportDoc(reporter="a", incarnation="i", sequence=turn + 1, node=NodeDoc(name="n"), sent_at=now, sent_mono=now, boot_id="b", heard=[part(told)])
        assert self.side.report(doc, now) == "applied"


def _open(side: Quiet) -> list[str]:
    return [row.finding.kind.value for row in side.store.reader.findings() if row.closed_at is None]


@pytest.fixture
def side() -> Iterator[Quiet]:
    made = Quiet(light=True)
    yield made
    made.store.close()


def test_a_finding_of_silence_ends_when_all_is_delivered_though_only_numbers_come_from_then_on(side: Quiet) -> None:
    agent = _Agent(side)
    for turn in range(6):
        agent.say(turn, T0 + turn * CADENCE)
        side.inventory.tick(T0 + turn * CADENCE + 1)
    for second in range(60, 660, 5):
        side.inventory.tick(T0 + second)
    assert _open(side) == ["source_silent"]
    for turn in range(6, 63):
        agent.say(turn, T0 + 665)
    for turn in range(63, 80):
        now = max(T0 + 666, T0 + turn * CADENCE)
        agent.say(turn, now)
        side.inventory.tick(now + 1)
    assert _open(side) == []


@pytest.mark.parametrize("late", [1.0, 15.0])
def test_a_finding_of_silence_ends_when_a_source_goes_on_by_numbers_after_a_new_start(side: Quiet, late: float) -> None:
    agent = _Agent(side)
    for turn in range(12):
        agent.say(turn, T0 + turn * CADENCE + 1)
        side.inventory.tick(T0 + turn * CADENCE + 2)
    for second in range(int(12 * CADENCE), int(30 * CADENCE), 5):
        side.inventory.tick(T0 + second)
    assert _open(side) == ["source_silent"]

    side.start(T0 + 30 * CADENCE)
    back = T0 + 39 * CADENCE + late
    for turn in range(12, 40):
        agent.say(turn, back)
    for turn in range(40, 240):
        now = max(back, T0 + turn * CADENCE + late)
        agent.say(turn, now)
        side.inventory.tick(now + 1)
    assert _open(side) == []
