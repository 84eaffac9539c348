# SPDX-License-Identifier: Apache-2.0
"""The library's snapshot: numbers with the unit in their name, refused calls with their code. They become texts with units, as all other layouts have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.adapters.nvidia.board import Board, Listing, Process, Slice
from muster.domain.model.reading import Absent, Why
from muster.domain.model.source import Outcome
from muster.formats.jsontext import first

WHY: dict[int, Why] = {
    2: Why.NOT_SUPPORTED,
    3: Why.NOT_SUPPORTED,
    4: Why.NOT_PERMITTED,
    6: Why.NOT_SUPPORTED,
    9: Why.UNREACHABLE,
    10: Why.TIMED_OUT,
    12: Why.UNREACHABLE,
    13: Why.NOT_SUPPORTED,
    15: Why.DEVICE_LOST,
    16: Why.DEVICE_LOST,
    18: Why.UNREACHABLE,
    21: Why.NOT_SAMPLED,
    22: Why.NOT_SUPPORTED,
    23: Why.ERROR,
    24: Why.NOT_SUPPORTED,
    25: Why.NOT_SUPPORTED,
    26: Why.MOVED,
    27: Why.NOT_SAMPLED,
    28: Why.DEVICE_LOST,
}
"""The library's return codes; what is not here is an error of the tool."""
OUTCOMES: dict[int, Outcome] = {
    4: Outcome.NOT_PERMITTED,
    6: Outcome.NO_DEVICES,
    10: Outcome.TIMED_OUT,
    12: Outcome.TOOL_MISSING,
    13: Outcome.TOOL_MISSING,
    15: Outcome.DEVICE_LOST,
    17: Outcome.NOT_PERMITTED,
    999: Outcome.NOT_PERMITTED,
}
"""What it means when the library itself does not start; other codes: the driver cannot be used."""
_ARCHITECTURES = {2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada Lovelace", 9: "Hopper", 10: "Blackwell", 13: "Rubin"}
_BRANDS = {1: "Quadro", 2: "Tesla", 3: "NVS", 5: "GeForce", 6: "Titan", 12: "Quadro RTX", 13: "NVIDIA RTX", 14: "NVIDIA", 15: "GeForce RTX", 16: "Titan RTX"}
_RECOVERY = {0: "None", 1: "GPU Reset", 2: "Node Reboot", 3: "Drain P2P", 4: "Drain and Reset"}
_VIRTUAL = {0: "None", 1: "Pass-Through", 2: "vGPU", 3: "Host VGPU", 4: "Host VSGA"}
_FABRIC = {0: "N/A", 1: "Not Started", 2: "In Progress", 3: "Completed"}
NO_INSTANCE = 0xFFFFFFFF

# key of the snapshot, field, unit
_SCALARS: tuple[tuple[str, str, str], ...] = (
    ("name", "name", ""),
    ("uuid", "uuid", ""),
    ("serial", "serial", ""),
    ("board_part_number", "board_part_number", ""),
    ("board_id", "board_id", ""),
    ("minor_number", "minor_number", ""),
    ("vbios_version", "vbios_version", ""),
    ("gsp_firmware_version", "gsp_firmware_version", ""),
    ("inforom_image", "inforom.img", ""),
    ("temperature_c", "temperature.gpu", "C"),
    ("temperature_margin_c", "temperature.gpu.tlimit", "C"),
    ("temperature_shutdown_c", "temperature.shutdown", "C"),
    ("temperature_slowdown_c", "temperature.slowdown", "C"),
    ("temperature_memory_c", "temperature.memory", "C"),
    ("fan_percent", "fan.speed", "%"),
    ("power_usage_mw", "power.draw", "mW"),
    ("power_instant_mw", "power.draw.instant", "mW"),
    ("power_average_mw", "power.draw.average", "mW"),
    ("power_instant_module_mw", "module.power.draw.instant", "mW"),
    ("power_average_module_mw", "module.power.draw.average", "mW"),
    ("power_instant_memory_mw", "memory.power.draw.instant", "mW"),
    ("power_average_memory_mw", "memory.power.draw.average", "mW"),
    ("power_limit_enforced_mw", "enforced.power.limit", "mW"),
    ("enforced_limit", "enforced.power.limit", "mW"),
    ("power_usage", "power.draw", "mW"),
    ("power_limit_default_mw", "power.default_limit", "mW"),
    ("power_limit_module_mw", "module.enforced.power.limit", "mW"),
    ("energy_mj", "energy.total", "mJ"),
    ("clock_graphics_mhz", "clocks.current.graphics", "MHz"),
    ("clock_sm_mhz", "clocks.current.sm", "MHz"),
    ("clock_memory_mhz", "clocks.current.memory", "MHz"),
    ("clock_video_mhz", "clocks.current.video", "MHz"),
    ("clock_graphics_max_mhz", "clocks.max.graphics", "MHz"),
    ("clock_sm_max_mhz", "clocks.max.sm", "MHz"),
    ("clock_memory_max_mhz", "clocks.max.memory", "MHz"),
    ("clock_reasons", "clocks_event_reasons.active", ""),
    ("throttle_reasons", "clocks_event_reasons.active", ""),
    ("retired_single_bit", "retired_pages.single_bit_ecc.count", ""),
    ("retired_double_bit", "retired_pages.double_bit.count", ""),
    ("retired_pending", "retired_pages.pending", ""),
    ("pcie_generation", "pcie.link.gen.current", ""),
    ("pcie_generation_max", "pcie.link.gen.max", ""),
    ("pcie_width", "pcie.link.width.current", ""),
    ("pcie_width_max", "pcie.link.width.max", ""),
    ("pcie_replays", "pcie.replay_counter", ""),
    ("ecc_corrected_volatile_dram", "ecc.errors.corrected.volatile.dram", ""),
    ("ecc_corrected_volatile_sram", "ecc.errors.corrected.volatile.sram", ""),
    ("ecc_corrected_aggregate_dram", "ecc.errors.corrected.aggregate.dram", ""),
    ("ecc_corrected_aggregate_sram", "ecc.errors.corrected.aggregate.sram", ""),
    ("ecc_uncorrected_volatile_dram", "ecc.errors.uncorrected.volatile.dram", ""),
    ("ecc_uncorrected_volatile_sram", "ecc.errors.uncorrected.volatile.sram", ""),
    ("ecc_uncorrected_aggregate_dram", "ecc.errors.uncorrected.aggregate.dram", ""),
    ("ecc_uncorrected_aggregate_sram", "ecc.errors.uncorrected.aggregate.sram", ""),
)
_CODED = (("architecture", "architecture", _ARCHITECTURES), ("brand", "brand", _BRANDS), ("recovery_action", "gpu_recovery_action", _RECOVERY))
_PAIRS = (
    ("utilization", {"gpu": ("utilization.gpu", "%"), "memory": ("utilization.memory", "%")}),
    ("memory", {part: (f"memory.{part}", "B") for part in ("total", "reserved", "free", "used")}),
)
_LISTS = (
    ("power_limits_mw", ("power.min_limit", "power.max_limit"), "mW"),
    ("ecc_mode", ("ecc.mode.current", "ecc.mode.pending"), ""),
    ("mig_mode", ("mig.mode.current", "mig.mode.pending"), ""),
    ("encoder_percent", ("utilization.encoder",), "%"),
    ("decoder_percent", ("utilization.decoder",), "%"),
    ("jpeg_percent", ("utilization.jpeg",), "%"),
    ("ofa_percent", ("utilization.ofa",), "%"),
    ("remapped_rows", ("remapped_rows.correctable", "remapped_rows.uncorrectable", "remapped_rows.pending", "remapped_rows.failure"), ""),
)


def parse(payload: bytes) -> tuple[Listing, Outcome | None]:
    """Cards of a snapshot and, where the library did not start, the outcome of that. Anything that is no snapshot is ``unreadable``."""
    document = first(payload)
    told = document.value if document is not None else None
    if document is None or not isinstance(told, dict):
        return Listing(cut=True), Outcome.UNREADABLE
    error = told.get("error")
    if isinstance(error, dict):
        code = error.get("error")
        return Listing(note=str(error.get("name", ""))[:200]), OUTCOMES.get(code, Outcome.DRIVER_UNUSABLE) if isinstance(code, int) else Outcome.DRIVER_UNUSABLE
    gpus = told.get("gpus")
    if not isinstance(gpus, list):
        return Listing(cut=True), Outcome.UNREADABLE
    found = Listing(head=_head(told), boards=[_board(gpu) for gpu in gpus if isinstance(gpu, dict)])
    count = told.get("count")
    found.attached = count if isinstance(count, int) else None
    found.cut = document.cut
    found.whole = not found.cut and found.attached == len(found.boards)
    return found, None


def _head(told: Mapping[str, Any]) -> dict[str, str]:
    head = {key: text for key in ("driver_version", "nvml_version") if isinstance(text := told.get(key), str)}
    version = told.get("cuda_driver_version")
    if isinstance(version, int) and version > 0:
        head["cuda_version"] = f"{version // 1000}.{version % 1000 // 10}"
    return head


def _absent(value: Any) -> Absent | None:
    if isinstance(value, Mapping) and "error" in value:
        code = value["error"]
        return Absent(WHY.get(code, Why.ERROR) if isinstance(code, int) else Why.ERROR, f"{code}: {value.get('name', '')}"[:120])
    return None


def _text(value: Any, unit: str) -> str | Absent | None:
    absent = _absent(value)
    if absent is not None:
        return absent
    if not isinstance(value, int | float | str):
        return None
    return f"{int(value) if isinstance(value, bool) else value} {unit}".rstrip()


def _board(gpu: Mapping[str, Any]) -> Board:
    board = Board()
    board.offer("index", _text(gpu.get("index"), ""))
    lost = _absent(gpu)
    if lost is not None:
        board.lost, board.why = lost.detail, Why.NOT_PERMITTED if lost.why is Why.NOT_PERMITTED else Why.DEVICE_LOST
        return board
    for key, name, unit in _SCALARS:
        board.offer(name, _text(gpu.get(key), unit))
    for key, name, words in _CODED:
        board.offer(name, _word(gpu.get(key), words))
    for key, parts in _PAIRS:
        _pairs(board, gpu.get(key), parts)
    for key, names, unit in _LISTS:
        _listed(board, gpu.get(key), names, unit)
    _special(board, gpu)
    _processes(board, gpu.get("processes"))
    board.slices = [_slice(one) for one in gpu.get("mig_devices") or () if isinstance(one, Mapping)]
    return board


def _word(value: Any, words: Mapping[int, str]) -> str | Absent | None:
    absent = _absent(value)
    if absent is not None:
        return absent
    return words.get(value, f"code {value}") if isinstance(value, int) and not isinstance(value, bool) else None


def _pairs(board: Board, value: Any, parts: Mapping[str, tuple[str, str]]) -> None:
    absent = _absent(value)
    for part, (name, unit) in parts.items():
        board.offer(name, absent or (_text(value.get(part), unit) if isinstance(value, Mapping) else None))


def _listed(board: Board, value: Any, names: tuple[str, ...], unit: str) -> None:
    absent = _absent(value)
    for place, name in enumerate(names):
        board.offer(name, absent or (_text(value.get(str(place)), unit) if isinstance(value, Mapping) else None))


def _special(board: Board, gpu: Mapping[str, Any]) -> None:
    pci = gpu.get("pci")
    if isinstance(pci, Mapping) and "error" not in pci:
        board.offer("pci.bus_id", _text(pci.get("busId"), ""))
        for key, name in (("pciDeviceId", "pci.device_id"), ("pciSubSystemId", "pci.sub_device_id")):
            number = pci.get(key)
            board.offer(name, f"0x{number:08X}" if isinstance(number, int) and 0 <= number < 1 << 32 else None)
    capability = gpu.get("compute_capability")
    if isinstance(capability, Mapping) and "error" not in capability:
        board.offer("compute_cap", ".".join(str(part) for part in capability.values()))
    board.offer("numa.node", _node(gpu.get("memory_affinity")))
    state = gpu.get("performance_state")
    board.offer("pstate", f"P{state}" if isinstance(state, int) and state < 16 else _absent(state))
    board.offer("virtualization_mode", _word(gpu.get("virtualization_mode"), _VIRTUAL))
    banks = gpu.get("remap_banks")
    if isinstance(banks, Mapping) and "error" not in banks:
        for bank, number in banks.items():
            board.offer(f"remapped_rows.histogram.{bank}", _text(number, ""))
    _fabric(board, gpu.get("fabric"))
    _links(board, gpu.get("nvlink"))


def _node(words: Any) -> str | Absent | None:
    """The one host memory node that is near, from a mask of nodes."""
    absent = _absent(words)
    if absent is not None or not isinstance(words, Mapping) or not all(isinstance(word, int) and str(place).isdecimal() for place, word in words.items()):
        return absent
    near = [64 * int(place) + bit for place, word in words.items() for bit in range(64) if word >> bit & 1]
    return str(near[0]) if len(near) == 1 else None


def _fabric(board: Board, fabric: Any) -> None:
    absent = _absent(fabric)
    if absent is not None:
        board.offer("fabric.state", absent)
        board.offer("fabric.clusterUuid", absent)
    elif isinstance(fabric, Mapping):
        digits = str(fabric.get("cluster_uuid", "")).replace("-", "")
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        board.offer("fabric.state", _word(fabric.get("state"), _FABRIC))
        board.offer("fabric.clusterUuid", "-".join(parts) if len(digits) == 32 else None)
        board.offer("fabric.cliqueId", _text(fabric.get("clique_id"), ""))


def _links(board: Board, links: Any) -> None:
    absent = _absent(links)
    states = links.get("states") if isinstance(links, Mapping) else None
    if isinstance(states, Mapping) and states:
        board.offer("links.total", str(len(states)))
        known = all(isinstance(state, int) for state in states.values())
        active = sum(1 for state in states.values() if state == 1)
        board.offer("links.active", str(active) if known else Absent(Why.UNREADABLE, "states that are no numbers"))
    elif absent is not None:
        board.offer("links.total", absent)
        board.offer("links.active", absent)


def _processes(board: Board, rows: Any) -> None:
    if not isinstance(rows, list):
        return
    board.processes = []
    for row in rows:
        if not isinstance(row, Mapping) or not isinstance(row.get("pid"), int):
            continue
        memory = row.get("memory_bytes")
        instance = [None if number in (None, NO_INSTANCE) else str(number) for number in (row.get("gpu_instance_id"), row.get("compute_instance_id"))]
        known = isinstance(memory, int) and 0 <= memory < 1 << 62
        board.processes.append(Process(str(row["pid"]), row.get("name"), f"{memory} B" if known else None, row.get("kind"), *instance))


def _slice(one: Mapping[str, Any]) -> Slice:
    def number(key: str) -> str | None:
        value = one.get(key)
        return str(value) if isinstance(value, int) else None

    own = Board()
    _pairs(own, one.get("memory"), dict(_PAIRS)["memory"])
    attributes = one.get("attributes")
    if isinstance(attributes, Mapping) and "error" not in attributes:
        own.offer("multiprocessors", _text(attributes.get("multiprocessorCount"), ""))
    name = one.get("name")
    profile = name.rpartition(" MIG ")[2] if isinstance(name, str) and " MIG " in name else None
    uuid = one.get("uuid")
    return Slice(
        index=number("index"),
        gpu_instance=number("gpu_instance_id"),
        compute_instance=number("compute_instance_id"),
        uuid=uuid if isinstance(uuid, str) else None,
        profile=profile,
        fields=own.fields,
    )
