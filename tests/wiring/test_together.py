# SPDX-License-Identifier: Apache-2.0
"""A folder gives one entry per adapter: several sources of one machine are told together, and nothing is counted twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.wiring.adapters import TREE
from muster.wiring.offline import interpret_folder
from muster.wiring.together import together

MACHINES = sorted(file.parent for file in TREE.glob("*/machines/*/machine.toml"))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: f"{path.parent.parent.name}-{path.name}")
def test_one_entry_per_adapter_and_no_card_twice(machine: Path) -> None:
    rounds = interpret_folder(machine, None)
    told = together(rounds)

    assert [each["adapter"] for each in told] == list(dict.fromkeys(each["adapter"] for each in rounds))
    for entry in told:
        mine = [each for each in rounds if each["adapter"] == entry["adapter"]]
        assert len(entry["cards"]) == max(len(each["cards"]) for each in mine)
        known = {key for each in mine for card in each["cards"] for key, reading in card["readings"].items() if "value" in reading}
        assert known == {key for card in entry["cards"] for key, reading in card["readings"].items() if "value" in reading}


def card(readings: dict[str, Any], **ids: str) -> dict[str, Any]:
    return {"ids": ids, "readings": readings, "devices": [], "partitions": [], "processes": [], "vendor": {}}


def entry(outcome: str, *cards: dict[str, Any]) -> dict[str, Any]:
    return {"adapter": "a", "format": "f", "outcome": outcome, "complete": True, "node": {"readings": {}}, "cards": list(cards)}


def test_a_value_stays_before_a_later_absence_and_fills_an_earlier_one() -> None:
    first = entry("devices", card({"x": {"value": 1}, "y": {"absent": "error", "detail": ""}}, serial="00A1"))
    second = entry("devices", card({"x": {"absent": "error", "detail": ""}, "y": {"value": 2}, "z": {"value": 3}}, serial="0xa1", pci_address="01:00.0"))
    (told,) = together([first, second])

    assert [c["readings"] for c in told["cards"]] == [{"x": {"value": 1}, "y": {"value": 2}, "z": {"value": 3}}]
    assert told["cards"][0]["ids"] == {"serial": "00A1", "pci_address": "01:00.0"}
    assert first["cards"][0]["readings"]["y"] == {"absent": "error", "detail": ""}


def test_cards_without_a_strong_name_in_common_stay_apart() -> None:
    (told,) = together([entry("devices", card({}, index="0")), entry("devices", card({}, index="0", serial="N/A"))])

    assert len(told["cards"]) == 2


def test_a_leader_that_failed_leaves_the_word_to_the_next() -> None:
    (told,) = together([entry("driver_unusable"), entry("devices", card({}, serial="b2"))])

    assert (told["outcome"], len(told["cards"])) == ("devices", 1)
