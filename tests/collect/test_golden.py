# SPDX-License-Identifier: Apache-2.0
"""Reports as earlier versions, this one and a later one write them are understood; equal facts are equal bytes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.collect.clock import Clock
from muster.collect.tell import Teller
from muster.wire.lanes import facts, older, part, whole
from muster.wire.mapping import to_known, to_observations
from muster.wire.report import OLDEST, SCHEMA, FactsDoc, HeardDoc, ListingDoc, ObservationDoc, ReportDoc, pack, unpack
from muster.wiring.agent import eyes

ADAPTERS = Path(__file__).resolve().parents[2] / "src" / "muster" / "adapters"
GOLDEN = Path(__file__).resolve().parent.parent / "wire" / "golden"
FILES = sorted(GOLDEN.glob("*.bin"))


def listings(report: ReportDoc) -> list[ListingDoc]:
    """The rounds of a report in one form."""
    return [*report.listings, *(whole(each) for each in report.heard)]


def test_there_are_reports_of_each_schema() -> None:
    assert {path.name.partition("-")[0] for path in FILES} == {f"schema{number}" for number in range(OLDEST, SCHEMA + 1)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_reports_are_understood(path: Path) -> None:
    report = unpack(path.read_bytes())

    assert (report.incarnation, report.boot_id) == ("golden-0", "b0071ed")
    rounds = not path.stem.endswith("log-1")
    assert bool(report.listings) == (rounds and path.name.startswith("schema1"))
    assert bool(report.heard) == (rounds and path.name.startswith("schema2"))
    assert bool(report.events) == (not rounds)
    for each in listings(report):
        assert each.outcome
        assert len(to_observations(each)) == len(each.observations)


@pytest.mark.parametrize("name", ["nvidia-0", "kernel-log-0"])
def test_both_schemas_say_the_same(name: str) -> None:
    old, new = (unpack((GOLDEN / f"schema{number}-{name}.bin").read_bytes()) for number in (1, 2))
    told = [{doc.source: to_observations(doc) for doc in listings(each)} for each in (old, new)]

    assert told[0] == told[1]
    assert [doc.source for doc in older(new).listings] == [doc.source for doc in old.listings]
    assert older(new).schema == 1
    assert not older(new).heard


def test_a_report_of_a_later_schema_is_understood_and_its_keys_are_kept() -> None:
    plain = msgspec.msgpack.decode((GOLDEN / "schema2-nvidia-0.bin").read_bytes())
    place = next(number for number, each in enumerate(plain["heard"]) if b"observations" in each["facts"])
    told = msgspec.msgpack.decode(plain["heard"][place]["facts"])
    told["glow"] = {"colour": "blue"}
    card = next(row for row in told["observations"] if row["level"] == "card")
    card["readings"]["aura.brightness"] = {"v": 7}
    card["readings"]["aura.shape"] = {"v": "round", "certainty": 0.5}
    card["mood"] = "calm"
    plain["heard"][place] |= {"facts": msgspec.msgpack.encode(told), "speed": 3}
    report = unpack(msgspec.msgpack.encode({**plain, "schema": 3, "stars": [1, 2]}))

    assert report.schema == 3
    rows = to_known(whole(report.heard[place]))
    (found,) = [row for row in rows if "newer" in row.vendor]
    assert found.vendor["newer"] == {"aura.brightness": 7, "aura.shape": {"v": "round", "certainty": 0.5}, "mood": "calm"}
    assert not found.readings.keys() & {"aura.brightness", "aura.shape"}
    before = to_known(whole(unpack((GOLDEN / "schema2-nvidia-0.bin").read_bytes()).heard[place]))
    assert [row.readings for row in rows] == [row.readings for row in before], "what is known is as it was"
    assert [{key: value for key, value in row.vendor.items() if key != "newer"} for row in rows] == [row.vendor for row in before]


def test_what_is_kept_of_a_later_schema_is_bounded() -> None:
    row = ObservationDoc(level="card", ids=[("serial", "SN1")], readings={f"aura.{n}": {"v": "x" * 10_000} for n in range(1000)}, vendor={"newer": "odd"})
    raw = msgspec.to_builtins(FactsDoc(source="a", channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observations=[row]))
    raw["observations"][0] |= {f"field-{n}": {"deep": [["y" * 1000]] * 100} for n in range(1000)}
    listing = whole(HeardDoc(source="a", facts=msgspec.msgpack.encode(raw), observed_at=1.0))
    (told,) = to_known(listing)

    assert len(told.vendor["newer"]) == 32
    assert {name.partition("-")[0] for name in told.vendor["newer"]} == {"field"}
    assert len(msgspec.json.encode(told.vendor)) < 32 * 300
    assert told.readings == {}


def test_equal_facts_are_equal_bytes_in_whatever_order_they_were_told() -> None:
    report = unpack((GOLDEN / "schema2-nvidia-0.bin").read_bytes())
    doc = whole(report.heard[0])
    turned = msgspec.structs.replace(
        doc,
        counts=dict(reversed(doc.counts.items())),
        observations=[msgspec.structs.replace(row, readings=dict(reversed(row.readings.items()))) for row in doc.observations],
        observed_at=doc.observed_at + 10,
        capture="another",
    )

    assert part(turned).facts == part(doc).facts == part(whole(part(doc))).facts
    assert part(turned).numbers == part(doc).numbers
    assert facts(part(doc)).source == doc.source
    assert pack(unpack(pack(report))) == pack(report)


@pytest.mark.parametrize("machine", sorted(ADAPTERS.glob("*/machines/*")), ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_a_machine_that_is_read_twice_says_equal_facts(machine: Path) -> None:
    """Nothing that an adapter says of a machine on which nothing changed is other bytes the second time, whatever the clock."""
    seen, times = eyes(machine), iter(range(1, 10_000))
    told = []
    for _ in range(2):
        clock = Clock(lambda: 1e9 + next(times), lambda: float(next(times)))
        heard = Teller("boot").tell(seen.collector(clock).once()).heard
        told.append({each.source: (each.facts, each.numbers) for each in heard})

    assert told[0] == told[1]
