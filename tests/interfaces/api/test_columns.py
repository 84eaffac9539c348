# SPDX-License-Identifier: Apache-2.0
"""Columns of a real store say what its rows say, for every path that a list may ask: while sources speak, differ, fall silent and come back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import GIB, T0, Clock, app, card, fleet, get, listing, report

from muster.domain.decide.pick_fields import CARD_FIELDS, PART_FIELDS
from muster.domain.model.attributes import Level
from muster.interfaces.api import cards, parts
from muster.interfaces.api.roll import Then
from muster.wiring import snapshot_numbers
from muster.wiring.desk import Desk
from muster.wiring.snapshots import Settings, Views


def board(number: int, dice: random.Random, source: str) -> list[Any]:
    """A card as one source tells it; now and then with two devices, and with words that another source says differently."""
    ids: dict[str, Any] = {"serial": f"SN-{number}", "pci_address": f"0000:{16 + number:02x}:00.0"}
    if dice.random() < 0.5:
        ids["chassis_slot"] = f"Slot {number}"
    told: dict[str, Any] = {
        "product.name": dice.choice(["Acme X1", "Acme X2", f"Acme of {source}"]),
        "pci.vendor_id": "f1f1",
        "memory.total": dice.choice([64 * GIB, 80 * GIB, ("a", "not_supported", "")]),
        "driver.version": dice.choice(["1.0", "1.1"]),
        "temperature.core": dice.randint(20, 90),
        "power.draw": dice.choice([dice.uniform(20, 700), ("a", "error", "x")]),
        "ecc.enabled": dice.random() < 0.5,
        "throttle.reasons": dice.choice([[], ["idle"], ["power_cap", "idle"]]),
        "performance.state": dice.choice(["P0", "P8"]),
    }
    if dice.random() < 0.7:
        return [card(number, told, **ids)]
    double = card(number, {"product.name": "Acme Duo"}, **ids)
    parent = [("serial", f"SN-{number}")]
    devices = [
        card(
            n,
            {"temperature.core": 40 + n, "memory.total": 32 * GIB, "power.draw": dice.uniform(1, 9)},
            level="device",
            parent=parent,
            vendor_uuid=f"dead-{number}-{n:012}",
        )
        for n in (0, 1)
    ]
    return [double, *devices]


def rows_say(desk: Desk, views: Views) -> dict[str, dict[str, str]]:
    """Every path of every card, by rows."""
    then = Then(desk=desk, views=views, at=None, now=desk.clock())
    there = cards.rows(then, desk.reader.cards(), frozenset(CARD_FIELDS), then.findings())
    return {row.record.id: _told({path: row.lookup()(path) for path in CARD_FIELDS}) for row in there}


def columns_say(views: Views) -> dict[str, dict[str, str]]:
    """Every path of every card, by columns."""
    snapshot = views.cards(CARD_FIELDS)
    rows = [row for row in range(snapshot.rows) if snapshot.live[row]]
    return {snapshot.texts("id", [row])[0]: _told({path: column.at(row) for path, column in snapshot.columns.items()}) for row in rows}


def _told(values: dict[str, Any]) -> dict[str, str]:
    return {path: _plain(value) for path, value in values.items() if value is not None}


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return repr([*value])
    return repr(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)


@pytest.fixture(params=[False, True], ids=["small", "large"])
def world(request: pytest.FixtureRequest) -> Iterator[tuple[Desk, Views, Clock]]:
    clock = Clock()
    with fleet(clock) as desk:
        yield desk, Views(desk.reader, desk.policy, clock, desk.adapters, desk.numbers, Settings(small=0 if request.param else 5000, beat=0.0)), clock


@pytest.mark.parametrize("seed", range(6))
def test_columns_say_what_rows_say(world: tuple[Desk, Views, Clock], seed: int) -> None:
    desk, views, clock = world
    dice = random.Random(seed)
    views.refresh()
    for step in range(2, 14):
        clock.now += dice.choice([1, 20, 45, 100, 300])
        for node in ("node-x", "node-y"):
            clock.now += 0.25
            if dice.random() < 0.7:
                some = [each for number in range(4) if dice.random() < 0.8 for each in board(number, dice, "acme.smi")]
                other = [each for number in range(3) if dice.random() < 0.8 for each in board(number, dice, "acme.exporter")]
                told = [listing(*some, at=clock.now), listing(*other, source="acme.exporter", witness="exporter", at=clock.now)]
                serials = {f"SN-{number}": f"SN-{node}-{number}" for number in range(9)}
                desk.report(renamed(report(node, *told[: dice.randint(1, 2)], sequence=step, at=clock.now), serials))
        if dice.random() < 0.5:
            desk.tick()
        views.refresh()

        assert differ(columns_say(views), rows_say(desk, views)) == [], step


def differ(columns: dict[str, dict[str, str]], rows: dict[str, dict[str, str]]) -> list[tuple[str, str, str | None, str | None]]:
    """Where they differ: card, path, what columns say, what rows say."""
    found: list[tuple[str, str, str | None, str | None]] = []
    for id_ in sorted(columns.keys() | rows.keys()):
        one, other = columns.get(id_, {}), rows.get(id_, {})
        found += [(id_, path, one.get(path), other.get(path)) for path in sorted(one.keys() | other.keys()) if one.get(path) != other.get(path)]
    return found


def renamed(told: Any, serials: dict[str, str]) -> Any:
    """The report with serials of the node's own."""
    for each in told.listings:
        for row in each.observations:
            row.ids = [(kind, serials.get(value, value)) for kind, value in row.ids]
            row.parent = [(kind, serials.get(value, value)) for kind, value in row.parent]
    return told


