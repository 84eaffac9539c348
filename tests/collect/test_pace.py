# SPDX-License-Identifier: Apache-2.0
"""How often sources are read: closer when a fault is near, within bounds; seldom where nothing is; not at all while handles are let go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.collect.world import Hands, Lines, Told, source

from muster.collect.bounds import DEVICES, PARTITIONS, REPORTS, bounded, halves, within
from muster.collect.collector import Collector
from muster.collect.near import Signs
from muster.collect.pace import CLOSE_FACTOR, CLOSE_S, IDLE_S, LONGEST_S, PATIENCE, Pace, tells_who
from muster.domain.model.attributes import Level
from muster.domain.model.gather import Gather
from muster.domain.model.names import names
from muster.domain.model.observation import Event, Interpretation, Observation, Subject
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.source import Outcome, ReaderKind
from muster.wire.lanes import part, whole
from muster.wire.mapping import Seeing, to_listing_doc
from muster.wire.report import ListingDoc

TOOL = source("a", cadence=60)


def test_a_fault_that_is_near_makes_it_look_more_often_for_a_while() -> None:
    pace = Pace()
    assert pace.seconds(TOOL, 0, False) == 60
    assert pace.alert("acme", 0)
    assert not pace.alert("acme", 10)
    assert pace.seconds(TOOL, 10, False) == 60 / CLOSE_FACTOR
    assert pace.seconds(source("q", cadence=8), 10, False) == 5
    assert pace.seconds(source("q", cadence=3), 10, False) == 3
    assert pace.seconds(source("o", "other"), 10, False) == 60
    assert pace.seconds(TOOL, 10 + CLOSE_S, False) == 60


def test_a_fault_that_lasts_does_not_make_it_look_more_often_for_ever() -> None:
    pace = Pace()
    close = []
    for now in range(0, int(6 * LONGEST_S), 60):
        pace.alert("acme", now)
        close.append(pace.close("acme", now))

    assert 0.4 < sum(close) / len(close) < 0.6
    assert all(close[: int(LONGEST_S / 60)])


def test_who_is_there_is_not_asked_more_often() -> None:
    bus = source("bus", provides=["pci.vendor_id", "pci.device_id"], cadence=600)
    pace = Pace()
    pace.alert("acme", 0)

    assert tells_who(bus)
    assert not tells_who(source("x", provides=["pci.vendor_id", "power.draw"]))
    assert not tells_who(TOOL)
    assert pace.seconds(bus, 1, False) == 600


def test_nothing_that_takes_a_handle_is_read_while_handles_are_let_go() -> None:
    pace = Pace()
    pace.hold(100)

    assert pace.next_at(source("l", reader=ReaderKind.LIBRARY), 0, 50, False) == 100
    assert pace.next_at(TOOL, None, 50, False) == 100
    assert pace.next_at(source("f", reader=ReaderKind.FILES), 0, 50, False) == 60
    assert pace.next_at(TOOL, 90, 150, False) == 150


def test_what_was_never_there_is_looked_for_less_often_and_says_so() -> None:
    pace = Pace()
    for _ in range(PATIENCE):
        assert pace.promised(TOOL) is TOOL
        pace.hear(TOOL.id, Outcome.TOOL_MISSING)

    assert pace.promised(TOOL).cadence.total_seconds() == pace.seconds(TOOL, 0, False) == IDLE_S
    pace.hear(TOOL.id, Outcome.DEVICES)
    for _ in range(9):
        pace.hear(TOOL.id, Outcome.UNREACHABLE)
    assert pace.promised(TOOL) is TOOL
    assert pace.seconds(TOOL, 0, False) == 60


def test_a_collector_lets_go_and_reads_nothing_meanwhile() -> None:
    hands, let = Hands(), list[str]()
    acme = Lines("acme", [source("lib", reader=ReaderKind.LIBRARY, cadence=10)])
    reader = Told({"lib": b"one power.draw=5"})
    collector = Collector([acme], {ReaderKind.LIBRARY: reader}, hands.clock(), {}, let_go=let.append)
    collector.step(1)
    assert collector.release(60) == ["acme"]
    hands.pass_(59)
    collector.step(0.05)
    assert reader.reads == ["lib"]
    hands.pass_(2)
    collector.step(1)

    assert reader.reads == ["lib", "lib"]
    assert let == ["acme"]


def said(outcome: Outcome = Outcome.DEVICES, *events: str, readings: Mapping[str, Reading] | None = None) -> Interpretation:
    row = Observation(subject=Subject(level=Level.CARD, names=names(serial="77x1")), readings=dict(readings or {}))
    made = tuple(Event(subject=Subject(level=Level.CARD), code="1", text=text) for text in events)
    return Interpretation(outcome=outcome, observations=(row,), events=made)


LIMIT: Mapping[str, Reading] = {"temperature.limit.slowdown": Known(90), "temperature.limit.shutdown": Known(95)}


def test_signs_that_a_fault_is_near() -> None:
    signs = Signs()
    assert signs.hear("s", said()) == ""
    assert signs.hear("s", said(Outcome.DEVICES, "it fell")) == "an event"
    assert signs.hear("s", said(Outcome.DEVICES, "it fell")) == ""
    assert signs.hear("s", said(readings={"temperature.core": Known(84), **LIMIT})) == ""
    assert signs.hear("s", said(readings={"temperature.core": Known(85), **LIMIT})) == "temperature.core"
    assert signs.hear("s", said(readings={"temperature.core": Absent(Why.DEVICE_LOST), **LIMIT})) == "device_lost"
    assert signs.hear("s", said(readings={"errors.memory.uncorrected": Known(0)})) == ""
    assert signs.hear("s", said(readings={"errors.memory.uncorrected": Known(2)})) == "errors.memory.uncorrected"
    assert signs.hear("s", said(readings={"errors.memory.uncorrected": Known(2)})) == ""
    assert signs.hear("s", said(Outcome.TIMED_OUT)) == "timed_out"
    assert signs.hear("s", said(Outcome.TIMED_OUT)) == ""
    assert signs.hear("new", said(Outcome.DRIVER_UNUSABLE)) == ""


def test_signs_among_numbers_that_moved() -> None:
    signs = Signs()
    signs.hear("s", said(readings={"temperature.core": Known(50), **LIMIT}))

    assert signs.moved("s", [{"temperature.core": 84}]) == ""
    assert signs.moved("s", [{"temperature.core": 86}]) == "temperature.core"
    assert signs.moved("unheard", [{"temperature.core": 99}]) == ""


def cut(cards: int, partitions: int) -> Interpretation:
    gather = Gather()
    for place in range(cards):
        card = gather.card(place).named(serial=f"77x{place}")
        for slice_ in range(partitions):
            card.partition(slice_).value("memory.total", 1024)
    return Interpretation(outcome=Outcome.DEVICES, complete=True, observations=gather.observations())


def test_what_fits_the_bounds_is_left_as_it_is() -> None:
    told = cut(DEVICES, PARTITIONS)
    doc = to_listing_doc(TOOL, told, Seeing(at=1.0))
    assert bounded(told) is told
    (same,) = within(doc)
    assert same is doc


@pytest.mark.parametrize(("cards", "partitions"), [(DEVICES * REPORTS + 3, 0), (2, PARTITIONS * REPORTS + 1)])
def test_what_goes_beyond_all_bounds_is_no_complete_listing(cards: int, partitions: int) -> None:
    told = bounded(cut(cards, partitions))

    assert not told.complete
    assert "left out" in told.detail
    levels = [each.subject.level for each in told.observations]
    assert levels.count(Level.CARD) == min(cards, DEVICES * REPORTS)
    assert levels.count(Level.PARTITION) == min(cards, DEVICES * REPORTS) * min(partitions, PARTITIONS * REPORTS)


def slices(cards: int, partitions: int, *, named: bool = True) -> ListingDoc:
    """Cards that are cut into so many slices each, which have names of their own or none."""
    doc = to_listing_doc(TOOL, cut(cards, partitions), Seeing(at=1.0))
    place = 0
    for row in doc.observations:
        if row.level == "partition" and named:
            row.ids, place = [("gpu_instance_id", str(place))], place + 1
        elif row.level == "card":
            row.readings = {"partition.mode": {"v": "mig"}, "power.draw": {"v": 100}}
    return doc


@pytest.mark.parametrize(("cards", "partitions"), [(DEVICES * 2 + 1, 0), (2, 3 * PARTITIONS), (DEVICES + 1, PARTITIONS + 1), (1, PARTITIONS + 1)])
def test_a_listing_of_more_than_one_report_may_tell_goes_in_several_and_loses_nothing(cards: int, partitions: int) -> None:
    doc = slices(cards, partitions)
    found = within(doc)

    assert len(found) > 1
    assert not any(each.complete or each.counts for each in found)
    for each in found:
        assert Counter(row.level for row in each.observations)["card"] <= DEVICES
        assert max(Counter(repr(row.parent) for row in each.observations if row.level == "partition").values(), default=0) <= PARTITIONS
    told = [row for each in found for row in each.observations]
    assert [row for row in told if row.level == "card" and "power.draw" in row.readings] == [row for row in doc.observations if row.level == "card"]
    slices_told = sorted(row.ids for row in told if row.level == "partition")
    assert slices_told == sorted(row.ids for row in doc.observations if row.level == "partition")
    assert [each.detail for each in found][-1].startswith(f"part {len(found)} of {len(found)}")


def test_slices_without_names_are_left_out_beyond_the_first_report_and_counted() -> None:
    (told,) = within(slices(1, PARTITIONS + 5, named=False))

    assert len(told.observations) == 1 + PARTITIONS
    assert not told.complete
    assert told.detail == "5 rows more than are told of one card are left out"


def test_halves_of_a_listing_miss_nobody_and_lose_nothing() -> None:
    doc = to_listing_doc(replace(TOOL), cut(5, 2), Seeing(at=1.0))
    first, second = halves(doc)

    assert [*first.observations, *second.observations] == doc.observations
    assert not first.complete
    assert not second.complete
    assert all(row.level != "partition" for row in (first.observations[0], second.observations[0]))
    assert halves(to_listing_doc(TOOL, cut(1, 3), Seeing(at=1.0))) == []
    assert whole(part(first)) == first
