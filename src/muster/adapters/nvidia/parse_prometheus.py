# SPDX-License-Identifier: Apache-2.0
"""Pages of two exporters: DCGM's (``DCGM_FI_*``, old ``dcgm_*``), and the one that runs the tool (``nvidia_smi_*``).

A card's own figures are printed again under each of its instances; they are read once, as the card's. What differs per instance belongs to the instance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from muster.adapters.nvidia.board import Board, Listing, Slice
from muster.adapters.nvidia.parse_smi_exporter import parse_smi
from muster.adapters.nvidia.readings import NARROW
from muster.domain.model.reading import Absent, Why
from muster.formats.numbers import SENTINELS
from muster.formats.prometheus import Sample, samples

# metric without its prefix: field, unit of the value
_CARD: dict[str, tuple[str, str]] = {
    "sm_clock": ("clocks.current.graphics", "MHz"),
    "mem_clock": ("clocks.current.memory", "MHz"),
    "memory_clock": ("clocks.current.memory", "MHz"),
    "video_clock": ("clocks.current.video", "MHz"),
    "max_sm_clock": ("clocks.max.graphics", "MHz"),
    "max_mem_clock": ("clocks.max.memory", "MHz"),
    "memory_temp": ("temperature.memory", "C"),
    "gpu_temp": ("temperature.gpu", "C"),
    "gpu_temp_limit": ("temperature.gpu.tlimit", "C"),
    "slowdown_temp": ("temperature.slowdown", "C"),
    "shutdown_temp": ("temperature.shutdown", "C"),
    "power_usage": ("power.draw", "W"),
    "power_usage_instant": ("power.draw.instant", "W"),
    "power_mgmt_limit": ("power.limit", "W"),
    "enforced_power_limit": ("enforced.power.limit", "W"),
    "power_mgmt_limit_def": ("power.default_limit", "W"),
    "power_mgmt_limit_min": ("power.min_limit", "W"),
    "power_mgmt_limit_max": ("power.max_limit", "W"),
    "total_energy_consumption": ("energy.total", "mJ"),
    "total_energy_mj": ("energy.total", "mJ"),
    "fan_speed": ("fan.speed", "%"),
    "pcie_replay_counter": ("pcie.replay_counter", ""),
    "pcie_link_gen": ("pcie.link.gen.current", ""),
    "pcie_max_link_gen": ("pcie.link.gen.max", ""),
    "pcie_link_width": ("pcie.link.width.current", ""),
    "pcie_max_link_width": ("pcie.link.width.max", ""),
    "prof_pcie_tx_bytes": ("pcie.tx", "B/s"),
    "prof_pcie_rx_bytes": ("pcie.rx", "B/s"),
    "ecc_current": ("ecc.mode.current", ""),
    "ecc_sbe_vol_dev": ("ecc.errors.corrected.volatile.dram", ""),
    "ecc_dbe_vol_dev": ("ecc.errors.uncorrected.volatile.dram", ""),
    "ecc_sbe_agg_dev": ("ecc.errors.corrected.aggregate.dram", ""),
    "ecc_dbe_agg_dev": ("ecc.errors.uncorrected.aggregate.dram", ""),
    "ecc_sbe_vol_total": ("ecc.errors.corrected.volatile.total", ""),
    "ecc_dbe_vol_total": ("ecc.errors.uncorrected.volatile.total", ""),
    "ecc_sbe_agg_total": ("ecc.errors.corrected.aggregate.total", ""),
    "ecc_dbe_agg_total": ("ecc.errors.uncorrected.aggregate.total", ""),
    "retired_sbe": ("retired_pages.single_bit_ecc.count", ""),
    "retired_dbe": ("retired_pages.double_bit.count", ""),
    "retired_pending": ("retired_pages.pending", ""),
    "uncorrectable_remapped_rows": ("remapped_rows.uncorrectable", ""),
    "correctable_remapped_rows": ("remapped_rows.correctable", ""),
    "row_remap_failure": ("remapped_rows.failure", ""),
    "row_remap_pending": ("remapped_rows.pending", ""),
    "clocks_event_reasons": ("clocks_event_reasons.active", ""),
    "clock_throttle_reasons": ("clocks_event_reasons.active", ""),
    "mig_mode": ("mig.mode.current", ""),
    "xid_errors": ("xid.last", ""),
}
_EITHER: dict[str, tuple[str, str]] = {
    "gpu_util": ("utilization.gpu", "%"),
    "gpu_utilization": ("utilization.gpu", "%"),
    "mem_copy_util": ("utilization.memory", "%"),
    "mem_copy_utilization": ("utilization.memory", "%"),
    "enc_util": ("utilization.encoder", "%"),
    "enc_utilization": ("utilization.encoder", "%"),
    "dec_util": ("utilization.decoder", "%"),
    "dec_utilization": ("utilization.decoder", "%"),
    "fb_total": ("memory.total", "MiB"),
    "fb_free": ("memory.free", "MiB"),
    "fb_used": ("memory.used", "MiB"),
    "fb_reserved": ("memory.reserved", "MiB"),
    "prof_pipe_tensor_active": ("utilization.tensor", "ratio"),
}
_SLICE = {"prof_gr_engine_active": ("utilization.gpu", "ratio"), "prof_dram_active": ("utilization.memory", "ratio")}
_TIMES = {"power_violation": "power_cap", "sync_boost_violation": "sync_boost", "thermal_violation": "thermal"}
_LINK_ERRORS = ("nvlink_replay_error_count", "nvlink_recovery_error_count", "nvlink_crc_flit_error_count", "nvlink_crc_data_error_count")
_UUID = re.compile(r"GPU-[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_PREFIXES = ("dcgm_fi_dev_", "dcgm_fi_", "dcgm_")
_BLANKS = {0: Why.NOT_SAMPLED, 1: Why.NOT_SUPPORTED, 2: Why.NOT_SUPPORTED, 3: Why.NOT_PERMITTED}


def parse(payload: bytes) -> Listing:
    """Cards by UUID. Never a whole listing: an exporter shows what it was told to."""
    page = list(samples(payload))
    if any(sample.name.startswith("nvidia_smi_") for sample in page):
        return parse_smi(page)
    found = Listing()
    boards: dict[str, Board] = {}
    slices: dict[tuple[str, str], Slice] = {}
    places = _places(page)
    for sample in page:
        stem = _stem(sample.name)
        labels = sample.labels
        uuid = _label(labels)
        place = (labels.get("Hostname", ""), labels.get("gpu", ""))
        if stem is None or not (uuid or place[1]) or not (sample.name.lower().startswith("dcgm") or uuid.startswith("GPU-")):
            continue
        # where cards have whole UUIDs, a garbled line or one without is of the card at its index
        key = (uuid or place[1]) if _UUID.fullmatch(uuid) or not all(place) else places.setdefault(place, uuid or f"{place[0]} {place[1]}")
        board = boards.setdefault(key, Board())
        _names(board, labels, uuid, found)
        instance = labels.get("GPU_I_ID", "")
        part = _slice(board, slices, key, labels) if instance else None
        _take(board, part, stem, sample)
    found.boards = list(boards.values())
    return found


def _places(page: Sequence[Sample]) -> dict[tuple[str, str], str]:
    """Host and index to the first whole UUID that is told of them."""
    found: dict[tuple[str, str], str] = {}
    for sample in page:
        labels = sample.labels
        uuid = _label(labels)
        if labels.get("Hostname") and labels.get("gpu") and _UUID.fullmatch(uuid):
            found.setdefault((labels["Hostname"], labels["gpu"]), uuid)
    return found


def _label(labels: Mapping[str, str]) -> str:
    return labels.get("UUID") or labels.get("uuid") or labels.get("gpu_uuid") or ""


def _stem(name: str) -> str | None:
    lower = name.lower()
    stem = next((lower.removeprefix(prefix) for prefix in _PREFIXES if lower.startswith(prefix)), lower)
    known = stem in _CARD or stem in _EITHER or stem in _SLICE or lower.startswith(("dcgm_fi_", "dcgm_exp_"))
    return stem if known else None


def _names(board: Board, labels: dict[str, str], uuid: str, found: Listing) -> None:
    board.offer("uuid", uuid or None)
    board.offer("index", labels.get("gpu"))
    board.offer("name", labels.get("modelName"))
    board.offer("pci.bus_id", labels.get("pci_bus_id"))
    driver = labels.get("DCGM_FI_DRIVER_VERSION")
    if driver:
        found.head.setdefault("driver_version", driver)
    for label in ("Hostname", "device"):
        if labels.get(label):
            board.extra.setdefault(label, labels[label])


def _slice(board: Board, slices: dict[tuple[str, str], Slice], key: str, labels: dict[str, str]) -> Slice:
    instance = labels["GPU_I_ID"]
    part = slices.get((key, instance))
    if part is None:
        part = slices[(key, instance)] = Slice(gpu_instance=instance, profile=labels.get("GPU_I_PROFILE") or None)
        board.slices.append(part)
    return part


def _take(board: Board, part: Slice | None, stem: str, sample: Sample) -> None:
    _holder(board, sample.labels)
    if stem in _CARD:
        name, unit = _CARD[stem]
        _set(board, name, _value(sample.value, unit), newest=stem.startswith("total_energy"))
    elif stem in _EITHER or (stem in _SLICE and part is not None):
        name, unit = _EITHER.get(stem) or _SLICE[stem]
        own = board if part is None else Board(fields=part.fields)
        if stem in _EITHER and part is not None and name in part.fields:
            part.fields[name] = _value(sample.value, unit)
        own.offer(name, _value(sample.value, unit))
    elif stem in _TIMES:
        times = board.extra.setdefault("violations", {})
        if isinstance(times, dict):
            times[_TIMES[stem]] = _counted(sample.value) or sample.value / 1e9
    elif stem.removesuffix("_total") in _LINK_ERRORS:
        _link_errors(board, stem.removesuffix("_total"), sample)
    elif _blank(sample.value) is not None:
        return
    elif part is not None:
        part.fields.setdefault(f"vendor.{sample.name}", f"{sample.value:g}")
    else:
        board.extra.setdefault(sample.name, sample.value)


def _set(board: Board, name: str, value: str | Absent, *, newest: bool) -> None:
    old = board.fields.get(name)
    if newest and isinstance(old, str) and isinstance(value, str) and float(value.split()[0]) > float(old.split()[0]):
        board.fields[name] = value
    board.offer(name, value)


def _value(value: float, unit: str) -> str | Absent:
    blank = _blank(value)
    if blank is not None:
        return Absent(blank, f"{value:g}")
    if unit == "ratio":
        return f"{value * 100:.9g} %"
    number = str(int(value)) if value == int(value) else repr(value)
    return f"{number} {unit}".rstrip()


def _blank(value: float) -> Why | None:
    """Why there is no value: the exporter's own blanks leak into its pages, and the widest one loses its last digits on the way."""
    if value != value or value in (float("inf"), float("-inf")):
        return Why.UNREADABLE
    for start in (0x7FFFFFF0, 140737488355328.0):
        if start <= value <= start + 3:
            return _BLANKS[int(value - start)]
    return Why.NOT_SUPPORTED if value >= 1 << 62 else None


