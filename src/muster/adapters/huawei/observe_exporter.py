# SPDX-License-Identifier: Apache-2.0
"""Cards out of npu-exporter's values. It prints 0 for what was never set and -1 for what could not be read; neither is a reading."""

from __future__ import annotations

import math
from collections import Counter

from muster.adapters.huawei.names import die, digits, hex_code
from muster.adapters.huawei.parse_exporter import Chip, Page
from muster.domain.model.attributes import Level
from muster.domain.model.gather import Gather, Thing
from muster.domain.model.names import pci_address
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.units import scaled
from muster.formats.numbers import sentinel

MIB = 1024.0**2
# family to attribute and factor
FAMILIES: dict[str, tuple[str, float]] = {
    "temperature": ("temperature.core", 1),
    "hbm_temperature": ("temperature.memory", 1),
    "power": ("power.draw", 1),
    "voltage": ("voltage.core", 1),
    "aicore_current_freq": ("clock.core", 1_000_000),
    "utilization": ("utilization.core", 0.01),
    "vector_utilization": ("utilization.vector", 0.01),
    "cube_utilization": ("utilization.tensor", 0.01),
    "hbm_bandwidth_utilization": ("utilization.memory_bandwidth", 0.01),
    "hbm_ecc_single_bit_error_cnt": ("errors.memory.corrected", 1),
    "hbm_ecc_double_bit_error_cnt": ("errors.memory.uncorrected", 1),
    "hbm_ecc_total_single_bit_error_cnt": ("errors.memory.corrected.lifetime", 1),
    "hbm_ecc_total_double_bit_error_cnt": ("errors.memory.uncorrected.lifetime", 1),
}
_NEVER_ZERO = ("temperature", "hbm_temperature", "power", "voltage", "aicore_current_freq")
_KINDS = (("hbm_total_memory", "hbm_used_memory"), ("total_memory", "used_memory"))
_MEMORY = tuple(family for pair in _KINDS for family in pair)
_FAILED = (-1.0, float(0xFFFFFFFF))
"""What the exporter prints where a call failed."""
_HEALTH = {1.0: ("1", "ok"), 0.0: ("0", "critical"), -1.0: ("-1", "unknown")}


def gather(page: Page) -> tuple[Gather, dict[Level, int]]:
    """The cards of one scrape, and the totals that the exporter prints."""
    found = Gather()
    keys = _cards(page)
    shared = Counter(keys.values())
    for ident, chip in page.chips.items():
        card = found.card(keys[ident])
        _board(card, chip, alone=shared[keys[ident]] == 1)
        _chip(card if shared[keys[ident]] == 1 else card.device(ident).named(index=ident), chip)
    counts = {Level.CARD: "machine_card_nums", Level.DEVICE: "machine_npu_nums"}
    for name, value in page.totals.items():
        found.node.tell(name, value)
    if page.version:
        found.node.tell("exporterVersion", page.version)
    return found, {level: int(page.totals[name]) for level, name in counts.items() if _whole(page.totals.get(name))}


def _cards(page: Page) -> dict[str, str]:
    """Chip id to the key of its card: two chips behind one address are one card, so are two with one serial number."""
    keys: dict[str, str] = {}
    for ident, chip in page.chips.items():
        serial, address = chip.labels.get("serial_number", ""), pci_address(chip.labels.get("pcie_bus_info", ""))
        keys[ident] = f"serial {serial}" if serial.lower() not in ("", "na", "n/a") else f"address {address}" if address else f"id {ident}"
    return keys


def _board(card: Thing, chip: Chip, *, alone: bool) -> None:
    name = chip.labels.get("model_name") or chip.labels.get("name")
    card.named(serial=chip.labels.get("serial_number"), index=chip.ident if alone else None)
    card.value("product.name", name or None)
    if not alone:
        card.named(pci_address=None)


def _chip(thing: Thing, chip: Chip) -> None:
    thing.named(index=chip.ident, vendor_uuid=die(chip.labels.get("vdie_id")), pci_address=pci_address(chip.labels.get("pcie_bus_info", "")))
    unset = _unset(chip)
    for family, value in chip.values.items():
        if family in FAMILIES:
            key, factor = FAMILIES[family]
            thing.put(key, _reading(key, family, value, factor, unset=unset))
        elif family not in _MEMORY and not math.isnan(value):
            thing.tell(family, value)
    _memory(thing, chip)
    _health(thing, chip)
    _ports(thing, chip, unset=unset)
    _holders(thing, chip)
    _slices(thing, chip)
    if chip.stamp is not None:
        thing.tell("timestamp_ms", chip.stamp)


def _unset(chip: Chip) -> bool:
    """True when what cannot be 0 on a chip that runs is 0 throughout: then no 0 of this chip was read."""
    told = [chip.values[family] for family in ("temperature", "power", "voltage", "total_memory", "hbm_total_memory") if family in chip.values]
    return len(told) > 2 and not any(told)


