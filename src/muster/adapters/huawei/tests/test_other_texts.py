# SPDX-License-Identifier: Apache-2.0
"""Texts beside the main table: link tools, transcripts, samples, failures."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from muster.adapters.huawei import interpret, recognise
from muster.adapters.huawei.names import die
from muster.adapters.huawei.tests.test_npu_smi import MIB, TWO_DIES, ids, level, read, value
from muster.domain.model.attributes import Level
from muster.domain.model.reading import Absent, Why
from muster.domain.model.source import Capture, Outcome, SourceId
from muster.spi.adapter import Model

HERE = Path(__file__).resolve().parent.parent
DIE = "0A0B0C0D-00000001-00000002-00000003-0000FFEE"


def sample(family: str, value_: str, ident: str = "0", **labels: str) -> str:
    told = {"id": ident, "model_name": "910B3-Ascend-V1", "vdie_id": DIE, "pcie_bus_info": "0000:C1:00.0", **labels}
    return f"npu_chip_info_{family}{{" + ",".join(f'{k}="{v}"' for k, v in told.items()) + f"}} {value_} 1790000000000\n"


def test_exporter_values() -> None:
    text = "machine_npu_nums 1\n" + "".join(
        sample(family, number)
        for family, number in (
            ("health_status", "0"), ("error_code", "2162169857"), ("temperature", "51"), ("power", "98.5"), ("voltage", "0.89"), ("utilization", "12"),
            ("hbm_total_memory", "65536"), ("hbm_used_memory", "3000"), ("total_memory", "0"), ("link_status", "1"), ("vector_utilization", "-1"),
            ("hbm_ecc_enable_flag", "1"), ("hbm_ecc_single_bit_error_cnt", "4"), ("hbm_ecc_single_bit_isolated_pages_cnt", "2"),
        )
    ) + sample("process_info", "2048", process_id="4711", pod_name="train-0", namespace="team")  # fmt: skip
    found = read(text)
    card = level(found, Level.CARD)[0]

    assert recognise(text.encode()) == "prometheus-text"
    assert (found.outcome, found.complete) == (Outcome.DEVICES, False)
    assert ids(card) == {"index": "0", "pci_address": "0000:c1:00.0", "vendor_uuid": DIE.replace("-", "").lower()}
    assert (value(card, "memory.total"), value(card, "memory.used")) == (65536 * MIB, 3000 * MIB)
    assert (value(card, "health.reported"), value(card, "fault.codes"), value(card, "network.state")) == ("critical", ["80E01801"], "up")
    assert (value(card, "power.draw"), value(card, "utilization.core"), value(card, "ecc.enabled")) == (98.5, 0.12, True)
    assert card.readings["utilization.vector"] == Absent(Why.ERROR, "-1: the exporter could not read it")
    assert value(card, "processes") == [{"pid": 4711, "memory.used": 2048 * MIB}]
    assert value(card, "allocation.holders") == [{"namespace": "team", "pod": "train-0"}]


def test_exporter_zeros_are_no_readings() -> None:
    families = ("temperature", "power", "voltage", "total_memory", "used_memory", "utilization", "link_status", "error_code")
    card = level(read("".join(sample(family, "0") for family in families)), Level.CARD)[0]

    assert {key for key, reading in card.readings.items() if isinstance(reading, Absent)} >= {
        "temperature.core", "power.draw", "voltage.core", "memory.total", "memory.used", "utilization.core", "network.state",
    }  # fmt: skip
    assert value(card, "fault.codes") == []


def test_exporter_two_chips_behind_one_address_and_a_short_page() -> None:
    text = "machine_npu_nums 3\n" + sample("temperature", "40", "0", vdie_id="") + sample("temperature", "41", "1", vdie_id="")
    found = read(text)

    assert (found.outcome, len(level(found, Level.CARD)), len(level(found, Level.DEVICE))) == (Outcome.PARTIAL, 1, 2)
    assert read("machine_npu_nums 0\n").outcome is Outcome.NO_DEVICES
    assert read(text[:-20]).outcome is Outcome.PARTIAL


def test_exporter_slices_in_kib() -> None:
    labels = 'id="0",v_dev_id="7",model_name="910B3"'
    part = level(read(f"vnpu_pod_total_memory{{{labels}}} 1048576\nvnpu_pod_used_memory{{{labels}}} 1024\n"), Level.PARTITION)[0]

    assert (ids(part), value(part, "memory.total"), value(part, "memory.used")) == ({"index": "7"}, 1024 * MIB, MIB)


def test_bmc_fault_log() -> None:
    line = "[INFO] 2031/01/02 03:04:{:02}.1 5 ipmimonitor/ipmi_monitor.go:206 get fault event, [device type: {}]-[device id: {}]-[error code: {}]\n"
    beat = "[INFO] 2031/01/02 03:04:30.1 5 monitoring/monitor_manager.go:81 send heartbeat: 1\n"
    text = line.format(1, "NPU", 2, "56000005") + line.format(1, "NPU", 3, "56000005") + beat + line.format(40, "NPU", 3, "0000001D") * 2
    text += line.format(40, "Port", 255, "29000011")
    found = read(text)
    cards = level(found, Level.CARD)

    assert recognise(text.encode()) == "npu-log"
    assert [ids(card) for card in cards] == [{"index": "2"}, {"index": "3"}]
    assert "fault.codes" not in cards[0].readings
    assert value(cards[1], "fault.codes") == ["0000001D"]
    assert {(e.code, e.subject.level, e.repeats) for e in found.events} >= {("0000001D", Level.CARD, 2), ("29000011", Level.NODE, 1)}


def test_soft_share_log() -> None:
    line = "[1] [INFO] [eNPU] [vCANN_RT] [1:2:config.c:1] Success to load config: {}, value: {}\n"
    settings = {"physical-npu-id": "6", "virtual-npu-id": "1", "aicore-quota": "25", "memory-quota": "8192", "shm-id": DIE}
    found = read("".join(line.format(key, text) for key, text in settings.items()))
    card, part = level(found, Level.CARD)[0], level(found, Level.PARTITION)[0]

    assert ids(card) == {"index": "6", "vendor_uuid": DIE.replace("-", "").lower()}
    assert (ids(part), value(part, "memory.total"), value(part, "partition.compute.share")) == ({"index": "1"}, 8192 * MIB, 0.25)


@pytest.mark.parametrize(
    "text", ["", "{", '{"dcmi": 1}', '{"dcmi": {"init": {"rc": 0}}, "cards": [1, {"card_id": "x"}]}', '{"dcmi": {"init": {"rc": "a"}}}', "[]"]
)
def test_library_answers_that_are_none(text: str) -> None:
    assert read(text, format_="dcmi-json").outcome in (Outcome.UNREADABLE, Outcome.DRIVER_UNUSABLE)


def test_library_answers_with_odd_values() -> None:
    call: dict[str, Any] = {"rc": 0, "value": "odd"}
    chip: dict[str, Any] = dict.fromkeys(("chip", "pcie", "vdie", "label", "health", "temperature", "power", "hbm", "memory", "ecc_hbm", "error_codes"), call)
    chip |= {"device_id": 0, "frequency": {"clock.core": {"rc": 0, "value": 0}}, "rates": {"aicore": {"rc": 0, "value": 4294967295}}, "voltage": {"rc": -1}}
    told = {"dcmi": {"init": {"rc": 0}, "card_list": {"rc": 0, "value": 1}}, "cards": [{"card_id": 4, "device_ids": {"rc": 0}, "devices": [chip]}]}
    found = read(json.dumps(told), format_="dcmi-json")
    card = level(found, Level.CARD)[0]

    assert (found.outcome, ids(card)) == (Outcome.DEVICES, {"index": "4"})
    assert all(isinstance(reading, Absent) for reading in card.readings.values())
    assert card.readings["voltage.core"] == Absent(Why.ERROR, "ret is -1")


def test_several_kinds_in_one_round() -> None:
    page = sample("temperature", "44", "2", pcie_bus_info="")
    told = [Capture(source=SourceId("t"), locator=(), format=recognise(t.encode()) or "", payload=t.encode()) for t in (TWO_DIES, page)]
    found = interpret(told, {})

    assert found.outcome is Outcome.DEVICES
    assert len(level(found, Level.CARD)) == 3


def test_failed_reads() -> None:
    failed = Capture(source=SourceId("t"), locator=(), format="npu-smi-info", failure=Outcome.TIMED_OUT, detail="20 s")

    assert interpret([failed], {}).outcome is Outcome.TIMED_OUT
    assert interpret([], {}).outcome is Outcome.UNREADABLE


def test_die_ids_have_one_spelling() -> None:
    assert die("140C979 1 2 3 FFEE") == die("0140C979-00000001-00000002-00000003-0000ffee") == "0140C979-00000001-00000002-00000003-0000FFEE"
    assert die("0 0 0 0 0") is die("") is die("12 34") is die(None) is None


def test_product_facts_of_the_catalogue() -> None:
    rows = tomllib.loads((HERE / "models.toml").read_text())["model"]
    models = {row["key"]: Model(key=row["key"], name=row["name"], facts=row["facts"], source=row["source"], confidence=row["confidence"]) for row in rows}
    payload = TWO_DIES.encode()
    found = interpret([Capture(source=SourceId("t"), locator=(), format="npu-smi-info", payload=payload)], models)

    assert value(level(found, Level.CARD)[0], "memory.kind") == "hbm2e"
    assert all(row["confidence"] in ("high", "medium", "low") for row in rows)


@pytest.mark.parametrize("machine", sorted((HERE / "machines").iterdir(), key=str), ids=lambda path: path.name)
def test_recorded_machines_are_recognised(machine: Path) -> None:
    for capture in tomllib.loads((machine / "machine.toml").read_text())["captures"]:
        assert recognise((machine / capture["file"]).read_bytes()) == capture["format"]
