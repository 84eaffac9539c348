# SPDX-License-Identifier: Apache-2.0
"""What the exporter's samples say of a card. Sizes are MiB, energy is microjoule, shares are percent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from muster.adapters.amd.observe_metric import zero_heat
from muster.adapters.amd.parse_exporter import Series, rows
from muster.adapters.amd.values import generation, measure, word
from muster.domain.model.gather import Gather, Thing
from muster.domain.model.reading import Absent, Known, Why
from muster.formats.prometheus import Sample

# attribute, families in order of preference, unit
_PLAIN = (
    ("power.draw", ("gpu_package_power", "gpu_power_usage", "gpu_average_package_power"), "W"),
    ("power.draw.average", ("gpu_average_package_power",), "W"),
    ("energy.total", ("gpu_energy_consumed",), "uJ"),
    ("temperature.core", ("gpu_edge_temperature",), "C"),
    ("temperature.hotspot", ("gpu_junction_temperature",), "C"),
    ("temperature.memory", ("gpu_memory_temperature",), "C"),
    ("utilization.core", ("gpu_gfx_activity",), "%"),
    ("utilization.memory_bandwidth", ("gpu_umc_activity",), "%"),
    ("memory.total", ("gpu_total_vram",), "MB"),
    ("memory.used", ("gpu_used_vram",), "MB"),
    ("memory.free", ("gpu_free_vram",), "MB"),
    ("pci.replays", ("pcie_replay_count",), ""),
    ("errors.memory.corrected", ("gpu_ecc_correct_umc",), ""),
    ("errors.memory.uncorrected", ("gpu_ecc_uncorrect_umc",), ""),
)
_SENSORS = ("power.draw", "power.draw.average", "temperature.core", "temperature.hotspot", "temperature.memory", "energy.total")
_ECC = re.compile(r"^gpu_ecc_(correct|uncorrect|deferred)_(\w+)$")
_HEALTH = {1.0: ("1", "ok"), 0.0: ("0", "critical")}


def observe(gather: Gather, payload: bytes) -> None:
    """Puts every GPU row of the scrape into ``gather``."""
    for key, series in rows(payload).items():
        card = gather.card(key)
        _labels(card, series)
        primary = series.labels.get("gpu_partition_id", "0") in ("0", "NA", "")
        for attribute, families, unit in _PLAIN:
            _put(card, attribute, [s for name in families for s in series.values.get(name, ())], unit, primary=primary)
        _clocks(card, series)
        _errors(card, series)
        _health(card, series)


def _labels(card: Thing, series: Series) -> None:
    labels = series.labels
    pci = labels.get("pcie_bus_id") or labels.get("bdf") or labels.get("pci_address")
    card.named(index=labels.get("gpu_id"), vendor_uuid=labels.get("gpu_uuid"), serial=labels.get("serial_number"), pci_address=pci)
    name = word(labels.get("card_series")) or word(labels.get("card_model"))
    card.value("product.name", name)
    if word(labels.get("card_series")):
        card.value("product.part_number", word(labels.get("card_model")))
    card.value("driver.version", word(labels.get("driver_version")))
    card.value("firmware.version", word(labels.get("vbios_version")))
    for key, label in (("partition.mode", "gpu_compute_partition_type"), ("partition.memory_mode", "gpu_memory_partition_type")):
        mode = word(labels.get(label))
        card.value(key, mode.lower() if mode else None)
    if "gpu_partition_id" in labels:
        card.tell("partition_id", labels["gpu_partition_id"])
    holder = {key: labels[key] for key in ("namespace", "pod", "container", "job_id", "job_user", "job_partition") if labels.get(key)}
    if "pod" in holder:
        card.value("allocation.holders", [holder])
    card.tell("labels", dict(labels))


def _put(card: Thing, attribute: str, found: Sequence[Sample], unit: str, *, primary: bool) -> None:
    """The first sample that has a value. Sensors of a slice other than the first read 0, which is no measurement."""
    for sample in found:
        value: Any = int(sample.value) if sample.value == sample.value and abs(sample.value) < 2**53 and sample.value == int(sample.value) else sample.value
        reading = measure(attribute, value, unit)
        if attribute.startswith("temperature."):
            reading = zero_heat(reading)
        if attribute in _SENSORS and isinstance(reading, Known) and reading.value == 0 and (not primary or attribute == "energy.total"):
            reading = Absent(Why.NOT_SUPPORTED, "0")
        card.put(attribute, reading)


def _clocks(card: Thing, series: Series) -> None:
    for sample in series.values.get("gpu_clock", ()):
        kind = sample.labels.get("clock_type", "").lower()
        key = "clock.core" if kind.endswith("system") else "clock.memory" if kind.endswith("memory") else ""
        if key and key not in card.readings:
            card.put(key, measure(key, sample.value, "MHz"))
    speed = next(iter(series.values.get("pcie_speed", ())), None)
    fastest = next(iter(series.values.get("pcie_max_speed", ())), None)
    if speed is not None and speed.value > 0:
        card.put("pci.link.generation", generation(f"{speed.value:g}"))
    if fastest is not None and fastest.value > 0:
        card.put("pci.link.generation.max", generation(f"{fastest.value:g}"))


def _errors(card: Thing, series: Series) -> None:
    blocks: dict[str, dict[str, int]] = {}
    words = {"correct": "corrected", "uncorrect": "uncorrected", "deferred": "deferred"}
    for name, found in series.values.items():
        match = _ECC.match(name)
        if match is None or match.group(2) == "total" or not found or found[0].value != found[0].value or abs(found[0].value) > 2**53:
            continue
        blocks.setdefault(match.group(2).upper(), {})[words[match.group(1)]] = int(found[0].value)
    if blocks:
        card.value("errors.ras", blocks)
    for kind, name in (("corrected", "gpu_ecc_correct_total"), ("uncorrected", "gpu_ecc_uncorrect_total")):
        total = next(iter(series.values.get(name, ())), None)
        if total is not None and total.value == 0:
            card.value(f"errors.memory.{kind}", 0)
        elif total is not None:
            card.tell(name, total.value)


def _health(card: Thing, series: Series) -> None:
    health = next(iter(series.values.get("gpu_health", ())), None)
    if health is not None and health.value in _HEALTH:
        text, means = _HEALTH[health.value]
        card.value("health.vendor", text).value("health.reported", means)
    codes = sorted({s.labels.get("afid_index") or f"{s.value:g}" for s in series.values.get("gpu_afid_errors", ()) if s.value > 0})
    if codes:
        card.tell("afid_errors", codes)
