# SPDX-License-Identifier: Apache-2.0
"""The exporter that runs the tool and prints each column as ``nvidia_smi_<column>_<unit>``: base units, numbers only, no series where the cell had no value."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from muster.adapters.nvidia.board import Board, Listing, Process
from muster.domain.model.reading import Absent, Why
from muster.formats.prometheus import Sample

_PREFIX = "nvidia_smi_"
_UNITS = {"bytes": "B", "watts": "W", "hz": "Hz", "seconds": "s", "ratio": "ratio", "celsius": "C", "percent": "%"}
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_INFO = {"name": "name", "index": "index", "pci_bus_id": "pci.bus_id", "serial": "serial", "vbios_version": "vbios_version", "compute_cap": "compute_cap"}
_COLUMNS = (
    "fan.speed",
    "pstate",
    "utilization.gpu",
    "utilization.memory",
    "utilization.encoder",
    "utilization.decoder",
    "utilization.jpeg",
    "utilization.ofa",
    "memory.total",
    "memory.used",
    "memory.free",
    "memory.reserved",
    "temperature.gpu",
    "temperature.gpu.tlimit",
    "temperature.memory",
    "power.draw",
    "power.draw.average",
    "power.draw.instant",
    "power.limit",
    "enforced.power.limit",
    "power.default_limit",
    "power.min_limit",
    "power.max_limit",
    "module.power.draw.average",
    "module.power.draw.instant",
    "module.power.limit",
    "clocks.max.graphics",
    "clocks.max.sm",
    "clocks.max.memory",
    "mig.mode.current",
    "mig.mode.pending",
    "ecc.mode.current",
    "retired_pages.single_bit_ecc.count",
    "retired_pages.double_bit.count",
    "retired_pages.pending",
    "remapped_rows.correctable",
    "remapped_rows.uncorrectable",
    "remapped_rows.pending",
    "remapped_rows.failure",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "clocks_event_reasons.active",
    *(f"clocks_event_reasons.{r}" for r in ("gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown")),
    *(f"clocks_event_reasons.{r}" for r in ("hw_power_brake_slowdown", "sw_thermal_slowdown", "sync_boost")),
    *(f"clocks_event_reasons_counters.{r}" for r in ("sw_power_cap", "sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")),
    *(f"remapped_rows.histogram.{bank}" for bank in ("max", "high", "partial", "low", "none")),
    *(
        f"ecc.errors.{side}.{span}.{place}"
        for side in ("corrected", "uncorrected")
        for span in ("volatile", "aggregate")
        for place in ("dram", "device_memory", "sram", "total")
    ),
    *(f"ecc.errors.uncorrected.{span}.sram.{part}" for span in ("volatile", "aggregate") for part in ("parity", "secded")),
)
_ABSENT = tuple(name for name in _COLUMNS if not name.startswith(("clocks_event", "remapped_rows.h", "pstate")))
_CLOCKS = {f"clocks.current.{engine}": f"clocks_current_{engine}_clock" for engine in ("graphics", "sm", "memory", "video")}
_CLOCKS |= {f"clocks.max.{engine}": f"clocks_max_{engine}_clock" for engine in ("graphics", "sm", "memory")}
_RECOVERY = {0: "None", 1: "GPU Reset", 2: "Node Reboot", 3: "Drain P2P", 4: "Drain and Reset"}
_FABRIC = {0: "N/A", 1: "Not Started", 2: "In Progress", 3: "Completed"}


def _snake(name: str) -> str:
    return "_".join(word.lower() for word in _WORDS.findall(name))


_BY_METRIC = {_snake(name): name for name in _COLUMNS} | {metric: name for name, metric in _CLOCKS.items()}


def parse_smi(page: Sequence[Sample]) -> Listing:
    """Cards by the exporter's ``uuid`` label. Columns without a series are absent: the exporter leaves out what the tool does not give."""
    found = Listing()
    boards: dict[str, Board] = {}
    counts: dict[str, int] = {}
    for sample in page:
        name = sample.name.removeprefix(_PREFIX)
        if name == sample.name:
            continue
        uuid = sample.labels.get("uuid")
        if uuid is None:
            if name == "command_exit_code" and sample.value:
                found.note = f"exit code {sample.value:g}"
            continue
        counts[uuid] = counts.get(uuid, 0) + 1
        _take(boards.setdefault(uuid, _new(uuid)), name, sample, found)
    # a label garbled in one line is no card beside those with a whole set of series
    boards = {uuid: board for uuid, board in boards.items() if counts[uuid] > 2 or max(counts.values()) < 20}
    for board in boards.values():
        for name in _ABSENT:
            board.offer(name, Absent(Why.NOT_REPORTED, "no such series"))
    found.boards = list(boards.values())
    return found


def _new(uuid: str) -> Board:
    board = Board()
    board.offer("uuid", uuid if uuid.lower().startswith(("gpu-", "mig-")) else f"GPU-{uuid}")
    return board


def _take(board: Board, name: str, sample: Sample, found: Listing) -> None:
    if not math.isfinite(sample.value):
        board.extra.setdefault(name, str(sample.value))
    elif name == "gpu_info":
        _info(board, sample.labels, found)
    elif name.startswith("compute_app"):
        _process(board, name, sample)
    elif name in ("pci_device_id", "pci_sub_device_id"):
        if 0 <= sample.value < 1 << 32:
            board.offer(name.replace("_", ".", 1), f"0x{int(sample.value):08X}")
    elif name == "pstate":
        board.offer("pstate", f"P{sample.value:g}")
    elif name == "gpu_recovery_action":
        board.offer("gpu_recovery_action", _RECOVERY.get(int(sample.value), f"code {sample.value:g}"))
    elif name == "fabric_state":
        board.offer("fabric.state", _FABRIC.get(int(sample.value), f"code {sample.value:g}"))
    else:
        _column(board, name, sample)


def _column(board: Board, name: str, sample: Sample) -> None:
    stem, _, unit = name.rpartition("_")
    field = _BY_METRIC.get(name) or (_BY_METRIC.get(stem) if unit in _UNITS else None)
    if field is None:
        board.extra.setdefault(name, sample.value)
        return
    unit = _UNITS.get(unit, "") if field != _BY_METRIC.get(name) else _bare(field)
    value = f"{sample.value * 100:.9g} %" if unit == "ratio" else f"{_number(sample.value)} {unit}".rstrip()
    board.offer(field, value)


def _bare(field: str) -> str:
    return "C" if field.startswith("temperature") else ""


def _number(value: float) -> str:
    return str(int(value)) if abs(value) < 1 << 62 and value == int(value) else repr(value)


def _info(board: Board, labels: dict[str, str], found: Listing) -> None:
    for label, field in _INFO.items():
        board.offer(field, labels.get(label))
    board.offer("pci.sub_device_id", labels.get("pci_sub_device_id"))
    for label in ("driver_version", "cuda_version"):
        if labels.get(label):
            found.head.setdefault(label, labels[label])


def _process(board: Board, name: str, sample: Sample) -> None:
    board.processes = board.processes if board.processes is not None else []
    pid = sample.labels.get("pid", "")
    if not pid.isdecimal():
        return
    one = next((have for have in board.processes if have.pid == pid), None)
    if one is None:
        one = Process(pid=pid, name=sample.labels.get("process_name"), kind="C")
        board.processes.append(one)
    if name == "compute_app_used_memory_bytes":
        one.memory = f"{_number(sample.value)} B"
