# SPDX-License-Identifier: Apache-2.0
"""What rarely happens: cut lines, odd words, old layouts, broken answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.adapters.huawei import words
from muster.adapters.huawei.parse_hccn import newest
from muster.adapters.huawei.said import Said
from muster.adapters.huawei.tests.test_npu_smi import MIB, SINGLE, TWO_DIES, ids, level, read, value
from muster.domain.model.attributes import Level
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Outcome

MACHINES = Path(__file__).resolve().parent.parent / "machines"
MAPPING = "NPU ID   Chip ID   Chip Logic ID   Chip Name\n4   0   0   Ascend 910B9\n5   0   1   Ascend 910B9\n"


def snapshot(change: Any = None) -> Any:
    told = json.loads((MACHINES / "910c-library" / "snapshot.json").read_text())
    if change:
        change(told)
    return read(json.dumps(told), format_="dcmi-json")


def test_library_recording() -> None:
    found = snapshot()

    assert (found.outcome, len(level(found, Level.CARD)), len(level(found, Level.DEVICE))) == (Outcome.DEVICES, 2, 4)
    assert value(level(found, Level.DEVICE)[1], "fault.codes") == ["80E01801"]


def test_library_ddr_board_power_and_missing_parts() -> None:
    def change(told: Any) -> None:
        told["cards"][0]["board_power"] = {"rc": 0, "value": 434}
        for chip in told["cards"][0]["devices"]:
            chip["hbm"], chip["memory"] = {"rc": -8255}, {"rc": 0, "value": {"memory_size": 21525, "memory_available": 20525}}
            chip["ecc_hbm"] = {"rc": -8255}
            chip["health"] = {"rc": 0, "value": 4294967295}
        told["cards"][1]["devices"] = []
        told["dcmi"]["card_list"]["value"] = 3

    found = snapshot(change)
    cards, devices = level(found, Level.CARD), level(found, Level.DEVICE)
    assert (found.outcome, found.complete) == (Outcome.PARTIAL, False)
    assert (value(cards[0], "power.draw"), value(devices[0], "memory.used")) == (43.4, 1000 * MIB)
    assert devices[0].readings["ecc.enabled"] == Absent(Why.NOT_SUPPORTED, "ret is -8255 (not supported)")
    assert devices[0].readings["health.reported"] == Absent(Why.DEVICE_LOST, "the device is not there or not started")
    assert isinstance(cards[1].readings["memory.total"], Absent)


def test_library_power_per_chip_of_the_310_family() -> None:
    def change(told: Any) -> None:
        for chip in told["cards"][0]["devices"]:
            chip["chip"]["value"]["chip_name"] = "310"

    assert [value(d, "power.draw") for d in level(snapshot(change), Level.DEVICE)[:2]] == [91.5, 91.5]


def test_library_cut() -> None:
    text = (MACHINES / "910c-library" / "snapshot.json").read_text()

    assert read(text[: len(text) // 3], format_="dcmi-json").outcome in (Outcome.PARTIAL, Outcome.UNREADABLE)


@pytest.mark.parametrize("end", [len(MAPPING) - 1, len(MAPPING) - 3, len(MAPPING) - 14, len(MAPPING) - 19])
def test_a_cut_mapping_gives_no_half_name(end: int) -> None:
    found = read(MAPPING[:end])

    assert [value(c, "product.name") for c in level(found, Level.CARD) if "product.name" in c.readings] == ["Ascend 910B9"]
    assert (found.outcome, found.complete) == (Outcome.PARTIAL, False)


def test_mapping_rows_with_words_in_number_columns() -> None:
    card = level(read(MAPPING.replace("4   0   0", "4   what   0")), Level.CARD)[0]

    assert (ids(card), dict(card.readings)) == ({"index": "4"}, {})


def test_figures_and_words() -> None:
    assert words.read("power.draw", "91,3", 1) == Known(91.3)
    assert words.read("power.draw", "6x5536", 1) == Absent(Why.UNREADABLE, "6x5536")
    assert words.hex16("0x19E5") == Known("19e5")
    assert words.hex16("zz") == Absent(Why.UNREADABLE, "zz")
    assert words.hex16("NA") == Absent(Why.NOT_SUPPORTED, "NA")
    assert words.pages("0/0") is None
    assert words.pages("NA") == (Absent(Why.NOT_SUPPORTED, "NA"),) * 2
    assert words.pages("5/0") == (Known(5 * MIB), Absent(Why.IMPLAUSIBLE, "5/0"))
    assert words.health("NA")["health.reported"] == Absent(Why.NOT_SUPPORTED, "NA")
    assert words.health("Melting")["health.reported"] == Known("unknown")
    assert words.total(["1", "x"]) == Absent(Why.UNREADABLE, "x")
    assert words.total(["NA"]) == Absent(Why.NOT_SUPPORTED, "NA")
    assert words.total([]) is None
    assert words.first({"a": "NA", "b": "1"}, ("a", "b")) == "1"


def test_link_records_in_either_order() -> None:
    rows: list[tuple[str | None, ...]] = [("Tue Aug  1 14:43:26 2022", "UP"), ("Tue Aug  1 14:43:40 2022", "DOWN"), ("Tue Aug  1 14:43:40 2022", "UP")]

    assert newest(rows) == newest(rows[::-1]) == "UP"
    assert newest([]) == newest([("Tue Foo  1 14:43:40 2022", "UP")]) == ""


def test_memory_of_a_view_without_hbm() -> None:
    text = "NPU ID : 0\nChip Count : 1\n\nTotal DDR Capacity(MB) : 24576\nDDR Capacity(MB) : 21534\nDDR Clock Speed(MHz) : 4266\nChip ID : 0\n"
    card = level(read(text), Level.CARD)[0]

    assert (value(card, "memory.total"), value(card, "clock.memory")) == (21534 * MIB, 4_266_000_000)


def test_zero_memory_is_no_size() -> None:
    card = level(read(SINGLE.replace("980  / 21534", "0    / 0    ")), Level.CARD)[0]
    view = level(read("NPU ID : 0\nDDR Capacity(MB) : 0\nChip ID : 0\n"), Level.CARD)[0]

    assert card.readings["memory.total"] == Absent(Why.NOT_SAMPLED, "0/0")
    assert view.readings["memory.total"] == Absent(Why.IMPLAUSIBLE, "0 as printed")


def test_ports_of_dies_go_by_physical_id() -> None:
    found = read(TWO_DIES + "$ hccn_tool -i 5 -link -g\nlink status: UP\n$ hccn_tool -i 77 -link -g\nlink status: DOWN\n")

    assert value(level(found, Level.DEVICE)[1], "network.state") == "up"
    assert [ids(card) for card in level(found, Level.CARD)] == [{"index": "2"}, {"index": "3"}, {"index": "77"}]


def test_links_of_known_dies() -> None:
    found = read(TWO_DIES + "\n   Phy-ID4  Phy-ID5\nPhy-ID4  X  SIO\nPhy-ID5  SIO  X\n")

    assert len(level(found, Level.CARD)) == 2
    assert value(level(found, Level.DEVICE)[0], "link.peers") == {"Phy-ID5": "SIO"}


def test_rows_through_grep() -> None:
    text = "".join(line + "\n" for line in SINGLE.split("\n") if "0000" in line or "310P3" in line)
    found = read(text, "npu-smi", "info", format_="npu-smi-info")

    assert (found.complete, ids(level(found, Level.CARD)[0])) == (False, {"index": "7", "pci_address": "0000:4c:00.0"})
    only = level(read(text.split("\n")[1] + "\n", format_="npu-smi-info"), Level.CARD)[0]
    assert (ids(only), value(only, "memory.total")) == ({"pci_address": "0000:4c:00.0"}, 21534 * MIB)


def test_empty_and_denied_answers() -> None:
    assert read("", format_="npu-smi-info").outcome is Outcome.UNREADABLE
    assert read("open /dev/x: Permission denied\n", format_="npu-smi-info").outcome is Outcome.NOT_PERMITTED
    assert read("dcmi module initialize failed. ret is -8006\n").outcome is Outcome.TIMED_OUT
    assert read("npu_chip_info_x 1\n").outcome is Outcome.UNREADABLE
    assert read("[vCANN_RT] nothing\n", format_="npu-log").outcome is Outcome.UNREADABLE
    assert Said().whole is False
