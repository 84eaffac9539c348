# SPDX-License-Identifier: Apache-2.0
"""What a reporter may say: what does not fit is refused or becomes an absence, and never hides or stops anything else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from muster.domain.model.errors import Conflict, InputError, NotFound
from muster.domain.model.policy import Policy
from muster.services.inventory import Inventory
from muster.store import Store, open_store
from muster.wire.report import ActDoc, CaptureDoc, EventDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc

T0 = 1_700_000_000.0


class Desk:
    """An inventory on a store of its own, and a reporter's numbering."""

    def __init__(self, store: Store) -> None:
        self.store, self.policy = store, Policy()
        self.inventory = Inventory(store.writer, self.policy, T0)
        self.number = 0

    def say(self, at: float, ids: dict[str, str], readings: dict[str, Any] | None = None, node: str = "n1", **more: Any) -> str:
        """One card told by one source; ``more`` are fields of the listing."""
        self.number += 1
        row = ObservationDoc(level="card", ids=list(ids.items()), readings={k: {"v": v} for k, v in (readings or {}).items()}, vendor=more.pop("vendor", {}))
        fields: dict[str, Any] = {"source": "driver", "channel": "in_band", "witness": "driver", "cadence": 60.0, "outcome": "devices", "complete": True}
        rest = {key: more.pop(key) for key in ("events", "captures") if key in more}
        listing = ListingDoc(**{**fields, "observed_at": T0 + at, "observations": [row], **more})
        doc = ReportDoc(reporter=f"agent@{node}", incarnation="i", sequence=self.number, node=NodeDoc(name=node), sent_at=T0 + at, listings=[listing], **rest)
        return self.inventory.report(doc, T0 + at).answer

    def start_anew(self, at: float) -> None:
        """The service dies and starts on the same store."""
        self.inventory = Inventory(self.store.writer, self.policy, T0 + at)


@pytest.fixture
def desk() -> Any:
    store = open_store(None)
    yield Desk(store)
    store.close()


@pytest.mark.parametrize("first", [-1e308, 1e308, float("inf"), float("nan"), "abc", [1], {"x": 1}, True])
def test_a_counter_that_is_none_stops_nothing(desk: Desk, first: Any) -> None:
    assert desk.say(0, {"serial": "SN1"}, {"energy.total": first, "memory.total": 85520809984}) == "applied"
    assert desk.say(60, {"serial": "SN1"}, {"energy.total": 1e308}) == "applied"
    assert desk.say(120, {"serial": "SN1"}, {"energy.total": 2000}) == "applied"
    desk.start_anew(130)

    (card,) = desk.store.reader.cards()
    assert card.increase["energy.total"] == 0
    assert [v.words["memory.total"].value for v in card.voices] == [85520809984]


@pytest.mark.parametrize("restart", [False, True])
def test_a_finding_about_a_reporter_is_opened_once_and_ends_also_after_a_restart(desk: Desk, restart: bool) -> None:
    def off(sequence: int, at: float, by: float) -> list[float]:
        doc = ReportDoc(reporter="agent@n1", incarnation="i", sequence=sequence, node=NodeDoc(name="n1"), sent_at=T0 + at + by)
        desk.inventory.report(doc, T0 + at)
        return [row.finding.opened_at - T0 for row in desk.store.reader.findings(closed=False) if row.finding.kind == "clock_wrong"]

    assert off(1, 0, 5000) == [0]
    assert off(2, 60, 5000) == [0]
    if restart:
        desk.start_anew(100)
    assert off(3, 120, 5000) == [0]
    assert off(4, 180, 0) == []
    assert off(5, 240, 5000) == [240]


