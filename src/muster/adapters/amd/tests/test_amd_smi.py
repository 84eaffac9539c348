# SPDX-License-Identifier: Apache-2.0
"""amd-smi in JSON, text and tables, over its releases. All values are ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.adapters.amd import interpret, recognise
from muster.domain.decide.fold import FoldedCard, fold, ids
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Capture, Outcome, SourceId


def read(*texts: str | bytes, locator: tuple[str, ...] = ()) -> Interpretation:
    payloads = [text if isinstance(text, bytes) else text.encode() for text in texts]
    return interpret([Capture(source=SourceId("t"), locator=locator, format=recognise(p) or "", payload=p) for p in payloads], {})


def cards(*texts: str | bytes) -> tuple[FoldedCard, ...]:
    return fold(read(*texts).observations)


def value(card: FoldedCard, key: str) -> Any:
    reading = card.readings[key]
    return reading.value if isinstance(reading, Known) else reading.why


def static(index: int, **blocks: Any) -> dict[str, Any]:
    return {"gpu": index, "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": f"0x7A31C0DE{index:08X}", "device_id": "0x74a1"}, **blocks}


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"gpu_data": rows}, lambda rows: {"system": {"cpu_data": [{"cpu": 0}]}, "gpu_data": rows}])
def test_an_array_and_an_object_say_the_same(wrap: Any) -> None:
    rows = [static(0), static(1), {"cpu": 0, "smu": {"fw_version": "85.90.0"}}, {"ai_nic": 0, "bdf": "0000:11:00.0"}]
    told = read(json.dumps(wrap(rows)))

    assert told.outcome is Outcome.DEVICES
    assert told.complete
    assert [ids(card.names)["serial"] for card in fold(told.observations)] == ["0x7A31C0DE00000000", "0x7A31C0DE00000001"]


@pytest.mark.parametrize("socket", [{"value": 171, "unit": "W"}, 171, "171 W", "171"])
def test_a_value_in_any_wrapping(socket: Any) -> None:
    (card,) = cards(json.dumps([{"gpu": 0, "power": {"socket_power": socket}}]))

    assert value(card, "power.draw") == 171


def test_a_word_in_place_of_an_object_is_an_absence_of_all_in_it() -> None:
    (card,) = cards(json.dumps([{"gpu": 0, "power": "N/A", "temperature": "N/A", "usage": "N/A", "ecc": "N/A", "ecc_blocks": "N/A", "fan": "N/A"}]))

    for key in ("power.draw", "temperature.hotspot", "utilization.core", "errors.memory.corrected", "errors.ras", "fan.rpm"):
        assert isinstance(card.readings[key], Absent), key


def test_zeros_that_are_none() -> None:
    record = {
        "gpu": 0,
        "usage": {"gfx_activity": {"value": 0, "unit": "%"}},
        "clock": {"gfx_0": {"clk": {"value": 0, "unit": "MHz"}, "max_clk": {"value": 0, "unit": "MHz"}}},
        "energy": {"total_energy_consumption": {"value": 0.0, "unit": "J"}},
        "power": {"socket_power": {"value": 4, "unit": "W"}, "gfx_voltage": {"value": 6, "unit": "mV"}},
        "temperature": {"edge": {"value": 0, "unit": "C"}},
    }
    (card,) = cards(json.dumps([record]))

    assert value(card, "utilization.core") == 0
    assert value(card, "clock.core") == 0
    assert value(card, "clock.core.max") is Why.NOT_SUPPORTED
    assert value(card, "energy.total") is Why.NOT_SUPPORTED
    assert value(card, "voltage.core") is Why.NOT_SAMPLED
    assert value(card, "temperature.core") is Why.IMPLAUSIBLE


def test_sentinels_are_no_numbers() -> None:
    record = {"gpu": 0, "numa": {"node": 4294967295}, "usage": {"gfx_activity": 65535}, "vram": {"size": {"value": 18446744073709551615, "unit": "MB"}}}
    (card,) = cards(json.dumps([record]))

    assert all(isinstance(card.readings[key], Absent) for key in ("numa.node", "utilization.core", "memory.total"))


def test_captures_of_one_round_are_one_card_each() -> None:
    listing = [{"gpu": 0, "bdf": "0000:0C:00.0", "uuid": "3cff74a1-0000-1000-8091-a7705e2d1b04", "kfd_id": 7, "node_id": 2, "partition_id": 0}]
    firmware = [{"gpu": 0, "fw_list": [{"fw_id": "SMU", "fw_version": "85.117.00.00"}, {"fw_id": "UVD", "fw_version": "0"}]}]
    pages = [{"gpu": 0, "retired": "No bad pages found.", "pending": "No bad pages found.", "un_res": "No bad pages found."}]
    processes = [{"gpu": 0, "process_list": [{"process_info": "No running processes detected"}]}]
    (card,) = cards(*(json.dumps(each) for each in (listing, [static(0)], firmware, pages, processes)))

    assert ids(card.names) == {
        "index": "0",
        "pci_address": "0000:0c:00.0",
        "serial": "0x7A31C0DE00000000",
        "vendor_uuid": "3cff74a1-0000-1000-8091-a7705e2d1b04",
    }
    assert value(card, "firmware.components") == {"SMU": "85.117.00.00"}
    assert value(card, "memory.pages_retired") == 0
    assert value(card, "processes") == []


def test_limits_of_both_layouts() -> None:
    new = {"ppt0": {"socket_power_limit": {"value": 300, "unit": "W"}, "max_power_limit": {"value": 330, "unit": "W"}}, "ppt1": {"socket_power_limit": "N/A"}}
    old = {"socket_power": {"value": 300, "unit": "W"}, "max_power": {"value": 330, "unit": "W"}}
    for limit in (new, old):
        (card,) = cards(json.dumps([{"gpu": 0, "asic": {}, "limit": limit}]))
        assert (value(card, "power.limit"), value(card, "power.limit.max")) == (300, 330)


def test_violations_now_and_then() -> None:
    throttle = {
        "ppt_accumulated": 585613,
        "ppt_violation_status": "ACTIVE",
        "socket_thermal_violation_status": "NOT ACTIVE",
        "gfx_clk_below_host_limit_thermal_violation_status": {"xcp_0": ["ACTIVE", "N/A"]},
        "low_utilization_violation_status": "N/A",
    }
    (card,) = cards(json.dumps([{"gpu": 0, "throttle": throttle, "power": {"socket_power": 9}}]))

    assert value(card, "throttle.reasons") == ["power_cap", "thermal_software"]


def test_error_totals_say_nothing_of_one_block_unless_nought() -> None:
    ecc = {"total_correctable_count": 5, "total_uncorrectable_count": 0}
    (card,) = cards(json.dumps([{"gpu": 0, "ecc": ecc, "mem_usage": {"used_vram": {"value": 1, "unit": "MB"}}}]))

    assert "errors.memory.corrected" not in card.readings
    assert value(card, "errors.memory.uncorrected") == 0
    assert card.vendor["ecc"] == ecc


def test_text_with_wrapped_lists_processes_and_the_sign_of_degrees() -> None:
    text = """$ amd-smi metric
