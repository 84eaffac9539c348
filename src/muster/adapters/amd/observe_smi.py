# SPDX-License-Identifier: Apache-2.0
"""What an amd-smi record says of a card for good: who it is, what it is made of, what it is limited to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from muster.adapters.amd.values import block, generation, hex_id, measure, pick, plain, rows, text_reading, whole, word
from muster.domain.model.gather import Thing
from muster.domain.model.names import NameKind, names
from muster.domain.model.reading import Absent, Known, Reading, Why

Record = Mapping[str, Any]

_KEPT = ("asic", "board", "vbios", "ifwi", "ras", "partition", "soc_pstate", "dpm_policy", "xgmi_plpd", "process_isolation", "enumeration", "bus", "detector")
_ID_KEYS = ("kfd_id", "node_id", "partition_id", "hip_id", "hip_uuid", "card", "render")
_HEX_NAME = re.compile(r"^0x[0-9a-f]+$", re.IGNORECASE)


def observe(card: Thing, record: Record) -> None:
    """Puts names and lasting facts of the record on ``card``."""
    _names(card, record)
    _asic(card, record)
    _bus(card, record)
    _firmware(card, record)
    _limits(card, record)
    _host(card, record)
    _memory(card, record)
    _partition(card, record)
    _ecc_mode(card, record)
    _clock_levels(card, record)
    for name in _KEPT:
        if name in record:
            card.tell(name, record[name])
    card.vendor.update({key: plain(record[key]) for key in _ID_KEYS if key in record})


def _names(card: Thing, record: Record) -> None:
    card.named(index=whole(record.get("gpu")), **_strong(record))


def strong_names(record: Record) -> dict[NameKind, str]:
    """Address, UUID and serial number of a row in their canonical form, those that it has."""
    return {name.kind: name.canonical for name in names(**_strong(record))}


def _strong(record: Record) -> dict[str, str | None]:
    asic, bus, board = block(record, "asic") or {}, block(record, "bus") or {}, block(record, "board") or {}
    bdf = word(record.get("bdf")) or word(bus.get("bdf"))
    serial = word(asic.get("asic_serial")) or word(board.get("product_serial"))
    return {"pci_address": bdf, "vendor_uuid": _unmasked(word(record.get("uuid"))), "serial": _unmasked(serial)}


def _unmasked(text: str | None) -> str | None:
    """The name, unless its owner hid it (``<redacted>``, ``XXXX``)."""
    return None if text is None or "<" in text or "*" in text or set(text.lower()) <= set("x-") else text


def _asic(card: Thing, record: Record) -> None:
    asic = block(record, "asic")
    if asic is None:
        return
    card.put("product.name", _name(record, asic))
    architecture = text_reading(asic.get("target_graphics_version"), lower=True)
    card.put("product.architecture", architecture)
    for key, name in (("vendor_id", "vendor_id"), ("device_id", "device_id"), ("subsystem_vendor_id", "subvendor_id"), ("subsystem_device_id", "subsystem_id")):
        card.put(f"pci.{key}", hex_id(asic.get(name)))
    card.put("compute.units", _nonzero(measure("compute.units", asic.get("num_compute_units", asic.get("num_of_compute_units")))))
    oam = whole(asic.get("oam_id"))
    if oam is not None and 0 <= oam < 64:
        card.value("platform.slot", f"OAM {oam}")


def _name(record: Record, asic: Record) -> Reading | None:
    """The market name; where that is missing or only a number, the board's product name."""
    board = block(record, "board") or {}
    for value in (asic.get("market_name"), board.get("product_name")):
        text = word(value)
        if text is not None and not _HEX_NAME.match(text):
            return Known(text)
    return text_reading(asic.get("market_name")) if word(asic.get("market_name")) is None else Absent(Why.NOT_SUPPORTED, str(asic.get("market_name")))


def _nonzero(reading: Reading | None) -> Reading | None:
    """Zero of something that cannot be none is no value."""
    return Absent(Why.NOT_SUPPORTED, "0") if isinstance(reading, Known) and reading.value == 0 else reading


def _bus(card: Thing, record: Record) -> None:
    bus = block(record, "bus")
    if bus is not None:
        card.put("pci.link.width.max", _nonzero(measure("pci.link.width.max", bus.get("max_pcie_width"))))
        fastest = generation(bus.get("max_pcie_speed"))
        worded = generation(bus.get("pcie_interface_version"))
        card.put("pci.link.generation.max", fastest if isinstance(fastest, Known) or worded is None else worded)
    numa = block(record, "numa")
    if numa is not None:
        node = measure("numa.node", numa.get("node"))
        card.put("numa.node", node if node is None or isinstance(node, Absent) or 0 <= node.value <= 1024 else Absent(Why.NOT_PRESENT, str(node.value)))


