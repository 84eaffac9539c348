# SPDX-License-Identifier: Apache-2.0
"""What our own texts of tools say, read by hand: other versions, other mixes of cards, blank columns. The rest of this room damages the same texts."""

from __future__ import annotations

from typing import Any

import pytest

from muster.wiring.offline import interpret_file
from tests.fuzz.rounds import TEXTS

MIB, GIB = 2**20, 2**30
Right = dict[str, Any]

CARDS: dict[str, list[Right]] = {
    "query-gpu.csv": [
        {"memory.total": 46068 * MIB, "memory.used": 12011 * MIB, "utilization.core": 0.37, "power.draw": 143.27, "clock.core": 2115e6, "ecc.enabled": True},
        {"utilization.core": 0, "power.draw": 24.05, "fan.speed": "!not_supported", "performance.state": "P8"},
        {"power.draw": "!error", "power.limit": 200, "fan.speed": 0.3, "ecc.enabled": "!not_supported"},
    ],
    "table.txt": [
        {
            "memory.used": 98304 * MIB,
            "memory.total": 143771 * MIB,
            "power.draw": 118,
            "power.limit": 700,
            "temperature.core": 34,
            "errors.memory.uncorrected": 0,
        },
        {"temperature.core": "!error", "power.draw": "!not_supported", "utilization.core": "!not_supported", "errors.memory.uncorrected": "!not_supported"},
        {"fan.speed": 0.45, "utilization.core": 0.99, "ecc.enabled": False, "memory.total": 24576 * MIB},
    ],
    "table-old.txt": [
        {"memory.used": 1021 * MIB, "power.draw": 63, "power.limit": 250, "errors.memory.uncorrected": 2, "product.name": "!unreadable"},
        {"memory.used": 0, "power.draw": 9, "utilization.core": 0, "product.name": "Tesla T4"},
    ],
    "q.txt": [
        {
            "memory.total": 8192 * MIB,
            "memory.reserved": 612 * MIB,
            "virtualization.mode": "vgpu_guest",
            "power.draw": "!not_supported",
            "utilization.core": 0.03,
        },
        {
            "memory.total": 12282 * MIB,
            "power.draw": 12.07,
            "power.draw.average": 11.82,
            "pci.link.generation": 1,
            "pci.link.generation.max": 4,
            "pci.link.width": 16,
            "errors.memory.corrected": 3,
            "errors.memory.uncorrected.lifetime": 2,
            "memory.rows_remapped.uncorrected": 2,
            "memory.remap.pending": False,
            "temperature.limit.slowdown": 95,
            "clock.memory": 405e6,
            "clock.core.max": 2100e6,
        },
    ],
    "dmon.txt": [
        {"power.draw": 121, "utilization.core": 0.9, "temperature.memory": 46, "clock.core": 1980e6},
        {"power.draw": "!not_supported", "utilization.core": 0.01, "utilization.encoder": "!not_supported"},
    ],
    "topo.txt": [{"numa.node": 0, "link.peers": {"GPU1": "NV18", "NIC0": "PXB"}}, {"numa.node": 1}],
    "exporter.prom": [
        {"power.draw": 131.882, "memory.used": 20113 * MIB, "memory.free": 4012 * MIB, "temperature.core": 47, "clock.core": 1440e6},
        {"power.draw": "!not_supported", "memory.used": 0, "temperature.core": 28},
    ],
    "static.txt": [
        {"memory.total": 65520 * MIB, "power.limit": 300, "compute.units": 104, "pci.link.width.max": 16, "numa.node": 1, "temperature.limit.shutdown": 110},
        {"memory.total": 20464 * MIB, "power.limit": 265, "power.limit.max": 312, "numa.node": "!not_present"},
    ],
    "metric.txt": [
        {
            "power.draw": 181,
            "utilization.core": 0.63,
            "memory.used": 31012 * MIB,
            "voltage.core": 0.906,
            "fan.speed": "!not_supported",
            "energy.total": 123456.789,
        },
        {"power.draw": 17, "utilization.core": 0, "fan.rpm": 0, "memory.total": 20464 * MIB},
    ],
    "monitor.txt": [
        {"power.draw": 181, "memory.used": 31012 * MIB, "clock.core": 1700e6},
        {"power.draw": 17, "temperature.memory": 50},
        {"power.draw": "!not_supported", "memory.total": "!not_supported"},
    ],
    "rocm-smi.txt": [
        {"power.draw": 181, "power.limit": 300, "memory.used.ratio": 0.47, "clock.core": 1700e6, "temperature.core": 52},
        {"power.draw": 17, "utilization.core": 0, "memory.used.ratio": 0},
    ],
    "rocm-smi.csv": [
        {"power.draw": 181, "memory.total": 68702699520, "utilization.core": 0.63, "temperature.hotspot": 61},
        {"power.draw": 17, "power.draw.average": "!not_supported", "memory.used": 28311552},
    ],
    "rocm-smi.json": [
        {"power.draw": 181, "memory.used": 32518438912, "temperature.memory": 58},
        {"power.draw": 17, "power.draw.average": 17, "fan.speed": 0.3176},
    ],
    "npu-info-910b.txt": [
        {"power.draw": 93.4, "memory.used": 3351 * MIB, "memory.total": 64 * GIB, "health.reported": "ok"},
        {"power.draw": "!not_supported", "memory.used": 61609 * MIB, "utilization.core": 0.72, "health.reported": "warning"},
    ],
    "npu-exporter.prom": [
        {"power.draw": 93.4, "memory.used": 3351 * MIB, "temperature.core": 37},
        {"power.draw": "!error", "memory.used": 61609 * MIB},
    ],
    "npu-samples.csv": [{"power.draw": 95, "clock.core": 1800e6}, {"power.draw": 150.9, "temperature.core": 44}],
    "npu-session.txt": [
        {"utilization.core": 0.88, "memory.total": 64 * GIB, "memory.used.ratio": 0.42, "network.state": "up", "firmware.version": "7.5.0.1.129"}
    ],
    "hccn.txt": [{"network.state": "up"}],
    "lspci-nn.txt": [
        {"pci.device_id": "4692"},
        {"pci.device_id": "2000"},
        {"pci.device_id": "7408"},
        {"pci.device_id": "7408"},
        {"pci.device_id": "2235"},
        {"pci.device_id": "d802"},
    ],
    "table-mig.txt": [
        {"partition.mode": "mig", "memory.used": 1234 * MIB, "errors.memory.uncorrected": "!not_reported", "utilization.core": "!not_supported"},
        {"partition.mode": "none", "utilization.core": 0, "errors.memory.uncorrected": 0},
    ],
    "q-old.txt": [
        {
            "power.draw": 26.12,
            "power.limit": 149,
            "errors.memory.corrected": 5,
            "errors.memory.uncorrected": 1,
            "errors.memory.corrected.lifetime": 7,
            "memory.pages_retired": 4,
            "memory.pages_retired.pending": True,
            "pci.link.width": 16,
            "throttle.reasons": ("idle",),
        }
    ],
    "box.txt": [
        {"power.draw": 310, "power.limit": 1000, "memory.used": 201034 * MIB, "memory.total": 262128 * MIB, "partition.mode": "spx", "utilization.core": 0.93},
        {"power.draw": 138, "memory.used": 284 * MIB, "fan.speed": "!not_supported", "driver.version": "6.14.14"},
    ],
    "monitor-7.txt": [
        {"power.draw": 310, "clock.core": 2100e6, "memory.total": 256 * GIB, "temperature.hotspot": 55, "utilization.encoder": "!not_supported"},
        {"power.draw": 138, "utilization.core": 0},
    ],
    "rocm-smi-old.txt": [
        {"power.draw": 39, "fan.speed": 0.2196, "clock.core": 930e6, "memory.used.ratio": 0.03},
        {"power.draw": 201, "utilization.core": 0.99, "temperature.core": 71},
    ],
    "npu-info-21.txt": [
        {"power.draw": 70.2, "memory.used": 2 * MIB, "memory.total": 32255 * MIB},
        {"power.draw": 69.4, "memory.used": 30100 * MIB, "utilization.core": 0.99},
    ],
    "npu-common.txt": [{"utilization.core": 0.66, "clock.core": 960e6, "clock.core.max": 1000e6, "compute.units": 30, "power.draw": 102.7}],
    "lspci-v.txt": [{"pci.class": "0302", "numa.node": 1, "driver.name": "nvidia"}],
    "lspci-vmm.txt": [{"pci.device_id": "2235", "pci.subsystem_device_id": "145a", "numa.node": 1}, {"pci.device_id": "d802", "numa.node": 0}],
}


