# SPDX-License-Identifier: Apache-2.0
"""Machines that call themselves the same are told of: one finding a name, while it lasts."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from muster.domain.model.policy import Policy
from muster.domain.model.roll import FindingKind, NodeNames
from muster.services.gathered import Gathered
from muster.services.inventory import Inventory
from muster.services.namesakes import EVERY, Namesakes
from muster.services.sources import Sources
from muster.services.standing import Standing
from muster.store import Store, open_store
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc

T0 = 1_790_000_040.0


class Site:
    """A server and machines that report to it."""

    def __init__(self, store: Store) -> None:
        self.store, self.now, self.number = store, T0, 0
        self.start()

    def start(self) -> None:
        self.inventory = Inventory(self.store.writer, Policy(), self.now)

    def say(self, number: int, name: str, *, machine: str | None = None, system: str | None = None) -> None:
        """One machine reports."""
        self.number += 1
        card = ObservationDoc(level="card", ids=[("serial", f"SN55667{number:04d}")])
        listing = ListingDoc(
            source="t.s", channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observed_at=self.now, observations=[card]
        )
        node = NodeDoc(name=name, machine_id=f"{number + 1:032x}" if machine is None else machine, system=f"SYS{number}" if system is None else system)
        doc = ReportDoc(reporter=f"agent@{number}", incarnation="i", sequence=self.number, node=node, sent_at=self.now, listings=[listing])
        assert self.inventory.report(doc, self.now).answer == "applied"

    def after(self, seconds: float) -> list[tuple[str, str]]:
        """Time passes; what is open of names then."""
        self.now += seconds
        self.inventory.tick(self.now)
        rows = self.store.reader.findings()
        return [(r.finding.subject, r.finding.about) for r in rows if r.closed_at is None and r.finding.kind is FindingKind.PLACEHOLDER_ID]


@pytest.fixture
def site() -> Iterator[Site]:
    store = open_store(None)
    yield Site(store)
    store.close()


def told(many: int, name: str = "gpu") -> list[tuple[str, str]]:
    return [(f"name={name}", f"host name {name!r} is told by {many} machines: it names none of them; give each its own")]


def test_a_name_of_many_machines_is_one_finding_that_is_closed_when_it_ends(site: Site) -> None:
    for number in range(5):
        site.say(number, "gpu" if number else "GPU")
        site.say(number + 10, f"gpu-{number}")
    assert site.after(1) == told(5)
    for number in range(4):
        site.say(number, "gpu")
    assert site.after(EVERY) == told(5)
    site.start()
    assert site.after(EVERY) == told(5)
    for number in range(4):
        site.say(number, "gpu")
    assert site.after(121) == told(4), "one has a name of its own by now"
    for number in range(4):
        site.say(number, f"gpu-{number + 10}")
    assert site.after(EVERY) == told(4)
    assert site.after(60) == []
    (row,) = [row for row in site.store.reader.findings(closed=True) if row.finding.kind is FindingKind.PLACEHOLDER_ID]
    assert row.closed_at is not None


@pytest.mark.parametrize("many", [1, 2])
def test_a_few_machines_of_one_name_are_no_finding(site: Site, many: int) -> None:
    for number in range(many):
        site.say(number, "gpu")
    assert site.after(1) == []


def test_several_reporters_of_one_machine_are_no_finding(site: Site) -> None:
    for number in range(5):
        site.say(number, "gpu", machine="5" * 31 + "a", system="" if number % 2 else "SYS-7")
    assert site.after(1) == []


def test_machines_that_tell_their_chassis_alone_count(site: Site) -> None:
    for number in range(4):
        site.say(number, "gpu", machine="")
    assert site.after(1) == told(4)


def test_nothing_ends_while_nobody_could_be_heard(site: Site) -> None:
    for number in range(4):
        site.say(number, "gpu")
    assert site.after(1) == told(4)
    site.now += 3600
    site.inventory = Inventory(site.store.writer, Policy(), site.now, quiet=90.0)
    assert site.after(60) == told(4)
    for number in range(3):
        site.say(number, "gpu")
    assert site.after(60) == told(3)


def test_a_look_at_a_large_site_is_short() -> None:
    sources = Sources((), 1)
    for number in range(20_000):
        made = sources.new((f"agent@{number}", "t.s", f"n{number // 4}"), NodeNames(name=f"n{number // 4}", machine_id=f"{number // 4:032x}", system=""))
        made.at, made.promise = T0, 180.0
    began = time.process_time()
    Namesakes(Policy()).look(sources, Standing(()), Gathered(), T0 + 1)
    spent = time.process_time() - began
    print(f"20,000 sources: {1000 * spent:.0f} ms")
    assert spent < 0.5