def _reading(key: str, family: str, value: float, factor: float, *, unset: bool) -> Reading:
    if not math.isfinite(value):
        return Absent(Why.UNREADABLE, str(value))
    if value == 0 and family in _NEVER_ZERO:
        return Absent(Why.IMPLAUSIBLE, "0 as printed")
    if value == 0 and unset:
        return Absent(Why.NOT_SAMPLED, "0, like every value of this chip")
    if value in _FAILED:
        return Absent(Why.ERROR, f"{value:.0f}: the exporter could not read it")
    reading = sentinel(key, value)
    return Known(scaled(_exact(value), factor)) if isinstance(reading, Known) else reading


def _memory(thing: Thing, chip: Chip) -> None:
    """HBM where the chip has any, else DDR, which on chips with HBM belongs to the control processors. HBM that could not be read is still HBM."""
    pair = _kind_of_memory(chip)
    if pair is None:
        return
    total = chip.values.get(pair[0])
    if total == 0:
        thing.absent("memory.total", Why.IMPLAUSIBLE, "0 as printed").absent("memory.used", Why.NOT_SAMPLED, "no total")
        return
    for family, key in zip(pair, ("memory.total", "memory.used"), strict=True):
        if key == "memory.used" and chip.values.get(family) == 0 and total in _FAILED:
            thing.absent(key, Why.NOT_SAMPLED, "0 beside a total that could not be read")
        elif family in chip.values:
            thing.put(key, _reading(key, family, chip.values[family], MIB, unset=False))
    for family in _MEMORY:
        if family in chip.values and family not in pair:
            thing.tell(family, chip.values[family])


def _kind_of_memory(chip: Chip) -> tuple[str, str] | None:
    """The families that speak of the chip's own memory: the first whose total is not nought, else the first that is there."""
    there = [pair for pair in _KINDS if pair[0] in chip.values]
    best = next((pair for pair in there if chip.values[pair[0]] != 0), None)
    return best or next(iter(there), None) or next((pair for pair in _KINDS if pair[1] in chip.values), None)


def _health(thing: Thing, chip: Chip) -> None:
    value = chip.values.get("health_status")
    if value is not None:
        word, meaning = _HEALTH.get(value, (f"{value:g}", "unknown"))
        thing.value("health.vendor", word).value("health.reported", meaning)
        thing.vendor.pop("health_status", None)
    if chip.codes:
        thing.value("fault.codes", sorted({hex_code(int(code)) for code in chip.codes if math.isfinite(code) and code > 0}))
    flag = chip.values.get("hbm_ecc_enable_flag")
    if flag in (0.0, 1.0):
        thing.value("ecc.enabled", flag == 1.0)
    pages = [value for name, value in chip.values.items() if name.startswith("hbm_ecc_") and "isolated_pages" in name and "next" not in name]
    if any(value in _FAILED for value in pages):
        thing.absent("memory.pages_retired", Why.ERROR, "a count that the exporter could not read")
    elif pages and all(_whole(value) for value in pages):
        thing.value("memory.pages_retired", int(sum(pages)))


def _ports(thing: Thing, chip: Chip, *, unset: bool) -> None:
    state = chip.values.get("link_status")
    if state is None:
        return
    if unset and state == 0:
        thing.absent("network.state", Why.NOT_SAMPLED, "0, like every value of this chip")
    else:
        thing.value("network.state", {1.0: "up", 0.0: "down"}.get(state, "unknown"))


def _holders(thing: Thing, chip: Chip) -> None:
    names = {"namespace": "namespace", "pod_name": "pod", "container_name": "container"}
    holder = {word: chip.labels[label] for label, word in names.items() if chip.labels.get(label)}
    if holder:
        thing.value("allocation.holders", [holder])
    rows: list[dict[str, object]] = []
    for labels, value in chip.processes:
        pid = labels.get("process_id", "")
        if digits(pid) and len(pid) < 19:
            row: dict[str, object] = {"pid": int(pid)}
            if math.isfinite(value) and value >= 0:
                row["memory.used"] = scaled(_exact(value), MIB)
            rows.append(row)
    if rows:
        thing.value("processes", rows)


def _slices(thing: Thing, chip: Chip) -> None:
    """Pods on slices of the chip; their memory is in KB (KiB)."""
    for ident, values in chip.slices.items():
        part = thing.partition(ident).named(index=ident)
        for family, key, factor in (
            ("total_memory", "memory.total", 1024.0),
            ("used_memory", "memory.used", 1024.0),
            ("aicore_utilization", "utilization.core", 0.01),
        ):
            if family in values:
                part.put(key, _reading(key, family, values[family], factor, unset=False))


def _whole(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and 0 <= value < 1e12 and value == int(value)


def _exact(value: float) -> float:
    return int(value) if value == int(value) else value
