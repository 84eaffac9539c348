# SPDX-License-Identifier: Apache-2.0
"""npu-exporter's text: samples of the families that are its own, grouped by the chip id in their labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.adapters.huawei.names import digits
from muster.formats.prometheus import Sample

_PREFIXES = ("npu_chip_info_", "npu_chip_")
LABELS = ("model_name", "vdie_id", "pcie_bus_info", "namespace", "pod_name", "container_name")


@dataclass(slots=True)
class Chip:
    """One chip: label texts, values by family (prefix left out), processes, and the families' own labels of interest."""

    ident: str
    labels: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    codes: list[float] = field(default_factory=list)
    processes: list[tuple[dict[str, str], float]] = field(default_factory=list)
    slices: dict[str, dict[str, float]] = field(default_factory=dict)
    stamp: int | None = None


@dataclass(slots=True)
class Page:
    """One scrape: chips in order of appearance, node totals, version of the exporter."""

    chips: dict[str, Chip] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    version: str = ""

    def chip(self, ident: str) -> Chip:
        """The chip ``ident``, made when first asked for."""
        return self.chips.setdefault(ident, Chip(ident))


def read(samples: Iterable[Sample]) -> Page:
    """The page that ``samples`` make. Families of others are passed over."""
    page = Page()
    for sample in samples:
        if sample.name.startswith("machine_"):
            page.totals[sample.name] = sample.value
        elif sample.name == "npu_exporter_version_info":
            page.version = sample.labels.get("exporterVersion", "")
        elif sample.name.startswith(("npu_chip_", "vnpu_pod_")) and digits(sample.labels.get("id", "")):
            _sample(page.chip(sample.labels["id"].lstrip("0") or "0"), sample)
    return page


def _sample(chip: Chip, sample: Sample) -> None:
    for label in LABELS:
        if sample.labels.get(label):
            chip.labels.setdefault(label, sample.labels[label])
    chip.stamp = sample.timestamp if chip.stamp is None else chip.stamp
    if sample.name.startswith("vnpu_pod_"):
        piece = sample.labels.get("v_dev_id") or sample.labels.get("vdev_id") or "0"
        chip.slices.setdefault(piece, {}).setdefault(sample.name.removeprefix("vnpu_pod_"), sample.value)
        return
    family = next(sample.name.removeprefix(prefix) for prefix in _PREFIXES if sample.name.startswith(prefix))
    if family == "error_code" or (family.startswith("error_code_") and digits(family.removeprefix("error_code_"))):
        chip.codes.append(sample.value)
    elif family == "process_info":
        chip.processes.append((sample.labels, sample.value))
    elif family in ("serial_number", "name", "product_type"):
        text = sample.labels.get(family) or sample.labels.get("name", "")
        if text:
            chip.labels.setdefault(family, text)
    else:
        chip.values.setdefault(family, sample.value)
