# SPDX-License-Identifier: Apache-2.0
"""An agent that was cut off, or whose server was away, delivers what waited. Nobody was silent who spoke all the time, and none of it is told as an event."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.domain.decide.merge import Region
from muster.domain.model.errors import Unavailable
from muster.domain.model.roll import Happening
from muster.services.inventory import Inventory
from muster.wire.report import ReportDoc
from tests.services.test_two_ways import CADENCE, POLICY, T0, Side, World

CUT = 60
"""Rounds that wait."""
SILENCE = (Happening.SOURCE_LOST, Happening.SOURCE_BACK)


class Quiet(Side):
    """A server that, like the real one, holds nobody's silence against them for a while after its start."""

    def start(self, now: float) -> None:
        self.inventory = Inventory(self.store.writer, POLICY, now, quiet=POLICY.stale_floor)


@pytest.fixture(params=[True, False], ids=["numbers", "full"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    made = Quiet(light=request.param)
    yield made
    made.store.close()


def docs(world: World, first: int, last: int, *, changing: bool) -> list[tuple[float, ReportDoc]]:
    """The rounds of one node, each with the time at which it was seen."""
    found = []
    for turn in range(first, last):
        at = T0 + turn * CADENCE
        if changing and turn % 3 == 0:
            world.version["n0"] = f"{turn}.0"
        made = world.report("n0", at, at + 0.1)
        assert made is not None
        found.append((at + 0.1, made))
    return found


def resent(doc: ReportDoc, now: float) -> ReportDoc:
    """The report as it is sent when its way is free again."""
    doc.sent_at, doc.sent_mono = now, now - T0
    return doc


def entries(side: Side) -> tuple[int, int]:
    """Of silence: how many entries stand, and how many there ever were."""
    rows = [row for row in side.store.reader.changes() if row.change.kind in SILENCE]
    return sum(row.superseded_at is None for row in rows), len(rows)


def silent(side: Side) -> set[str]:
    """Names of the nodes of which a source is silent."""
    names = {node.id: node.name for node in side.store.reader.nodes()}
    return {names[source.node] for source in side.store.reader.sources() if source.silent}


@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.parametrize("server_away", [True, False])
def test_what_waited_is_delivered_and_nobody_was_silent(side: Side, *, server_away: bool, changing: bool) -> None:
    world = World(1)
    for now, doc in docs(world, 1, 6, changing=changing):
        side.report(doc, now)
        side.inventory.tick(now + 1)
    waiting = docs(world, 6, 6 + CUT, changing=changing)
    back = waiting[-1][0] + 1
    if server_away:
        side.start(back)
    else:
        for now, _ in waiting:
            side.inventory.tick(now)
        assert entries(side)[0] > 0, "it was silent, as far as anybody could know"
    before = entries(side)[1]
    for number, (_, doc) in enumerate(waiting):
        now = back + number * 0.5
        side.report(resent(doc, now), now)
        side.inventory.tick(now + 0.1)
    now = back + CUT * 0.5
    for later, doc in docs(world, 6 + CUT, 16 + CUT, changing=changing):
        side.report(resent(doc, max(now, later)), max(now, later))
        side.inventory.tick(max(now, later) + 1)
    assert entries(side) == (0, before), "none stands, and none was added while it was delivered"
    assert {source.silent for source in side.store.reader.sources()} == {False}
    assert not [row for row in side.store.reader.findings() if row.closed_at is None]


def test_one_that_ends_while_it_delivers_is_silent_from_its_last_round_on(side: Side) -> None:
    world = World(2)
    for now, doc in docs(world, 1, 6, changing=True):
        side.report(doc, now)
        side.inventory.tick(now + 1)
    waiting = docs(world, 6, 6 + CUT, changing=True)
    back = waiting[-1][0] + 1
    for number, (_, doc) in enumerate(waiting[: CUT // 2]):
        side.report(resent(doc, back + number), back + number)
        side.inventory.tick(back + number + 0.1)
    last = T0 + (5 + CUT // 2) * CADENCE
    for second in range(CUT // 2, CUT // 2 + 40):
        side.inventory.tick(back + second)
    lost = {round(row.change.at - last, 1) for row in side.store.reader.changes() if row.superseded_at is None and row.change.kind is Happening.SOURCE_LOST}
    assert lost == {POLICY.stale_floor}


def test_one_that_goes_on_delivering_old_words_is_held_to_its_promise_in_the_end(side: Side) -> None:
    world = World(3)
    told = docs(world, 1, 400, changing=False)
    for number, (at, doc) in enumerate(told[:-1]):
        now = at + (0 if number < 5 else 200)
        side.report(resent(doc, now), now)
        side.inventory.tick(now + 1)
    assert any(row.change.kind is Happening.SOURCE_LOST for row in side.store.reader.changes())


def test_a_turn_in_which_the_store_was_away_is_begun_anew(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(4)
    names, now = sorted(world.version), T0 + CADENCE
    for node in names:
        made = world.report(node, now, now)
        assert made is not None
        side.report(made, now)
    later = now + POLICY.stale_floor * 3
    found = iter((True, False))
    regions = side.inventory._fold.regions
    get = regions.get

    def away(part: str) -> Region:
        if part in looked or next(found, False):
            looked.add(part)
            return get(part)
        raise Unavailable("the store is away")

    looked: set[str] = set()
    with monkeypatch.context() as patch:
        patch.setattr(regions, "get", away)
        with pytest.raises(Unavailable):
            side.inventory.tick(later)
    assert silent(side) == set(), "nothing of it was kept"
    side.inventory.tick(later + 1)
    later += 2 + POLICY.stale_floor
    side.inventory.tick(later)
    assert silent(side) == set(names)


def test_a_turn_that_is_broken_off_goes_on_and_who_speaks_meanwhile_is_not_silent(side: Side) -> None:
    """A site that falls silent as one is looked at in small steps, so that reports come between."""
    world = World(4)
    now = T0
    names = sorted(world.version)
    for turn in range(1, 4):
        now = T0 + turn * CADENCE
        for node in names:
            made = world.report(node, now, now)
            assert made is not None
            side.report(made, now)
        side.inventory.tick(now + 1)
    later = now + POLICY.stale_floor * 3
    assert side.inventory.tick(later, lambda: True), "one part at a time"
    spoke = next(name for name in names if name not in silent(side))
    made = world.report(spoke, later + 1, later + 1)
    assert made is not None
    side.report(made, later + 1)
    steps = 1
    while side.inventory.tick(later + 2, lambda: True):
        steps += 1
    assert silent(side) == set(names) - {spoke}
    assert steps > 1
    assert not side.inventory.tick(later + 3, lambda: True)
