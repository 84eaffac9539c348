# SPDX-License-Identifier: Apache-2.0
"""Short seeded runs of the simulation; long ones by hand with `make sim`. A failing seed reproduces: ``python -m tests.sim.run --seed N``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.domain.model.roll import FindingKind
from muster.wire.lanes import part
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from tests.sim import checks
from tests.sim.agents import FULL
from tests.sim.faults import PER_CARD, PER_NODE, PER_SITE
from tests.sim.rates import BUSY, CALM, EVERY, EVERY_HOURS, NOISE
from tests.sim.run import run
from tests.sim.server import POLICY, Server
from tests.sim.site import Site
from tests.sim.world import START, World


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "on_disk"), [(11, False), (12, True), (13, True)])
def test_a_seed(seed: int, on_disk: bool) -> None:
    """12: a run that ended in silence, then words from within that silence. 13: a late word while others ran on."""
    outcome = run(seed, machines=4, cards=3, hours=2.0, rates=BUSY, deaths=0.004, bmc=0.5, on_disk=on_disk, oracle=True)

    assert outcome.faults == []
    assert outcome.answers["applied"] > 200


@pytest.mark.slow
def test_a_server_that_dies_all_the_time() -> None:
    outcome = run(21, machines=4, cards=3, hours=1.5, rates=BUSY, deaths=0.05, bmc=0.5, on_disk=True, oracle=True)

    assert outcome.faults == []
    assert outcome.deaths > 4


KINDS = {
    "replace", "hang", "recut", "crash", "agent_dies", "move", "swap", "shelve", "mute", "disk_full", "clock", "renamed", "stand_in", "cut_10m", "cut_1h",
    "cut_1d", "site_cut", "server_full", "server_dies", "server_clock", "upgrade", "hang_all",
}  # fmt: skip
"""What befalls machines, cards, agents and server."""
ON_THE_WAY = {"lost", "answer_lost", "doubled", "late", "replayed", "forged"}


@pytest.mark.slow
def test_a_board_that_left_a_node_that_is_first_heard_a_day_later_is_one_card() -> None:
    """Words from before the move arrive when the board has long been seen elsewhere, and their place in the journal is folded."""
    outcome = run(2, machines=3, cards=2, hours=EVERY_HOURS, rates=NOISE, deaths=0.001, bmc=0.5, on_disk=True, planned=EVERY)

    assert outcome.faults == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 5])
def test_every_fault_comes(seed: int) -> None:
    """A day and more: a cut of a day from its beginning, and under it each other fault, one an hour."""
    outcome = run(seed, machines=3, cards=2, hours=EVERY_HOURS, rates=NOISE, deaths=0.001, bmc=0.5, on_disk=True, planned=EVERY)

    assert outcome.faults == []
    assert {kind for kind, count in outcome.seen.items() if count} == KINDS | ON_THE_WAY
    assert outcome.seen["server_dies"] == 2
    assert outcome.deaths >= 2
    assert outcome.answers["duplicate"] > 50
    assert outcome.answers["refused"] > 0


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_fault_changes_something(site: Site, kind: str) -> None:
    """None of them is a word alone. A board is moved to where a slot is free, and a tool stands in where there is one."""
    site.world.machines[0].has_tool = True
    _pass(site, 600)
    if kind == "move":
        site.world.take(site.world.at(site.world.machines[1])[0])
    before = site.faults.state()

    assert any(site.faults._befall(kind, site.now) and site.faults.state() != before for _ in range(40))


def test_the_faults_are_all_that_there_are() -> None:
    assert {*PER_CARD, *PER_NODE, *PER_SITE} == KINDS == {kind for _, kind in EVERY}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(5, World(5, 3, 2, bmc=0.4), CALM, tmp_path, on_disk=False, deaths=0.0)
    yield made
    made.server.close()
    FULL.clear()


def _pass(site: Site, seconds: float) -> None:
    until = site.now + seconds
    while site.now < until:
        site.step()


def test_a_calm_site_is_as_it_is(site: Site) -> None:
    _pass(site, 3600)

    assert site.look(deep=True) == []
    assert len(site.model.gauges) == 6
    assert all(each.rounds == 12 for each in site.model.gauges.values())


def test_the_model_sees_a_board_in_another_place(site: Site) -> None:
    """The checks are no decoration: what differs from the world is found."""
    _pass(site, 3600)
    board = site.world.boards[0]
    there = site.world.machines[2]
    there.slots = 3
    site.world.put(board, there, 2)

    assert any("board 0 in m2/2" in fault for fault in site.look())


def test_the_model_sees_rounds_that_were_lost_or_doubled(site: Site) -> None:
    _pass(site, 3600)
    site.model.taken["agent@m0", "i1.1"] += 1
    next(iter(site.model.gauges.values())).rounds -= 1
    faults = site.look(deep=True)

    assert any("reports were acknowledged, the server has" in fault for fault in faults)
    assert any("minutes count" in fault for fault in faults)


def test_the_model_sees_a_finding_that_is_not_called_for(site: Site) -> None:
    _pass(site, 3600)
    site.model.told[1, "driver"].stuck = True
    site.model.clock_wrong.add("agent@m2")
    faults = site.look()

    assert any(str(FindingKind.SOURCE_HUNG) in fault for fault in faults)
    assert any(str(FindingKind.CLOCK_WRONG) in fault for fault in faults)


def test_a_full_disk_is_a_real_one(site: Site) -> None:
    """The database itself refuses to grow; what was not acknowledged comes again."""
    _pass(site, 900)
    site.faults.server_full_until = site.now + 3000
    site.server.set_full(full=True)
    before = site.tally["applied"]
    _pass(site, 2700)
    assert site.tally["unavailable"] > 0
    assert site.tally["applied"] < before + 12

    _pass(site, 3600)
    assert sum(site.model.taken.values()) == 24 * (3 + sum(machine.has_bmc for machine in site.world.machines))
    assert site.look(deep=True) == []


def test_a_death_within_a_commit_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    site = Site(5, World(5, 3, 2, bmc=0.4), CALM, tmp_path, on_disk=True, deaths=0.3)
    _pass(site, 3600)

    assert site.server.deaths > 5
    assert site.look(deep=True) == []
    site.server.close()


UUID, SERIAL = ("vendor_uuid", "GPU-00000001-5100-4000-8000-000000000001"), ("serial", "7700000001")


def _report(source: str, number: int, at: float, now: float) -> ReportDoc:
    """One card as a reporter of one node tells it."""
    channel, witness = ("out_of_band", "bmc") if source == "bmc" else ("in_band", "driver")
    ids = SERIAL if source == "bmc" else UUID
    card = ObservationDoc(level="card", ids=[ids, ("chassis_slot", "S1")], readings={"power.draw": {"v": 80 + number}})
    listing = ListingDoc(
        source=source, channel=channel, witness=witness, cadence=300.0, outcome="devices", complete=True, observed_at=START + at, observed_mono=at,
        boot_id="b", observations=[card],
    )  # fmt: skip
    node = NodeDoc(name="n1", system="S1")
    return ReportDoc(reporter=source, incarnation="i", sequence=number, node=node, sent_at=now, sent_mono=now - START, boot_id="b", heard=[part(listing)])


@pytest.fixture
def server() -> Iterator[tuple[Server, list[float]]]:
    now = [START]
    made = Server(1, None, lambda: now[0], 0.0)
    yield made, now
    made.close()


def _lost(server: Server) -> list[tuple[str, float]]:
    """Entries of history that say that a source was lost or came back."""
    rows = server.store.reader.changes(limit=1000)
    return [(row.change.kind.value, row.change.at - START) for row in rows if row.superseded_at is None and row.change.kind.value.startswith("source_")]


def _hear(server: Server, now: list[float], source: str, at: float, arrives: float) -> None:
    now[0] = START + arrives
    server.inventory.report(_report(source, int(at), at, now[0]), now[0])
    server.tick()


def test_a_late_word_does_not_silence_those_who_ran_on(server: tuple[Server, list[float]]) -> None:
    """The driver says the same for an hour, by numbers alone; then a word of the controller comes that is half an hour late."""
    roll, now = server
    for turn in range(0, 3900, 300):
        _hear(roll, now, "driver", turn, turn + 1)
        if turn < 1800:
            _hear(roll, now, "bmc", turn + 2, turn + 3)
    _hear(roll, now, "bmc", 1802, 3700)
    now[0] += POLICY.stale_floor + 1  # more of its words may be on their way until then
    roll.tick()

    silent = [row.finding.source for row in roll.store.reader.findings() if row.finding.kind is FindingKind.SOURCE_SILENT]
    assert silent == ["bmc"]
    assert [at for kind, at in _lost(roll) if kind == "source_lost"] == [1802.0 + 900.0]


def test_words_from_within_a_silence_end_it_whatever_was_said_before(server: tuple[Server, list[float]]) -> None:
    """Two sources fall silent while a third runs on; what they said meanwhile comes in one go. Nobody was ever lost."""
    roll, now = server
    for turn in range(0, 3600, 300):
        for source in ("driver", "tool", "bmc") if turn < 2400 else ("bmc",):
            _hear(roll, now, source, turn, turn + 1)
    assert {kind for kind, _ in _lost(roll)} == {"source_lost"}

    for turn in range(2400, 3600, 300):
        for source in ("driver", "tool"):
            _hear(roll, now, source, turn, 3400)

    assert _lost(roll) == []
    assert roll.store.reader.findings() == []


def test_a_serial_that_names_nothing_is_said_as_long_as_it_is_told(site: Site) -> None:
    """A machine each with a board of one serial: found out once, it must not be forgotten because its value is passed over from then on."""
    for machine in site.world.machines:
        site.world.at(machine)[0].serial = "7700000042"
        machine.change(START)
    _pass(site, 2 * 3600)

    kinds = [row.finding.kind for row in site.server.store.reader.findings()]
    assert kinds == [FindingKind.PLACEHOLDER_ID]
    assert checks.snapshot(site.server.store)["findings"] == []
