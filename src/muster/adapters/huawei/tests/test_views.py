# SPDX-License-Identifier: Apache-2.0
"""The views of single cards and chips."""

from __future__ import annotations

from muster.adapters.huawei import recognise
from muster.adapters.huawei.tests.test_npu_smi import MIB, ids, level, read, value
from muster.domain.model.attributes import Level
from muster.domain.model.reading import Absent, Why
from muster.domain.model.source import Outcome


def test_blocks_that_end_with_their_chip() -> None:
    text = (
        "NPU ID : 3\nChip Count : 2\n\nHBM Capacity(MB) : 65536\nHBM Usage Rate(%) : 4\nAicore Usage Rate(%) : 7\nChip ID : 0\n"
        "\nHBM Capacity(MB) : 65536\nHBM Usage Rate(%) : 9\nAicore Usage Rate(%) : 8\nChip ID : 1\n"
    )
    found = read(text)

    assert recognise(text.encode()) == "npu-smi-view"
    assert [value(d, "utilization.core") for d in level(found, Level.DEVICE)] == [0.07, 0.08]
    assert [value(d, "memory.used.ratio") for d in level(found, Level.DEVICE)] == [0.04, 0.09]
    assert [value(d, "memory.total") for d in level(read(text[:-30]), Level.CARD)] == [65536 * MIB]


def test_blocks_that_begin_with_their_chip_and_the_controller_behind() -> None:
    text = (
        "NPU ID : 4\nChip Count : 2\n\nChip ID : 0\nTemperature(C) : 43\nAicore Count : 8\n\nChip ID : 1\nTemperature(C) : 44\n\n"
        "Chip Name : mcu\nTemperature(C) : 41\nNPU Real-time Power(W) : 43.4\n"
    )
    found = read(text)
    card = level(found, Level.CARD)[0]

    assert [value(d, "temperature.core") for d in level(found, Level.DEVICE)] == [43, 44]
    assert (value(card, "temperature.board"), value(card, "power.draw")) == (41, 43.4)


def test_the_same_power_on_both_dies_is_one_sensor() -> None:
    text = "NPU ID : 0\nChip Count : 2\n\nNPU Real-time Power(W) : 171.5\nChip ID : 0\n\nNPU Real-time Power(W) : 171.5\nChip ID : 1\n"

    assert [value(card, "power.draw") for card in level(read(text), Level.CARD)] == [171.5]


def test_board_of_a_card_and_of_a_chip() -> None:
    card_form = "NPU ID : 1\nSerial Number : OURS0042\nSoftware Version : 24.1.7\nPCIe Bus Info : 0000:81:00.0\nPCI Device ID : 0xD802\nChip Count : 1\n"
    chip_form = "NPU ID : 1\nChip ID : 0\nChip Name : 910B3\nVDie ID : 0A0B0C0D 1 2 3 0000FFEE\nPCB ID : NA\n"
    card = level(read(card_form + "\n" + chip_form), Level.CARD)[0]

    assert ids(card) == {"index": "1", "serial": "ours0042", "pci_address": "0000:81:00.0", "vendor_uuid": "0a0b0c0d0000000100000002000000030000ffee"}
    assert value(card, "pci.device_id") == "d802"
    assert value(card, "driver.version") == "24.1.7"


def test_health_with_codes_and_without() -> None:
    for text, codes in (("NA", []), ("80E01801 8C084E00", ["80E01801", "8C084E00"])):
        card = level(read(f"NPU ID : 0\nHealth Status : Alarm\nError Code : {text}\nError Information : first\n : second\nChip ID : 0\n"), Level.CARD)[0]
        assert value(card, "fault.codes") == codes
        assert card.vendor["Error Information"] == "first second"
    bad = level(read("NPU ID : 0\nHealth Status : OK\nError Code : what is this\nChip ID : 0\n"), Level.CARD)[0]
    assert bad.readings["fault.codes"] == Absent(Why.UNREADABLE, "what is this")


def test_an_answer_without_ids_belongs_to_what_was_asked_for() -> None:
    card = level(read("Health Status : OK\nError Code : NA\n", "npu-smi", "info", "-t", "health", "-i", "6", "-c", "0"), Level.CARD)[0]

    assert ids(card) == {"index": "6"}
    assert value(card, "health.reported") == "ok"


def test_ecc_counters_add_up_over_memories() -> None:
    text = (
        "NPU ID : 2\nChip Count : 1\n\nDDR Single Bit Error Count : 1\nHBM Single Bit Error Count : 2\nDDR Double Bit Error Count : NA\n"
        "HBM Double Bit Error Count : 0\nHBM Single Bit Isolated Pages Count : 3\nHBM Double Bit Next-Isolated Pages Count : 1\nChip ID : 0\n"
    )
    card = level(read(text), Level.CARD)[0]

    assert [value(card, f"errors.memory.{kind}") for kind in ("corrected", "uncorrected")] == [3, 0]
    assert (value(card, "memory.pages_retired"), value(card, "memory.pages_retired.pending")) == (3, True)


def test_counters_of_a_block_that_was_cut_are_not_added_up() -> None:
    text = "NPU ID : 2\nChip Count : 1\n\nDDR Single Bit Error Count : 0\nHBM Single Bit Error Count : 5\nChip ID : 0\n"
    cut = text[: text.index("HBM")]

    assert value(level(read(text), Level.CARD)[0], "errors.memory.corrected") == 5
    assert "errors.memory.corrected" not in level(read(cut, "npu-smi", "info", "-t", "ecc", "-i", "2"), Level.CARD)[0].readings


