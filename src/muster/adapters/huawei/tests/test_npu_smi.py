# SPDX-License-Identifier: Apache-2.0
"""The main table in its layouts: one chip, two dies, two chips at one address."""

from __future__ import annotations

from typing import Any

import pytest

from muster.adapters.huawei import interpret, recognise
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Interpretation, Observation
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Capture, Outcome, SourceId

MIB = 1024**2

TWO_DIES = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.3.9                   Version: 25.3.9                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 2     Ascend910           | Warning       | 161.4       40                0    / 0             |
| 0     4                   | 0000:E1:00.0  | 21          0    / 0          60123/ 65536         |
+------------------------------------------------------------------------------------------------+
| 2     Ascend910           | OK            | -           42                0    / 0             |
| 1     5                   | 0000:E3:00.0  | 0           0    / 0          2811 / 65536         |
+===========================+===============+====================================================+
| 3     Ascend910           | OK            | 158.6       39                0    / 0             |
| 0     6                   | 0000:E5:00.0  | 0           0    / 0          2812 / 65536         |
+------------------------------------------------------------------------------------------------+
| 3     Ascend910           | OK            | -           39                0    / 0             |
| 1     7                   | 0000:E7:00.0  | 0           0    / 0          2813 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 2       0                 | 51500         | worker one               | 57310                   |
+===========================+===============+====================================================+
| No running processes found in NPU 3                                                            |
+===========================+===============+====================================================+
"""
SINGLE = """\
+----------------------------------------------------------------------------------------------------+
| npu-smi 22.7.1                       Version:22.7.1                                                |
+-------------------+-----------------+--------------------------------------------------------------+
| NPU     Name      | Health          | Power(W)     Temp(C)           Hugepages-Usage(page)         |
| Chip    Device    | Bus-Id          | AICore(%)    Memory-Usage(MB)                                |
+===================+=================+==============================================================+
| 7       310P3     | OK              | 16,4         51                0     / 0                     |
| 0       0         | 0000:4C:00.0    | 12           980  / 21534                                    |
+===================+=================+==============================================================+
| 8       310B4     | Alarm           | 0.0          67                15    / 15                    |
| 0       1         | NA              | NA           1600 / 3513                                     |
+===================+=================+==============================================================+
| 0     0           | OK              | 0                              0     / 0                     |
+===================+=================+==============================================================+
"""


def read(text: str | bytes, *locator: str, format_: str = "", exit_status: int | None = None) -> Interpretation:
    payload = text.encode() if isinstance(text, str) else text
    capture = Capture(source=SourceId("t"), locator=locator, format=format_ or recognise(payload) or "", payload=payload, exit_status=exit_status)
    return interpret([capture], {})


def level(found: Interpretation, wanted: Level) -> list[Observation]:
    return [each for each in found.observations if each.subject.level is wanted]


def ids(each: Observation) -> dict[str, str]:
    return {str(n.kind): n.canonical for n in each.subject.names}


def value(each: Observation, key: str) -> Any:
    reading = each.readings[key]
    assert isinstance(reading, Known), f"{key}: {reading}"
    return reading.value


def test_two_dies_are_one_card_with_one_power_sensor() -> None:
    found = read(TWO_DIES)
    cards, devices = level(found, Level.CARD), level(found, Level.DEVICE)

    assert recognise(TWO_DIES.encode()) == "npu-smi-info"
    assert (found.outcome, found.complete, found.tool_version) == (Outcome.DEVICES, True, "npu-smi 25.3.9")
    assert [ids(card) for card in cards] == [{"index": "2"}, {"index": "3"}]
    assert [ids(device)["index"] for device in devices] == ["4", "5", "6", "7"]
    assert sum(value(card, "power.draw") for card in cards) == 320.0
    assert [device.readings.get("power.draw") for device in devices][1::2] == [Absent(Why.NOT_PRESENT, "-: one sensor for the card")] * 2
    assert sum(value(device, "memory.total") for device in devices) == 4 * 65536 * MIB
    assert [value(device, "health.reported") for device in devices] == ["warning", "ok", "ok", "ok"]
    assert value(devices[0], "processes") == [{"pid": 51500, "name": "worker one", "memory.used": 57310 * MIB}]
    assert value(devices[2], "processes") == []


def test_single_chips_whatever_the_width() -> None:
    cards = level(read(SINGLE), Level.CARD)

    assert [ids(card) for card in cards] == [{"index": "7", "pci_address": "0000:4c:00.0"}, {"index": "8"}]
    assert value(cards[0], "power.draw") == 16.4
    assert value(cards[0], "memory.used") == 980 * MIB
    assert cards[1].readings["power.draw"] == Absent(Why.IMPLAUSIBLE, "0.0 as printed")
    assert cards[1].readings["utilization.core"] == Absent(Why.NOT_SUPPORTED, "NA")
    assert value(cards[1], "health.reported") == "critical"
    assert value(cards[0], "driver.version") == "22.7.1"


@pytest.mark.parametrize("end", range(200, len(TWO_DIES), 7))
def test_a_cut_never_gives_a_wrong_number(end: int) -> None:
    found = read(TWO_DIES[:end])
    whole = {(ids(d)["index"], key): r for d in level(read(TWO_DIES), Level.DEVICE) for key, r in d.readings.items() if isinstance(r, Known)}

    assert found.complete is False
    for device in level(found, Level.DEVICE):
        for key, reading in device.readings.items():
            if isinstance(reading, Known) and key != "processes":
                assert reading == whole[(ids(device)["index"], key)]


@pytest.mark.parametrize(
    "mutate",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\n".join(line for line in text.split("\n") for _ in range(2)),
        lambda text: text.replace("OK ", "\x1b[32mOK\x1b[0m "),
        lambda text: text.replace("\n", "\x00\n"),
        lambda text: "\ufeff" + text,
        lambda text: "[WARN] driver: 12 | something\n" + text,
    ],
)
def test_mutations_keep_count_identity_and_sums(mutate: Any) -> None:
    found = read(mutate(TWO_DIES))

    assert found.outcome is Outcome.DEVICES
    assert [ids(d)["index"] for d in level(found, Level.DEVICE)] == ["4", "5", "6", "7"]
    assert sum(value(card, "power.draw") for card in level(found, Level.CARD)) == 320.0


def test_a_name_line_that_was_lost_costs_no_chip() -> None:
    lines = TWO_DIES.split("\n")
    found = read("\n".join(lines[:9] + lines[10:]))

    assert found.outcome is Outcome.PARTIAL
    assert len(level(found, Level.CARD)) == 2
    assert len(level(found, Level.DEVICE)) == 4


def test_mapping_of_two_generations() -> None:
    old = "NPU ID   Chip ID   Chip Logic ID   Chip Name\n4   0   0   Ascend 910B9\n4   1   -   Mcu\n5   0   1   Ascend 910B9\n"
    new = "NPU ID Slot ID Chip ID Chip Phy-ID Chip Name\n6 3 0 9 Ascend950PR\n"

    assert recognise(old.encode()) == recognise(new.encode()) == "npu-smi-mapping"
    assert [(ids(c), value(c, "product.name")) for c in level(read(old), Level.CARD)] == [
        ({"index": "4"}, "Ascend 910B9"),
        ({"index": "5"}, "Ascend 910B9"),
    ]
    card = level(read(new), Level.CARD)[0]
    assert (ids(card), card.vendor["Chip Phy-ID"]) == ({"index": "6"}, "9")


def test_a_sole_chip_may_carry_any_number_in_the_summary() -> None:
    table = SINGLE.replace("| 0       0         | 0000:4C", "| 1       0         | 0000:4C")
    mapping = "NPU ID   Chip ID   Chip Logic ID   Chip Name\n7   0   0   Ascend 310P3\n8   0   1   Ascend 310B4\n"
    told = [Capture(source=SourceId("t"), locator=(), format=recognise(t.encode()) or "", payload=t.encode()) for t in (table, mapping)]
    found = interpret(told, {})

    assert (len(level(found, Level.CARD)), len(level(found, Level.DEVICE))) == (2, 0)


def test_failures_are_never_no_devices() -> None:
    for text, outcome in (
        ("DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed. ret is -8005\n", Outcome.DRIVER_UNUSABLE),
        ("dcmi module initialize failed. ret is -8002\n", Outcome.NOT_PERMITTED),
        ("bash: npu-smi: command not found\n", Outcome.TOOL_MISSING),
        ("npu-smi: error while loading shared libraries: libdrvdsmi_host.so: cannot open\n", Outcome.DRIVER_UNUSABLE),
    ):
        found = read(text)
        assert recognise(text.encode()) == "npu-smi-info"
        assert (found.outcome, found.complete, found.observations) == (outcome, False, ())
        assert found.detail


def test_a_slice_in_a_container() -> None:
    text = "[INFO limiter::manager] Memory limit: 4096\n" + SINGLE.replace("| 7       310P3", "| 32768   310P3").replace("980  / 21534", "12   / 4096 ")
    found = read(text)
    card, part = level(found, Level.CARD)[0], level(found, Level.PARTITION)[0]

    assert found.complete is False
    assert ids(card) == {"pci_address": "0000:4c:00.0"}
    assert "memory.total" not in card.readings
    assert value(part, "memory.total") == 4096 * MIB


def test_nothing_is_claimed_of_others() -> None:
    for text in ("| NVIDIA-SMI 555  Driver Version: 555 |\n", "Health : OK\n", "# HELP up x\nup 1\n", "{}", "", "a,b,c\n1,2,3\n", "time,dev_id,name\n1,2,3\n"):
        assert recognise(text.encode()) is None
