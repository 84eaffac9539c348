# SPDX-License-Identifier: Apache-2.0
"""The page for Prometheus: what is known is there, what is not has no series, and every reader reads it."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from tests.export.fleets import ABSENT, SEEN, T0, card, fleet, fleets, large, told
from tests.export.tools import needed

from muster.export.exposition import text
from muster.export.families import READINGS, families
from muster.export.fleet import Fleet, Node, Part, Source
from muster.export.fleet import read as read_fleet
from muster.export.series import Names, points
from muster.export.shards import Shard
from muster.formats.prometheus import Sample, samples

EVERY = frozenset(READINGS)


def page(this: Fleet, keys: frozenset[str] = EVERY) -> str:
    return text(points(this, keys, Names()))[0]


def read(this: Fleet, keys: frozenset[str] = EVERY) -> list[Sample]:
    return list(samples(page(this, keys).encode("utf-8", "replace")))


def found(these: list[Sample], name: str, **labels: str) -> list[float]:
    return [each.value for each in these if each.name == name and labels.items() <= each.labels.items()]


@given(fleets())
def test_any_fleet_is_a_page_that_reads_back(this: Fleet) -> None:
    told_ = list(points(this, EVERY, Names()))
    back = read(this)

    expected = Counter((each.family.name, each.labels.pairs, float(each.value)) for each in told_)
    assert Counter((each.name, tuple(each.labels.items()), each.value) for each in back) == expected
    assert max(Counter((each.name, frozenset(each.labels.items())) for each in back).values(), default=0) <= 1
    assert all(math.isfinite(each.value) for each in back)


@given(fleets())
def test_what_is_not_known_is_never_drawn(this: Fleet) -> None:
    back = read(this)

    for each in this.cards:
        parts = [(part.readings, {"card": each.id, "device": part.id}) for part in each.devices]
        for told_, labels in ((each.readings, {"card": each.id}), *parts):
            for key, family in READINGS.items():
                reading = told_.get(key)
                drawn = [s for s in back if s.name == family.name and {k: v for k, v in s.labels.items() if k != "state"} == labels]
                if reading is None or not reading.fresh or each.presence in ("retired", "of a later version"):
                    assert drawn == []
                elif drawn and not family.states:
                    value = reading.value
                    assert drawn[0].value == float(len(value) if isinstance(value, list) else value)


@given(fleets())
def test_of_the_states_of_a_thing_one_holds(this: Fleet) -> None:
    holding: Counter[tuple[str, frozenset[tuple[str, str]]]] = Counter()
    for each in read(this):
        if "state" in each.labels and each.name != "muster_readings":
            assert each.value in (0, 1)
            holding[each.name, frozenset((k, v) for k, v in each.labels.items() if k != "state")] += int(each.value)

    assert set(holding.values()) <= {1}


@given(fleets())
def test_no_label_steers_a_terminal_or_is_endless(this: Fleet) -> None:
    for each in points(this, EVERY, Names()):
        assert all(value.isprintable() and len(value) <= 200 for _, value in each.labels.pairs)


def test_a_zero_is_a_zero_and_an_absence_is_none() -> None:
    readings = {"power.draw": told(0), "temperature.core": ABSENT, "memory.used": told(7, stale=True), "ecc.enabled": told(False), "fault.codes": told([])}
    back = read(fleet(card(1, readings)))

    assert found(back, "muster_power_draw_watts") == [0]
    assert found(back, "muster_ecc_enabled") == [0]
    assert found(back, "muster_fault_codes") == [0]
    assert found(back, "muster_temperature_core_celsius") == []
    assert found(back, "muster_memory_used_bytes") == []
    assert found(back, "muster_readings", attribute="temperature.core", state="absent") == [1]
    assert found(back, "muster_readings", attribute="memory.used", state="stale") == [1]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, "12", None, [1, 2], {"a": 1}])
def test_what_is_no_number_has_no_series(value: object) -> None:
    back = read(fleet(card(1, {"power.draw": told(value)})))

    assert found(back, "muster_power_draw_watts") == []
    assert found(back, "muster_readings", attribute="power.draw", state="absent") == [1]


def test_reported_health_has_a_series_for_each_state() -> None:
    sick, silent, unsaid = card(1, {"health.reported": told("critical")}), card(2, {"health.reported": ABSENT}), card(3, {"health.reported": told("unknown")})
    back = read(fleet(sick, silent, unsaid))

    states = ("ok", "warning", "critical", "unknown")
    assert [found(back, "muster_health_reported", card=sick.id, state=each) for each in states] == [[0], [0], [1], [0]]
    assert found(back, "muster_health_reported", card=silent.id) == []
    assert [found(back, "muster_health_reported", card=unsaid.id, state=each) for each in states] == [[0], [0], [0], [1]]


def test_devices_and_partitions_are_told_apart_by_labels() -> None:
    device = Part(id="c-1.d0", ordinal=0, readings={"temperature.core": told(40)})
    partition = Part(id="c-1.p0", ordinal=0, under="c-1.d0", readings={"memory.total": told(1024), "partition.profile": told("1g")})
    back = read(fleet(card(1, {"power.draw": told(300.5)}, id="c-1", devices=[device], partitions=[partition])))

    assert [each.labels for each in back if each.name == "muster_power_draw_watts"] == [{"card": "c-1"}]
    assert [each.labels for each in back if each.name == "muster_temperature_core_celsius"] == [{"card": "c-1", "device": "c-1.d0"}]
    assert [each.labels for each in back if each.name == "muster_memory_size_bytes"] == [{"card": "c-1", "device": "c-1.d0", "partition": "c-1.p0"}]
    assert found(back, "muster_partition_info", profile="1g", device="c-1.d0") == [1]


def test_names_of_processes_and_texts_of_errors_are_never_labels() -> None:
    readings = {"processes": told([{"name": "train.py", "pid": 7}]), "health.vendor": told("word of a maker"), "allocation.holders": told([{"pod": "p"}])}
    sources = [Source(id="s", node="n1", node_id="n-1", source="acme.smi", state="failed", last_at="2026-09-21T14:13:20Z")]
    shown = page(fleet(card(1, readings), sources=sources))

    assert not [word for word in ("train.py", "word of a maker", "pod") if word in shown]
    assert 'muster_source_last_seen_timestamp_seconds{source="acme.smi",node="n1",node_id="n-1"} 1790000000.0' in shown


def test_two_nodes_of_one_name_are_two_series() -> None:
    nodes = [Node(id=f"n-{n}", name="clone", last_at="2026-09-21T14:13:20Z") for n in (1, 2)]

    assert found(read(fleet(nodes=nodes)), "muster_node_last_seen_timestamp_seconds", node="clone") == [T0, T0]


def test_only_what_is_asked_for_is_told() -> None:
    back = read(fleet(card(1, {"power.draw": told(1), "temperature.core": told(2)})), frozenset({"power.draw"}))

    assert found(back, "muster_power_draw_watts") == [1]
    assert found(back, "muster_temperature_core_celsius") == []


def test_findings_that_are_not_there_are_known_to_be_none() -> None:
    back = read(fleet(findings={"card_missing": 2}))

    assert found(back, "muster_findings_open", kind="card_missing") == [2]
    assert found(back, "muster_findings_open", kind="source_silent") == [0]
    assert found(read(fleet()), "muster_findings_open") == []


NASTY = fleet(
    card(
        1, {key: told(family.states[0] if family.states else [] if family.counts else 1.5e-07) for key, family in READINGS.items()}, model='a"b\\c\nd\x00\u2028'
    ),
    card(
        2, {"power.draw": told(2**80), "temperature.core": told(-1e300)}, vendor="\ud800é🜚", slot="}", devices=[Part(id="d", readings={"power.draw": told(1)})]
    ),
    nodes=[Node(id="n-1", name='n"1', readings={"node.cpu.count": told(64)})],
    findings={},
)


def test_promtool_takes_the_page() -> None:
    ran = subprocess.run([needed("promtool"), "check", "metrics"], input=page(NASTY).encode(), capture_output=True, check=False, timeout=60)

    assert (ran.returncode, ran.stdout.decode(), ran.stderr.decode()) == (0, "", "")


def test_promtool_would_see_a_page_that_is_wrong() -> None:
    ran = subprocess.run([needed("promtool"), "check", "metrics"], input=b'muster_x{a="b} 1\n', capture_output=True, check=False, timeout=60)

    assert ran.returncode != 0


def test_every_name_is_one_that_promtool_likes() -> None:
    lines = "".join(f"# HELP {each.name} {each.about}\n# TYPE {each.name} {each.form}\n{each.name} 1\n" for each in families())
    ran = subprocess.run([needed("promtool"), "check", "metrics"], input=lines.encode(), capture_output=True, check=False, timeout=60)

    assert (ran.returncode, ran.stdout.decode(), ran.stderr.decode()) == (0, "", "")
    assert len({each.name for each in families()}) == len(list(families()))


def test_a_page_of_two_thousand_cards_is_quick() -> None:
    this, kept = large(2000), Names()
    text(points(this, EVERY, kept))
    began = time.process_time()
    body, series = text(points(this, EVERY, kept))
    took = time.process_time() - began

    assert series >= 2000 * (12 + 5 + 2)
    assert body.count("\n") == series + 2 * len({line.split()[2] for line in body.splitlines() if line.startswith("# TYPE")})
    print(f"{series} series, {len(body)} bytes in {took * 1000:.0f} ms of CPU")
    assert took < 1.0


def test_a_source_that_was_removed_is_gone() -> None:
    sources = [{"id": f"s-{state}", "source": state, "node": "n1", "node_id": "n-1", "state": state, "last_at": SEEN} for state in ("ok", "removed", "silent")]

    class Sources:
        """An API that knows sources alone."""

        def __call__(self, path: str, query: Mapping[str, str]) -> bytes:
            return json.dumps({"items": sources if path == "/sources" else [], "next": None, "at": SEEN, "findings": {}}).encode()

        def ready(self) -> bool:
            return True

        def listed(self, path: str, query: Mapping[str, str]) -> None:
            return None

    told_ = read(read_fleet(Sources(), Shard(), EVERY))

    assert found(told_, "muster_source_last_seen_timestamp_seconds", source="removed") == []
    assert len(found(told_, "muster_source_last_seen_timestamp_seconds")) == 2
    assert found(told_, "muster_source_state", source="silent", state="silent") == [1]


def test_what_is_not_said_is_no_label() -> None:
    (about,) = [each.labels for each in read(fleet(card(1, slot=None, vendor="", address=None))) if each.name == "muster_card_info"]

    assert {"slot", "vendor", "address", "index", "driver"} & about.keys() == set()
