# SPDX-License-Identifier: Apache-2.0
"""Listings of two hosts in one text, and cards without a fan."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.adapters.amd.tests.test_amd_smi import cards, read, static, value
from muster.domain.decide.fold import ids
from muster.domain.model.reading import Why


def host(mark: str, draw: int) -> list[dict[str, Any]]:
    rows = []
    for index in range(2):
        row = static(index, bus={"bdf": f"0000:{mark}{index}:00.0"}, power={"socket_power": {"value": draw + index, "unit": "W"}})
        row["asic"]["asic_serial"] = f"0x{mark}A31C0DE{index:08X}"
        rows.append(row)
    return rows


def test_rows_of_one_number_with_other_names_are_other_cards() -> None:
    text = json.dumps(host("1", 100)) + "\n" + json.dumps(host("8", 700))
    told, found = read(text), cards(text)

    assert [(ids(card.names)["index"], value(card, "power.draw")) for card in found] == [("0", 100), ("1", 101), ("0", 700), ("1", 701)]
    assert not told.complete
    assert "stands for several cards" in told.detail


def test_a_listing_told_twice_is_one() -> None:
    told = read(json.dumps(host("1", 100)) * 2)

    assert (len(cards(json.dumps(host("1", 100)) * 2)), told.complete, told.detail) == (2, True, "")


def test_rows_without_names_behind_two_hosts_are_nobodys() -> None:
    found = cards("".join(json.dumps(rows) for rows in (host("1", 100), host("8", 700), [{"gpu": 0, "temperature": {"hotspot": 61}}])))

    assert len(found) == 4
    assert all("temperature.hotspot" not in card.readings for card in found)


@pytest.mark.parametrize(("name", "expected"), [("AMD Instinct MI300X OAM", Why.NOT_PRESENT), ("AMD Radeon PRO W7900", 0)])
def test_no_fan_where_the_host_cools(name: str, expected: Any) -> None:
    row = {"gpu": 0, "asic": {"market_name": name}, "fan": {"speed": "N/A", "max": "N/A", "rpm": "N/A", "usage": {"value": 0, "unit": "%"}}}
    (card,) = cards(json.dumps([row]))

    assert value(card, "fan.speed") == expected
