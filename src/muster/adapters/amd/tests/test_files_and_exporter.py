# SPDX-License-Identifier: Apache-2.0
"""The driver's files, the compute topology, the exporter, the library's answers. All values are ours."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from muster.adapters.amd import interpret, recognise
from muster.adapters.amd.observe_kfd import architecture
from muster.domain.decide.fold import FoldedCard, fold, ids
from muster.domain.model.observation import Interpretation, Role
from muster.domain.model.reading import Known, Why
from muster.domain.model.source import Capture, Outcome, SourceId
from muster.spi.adapter import Model

_ROWS = tomllib.loads((Path(__file__).parent.parent / "models.toml").read_text())["model"]
MODELS = {row["key"]: Model(key=row["key"], name=row["name"], facts=row["facts"], source=row["source"], confidence=row["confidence"]) for row in _ROWS}


def read(*texts: str) -> Interpretation:
    payloads = [text.encode() for text in texts]
    return interpret([Capture(source=SourceId("t"), locator=(), format=recognise(p) or "", payload=p) for p in payloads], MODELS)


def cards(*texts: str) -> tuple[FoldedCard, ...]:
    return fold(read(*texts).observations)


def value(card: Any, key: str) -> Any:
    reading = card.readings[key]
    return reading.value if isinstance(reading, Known) else reading.why


def drm(number: int, files: dict[str, Any]) -> str:
    lines = []
    for path, content in files.items():
        lines += [f"/sys/class/drm/card{number}/device/{path}: {line}" for line in (content if isinstance(content, list) else [content])]
    return "".join(line + "\n" for line in lines)


def slot(address: str, device: str, driver: str = "amdgpu", vendor: str = "1002") -> dict[str, Any]:
    return {
        "vendor": f"0x{vendor}",
        "device": f"0x{device}",
        "uevent": [f"DRIVER={driver}", f"PCI_ID={vendor.upper()}:{device.upper()}", f"PCI_SLOT_NAME={address}"],
    }


def test_a_display_chip_beside_a_card_is_never_an_accelerator_with_the_hosts_memory() -> None:
    card = slot("0000:03:00.0", "7551") | {
        "class": "0x030000",
        "mem_info_vram_total": "34342961152",
        "mem_info_gtt_total": "135058534400",
        "mem_info_vram_vendor": "samsung",
    }
    chip = slot("0000:0e:00.0", "164e") | {
        "class": "0x030000",
        "mem_info_vram_total": "2147483648",
        "mem_info_gtt_total": "135058534400",
        "mem_info_vram_vendor": "unknown",
    }
    one, other = cards(drm(0, card) + drm(1, chip))

    assert [value(each, "memory.total") for each in (one, other)] == [34342961152, 2147483648]
    assert one.role is None
    assert other.role is Role.DISPLAY
    assert value(other, "memory.unified") is True
    accelerators = [each for each in (one, other) if each.role is not Role.DISPLAY]
    assert sum(value(each, "memory.total") for each in accelerators) == 34342961152


def test_another_makers_card_is_left_aside() -> None:
    text = drm(0, slot("0000:03:00.0", "744c")) + drm(1, slot("0000:00:02.0", "5917", "i915", "8086"))

    assert [ids(card.names) for card in cards(text)] == [{"pci_address": "0000:03:00.0"}]


def test_sensors_by_their_labels() -> None:
    files = slot("0000:03:00.0", "744c") | {
        "hwmon/hwmon3/power1_average": "17500000",
        "hwmon/hwmon3/power1_cap": "303000000",
        "hwmon/hwmon3/temp1_input": "41000",
        "hwmon/hwmon3/temp1_label": "edge",
        "hwmon/hwmon3/temp2_input": "46000",
        "hwmon/hwmon3/temp2_label": "junction",
        "hwmon/hwmon3/temp2_crit": "110000",
        "hwmon/hwmon3/temp3_input": "50000",
        "hwmon/hwmon3/temp3_label": "mem",
        "hwmon/hwmon3/temp3_crit": "108000",
        "hwmon/hwmon3/fan1_input": "0",
        "hwmon/hwmon3/pwm1": "51",
        "hwmon/hwmon3/in0_input": "68",
        "hwmon/hwmon3/in0_label": "vddgfx",
        "pp_dpm_sclk": ["0: 500Mhz", "1: 742Mhz *", "2: 2371Mhz"],
        "product_name": "",
        "serial_number": "!not_permitted",
        "numa_node": "-1",
        "current_link_speed": "16.0 GT/s PCIe",
    }
    (card,) = cards(drm(0, files))

    assert (value(card, "power.draw"), value(card, "power.limit")) == (17.5, 303)
    assert [value(card, f"temperature.{key}") for key in ("core", "hotspot", "memory")] == [41, 46, 50]
    assert (value(card, "temperature.limit.slowdown"), value(card, "temperature.memory.limit.slowdown")) == (110, 108)
    assert (value(card, "fan.rpm"), value(card, "fan.speed")) == (0, 0.2)
    assert value(card, "voltage.core") is Why.NOT_SAMPLED
    assert (value(card, "clock.core"), value(card, "clock.core.max")) == (742_000_000, 2_371_000_000)
    assert value(card, "product.name") is Why.NOT_SUPPORTED
    assert value(card, "numa.node") is Why.NOT_PRESENT
    assert value(card, "pci.link.generation") == 4


def test_errors_and_pages() -> None:
    files = slot("0000:03:00.0", "740f") | {
        "ras/umc_err_count": ["ue: 1", "ce: 12", "de: 2"],
        "ras/gfx_err_count": ["ue: 0", "ce: 0"],
        "ras/gpu_vram_bad_pages": ["0x01 : 0x1000 : R", "0x02 : 0x1000 : P", "0x02 : 0x1000 : P"],
    }
    (card,) = cards(drm(0, files))

    assert value(card, "errors.ras")["umc"] == {"uncorrected": 1, "corrected": 12, "deferred": 2}
    assert (value(card, "memory.pages_retired"), value(card, "memory.pages_retired.pending")) == (2, True)


def node(number: int, **more: Any) -> str:
    told = {"cpu_cores_count": 0, "simd_count": 152, "simd_per_cu": 4, "vendor_id": 4098, "device_id": 29857, "domain": 1, "gfx_target_version": 90402, **more}
    return "".join(f"/sys/class/kfd/kfd/topology/nodes/{number}/properties: {key} {each}\n" for key, each in told.items())


def test_slices_of_one_chip_in_the_topology() -> None:
    cpu = node(0, simd_count=0, cpu_cores_count=64, vendor_id=0)
    slices = "".join(node(1 + f, unique_id=0x51D20F6634AB9071, location_id=0x0C00 + f, drm_render_minor=128 + f) for f in range(4))
    banks = "".join(
        f"/sys/class/kfd/kfd/topology/nodes/{1 + f}/mem_banks/0/properties: {line}\n" for f in range(4) for line in ("heap_type 1", "size_in_bytes 51539607552")
    )
    other = node(5, unique_id=0x51D20F6634AB91C2, location_id=0x2200)
    one, two = cards(cpu + slices + banks + other)

    assert ids(one.names) == {"pci_address": "0001:0c:00.0", "vendor_uuid": "0x51d20f6634ab9071"}
    assert len(one.partitions) == 4
    assert value(one, "compute.units") == 152
    assert value(one, "memory.total") == 4 * 51539607552
    assert value(one.partitions[3], "memory.total") == 51539607552
    assert value(two, "memory.total") is Why.NOT_REPORTED
    assert not two.partitions


def test_the_topology_adds_to_the_cards_of_the_driver() -> None:
    (card,) = cards(drm(0, slot("0001:22:00.0", "74a1") | {"mem_info_vram_total": "206141652992"}), node(2, unique_id=77001, location_id=0x2200))

    assert value(card, "memory.total") == 206141652992
    assert value(card, "product.architecture") == "gfx942"


def test_a_link_to_a_node_that_is_not_there_means_cut() -> None:
    link = "".join(f"/sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties: {line}\n" for line in ("type 11", "node_to 2", "max_bandwidth 1"))

    assert read(node(1, unique_id=77001, location_id=0x100) + link).outcome is Outcome.PARTIAL


@pytest.mark.parametrize(("number", "word"), [(90010, "gfx90a"), (90402, "gfx942"), (110001, "gfx1101"), (120001, "gfx1201"), (0, None), (None, None)])
def test_architectures(number: int | None, word: str | None) -> None:
    assert architecture(number) == word


def test_firmware_list() -> None:
    (card,) = cards("MC feature version: 0, firmware version: 0x00000000\nSMC feature version: 3, firmware version: 0x00552000\n")

    assert value(card, "firmware.components") == {"SMC": "0x00552000"}


LABELS = (
    'card_series="AMD Instinct MI300X OAM",card_model="102-G30299-0A",gpu_partition_id="0",gpu_compute_partition_type="spx",'
    'serial_number="692451",pod="train-0",namespace="ml"'
)


def test_exporter() -> None:
    text = f"""# TYPE gpu_package_power gauge