def test_usage_text_says_nothing_of_the_card() -> None:
    assert level(read("Usage: npu-smi info -t type\nOptions:\n  -t : type\n", "npu-smi", "info", "-t", "ecc", "-i", "2"), Level.CARD) == []


def test_listing_counts_and_completes() -> None:
    text = "\tTotal Count : 2\n\n\tNPU ID : 0\n\tChip Count : 1\n\n\tNPU ID : 1\n\tChip Count : 1\n"

    assert (read(text).outcome, read(text).complete, dict(read(text).counts)) == (Outcome.DEVICES, True, {Level.CARD: 2})
    assert (read(text.replace("Count : 2", "Count : 3")).outcome, read(text.replace("Count : 2", "Count : 3")).complete) == (Outcome.PARTIAL, False)
    assert read("Total Count : 0\n").outcome is Outcome.NO_DEVICES


def test_link_matrix_by_physical_id_and_by_npu() -> None:
    text = "          Phy-ID0    Phy-ID1    Phy-ID4\nPhy-ID0    X    SIO    HCCS_SW\nPhy-ID1    SIO    X    HCCS_SW\n\nLegend:\nSIO = inside\n"
    found = read(text)

    assert (len(level(found, Level.CARD)), len(level(found, Level.DEVICE))) == (1, 2)
    assert value(level(found, Level.DEVICE)[0], "link.peers") == {"Phy-ID1": "SIO", "Phy-ID4": "HCCS_SW"}
    by_npu = read("       NPU0  NPU1  CPU Affinity\nNPU0   X   HCCS   0-23\nNPU1   HCCS   X   24-47\n")
    assert [value(c, "link.peers") for c in level(by_npu, Level.CARD)] == [{"NPU1": "HCCS"}, {"NPU0": "HCCS"}]
    assert level(read("   Phy-ID0  Phy-ID1\nPhy-ID0  X  SI"), Level.DEVICE) == []


def test_processes_of_a_view() -> None:
    text = "NPU ID : 0\nChip ID : 0\nProcess id:771  Process name:train  Process memory(MB):2048\n"

    assert value(level(read(text), Level.CARD)[0], "processes") == [{"pid": 771, "name": "train", "memory.used": 2048 * MIB}]


def test_a_session_of_several_tools() -> None:
    text = """\
[root@host ~]# npu-smi info -m
NPU ID   Chip ID   Chip Logic ID   Chip Name
0        0         0               Ascend 910A
1        0         1               Ascend 910A
[root@host ~]# /usr/local/Ascend/driver/tools/hccn_tool -i 1 -link_stat -g
[devid 1]current time        : Wed Aug  2 03:09:26 2023
[devid 1]link change records :
[devid 1]    Tue Aug  1 14:43:40 2023    LINK DOWN
[devid 1]    Tue Aug  1 14:40:40 2023    LINK UP
[root@host ~]# hccn_tool -i 0 -net_health -g
net health status: Socket failed
$ cat /usr/local/Ascend/driver/version.info
Version=23.9.1
compatible_version_fw=[7.0.0,7.9.99]
$ cat /usr/local/Ascend/firmware/version.info
Version=7.1.2
$ cat /opt/ascend-toolkit/latest/ascend_toolkit_install.info
package_name=Ascend-cann-toolkit
version=8.9
$ npu-smi info -i 0 -c 0 -t health
Health Status : OK
Error Code : NA
$ npu-smi set -t create-vnpu -i 0 -c 0 -f vir02
Status : OK   Message : done
"""
    found = read(text)
    cards, node = level(found, Level.CARD), level(found, Level.NODE)[0]

    assert recognise(text.encode()) == "npu-session"
    assert [ids(card) for card in cards] == [{"index": "0"}, {"index": "1"}]
    assert value(cards[1], "network.state") == "down"
    assert cards[0].vendor["hccn net_health.net health status"] == "Socket failed"
    assert (value(node, "driver.version"), value(node, "firmware.version"), value(node, "runtime.version")) == ("23.9.1", "7.1.2", "8.9")
    assert value(cards[0], "health.reported") == "ok"
    assert "health.reported" not in cards[1].readings


def test_hccn_answers_alone() -> None:
    text = "link status: DOWN\n"

    assert recognise(text.encode()) == "hccn-tool"
    card = level(read(text, "hccn_tool", "-i", "5", "-link", "-g"), Level.CARD)[0]
    assert (ids(card), value(card, "network.state")) == ({"index": "5"}, "down")


def test_samples_give_the_newest_row() -> None:
    text = "time,dev_id,power,freq,temp\n100,3,70.5,1000,41\n130,3,151.25,800,55\n"
    card = level(read(text), Level.CARD)[0]

    assert recognise(text.encode()) == "npu-samples-csv"
    assert (value(card, "power.draw"), value(card, "clock.core"), value(card, "temperature.core")) == (151.25, 800_000_000, 55)
    cut = read(text[:-2])
    assert (cut.outcome, value(level(cut, Level.CARD)[0], "power.draw")) == (Outcome.PARTIAL, 70.5)


def test_a_vnpu_box() -> None:
    text = (
        "$ npu-smi info -t info-vnpu -i 4 -c 0\n+------+------+-------+\n| Vnpu ID | Vgroup ID | Template Name |\n+======+======+=======+\n"
        "| 132 | 0 | vir04 |\n+------+------+-------+\nNPU ID : 4\nChip Count : 1\n"
    )
    found = read(text)

    assert [(ids(p), value(p, "partition.profile")) for p in level(found, Level.PARTITION)] == [({"index": "132"}, "vir04")]