def _firmware(card: Thing, record: Record) -> None:
    vbios = block(record, "vbios", "ifwi")
    if vbios is not None:
        card.put("firmware.version", text_reading(vbios.get("version")))
    board = block(record, "board")
    if board is not None:
        card.put("product.part_number", text_reading(board.get("model_number")))
    if "fw_list" in record:
        found = {
            str(word(row.get("fw_id"))): str(word(row.get("fw_version")))
            for row in rows(record["fw_list"])
            if word(row.get("fw_id")) and word(row.get("fw_version"))
        }
        loaded = {name: version for name, version in found.items() if version.strip("0x.") != ""}
        card.put("firmware.components", Known(loaded) if loaded else Absent(Why.NOT_SUPPORTED, "no firmware listed"))


def _limits(card: Thing, record: Record) -> None:
    limit = block(record, "limit")
    if limit is None:
        return
    power = block(limit, "ppt0") or limit
    card.put("power.limit", _nonzero(measure("power.limit", pick(power, "socket_power_limit", "socket_power", "current_power_cap", "power_cap"), "W")))
    card.put("power.limit.max", _nonzero(measure("power.limit.max", pick(power, "max_power_limit", "max_power", "max_power_cap"), "W")))
    card.put("power.limit.min", measure("power.limit.min", pick(power, "min_power_limit", "min_power", "min_power_cap"), "W"))
    card.put("power.limit.default", _nonzero(measure("power.limit.default", pick(power, "default_power_limit", "default_power_cap"), "W")))
    for name in ("slowdown", "shutdown"):
        card.put(f"temperature.limit.{name}", _limit(limit, name, "hotspot", "edge"))
        card.put(f"temperature.memory.limit.{name}", _limit(limit, name, "vram", "mem"))
    card.tell("limit", dict(limit))


def _limit(limit: Record, name: str, *sensors: str) -> Reading | None:
    """A temperature limit of the first sensor that has one, where the listing got as far as that sensor; a limit of 0 degrees is none."""
    if limit.get(f"{name}_{sensors[0]}_temperature") is None:
        return None
    value = pick(limit, *(f"{name}_{sensor}_temperature" for sensor in sensors))
    return _nonzero(measure("temperature.limit.slowdown", value, "C"))


def _host(card: Thing, record: Record) -> None:
    driver = block(record, "driver")
    if driver is not None:
        card.put("driver.name", text_reading(pick(driver, "name", "driver_name")))
        card.put("driver.version", text_reading(pick(driver, "version", "driver_version")))
    rocm = word(record.get("rocm_version")) or word((block(record, "rocm") or {}).get("version"))
    if rocm is not None:
        card.value("runtime.name", "rocm").value("runtime.version", rocm)


def _memory(card: Thing, record: Record) -> None:
    vram = block(record, "vram")
    if vram is None:
        return
    size = pick(vram, "size", "vram_size", "size_mb", "vram_size_mb")
    card.put("memory.total", _nonzero(measure("memory.total", size, "MB")))
    card.put("memory.kind", text_reading(pick(vram, "type", "vram_type"), lower=True))
    card.put("memory.bandwidth.max", _nonzero(measure("memory.bandwidth.max", pick(vram, "max_bandwidth", "vram_max_bandwidth"), "GB/s")))
    card.tell("vram", dict(vram))


def _partition(card: Thing, record: Record) -> None:
    partition = block(record, "partition")
    if partition is None:
        return
    mode = pick(partition, "compute_partition", "accelerator_partition", "accelerator_type")
    card.put("partition.mode", text_reading(mode, lower=True))
    card.put("partition.memory_mode", text_reading(pick(partition, "memory_partition", "memory"), lower=True))
    identifier = word(partition.get("partition_id"))
    if identifier is not None:
        card.vendor.setdefault("partition_id", identifier)


def _ecc_mode(card: Thing, record: Record) -> None:
    """Error correction of the memory, from the state of the memory controller's block."""
    ras = block(record, "ras")
    if ras is None:
        return
    states = ras.get("ecc_block_state")
    if isinstance(states, list):
        states = {str(row.get("block")): row.get("status") for row in rows(states)}
    state = next((word(v) for k, v in states.items() if str(k).lower() == "umc"), None) if isinstance(states, Mapping) else None
    if state is not None and state.upper() == "ENABLED":
        card.value("ecc.enabled", True)
    elif state is not None and state.upper() == "DISABLED":
        card.vendor["umc_ecc"] = "DISABLED"


def _clock_levels(card: Thing, record: Record) -> None:
    """The table of clock levels of `static`: the current level and the highest."""
    clock = block(record, "clock")
    if clock is None:
        return
    for name, key in (("sys", "clock.core"), ("mem", "clock.memory")):
        levels = block(clock, name) if isinstance(clock.get(name), Mapping | str) else None
        table = levels.get("frequency_levels") if levels is not None else None
        if not isinstance(table, Mapping):
            continue
        found = [measure(key, value, "MHz") for value in table.values()]
        known = [each.value for each in found if isinstance(each, Known)]
        if known:
            card.value(f"{key}.max", max(known))
        current = whole(pick(levels or {}, "current level", "current_level"))
        if current is not None and 0 <= current < len(found):
            card.put(key, found[current])
