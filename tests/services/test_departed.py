# SPDX-License-Identifier: Apache-2.0
"""A source whose reporter was revoked, or has left, is silent for a reason that the site knows: its finding says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from muster.domain.model.policy import Policy
from muster.domain.model.roll import FindingKind
from muster.services.departed import EVERY
from muster.services.inventory import Inventory
from muster.store import open_store
from muster.wire.lanes import part
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from tests.services.gate import ANY, NOW, Node, a_gate, doc

CADENCE = 60.0
POLICY = Policy()


class Site:
    """A roll that hears nodes, and a gate from which they may be sent away."""

    def __init__(self) -> None:
        self.store = open_store(None)
        self.ended: Mapping[str, str] = {}
        self.sequence = 0
        self.start(NOW)

    def start(self, now: float) -> None:
        self.inventory = Inventory(self.store.writer, POLICY, now, ended=lambda _: self.ended)

    def report(self, node: str, now: float, reporter: str = "") -> None:
        self.sequence += 1
        told = ListingDoc(source="one.smi", channel="in_band", witness="driver", cadence=CADENCE, outcome="devices", complete=True, observed_at=now)
        told.observations = [ObservationDoc(level="card", ids=[("serial", f"SN-{node}")], readings={"product.name": {"v": f"X{self.sequence}"}})]
        said = ReportDoc(
            reporter=reporter or f"agent@{node}", incarnation="i", sequence=self.sequence, node=NodeDoc(name=node), sent_at=now, heard=[part(told)]
        )
        assert self.inventory.report(said, now).answer == "applied"

    def tick(self, now: float) -> None:
        self.inventory.tick(now)

    def silent(self) -> dict[str, str]:
        """What the open findings of silence say, by the name that they begin with."""
        told = [row.finding.about for row in self.store.reader.findings() if row.closed_at is None and row.finding.kind is FindingKind.SOURCE_SILENT]
        return {about.partition(":")[0]: about for about in told}


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.store.close()


WHY = "its reporter agent@n1 was revoked by ana at 2027-01-15T08:00:00Z; `muster agent reenrol n1` lets it in again"


def test_a_finding_says_that_the_reporter_was_ended_whichever_came_first(site: Site) -> None:
    for node in ("n1", "n2"):
        site.report(node, NOW)
    site.ended = {"agent@n1": WHY}
    site.tick(NOW + 20)
    assert site.silent() == {}
    for second in range(30, 400, 5):
        site.tick(NOW + second)
    silent = site.silent()
    assert silent["n1/one.smi"] == f"n1/one.smi: silent: {WHY}, or `muster source remove n1/one.smi`"
    assert "look at the agent" in silent["n2/one.smi"]

    site.ended = {"agent@n1": WHY, "agent@n2": "its reporter agent@n2 left"}
    site.tick(NOW + 400 + EVERY)
    assert site.silent()["n2/one.smi"] == "n2/one.smi: silent: its reporter agent@n2 left, or `muster source remove n2/one.smi`"
    opened = [row.finding.opened_at for row in site.store.reader.findings() if row.finding.kind is FindingKind.SOURCE_SILENT]
    assert len(opened) == 2, "the same findings as before"

    site.ended = {"agent@n1": WHY}
    site.tick(NOW + 400 + 3 * EVERY)
    assert "look at the agent" in site.silent()["n2/one.smi"]
    site.report("n1", NOW + 500)
    assert list(site.silent()) == ["n2/one.smi"], "it speaks again"


def test_a_start_keeps_what_was_said_and_goes_on_saying_it(site: Site) -> None:
    site.report("n1", NOW)
    for second in range(0, 400, 5):
        site.tick(NOW + second)
    assert "look at the agent" in site.silent()["n1/one.smi"]
    site.start(NOW + 400)
    site.ended = {"agent@n1": WHY}
    site.tick(NOW + 401)
    assert WHY in site.silent()["n1/one.smi"], "revoked while nobody ran"
    site.start(NOW + 410)
    for second in range(411, 800, 5):
        site.tick(NOW + second)
    assert site.silent()["n1/one.smi"] == f"n1/one.smi: silent: {WHY}, or `muster source remove n1/one.smi`", "said once"


@pytest.mark.parametrize("ended", ["agent@n1", "collector"])
def test_who_told_of_a_source_last_is_who_is_silent(site: Site, ended: str) -> None:
    other = "collector" if ended == "agent@n1" else "agent@n1"
    for second, reporter in ((0, other), (10, ended), (30, other)):
        site.report("n1", NOW + second, reporter)
    site.ended = {ended: WHY}
    for second in range(40, 400, 5):
        site.tick(NOW + second)
    assert "look at the agent" in site.silent()["n1/one.smi"]


def test_the_gate_says_who_ended_whom_and_when() -> None:
    with a_gate() as (gate, _):
        _, text = gate.mint(ANY, 3, 3600.0, "ana", NOW)
        one, two, three = (Node(doc(name)) for name in ("n1", "n2", "n3"))
        for each in (one, two, three):
            each.joins(gate, text)
        assert gate.ended(NOW) == {}
        gate.revoke("n1", "ana", "stolen", NOW + 1.25)
        two.leaves(gate, "agent@n2", NOW + 2)
        assert gate.ended(NOW + 3) == {
            "agent@n1": "its reporter agent@n1 was revoked by ana at 2027-01-15T08:00:01Z (stolen); `muster agent reenrol n1` lets it in again",
            "agent@n2": "its reporter agent@n2 left at 2027-01-15T08:00:02Z; it may join again by a new token",
        }
        _, again = gate.mint(ANY, 1, 3600.0, "ana", NOW + 3)
        Node(two.doc).joins(gate, again, NOW + 4)
        assert set(gate.ended(NOW + 5)) == {"agent@n1"}