CPU: 0
    SMU:
        FW_VERSION: 1.2

GPU: 0
    USAGE:
        GFX_ACTIVITY: 12 %
        JPEG_ACTIVITY: [0 %, N/A,
            N/A]
    TEMPERATURE:
        EDGE: N/A
        HOTSPOT: 41 °C
    PROCESS_INFO:
        NAME: a
        PID: 71
        MEMORY_USAGE:
            VRAM_MEM: 2.0 GB
    PROCESS_INFO:
        NAME: b
        PID: 72
"""
    (card,) = cards(text.encode())
    (latin,) = cards(text.encode("latin-1"))

    assert value(card, "utilization.core") == pytest.approx(0.12)
    assert value(card, "temperature.hotspot") == value(latin, "temperature.hotspot") == 41
    assert [row["pid"] for row in value(card, "processes")] == [71, 72]
    assert value(card, "processes")[0]["memory.used"] == 2 * 1024**3


def test_monitor_of_two_releases_and_its_json() -> None:
    old = "GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  VRAM_USED\n  0  171 W     32 °C     33 °C       5 %    114 MHz     283 MB\n"
    slice_ = "  171 W  32 °C  33 °C  114 MHz  5 %  0 %  0.3/192.0 GB\n"
    new = f"GPU  XCP  POWER  GPU_T  MEM_T  GFX_CLK  GFX%  MEM%  VRAM_USAGE\n  0    0{slice_}  0    1{slice_}"
    row = {"gpu": 0, "power_usage": {"value": 171, "unit": "W"}, "hotspot_temperature": {"value": 32, "unit": "C"}, "gfx": {"value": 5, "unit": "%"}}
    for text in (old, new, json.dumps([row])):
        told = read(text)
        (card,) = fold(told.observations)
        assert (value(card, "power.draw"), value(card, "temperature.hotspot"), value(card, "utilization.core")) == (171, 32, 0.05)
    assert not read(old).complete


def test_the_box() -> None:
    text = """+------------------------------------------------------------------------------+
