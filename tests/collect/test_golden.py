# SPDX-License-Identifier: Apache-2.0
"""Reports as earlier versions, this one and a later one write them are understood; equal facts are equal bytes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.collect.clock import Clock
from muster.collect.tell import Teller
from muster.wire.lanes import facts, older, part, whole
from muster.wire.mapping import to_observations
from muster.wire.report import OLDEST, SCHEMA, ListingDoc, ReportDoc, pack, unpack
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
    (found, *_) = [row for row in to_observations(whole(report.heard[place])) if "aura.brightness" in row.readings]
    assert {key: str(found.readings[key]) for key in ("aura.brightness", "aura.shape")} == {
        "aura.brightness": "Known(value=7)",
        "aura.shape": "Known(value='round')",
    }


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
