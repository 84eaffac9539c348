# SPDX-License-Identifier: Apache-2.0
"""What was acknowledged counts once, whatever comes again: over an agent's runs, over restarts of the server, and with other words under a used number."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from muster.domain.model.policy import Policy
from muster.domain.model.roll import FindingKind
from muster.services.inventory import Inventory
from muster.services.older import placed
from muster.services.windows import FORMER, FULL, Copy, Window
from muster.spi.store import Loaded, Received
from muster.store import Store, open_store
from muster.wire.lanes import part
from muster.wire.report import AnswerDoc, EventDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc

T0 = 1_790_000_040.0
MINUTE = 60.0


class Site:
    """A server on a store of its own, and one agent, whose reports can be sent again."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = T0
        self.start()

    def start(self) -> None:
        """The server ends and begins anew on the same store."""
        self.inventory = Inventory(self.store.writer, Policy(), self.now)

    def report(self, life: str, number: int, *, degrees: int = 50, version: str = "v1") -> ReportDoc:
        """One round of one card, made now."""
        readings: dict[str, dict[str, Any]] = {"temperature.core": {"v": float(degrees)}, "firmware.version": {"v": version}}
        card = ObservationDoc(level="card", ids=[("serial", "SN7788990011"), ("pci_address", "0000:3b:00.0")], readings=readings)
        listing = ListingDoc(
            source="t.s", channel="in_band", witness="driver", cadence=MINUTE, outcome="devices", complete=True, observed_at=self.now,
            observed_mono=self.now - T0 + 1000, boot_id="b", adapter="t", counts={"card": 1}, observations=[card],
        )  # fmt: skip
        node = NodeDoc(name="n", machine_id="m-123987", system="s1")
        return ReportDoc(reporter="agent@n", incarnation=life, sequence=number, node=node, sent_at=self.now, boot_id="b", heard=[part(listing)])

    def say(self, doc: ReportDoc) -> AnswerDoc:
        """Sends a report as an agent does, each time with the time of sending."""
        return self.inventory.report(msgspec.structs.replace(doc, sent_at=self.now, sent_mono=self.now - T0 + 1000), self.now)

    def counted(self) -> dict[float, int]:
        """How many rounds each minute counts."""
        (card,) = self.store.reader.cards()
        rows = self.store.reader.minutes(card.id, "temperature.core", T0 - MINUTE, self.now + 10 * MINUTE)
        return {row["minute"] - T0 // MINUTE * MINUTE: row["count"] for row in rows}

    def conflicts(self) -> list[str]:
        """What is said of numbers that clash, while it is open."""
        rows = self.store.reader.findings()
        return [row.finding.about for row in rows if row.closed_at is None and row.finding.kind is FindingKind.SEQUENCE_CONFLICT]


@pytest.fixture
def site() -> Iterator[Site]:
    store = open_store(None)
    yield Site(store)
    store.close()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("lives", [1, FULL + 3, FULL + FORMER + 20])
def test_a_report_that_comes_again_after_many_runs_of_its_agent_is_not_counted_again(site: Site, lives: int, *, restarts: bool) -> None:
    told = [site.report("run-0", 1)]
    assert site.say(told[0]).answer == "applied"
    for run in range(1, lives + 1):
        site.now += MINUTE
        told.append(site.report(f"run-{run}", 1))
        assert site.say(told[-1]).answer == "applied", run
        if restarts and run % 10 == 0:
            site.start()
    before = site.counted()
    assert set(before.values()) == {1}
    for doc in (told[0], told[len(told) // 2], told[-2]):
        for again in (doc, msgspec.structs.replace(doc)):
            answer = site.say(again)
            assert answer.answer in ("duplicate", "refused")
            assert answer.answer == "duplicate" or len(site.conflicts()) == 1, "it is said where one is refused"
    assert site.inventory.report(told[0], site.now).answer in ("duplicate", "refused"), "byte by byte as it was"
    assert site.counted() == before
    site.now += MINUTE
    assert site.say(site.report("run-next", 1)).answer == "applied"
    assert not site.conflicts()


def test_what_waited_in_a_run_before_is_taken(site: Site) -> None:
    site.say(site.report("run-0", 1))
    site.now += MINUTE
    waited = site.report("run-0", 2)
    for run in range(1, FULL + FORMER):
        site.now += MINUTE
        site.say(site.report(f"run-{run}", 1))
    assert site.say(waited).answer == "applied"
    assert site.say(waited).answer == "duplicate"


def rounds(site: Site, many: int) -> list[ReportDoc]:
    """So many rounds that say the same facts."""
    told = []
    for number in range(1, many + 1):
        site.now += MINUTE
        told.append(site.report("run", number, degrees=40 + number % 20))
        assert site.say(told[-1]).answer == "applied"
    return told


def test_other_words_under_a_number_are_never_acknowledged(site: Site) -> None:
    told = rounds(site, 90)
    for number in (90, 60, 2):
        assert site.say(site.report("run", number, degrees=99)).answer == "refused", number
    (about,) = site.conflicts()
    assert "number 90 of run came again with other words" in about
    assert site.say(told[-1]).answer == "duplicate"
    assert site.say(told[0]).answer == "refused", "what it said is not remembered"
    assert {each.word.value for each in site.store.reader.current() if each.key == "temperature.core"} == {50}


def test_the_last_report_before_a_restart_is_known_by_what_its_sources_said(site: Site) -> None:
    """It was numbers alone, so that only the row of its source tells of it; its answer was lost, and the agent sends it again."""
    told = rounds(site, 9)
    before = site.counted()
    site.start()
    assert site.say(site.report("run", 9, degrees=99)).answer == "refused"
    happened = EventDoc(id="e1", source="t.s", adapter="t", text="it fell", first_at=site.now, last_at=site.now)
    assert site.say(msgspec.structs.replace(told[-1], events=[happened])).answer == "refused"
    site.start()
    assert site.say(told[-1]).answer == "duplicate"
    assert site.say(told[4]).answer == "refused"
    assert site.counted() == before
    site.now += MINUTE
    assert site.say(site.report("run", 10)).answer == "applied"
    assert site.say(told[-1]).answer == "refused"


def test_a_report_with_events_is_known_by_its_words_after_a_restart(site: Site) -> None:
    rounds(site, 5)
    site.now += MINUTE
    happened = EventDoc(id="e1", source="t.s", adapter="t", text="it fell", first_at=site.now, last_at=site.now)
    told = msgspec.structs.replace(site.report("run", 6, degrees=46), events=[happened])
    assert site.say(told).answer == "applied"
    site.start()
    assert site.say(told).answer == "duplicate"
    assert site.say(msgspec.structs.replace(told, events=[])).answer == "refused"


def test_what_an_older_store_took_is_not_taken_again() -> None:
    keys = [Received(reporter="agent@n", incarnation="run", sequence=number, digest="d", received_at=T0, answer="applied") for number in (1, 2, 5)]
    batch = placed(Loaded(said=(), base={}, received=keys, findings=(), next_order=1), Policy(), T0)

    assert batch is not None
    (row,) = batch.reporters
    window = Window(row.recent)
    assert (row.reporter, row.incarnation, row.high) == ("agent@n", "run", 5)
    assert [window.judge("run", number, b"anything") for number in (1, 2, 3, 5, 6)] == [Copy.UNTOLD, Copy.UNTOLD, Copy.NEW, Copy.UNTOLD, Copy.NEW]
    assert placed(Loaded(said=(), base={}, received=(), findings=(), next_order=1), Policy(), T0) is None


def test_what_a_newer_agent_says_in_words_of_its_own_stands_with_the_vendors_detail(site: Site) -> None:
    doc = site.report("run", 1)
    facts = msgspec.msgpack.decode(doc.heard[0].facts)
    row = facts["observations"][0]
    row["mood"], row["readings"]["aura.shape"], row["readings"]["aura.glow"] = "calm", {"v": "round"}, {"n": 1}
    heard = msgspec.structs.replace(doc.heard[0], facts=msgspec.msgpack.encode(facts), numbers=doc.heard[0].numbers + struct.pack("<d", 7.0))
    assert site.say(msgspec.structs.replace(doc, schema=3, heard=[heard])).answer == "applied"

    site.start()
    (card,) = site.store.reader.cards()
    assert [told["newer"] for told in card.details.values()] == [{"aura.glow": 7, "aura.shape": "round", "mood": "calm"}]
    assert "aura.shape" not in {key for voice in card.voices for key in voice.words}