| AMD-SMI 26.1.0+5df6c765      amdgpu version: 6.14.14  ROCm version: 7.1.0    |
| Platform: Linux Baremetal                                                    |
|-------------------------------------+----------------------------------------|
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:0c:00.0    AMD Instinct MI300X | 3 %      40 °C   0           128/750 W |
|   0       0       7        SPX/NPS1 | 9 %        N/A           285/196592 MB |
|-------------------------------------+----------------------------------------|
| 0000:22:00.0                 0x1586 | N/A        N/A   0             N/A/0 W |
|   1       1     N/A             N/A | N/A        N/A           1013/65536 MB |
+-------------------------------------+----------------------------------------+
+------------------------------------------------------------------------------+
| Processes:                                                                   |
|  GPU        PID  Process Name          GTT_MEM  VRAM_MEM  MEM_USAGE     CU % |
|==============================================================================|
|    0       4242  python3.12             2.0 MB   21.0 GB    21.0 GB  N/A     |
+------------------------------------------------------------------------------+
"""
    told = read(text)
    one, other = fold(told.observations)

    assert told.tool_version == "26.1.0+5df6c765"
    assert (value(one, "power.draw"), value(one, "power.limit"), value(one, "partition.mode")) == (128, 750, "spx")
    assert (value(one, "utilization.core"), value(one, "utilization.memory_bandwidth")) == (0.09, 0.03)
    assert value(one, "processes") == [{"pid": 4242, "name": "python3.12", "memory.used": 21 * 1024**3}]
    assert value(other, "product.name") is Why.NOT_SUPPORTED
    assert value(other, "power.limit") is Why.NOT_SUPPORTED
    assert read(text[: text.index("| 0000:22")]).outcome is Outcome.PARTIAL


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("[]", Outcome.UNREADABLE),
        ('{"gpu_data": []}', Outcome.NO_DEVICES),
        ("ERROR:root:Unable to detect any GPU devices, check amdgpu version and module status (sudo modprobe amdgpu)\n", Outcome.DRIVER_UNUSABLE),
        ("amdsmi.amdsmi_exception.AmdSmiLibraryException: Error code: 10 | AMDSMI_STATUS_NO_PERM - Permission Denied\n", Outcome.NOT_PERMITTED),
        ("bash: amd-smi: command not found\n", Outcome.TOOL_MISSING),
        ("WARNING: No AMD GPUs specified\n", Outcome.NO_DEVICES),
        ('{"gpu_data": [{"gp', Outcome.UNREADABLE),
        ("", Outcome.UNREADABLE),
    ],
)
def test_outcomes_without_cards(text: str, outcome: Outcome) -> None:
    assert read(text).outcome is outcome


def test_a_filtered_listing_is_not_complete() -> None:
    assert not read(json.dumps([static(0)]), locator=("amd-smi", "static", "-g", "0", "--json")).complete


def test_a_cut_listing_keeps_its_whole_rows_and_says_so() -> None:
    text = json.dumps({"gpu_data": [static(i, bus={"bdf": f"0000:{i + 1:02x}:00.0"}) for i in range(4)]}, indent=2)
    for at in range(40, len(text) - 1, 17):
        told = read(text[:at])
        assert told.outcome in (Outcome.PARTIAL, Outcome.UNREADABLE)
        assert not told.complete
        for place, card in enumerate(fold(told.observations)):
            assert ids(card.names)["index"] == str(place)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("\n", "\r\n"),
        lambda t: "".join(line + "\n" + line + "\n" for line in t.split("\n")),
        lambda t: "\x1b[1m" + t.replace("gpu", "g\x00pu"),
    ],
)
def test_what_editors_and_terminals_do(change: Any) -> None:
    text = json.dumps([static(i, vram={"type": "HBM3", "size": {"value": 196592, "unit": "MB"}}) for i in range(3)], indent=1)
    told = [(ids(card.names), value(card, "memory.total")) for card in cards(change(text))]

    assert told == [(ids(card.names), value(card, "memory.total")) for card in cards(text)]


def test_links() -> None:
    new = [
        {
            "gpu": 0,
            "bdf": "0000:0c:00.0",
            "links": [{"gpu": 0, "bdf": "0000:0c:00.0", "link_type": "SELF"}, {"gpu": 1, "bdf": "0000:22:00.0", "link_type": "XGMI"}],
            "link_status": [],
        }
    ]
    old = [{"gpu": 0, "link_accessibility": {"gpu_1": "DISABLED"}, "link_type": {"gpu_0": "SELF", "gpu_1": "PCIE"}}]
    table = "LINK TYPE TABLE:\n             0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 SELF         XGMI\n0000:22:00.0 XGMI         SELF\n"
    (card,), (before,), both = cards(json.dumps(new)), cards(json.dumps(old)), cards(table)

    assert value(card, "link.peers") == {"0000:22:00.0": "XGMI"}
    assert value(before, "link.peers") == {"gpu_1": "PCIE"}
    assert [value(each, "link.peers") for each in both] == [{"0000:22:00.0": "XGMI"}, {"0000:0c:00.0": "XGMI"}]


def test_deep_and_endless_input_ends() -> None:
    for text in ('{"gpu_data":' * 3000, "[" * 100_000, '{"gpu_data": "' + "x" * 1_000_000, "GPU: 0\n" + " " * 4000 + "ASIC: " + "y" * 1_000_000):
        assert read(text).outcome in (Outcome.UNREADABLE, Outcome.PARTIAL)