gpu_package_power{{gpu_id="0",{LABELS}}} 141
amd_gpu_energy_consumed{{gpu_id="0",{LABELS}}} 1.4012855e+13
gpu_used_vram{{gpu_id="0",{LABELS}}} 285
gpu_edge_temperature{{gpu_id="0",{LABELS}}} 0
gpu_clock{{gpu_id="0",{LABELS},clock_type="GPU_CLOCK_TYPE_SYSTEM",clock_index="0"}} 132
gpu_clock{{gpu_id="0",{LABELS},clock_type="GPU_CLOCK_TYPE_MEMORY",clock_index="8"}} 900
gpu_health{{gpu_id="0",{LABELS}}} 0
gpu_gfx_activity{{gpu_id="0",{LABELS}}} NaN
node_load1 0.2
"""
    told = read(text)
    (card,) = fold(told.observations)

    assert not told.complete
    assert ids(card.names) == {"index": "0", "serial": "692451"}
    assert (value(card, "power.draw"), value(card, "energy.total")) == (141, 14012855)
    assert value(card, "memory.used") == 285 * 1024**2
    assert value(card, "temperature.core") is Why.IMPLAUSIBLE
    assert (value(card, "clock.core"), value(card, "clock.memory")) == (132_000_000, 900_000_000)
    assert value(card, "health.reported") == "critical"
    assert value(card, "utilization.core") is Why.UNREADABLE
    assert value(card, "allocation.holders") == [{"namespace": "ml", "pod": "train-0"}]


@pytest.mark.parametrize(
    "text",
    [
        'gpu_temperature{gpu="0",uuid="x"} 40\n',
        "gpu_package_power 12\n",
        '{"card0": {"Available memory size (MiB)": "45027"}}',
        "GPU: 0\nnothing\n",
        '{"gpu": 0, "name": "x"}',
        "/sys/class/drm/card0/device/vendor: 0x8086\n/sys/class/drm/card0/device/mem_info_vram_total: 1\n",
    ],
)
def test_texts_of_others_are_not_claimed(text: str) -> None:
    assert recognise(text.encode()) is None


def test_library_answers() -> None:
    gpu = {
        "index": 0,
        "bdf": "0000:05:00.0",
        "uuid": "3cff74a1-0000-1000-8091-a7705e2d1b04",
        "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0x3C91A7705E2D1B04", "device_id": "0x74a1"},
        "power_cap": {"power_cap": 750000000, "max_power_cap": 750000000},
        "power": {"error": "permission denied", "detail": "Error code: 10"},
        "pcie": {"pcie_static": {"max_pcie_speed": 32000, "pcie_interface_version": 5}, "pcie_metric": {"pcie_speed": 16000, "pcie_width": 16}},
        "energy": {"energy_accumulator": 1000000, "counter_resolution": 15.26},
        "violation": {"active_ppt_pwr": True, "active_hbm_thrm": False, "per_ppt_pwr": 10},
        "fan_speed": 51,
        "fan_max": 255,
        "firmware": {"fw_list": [{"fw_name": "AMDSMI_FW_ID_PM", "fw_version": "85.117.00.00"}]},
        "xgmi": {"xgmi_hive_id": 4411},
        "bad_pages": [{"page_address": 1, "status": 0}, {"page_address": 2, "status": 2}],
    }
    told = read(json.dumps({"amdsmi": {"library": "26.1.0", "rocm": "7.1.0"}, "gpus": [gpu]}))
    (card,) = fold(told.observations)

    assert told.format == "amdsmi-json"
    assert (value(card, "power.limit"), value(card, "power.draw")) == (750, Why.NOT_PERMITTED)
    assert (value(card, "pci.link.generation.max"), value(card, "pci.link.generation")) == (5, 4)
    assert value(card, "energy.total") == 15.26
    assert value(card, "throttle.reasons") == ["power_cap"]
    assert value(card, "fan.speed") == 0.2
    assert value(card, "firmware.components") == {"PM": "85.117.00.00"}
    assert value(card, "fabric.domain") == "4411"
    assert value(card, "memory.pages_retired") == 2
    assert value(card, "runtime.version") == "7.1.0"


def test_npu() -> None:
    head = "XRT\n  Version              : 2.20.0\n  amdxdna              : 2.20.0_1, 00\n  NPU Firmware Version : 1.1.2.65\n\n"
    text = head + "Device(s) Present\n|BDF             |Name          |\n|[0000:c6:00.1]  |RyzenAI-npu5  |\n"
    (card,) = cards(text)

    assert ids(card.names) == {"pci_address": "0000:c6:00.1"}
    assert (value(card, "firmware.version"), value(card, "memory.unified")) == ("1.1.2.65", True)