def test_deep_values_are_told_as_text(desk: Desk) -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = {"a": deep}
    desk.say(0, {"serial": "SN1"}, {"errors.ras": deep}, vendor={"deep": deep})
    desk.start_anew(10)

    assert len(desk.store.reader.cards()) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"channel": "operator", "witness": "operator"},
        {"witness": "operator"},
        {"channel": "moon"},
        {"cadence": 2e11},
        {"cadence": -1.0},
        {"observed_mono": float("-inf")},
    ],
)
def test_a_listing_that_cannot_be_is_refused_whole(desk: Desk, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        desk.say(0, {"serial": "SN1"}, **wrong)

    assert desk.store.reader.cards() == []
    assert desk.say(0, {"serial": "SN1"}) == "applied"


def test_an_event_may_repeat_only_so_often(desk: Desk) -> None:
    event = EventDoc(id="e1", source="log", adapter="a", text="x", ids=[("serial", "SN1")], repeats=2**63, first_at=T0, last_at=T0)
    desk.say(0, {"serial": "SN1"}, events=[event])

    assert [e.repeats for e in desk.store.reader.events()] == [2**31]


def test_a_capture_is_kept_under_its_own_digest_only(desk: Desk) -> None:
    forged = CaptureDoc(digest="0" * 64, source="driver", format="f", locator=["x"], taken_at=T0, payload=b"bytes")
    desk.say(0, {"serial": "SN1"}, captures=[forged])

    with pytest.raises(NotFound):
        desk.store.reader.capture("0" * 64)


def act(**fields: Any) -> ActDoc:
    return ActDoc(by="ana", reason="test", **fields)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"what": "set", "card": {"serial": "SN1"}, "values": {"power.draw": {"v": 1}}}, InputError),
        ({"what": "set", "card": {"serial": "SN1"}, "values": {"memory.total": -5}}, InputError),
        ({"what": "set", "card": {"serial": "SN1"}, "values": {"asset.owner": ["a", "b"]}}, InputError),
        ({"what": "set", "card": {"serial": "SN1"}, "values": {"asset.warranty_until": "2026-13-45"}}, InputError),
        ({"what": "set", "card": {"serial": "SN1"}, "values": {"no.such": 1}}, InputError),
        ({"what": "set", "values": {"asset.rack": "R1"}}, InputError),
        ({"what": "set", "card": {"serial": "SN1"}}, InputError),
        ({"what": "store", "card": {"serial": "N/A"}}, InputError),
        ({"what": "retire", "card": {"vendor_uuid": ""}}, InputError),
        ({"what": "retire", "card": {"index": "7"}}, NotFound),
        ({"what": "same", "card": {"serial": "SN1"}, "other": {"serial": "SN2"}}, Conflict),
        ({"what": "same", "card": {"serial": "SN1"}}, InputError),
        ({"what": "remove_source", "node": "n1", "source": "none"}, NotFound),
        ({"what": "dance"}, InputError),
    ],
)
def test_words_that_cannot_be_said(desk: Desk, wrong: dict[str, Any], error: type[Exception]) -> None:
    desk.say(0, {"serial": "SN1"})
    desk.say(1, {"serial": "SN2"}, node="n2")
    before = desk.store.reader.cards()

    with pytest.raises(error):
        desk.inventory.act(act(**wrong), T0 + 5)
    assert desk.store.reader.cards() == before


def test_parts_that_were_united_come_back_as_they_were(desk: Desk) -> None:
    """A part with a base of its own is united with a fresh node's; the fresh part's first word must not take its place when the service starts anew."""
    desk.policy = Policy(late_listings=8, late_window=60)
    desk.start_anew(0)
    for new in range(6):
        for step in range(40):
            desk.say(new * 10_000 + step * 60, {"vendor_uuid": f"GPU-a{new}", "serial": f"A{new}"}, node=f"old-{new}")
        desk.say(new * 10_000 + 2500, {"vendor_uuid": f"GPU-b{new}"}, node=f"new-{new}")
        desk.say(new * 10_000 + 2700, {"vendor_uuid": f"GPU-a{new}", "serial": f"A{new}"}, node=f"new-{new}")
        desk.inventory.act(act(what="set", card={"serial": f"A{new}"}, values={"asset.owner": "lab"}), T0 + new * 10_000 + 2710)
        before = sorted(c.id for c in desk.store.reader.cards())
        desk.start_anew(new * 10_000 + 2720)
        desk.say(new * 10_000 + 2760, {"vendor_uuid": f"GPU-a{new}", "serial": f"A{new}"}, node=f"new-{new}")

        assert sorted(c.id for c in desk.store.reader.cards()) == before


def test_a_part_that_cannot_be_read_does_not_stop_time_for_the_others(desk: Desk) -> None:
    for node in ("n1", "n2"):
        desk.say(0, {"serial": f"SN-{node}"}, node=node)
    desk.start_anew(1)
    read = desk.store.writer.region

    def region(part: str) -> Any:
        rows = read(part)
        return rows if part == sound else replace(rows, said=[replace(each, body=b"x") for each in rows.said])

    sound = sorted(desk.store.writer.load().due)[0]
    with patch.object(desk.store.writer, "region", region):
        desk.inventory.tick(T0 + 1000)

    assert len(desk.inventory.damaged) == 1
    assert [source.silent for source in desk.store.reader.sources()].count(True) == 1


def test_a_source_that_speaks_more_seldom_from_now_on_is_held_to_that(desk: Desk) -> None:
    desk.say(0, {"serial": "SN1"}, cadence=60.0)
    desk.say(60, {"serial": "SN1"}, cadence=600.0)
    desk.inventory.tick(T0 + 60 + 1700)
    assert [(source.promise, source.silent) for source in desk.store.reader.sources()] == [(1800.0, False)]
    desk.inventory.tick(T0 + 60 + 1900)
    assert [source.silent for source in desk.store.reader.sources()] == [True]
