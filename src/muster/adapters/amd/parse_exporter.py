# SPDX-License-Identifier: Apache-2.0
"""AMD's device-metrics-exporter: samples of one card by its labels, and whether a text is that exporter's at all."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from muster.formats.prometheus import Sample, looks_like, parse_line, samples
from muster.formats.text import lines

_FAMILIES = frozenset(
    {
        "gpu_package_power",
        "gpu_average_package_power",
        "gpu_power_usage",
        "gpu_energy_consumed",
        "gpu_edge_temperature",
        "gpu_junction_temperature",
        "gpu_memory_temperature",
        "gpu_hbm_temperature",
        "gpu_gfx_activity",
        "gpu_umc_activity",
        "gpu_total_vram",
        "gpu_used_vram",
        "gpu_free_vram",
        "gpu_clock",
        "gpu_health",
        "gpu_afid_errors",
        "gpu_ecc_correct_total",
        "gpu_ecc_uncorrect_total",
        "gpu_nodes_total",
        "pcie_speed",
        "pcie_max_speed",
        "pcie_bandwidth",
    }
)
_LABELS = frozenset({"gpu_partition_id", "gpu_compute_partition_type", "gpu_memory_partition_type", "card_series", "card_model"})
_PREFIX = re.compile(r"^(?:amd_)?(gpu_|pcie_)", re.IGNORECASE)
_OURS = re.compile(r"^(?:gpu_(?:xgmi|ecc|violation|gfx|prof|vc|jpeg)_|pcie_)")


@dataclass(slots=True)
class Series:
    """All samples of one GPU row: its labels, and values by family (several where a family has labels of its own)."""

    labels: dict[str, str]
    values: dict[str, list[Sample]] = field(default_factory=dict)


def family(name: str) -> str | None:
    """The family's name without a site's prefix ("amd_gpu_package_power"), in lower case; None when it is not the exporter's."""
    lower = name.lower()
    match = _PREFIX.match(lower)
    if match is None:
        return None
    bare = lower.removeprefix("amd_")
    return bare if bare in _FAMILIES or _OURS.match(bare) else None


def recognise(head: bytes) -> bool:
    """True when a sample of a family of this exporter carries one of its labels."""
    if not looks_like(head) and b"gpu_" not in head.lower():
        return False
    for line in lines(head)[:400]:
        sample = parse_line(line)
        if sample is not None and family(sample.name) is not None and (_LABELS & sample.labels.keys() or _plain(sample)):
            return True
    return False


def _plain(sample: Sample) -> bool:
    return "gpu_id" in sample.labels and "serial_number" in sample.labels


def rows(payload: bytes) -> dict[tuple[str, ...], Series]:
    """Samples by GPU: the key is the GPU's number with its partition's, told apart by host where one text holds several."""
    told: dict[tuple[str, ...], Series] = {}
    for sample in samples(payload):
        name = family(sample.name)
        if name is None or "gpu_id" not in sample.labels:
            continue
        key = (sample.labels.get("hostname", ""), sample.labels["gpu_id"])
        series = told.setdefault(key, Series({}))
        for label, value in sample.labels.items():
            if value and label not in ("clock_type", "clock_index"):
                series.labels.setdefault(label, value)
        series.values.setdefault(name, []).append(sample)
    return told
