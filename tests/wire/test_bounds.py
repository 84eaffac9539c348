# SPDX-License-Identifier: Apache-2.0
"""What a report may say at most: the largest machine fits, one more of anything is refused whole and says which bound it is."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from muster.collect.clock import Clock
from muster.collect.reports import Identity, Reports
from muster.domain.decide.fold import fold
from muster.domain.model.errors import InputError
from muster.domain.model.policy import Policy
from muster.services.inventory import Inventory
from muster.store import Store, open_store
from muster.wire import bounds
from muster.wire.lanes import facts, part
from muster.wire.mapping import to_observations
from muster.wire.report import AgentDoc, CaptureDoc, EventDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc, pack
from muster.wire.sound import opened

T0 = 1_700_000_000.0


def listing(*rows: ObservationDoc, source: str = "driver") -> ListingDoc:
    return ListingDoc(
        source=source, channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observed_at=T0, observations=list(rows)
    )


def report(number: int, *rounds: ListingDoc, **more: Any) -> ReportDoc:
    heard = [part(each) for each in rounds]
    told = {"reporter": "r", "incarnation": "i", "node": NodeDoc(name="n"), **more}
    return ReportDoc(sequence=number, sent_at=T0, schema=2, heard=heard, **told)


def card(number: int, **more: Any) -> ObservationDoc:
    return ObservationDoc(level="card", ids=[("serial", f"SN{number}")], **more)


def piece(of: int, number: int, level: str = "partition", **more: Any) -> ObservationDoc:
    return ObservationDoc(level=level, ids=[("vendor_uuid", f"{level}-{of}-{number}")], parent=[("serial", f"SN{of}")], ordinal=number, **more)


@pytest.fixture
def store() -> Iterator[Store]:
    made = open_store(None)
    yield made
    made.close()


def largest() -> ListingDoc:
    cards = [card(number) for number in range(bounds.CARDS)]
    return listing(*cards, *(piece(of, number) for of in range(bounds.CARDS) for number in range(bounds.PARTITIONS)))


def test_the_largest_machine_fits(store: Store) -> None:
    inventory = Inventory(store.writer, Policy(), T0)

    assert inventory.report(opened(pack(report(1, largest()))), T0).answer == "applied"
    assert len(store.reader.cards()) == bounds.CARDS


TOO_MANY = {
    "cards": [card(number) for number in range(bounds.CARDS + 1)],
    "devices": [card(0), *(piece(0, number, "device") for number in range(bounds.DEVICES + 1))],
    "partitions of one card": [card(0), *(piece(0, number) for number in range(bounds.PARTITIONS + 1))],
    "spoken of": [piece(number, 0) for number in range(bounds.CARDS + bounds.DEVICES + 1)],
    "other rows": [ObservationDoc(level="fan") for _ in range(bounds.OTHERS + 1)],
    "names of one row": [ObservationDoc(level="card", ids=[("serial", f"SN{number}") for number in range(bounds.NAMES + 1)])],
    "names of its parent": [ObservationDoc(level="device", parent=[("serial", f"SN{number}") for number in range(bounds.NAMES + 1)])],
    "readings of one row": [card(0, readings={f"k{number}": {"v": 1} for number in range(bounds.READINGS + 1)})],
    "readings of its vendor": [card(0, vendor={f"k{number}": 1 for number in range(bounds.READINGS + 1)})],
    "characters": [ObservationDoc(level="card", ids=[("serial", "S" * (bounds.TEXT + 1))])],
}


@pytest.mark.parametrize("what", TOO_MANY)
def test_one_more_in_a_round_is_refused_whole(store: Store, what: str) -> None:
    inventory = Inventory(store.writer, Policy(), T0)
    rows = TOO_MANY[what]

    with pytest.raises(InputError, match=r"(round of driver|the report): .* are taken") as refused:
        inventory.report(report(1, listing(card(900), source="other"), listing(*rows)), T0)
    assert refused.value.hint
    assert not store.reader.cards()

    fewer = rows[:-1] if len(rows) > 1 else []
    assert inventory.report(report(2, listing(*fewer)), T0).answer == "applied"


def test_one_more_in_a_report_is_refused() -> None:
    long = "x" * (bounds.TEXT + 1)
    event = EventDoc(id="e", source="s", adapter="a", text="t" * 5000, first_at=T0, last_at=T0)
    capture = CaptureDoc(digest="d", source="s", format="f", locator=["l"], taken_at=T0, payload=b"")
    agent = AgentDoc(spool_bytes=2**64 - 1)
    many = {f"k{number}": "" for number in range(bounds.ENTRIES + 1)}
    cards = [listing(*(card(1000 * some + n) for n in range(100)), source=f"c{some}") for some in range(3)]
    half = listing(*(ObservationDoc(level="partition", parent=[("serial", f"SN{n // 60}")]) for n in range(bounds.ROWS // 2)))

    for wrong, about in (
        (report(1, *(listing(source=f"s{number}") for number in range(bounds.ROUNDS + 1))), "rounds"),
        (report(1, events=[event] * (bounds.EVENTS + 1)), "events"),
        (report(1, captures=[capture] * (bounds.CAPTURES + 1)), "captures"),
        (report(1, events=[msgspec.structs.replace(event, id=long)]), "characters"),
        (report(1, captures=[msgspec.structs.replace(capture, locator=["l"] * (bounds.ENTRIES + 1))]), "locator"),
        (report(1, agent=agent), "out of range"),
        (report(1, agent=AgentDoc(workers=many)), "agent.workers"),
        (report(1, half, msgspec.structs.replace(half, source="b"), listing(card(1), source="c")), "rows"),
        (report(1, *cards), "300 cards that share no name"),
        (report(1, *cards[:2], listings=cards[2:]), "300 cards that share no name"),
        (
            report(1, *(listing(*(ObservationDoc(level="card", ids=[("serial", "N/A")]) for _ in range(100)), source=f"n{some}") for some in range(3))),
            "share no name",
        ),
        (report(1, *(listing(*(piece(1000 * some + n, 0) for n in range(100)), source=f"p{some}") for some in range(3))), "share no name"),
        (report(1, reporter=long), "reporter"),
        (report(1, node=NodeDoc(name="n", system=long)), "node.system"),
        (report(1, boot_id=long), "boot_id"),
        (report(1, listing(source=long)), "source"),
    ):
        with pytest.raises(InputError, match=about) as refused:
            opened(pack(wrong))
        assert refused.value.hint
    assert opened(pack(report(1, half, msgspec.structs.replace(half, source="b"), events=[event], captures=[capture]))).sequence == 1


def test_cards_are_told_by_many_sources_in_many_ways() -> None:
    """Each source knows them by other names; one knows two names of each."""
    ways: dict[str, Callable[[int], list[tuple[str, str]]]] = {
        "a": lambda n: [("serial", f"SN{n}"), ("pci_address", f"0000:{n:02x}:00.0")],
        "b": lambda n: [("pci_address", f"0000:{n:02x}:00.0"), ("vendor_uuid", f"uuid-{n}")],
        "c": lambda n: [("vendor_uuid", f"uuid-{n}"), ("index", str(n))],
        "d": lambda n: [("index", str(n))],
        "e": lambda n: [("serial", f"SN{n}"), ("index", str(n))],
        "f": lambda n: [("chassis_slot", str(n))],
    }
    rounds = [listing(*(ObservationDoc(level="card", ids=way(n)) for n in range(bounds.CARDS)), source=source) for source, way in ways.items()]

    for told in (report(1, *rounds), report(1, listings=rounds), report(1, *rounds[3:], listings=rounds[:3])):
        assert opened(pack(told)) == told


def test_an_agent_of_many_sources_tells_them_in_several_reports() -> None:
    reports = Reports(Identity(node=NodeDoc(name="n")), Clock(lambda: T0, lambda: 1.0), lambda: "run")
    events = [EventDoc(id=f"e{number}", source="s", adapter="a", text="t", first_at=T0, last_at=T0) for number in range(3000)]
    made = reports.build([part(listing(card(1), source=f"s{number}")) for number in range(2 * bounds.ROUNDS + 5)], events, [])

    assert [len(each.heard) for each in made if each.heard] == [bounds.ROUNDS, bounds.ROUNDS, 5]
    assert [len(each.events) for each in made if each.events] == [3000]
    assert all(opened(pack(each)) for each in made)


def test_a_listing_of_thousands_of_partitions_is_folded_in_one_go() -> None:
    told = to_observations(largest())
    few = [each for each in told if any(name.value in {"SN0", "SN1", "SN2", "SN3"} for name in (*each.subject.names, *each.subject.parent))]

    def spent(rows: Any) -> float:
        found = []
        for _ in range(3):
            began = time.process_time()
            fold(rows)
            found.append(time.process_time() - began)
        return min(found)

    gc.disable()
    spent(few)
    assert len(few) == 4 * (1 + bounds.PARTITIONS)
    once, all_ = spent(few), spent(told)
    gc.enable()
    assert all_ < 32 * 6 * max(once, 0.0005)


def test_what_is_no_facts_is_told_when_it_is_read() -> None:
    broken = [msgspec.structs.replace(part(listing(source=f"s{number}")), facts=b"\xc1" * 300_000) for number in range(2)]

    told = opened(pack(msgspec.structs.replace(report(1), heard=broken)))
    with pytest.raises(InputError, match="do not fit"):
        facts(told.heard[0])