def told(name: str) -> dict[str, Any]:
    return interpret_file(TEXTS / name, None, None)


def value(node: dict[str, Any], key: str) -> Any:
    reading = node["readings"].get(key)
    return None if reading is None else reading.get("value", f"!{reading.get('absent')}")


@pytest.mark.parametrize("name", sorted(CARDS))
def test_cards_say_what_the_text_says(name: str) -> None:
    found = told(name)

    assert found["outcome"] == "devices"
    assert len(found["cards"]) == len(CARDS[name])
    for card, right in zip(found["cards"], CARDS[name], strict=True):
        assert {key: value(card, key) for key in right} == right


def test_every_text_is_read() -> None:
    assert {path.name: told(path.name)["outcome"] for path in TEXTS.iterdir() if told(path.name)["outcome"] != "devices"} == {}


def test_compute_instances_share_their_memory_and_are_each_there() -> None:
    parts = told("table-mig.txt")["cards"][0]["partitions"]

    assert [(part["ids"]["gpu_instance_id"], part["ids"]["compute_instance_id"]) for part in parts] == [("1", "0"), ("1", "1"), ("9", "0")]
    assert [value(part, "memory.total") for part in parts] == [40192 * MIB, "!not_reported", 9728 * MIB]


def test_compute_instances_have_their_profiles() -> None:
    first, second = told("list.txt")["cards"]

    assert [value(part, "partition.profile") for part in first["partitions"]] == ["2c.3g.20gb", "1c.3g.20gb", "1g.5gb+me"]
    assert second["partitions"] == []


