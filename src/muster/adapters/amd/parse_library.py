# SPDX-License-Identifier: Apache-2.0
"""The snapshot of `library.py` (answers of the amdsmi module call by call) to the records of `parse_smi`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.adapters.amd.parse_smi import Listing, Record
from muster.adapters.amd.values import is_marker, whole, word
from muster.formats.jsontext import first

_MICROWATTS = 10_000
"""Power caps above this are microwatts: older releases of the library answer in watts, newer ones in microwatts."""


def from_library(payload: bytes) -> Listing | None:
    """Rows of a snapshot; None when the text is none. A call that failed says so under "error" and gives no block."""
    document = first(payload, partial=True)
    if document is None or not isinstance(document.value, Mapping):
        return None
    head = document.value.get("amdsmi")
    gpus = document.value.get("gpus")
    if not isinstance(head, Mapping) or not isinstance(gpus, list):
        return None
    node = {"tool.version": str(head.get("library", ""))}
    if word(head.get("rocm")):
        node["runtime.version"] = str(head["rocm"])
    records = tuple(_record(place, gpu) for place, gpu in enumerate(gpus) if isinstance(gpu, Mapping))
    return Listing(records, document.cut, node=node, empty=not gpus, roots=tuple(map(str, document.value)))


def _record(place: int, gpu: Mapping[str, Any]) -> Record:
    index = whole(gpu.get("index"))
    record: Record = {"gpu": place if index is None else index, "bdf": _answer(gpu, "bdf"), "uuid": _answer(gpu, "uuid")}
    for name in ("asic", "board", "vbios", "driver", "ras"):
        _block(record, name, _answer(gpu, name))
    _static(record, gpu)
    _moving(record, gpu)
    return record


def _answer(gpu: Mapping[str, Any], name: str) -> Any:
    """The answer of a call, or the word for why it has none, or None where it was not asked."""
    value = gpu.get(name)
    if isinstance(value, Mapping) and "error" in value and len(value) <= 2:
        return str(value["error"])
    return value


def _block(record: Record, name: str, value: Any) -> None:
    if value is not None:
        record[name] = value


def _static(record: Record, gpu: Mapping[str, Any]) -> None:
    pcie = _answer(gpu, "pcie")
    static = pcie.get("pcie_static") if isinstance(pcie, Mapping) else None
    if isinstance(static, Mapping):
        speed = whole(static.get("max_pcie_speed"))
        interface = whole(static.get("pcie_interface_version"))
        record["bus"] = {
            **static,
            "max_pcie_speed": speed / 1000 if speed and speed > 128 else static.get("max_pcie_speed"),
            "pcie_interface_version": f"Gen {interface}" if interface else static.get("pcie_interface_version"),
        }
    vram = _answer(gpu, "vram")
    _block(record, "vram", vram)
    caps = _answer(gpu, "power_cap")
    limits = gpu.get("limits")
    limits = limits if isinstance(limits, Mapping) else {}
    if isinstance(caps, Mapping):
        record["limit"] = {
            "socket_power_limit": _watts(caps.get("power_cap")),
            "max_power_limit": _watts(caps.get("max_power_cap")),
            "min_power_limit": _watts(caps.get("min_power_cap")),
            "default_power_limit": _watts(caps.get("default_power_cap")),
            **{str(key): value for key, value in limits.items()},
        }
    numa = _answer(gpu, "numa_node")
    if numa is not None:
        record["numa"] = {"node": numa}
    record["partition"] = _partition(gpu)
    kfd = _answer(gpu, "kfd")
    if isinstance(kfd, Mapping):
        record.update({"kfd_id": kfd.get("kfd_id"), "node_id": kfd.get("node_id")})
        record["partition"].setdefault("partition_id", kfd.get("current_partition_id"))
    if not record["partition"]:
        del record["partition"]
    firmware = _answer(gpu, "firmware")
    if isinstance(firmware, Mapping) and isinstance(firmware.get("fw_list"), list):
        record["fw_list"] = [
            {"fw_id": str(row.get("fw_name", row.get("fw_id"))).removeprefix("AMDSMI_FW_ID_"), "fw_version": row.get("fw_version")}
            for row in firmware["fw_list"]
            if isinstance(row, Mapping)
        ]


def _watts(value: Any) -> Any:
    number = whole(value)
    return value if number is None else {"value": number / 1e6 if number > _MICROWATTS else number, "unit": "W"}


def _partition(gpu: Mapping[str, Any]) -> dict[str, Any]:
    told = {"compute_partition": _answer(gpu, "compute_partition"), "memory_partition": _answer(gpu, "memory_partition")}
    return {key: value for key, value in told.items() if value is not None}


def _moving(record: Record, gpu: Mapping[str, Any]) -> None:
    for name, call in (
        ("usage", "activity"),
        ("power", "power"),
        ("perf_level", "perf_level"),
        ("enumeration", "enumeration"),
        ("ecc_blocks", "ecc_blocks"),
        ("links", "links"),
    ):
        _block(record, name, _answer(gpu, call))
    violation = _answer(gpu, "violation")
    if isinstance(violation, Mapping):
        record["throttle"] = {f"{key.removeprefix('active_')}_violation_status": value for key, value in violation.items() if key.startswith("active_")}
    if any(gpu.get(name) is not None for name in ("fan_speed", "fan_max", "fan_rpm")):
        record["fan"] = {"speed": _answer(gpu, "fan_speed"), "max": _answer(gpu, "fan_max"), "rpm": _answer(gpu, "fan_rpm")}
    hive = _answer(gpu, "xgmi")
    if isinstance(hive, Mapping) and whole(hive.get("xgmi_hive_id")):
        record["fabric"] = str(whole(hive.get("xgmi_hive_id")))
    usage = _answer(gpu, "vram_usage")
    if isinstance(usage, Mapping):
        record["mem_usage"] = {"total_vram": usage.get("vram_total"), "used_vram": usage.get("vram_used")}
    record["temperature"] = {name: _answer(gpu, f"temperature_{name}") for name in ("edge", "hotspot", "vram") if gpu.get(f"temperature_{name}") is not None}
    record["clock"] = {f"{name}_0": clock for name in ("gfx", "mem") if isinstance(clock := _answer(gpu, f"clock_{name}"), Mapping)}
    for name in ("temperature", "clock"):
        if not record[name]:
            del record[name]
    pcie = _answer(gpu, "pcie")
    metric = pcie.get("pcie_metric") if isinstance(pcie, Mapping) else None
    if isinstance(metric, Mapping):
        speed = whole(metric.get("pcie_speed"))
        record["pcie"] = {**metric, "pcie_speed": speed / 1000 if speed and speed > 128 else metric.get("pcie_speed")}
    _energy(record, _answer(gpu, "energy"))
    total = _answer(gpu, "ecc")
    if isinstance(total, Mapping):
        record["ecc"] = {f"total_{key}": value for key, value in total.items()}
    processes = _answer(gpu, "processes")
    if isinstance(processes, list):
        record["process_list"] = [{"process_info": row} for row in processes]
    pages = _answer(gpu, "bad_pages")
    if isinstance(pages, list):
        record.update(_pages(pages))


def _energy(record: Record, energy: Any) -> None:
    """Energy as counter times resolution in microjoules."""
    if not isinstance(energy, Mapping):
        return
    counter = energy.get("energy_accumulator", energy.get("power"))
    resolution = energy.get("counter_resolution")
    if isinstance(counter, int | float) and isinstance(resolution, int | float) and not is_marker(counter):
        record["energy"] = {"total_energy_consumption": {"value": round(counter * resolution / 1e6, 3), "unit": "J"}}


def _pages(pages: list[Any]) -> dict[str, Any]:
    words = {"0": "retired", "1": "pending", "2": "un_res"}
    told: dict[str, Any] = {"retired": [], "pending": [], "un_res": []}
    for page in pages:
        if isinstance(page, Mapping):
            told[words.get(str(whole(page.get("status"))), "retired")].append({"page_address": page.get("page_address"), "page_size": page.get("page_size")})
    return told