def _link_errors(board: Board, stem: str, sample: Sample) -> None:
    kind = stem.removeprefix("nvlink_").removesuffix("_error_count")
    links = board.extra.setdefault("link_errors", {})
    if isinstance(links, dict):
        odd = Absent(Why.UNREADABLE, f"{sample.value:g}") if sample.value != sample.value // 1 else None
        links.setdefault(kind, {})[sample.labels.get("nvlink", "")] = _counted(sample.value) or odd or int(sample.value)


def _counted(value: float) -> Absent | None:
    """Why a counter has no value, None when it has one."""
    why = _blank(value) or SENTINELS.get(value if value > NARROW else 0) or (Why.NOT_SAMPLED if value == -1 else Why.IMPLAUSIBLE if value < 0 else None)
    return Absent(why, f"{value:g}") if why is not None else None


def _holder(board: Board, labels: dict[str, str]) -> None:
    keys = {"namespace": ("namespace", "pod_namespace", "exported_namespace"), "pod": ("pod", "pod_name", "exported_pod")}
    keys["container"] = ("container", "container_name", "exported_container")
    holder = {key: next((labels[name] for name in reversed(names) if labels.get(name)), "") for key, names in keys.items()}
    if holder["pod"] and holder not in board.holders:
        board.holders.append(holder)