def test_a_chip_of_four_on_one_card() -> None:
    (card,) = told("npu-info-310.txt")["cards"]

    assert [value(device, "power.draw") for device in card["devices"]] == [12.8] * 4
    assert [value(device, "memory.used") for device in card["devices"]] == [621 * MIB, 622 * MIB, 1833 * MIB, 622 * MIB]
    assert [value(device, "health.reported") for device in card["devices"]] == ["ok", "ok", "critical", "ok"]
    assert [row["pid"] for row in card["devices"][2]["processes"]] == [55120]


def test_screens_and_accelerators_on_the_bus() -> None:
    roles = {card["ids"]["pci_address"]: card.get("role", "") for card in told("lspci-nn.txt")["cards"]}

    assert {address for address, role in roles.items() if role == "display"} == {"0000:00:02.0", "0000:03:00.0"}


def test_each_adapter_takes_its_own_lines_of_one_log() -> None:
    events = told("xid.log")["events"]

    assert [(each["code"], each["ids"]["pci_address"]) for each in events] == [("31", "0000:4e:00.0"), ("79", "0000:b1:00.0")]


def test_names_of_cards() -> None:
    ids = [card["ids"] for card in told("query-gpu.csv")["cards"]]

    assert [each.get("serial") for each in ids] == ["1791230045617", "1791230045618", None]
    assert [each["pci_address"] for each in ids] == ["0000:17:00.0", "0000:65:00.0", "0000:ca:00.0"]