def test_parts_too(world: tuple[Desk, Views, Clock]) -> None:
    desk, views, clock = world
    views.refresh()
    then = Then(desk=desk, views=views, at=None, now=clock())
    for level, snapshot in ((Level.DEVICE, views.devices(PART_FIELDS)), (Level.PARTITION, views.partitions(PART_FIELDS))):
        shown = then.sketches(desk.reader.cards(), frozenset(PART_FIELDS), parts=True)
        there = [parts.PartRow(each, part) for each in shown for part in parts._parts(each, level)]
        wanted = {row.part.record.id: _told({path: row.lookup()(path) for path in PART_FIELDS}) for row in there}
        rows = [row for row in range(snapshot.rows) if snapshot.live[row]]
        assert {snapshot.texts("id", [row])[0]: _told({path: column.at(row) for path, column in snapshot.columns.items()}) for row in rows} == wanted
        assert wanted


def test_a_card_that_goes_leaves_the_columns(world: tuple[Desk, Views, Clock]) -> None:
    desk, views, clock = world
    views.refresh()
    before = columns_say(views)
    clock.now += 40
    desk.report(
        report("node-b", listing(card(0, {"product.name": "Beta F"}, pci_address="0000:03:00.0", serial="SN-1001"), at=clock.now), sequence=2, at=clock.now)
    )
    desk.tick()
    views.refresh()

    assert columns_say(views) == rows_say(desk, views)
    assert columns_say(views) != before


def test_names_are_found_by_columns_as_by_rows(world: tuple[Desk, Views, Clock]) -> None:
    desk, views, _ = world
    views.refresh()
    then = Then(desk=desk, views=views, at=None, now=T0)
    for word in ("SN-1001", "sn-1001", "node-a/0", "node-a · 0000:1b:00.0 · Acme X1", "NODE-A/1b:00.0", "0000:1b:00.0", "1C:00.0", "GPU-aaaa", "aaaa1111-0000"):
        assert then.card(word).ids["serial"][0] in ("SN-1001", "SN-1002"), word
    for each in desk.reader.cards():
        assert then.card(each.id[:9]).id == each.id or len(each.id) < 10


def test_a_large_roll_is_kept_by_a_thread_and_refuses_to_be_read_through() -> None:
    clock = Clock()
    with fleet(clock) as desk:
        large = replace(desk, scan_limit=2)
        served = app(large)
        api = TestClient(served, base_url="http://127.0.0.1", raise_server_exceptions=False)
        try:
            assert get(api, "/api/v1/cards")["total"] == 5
            assert get(api, "/api/v1/cards/SN-1001")["model"] == "Acme X1"
            refused = get(api, "/api/v1/cards", 400, at="-1m")
            assert "at:" in refused["detail"]
            assert "leave `at` out" in refused["hint"]
            assert "setting" not in refused["hint"], "there is none for it"
            clock.now += 1
            answer = api.post("/api/v1/acts", json={"by": "ann", "what": "retire", "card": "SN-1001"})
            assert answer.status_code == 200
            assert get(api, "/api/v1/cards")["total"] == 4
            clock.now += 1
            assert get(api, "/api/v1/cards/SN-1001", at="2026-09-21T14:13:20Z")["presence"] == "present"
        finally:
            served.state.rooms.views.close()


def test_columns_of_gauges_that_nobody_asks_for_go() -> None:
    clock, ticks = Clock(), [0.0]
    with fleet(clock) as desk:
        views = Views(desk.reader, desk.policy, clock, desk.adapters, desk.numbers, Settings(small=0), ticks=lambda: ticks[0])
        views.refresh()
        moving = views._moving
        assert moving is not None
        told = views.cards(("temperature.core",)).columns["temperature.core"]
        words = moving.words(views._cards.places, frozenset({"temperature.core"}), "cards", views._cards)
        moving.tidy()
        assert ("cards", "temperature.core") in moving._kept
        ticks[0] += snapshot_numbers.IDLE + 1
        moving.tidy()
        assert [len(kept) for kept in (moving._kept, moving._single, moving._columns, moving._sorted)] == [0, 0, 0, 0]
        again = views.cards(("temperature.core",)).columns["temperature.core"]
        assert [again.at(row) for row in range(views.size)] == [told.at(row) for row in range(views.size)]
        assert moving.words(views._cards.places, frozenset({"temperature.core"}), "cards", views._cards) == words
        assert words
