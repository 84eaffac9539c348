# SPDX-License-Identifier: Apache-2.0
"""The one module that knows AMD's Python binding, ``amdsmi`` of the installed ROCm. Runs in a worker; every call is guarded for itself.

The library is opened for one snapshot and closed again, so that nothing of ours stands in the way of a reset or of a driver upgrade.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Mapping
from typing import Any

_DRIVER = frozenset({4, 5, 6, 18, 32, 34, 51})
_WORDS = {
    2: "not supported",
    3: "not supported",
    7: "not supported",
    10: "permission denied",
    20: "not supported",
    30: "unknown",
    31: "not supported",
    40: "not supported",
    52: "not supported",
}
_NOT_PERMITTED = 10
_LIMIT_SENSORS = (("HOTSPOT", "hotspot"), ("EDGE", "edge"), ("VRAM", "vram"))


class LibraryUnusable(Exception):  # noqa: N818 - read by the worker for its outcome, never caught by name
    """The library could not be opened; ``outcome`` says what that means."""

    def __init__(self, message: str, outcome: str) -> None:
        super().__init__(message)
        self.outcome = outcome


def snapshot() -> dict[str, Any]:
    """All that the library says of the GPUs now, as plain JSON values.

    Gives ``{"amdsmi": {"module", "library", "rocm"}, "gpus": [{"index", "bdf", "uuid", <name>: <answer>, ...}]}``; a call that fails has
    ``{"error": word, "detail": text}`` for its answer. Raises ImportError when there is no such module, LibraryUnusable when it cannot be opened.
    """
    try:
        module: Any = importlib.import_module("amdsmi")
    except (KeyError, OSError) as error:
        raise ImportError(f"amdsmi is there, its library is not: {error}") from error
    try:
        module.amdsmi_init(module.AmdSmiInitFlags.INIT_AMD_GPUS)
    except module.AmdSmiException as error:
        raise LibraryUnusable(_text(error), "not_permitted" if _code(error) == _NOT_PERMITTED else "driver_unusable") from error
    try:
        return _snapshot(module)
    finally:
        module.amdsmi_shut_down()


def _snapshot(module: Any) -> dict[str, Any]:
    handles = _call(module, "amdsmi_get_processor_handles")
    gpus = [_gpu(module, index, handle) for index, handle in enumerate(handles if isinstance(handles, list) else ())]
    _link(module, handles, gpus)
    version, rocm = _plain(_call(module, "amdsmi_get_lib_version")), _plain(_call(module, "amdsmi_get_rocm_version"))
    head = {
        "module": str(getattr(module, "__file__", "")),
        "library": ".".join(str(version[part]) for part in ("major", "minor", "release") if part in version) if isinstance(version, Mapping) else "",
        "rocm": rocm[1] if isinstance(rocm, list) and len(rocm) == 2 and rocm[0] else "",
    }
    return {"amdsmi": head, "gpus": gpus}


def _gpu(module: Any, index: int, handle: Any) -> dict[str, Any]:
    answers: dict[str, Any] = {"index": index}
    for name, call in _CALLS.items():
        answer = _plain(_call(module, call, handle))
        if answer is not None:
            answers[name] = answer
    vram = answers.get("vram")
    if isinstance(vram, dict) and isinstance(vram.get("vram_type"), int):
        vram["vram_type"] = _name(module, ("AmdSmiVramType",), vram["vram_type"]).removeprefix("VRAM_TYPE_") or None
    answers.update(_sensors(module, handle))
    answers["ecc_blocks"] = _blocks(module, handle)
    answers["ras"] = _ras(module, handle)
    return answers


_CALLS = {
    "bdf": "amdsmi_get_gpu_device_bdf",
    "uuid": "amdsmi_get_gpu_device_uuid",
    "asic": "amdsmi_get_gpu_asic_info",
    "board": "amdsmi_get_gpu_board_info",
    "vbios": "amdsmi_get_gpu_vbios_info",
    "driver": "amdsmi_get_gpu_driver_info",
    "firmware": "amdsmi_get_fw_info",
    "kfd": "amdsmi_get_gpu_kfd_info",
    "enumeration": "amdsmi_get_gpu_enumeration_info",
    "numa_node": "amdsmi_topo_get_numa_node_number",
    "vram": "amdsmi_get_gpu_vram_info",
    "vram_usage": "amdsmi_get_gpu_vram_usage",
    "power": "amdsmi_get_power_info",
    "power_cap": "amdsmi_get_power_cap_info",
    "energy": "amdsmi_get_energy_count",
    "activity": "amdsmi_get_gpu_activity",
    "pcie": "amdsmi_get_pcie_info",
    "xgmi": "amdsmi_get_xgmi_info",
    "violation": "amdsmi_get_violation_status",
    "compute_partition": "amdsmi_get_gpu_compute_partition",
    "memory_partition": "amdsmi_get_gpu_memory_partition",
    "ecc": "amdsmi_get_gpu_total_ecc_count",
    "bad_pages": "amdsmi_get_gpu_bad_page_info",
    "processes": "amdsmi_get_gpu_process_list",
    "perf_level": "amdsmi_get_gpu_perf_level",
}


def _sensors(module: Any, handle: Any) -> dict[str, Any]:
    """Temperatures, their limits and clocks: calls with a sensor as argument."""
    told: dict[str, Any] = {"limits": {}}
    kinds, metrics = getattr(module, "AmdSmiTemperatureType", None), getattr(module, "AmdSmiTemperatureMetric", None)
    for sensor, name in _LIMIT_SENSORS:
        kind = getattr(kinds, sensor, None)
        if kind is None or metrics is None:
            continue
        told[f"temperature_{name}"] = _plain(_call(module, "amdsmi_get_temp_metric", handle, kind, metrics.CURRENT))
        for limit, metric in (("slowdown", "CRITICAL"), ("shutdown", "EMERGENCY")):
            value = _plain(_call(module, "amdsmi_get_temp_metric", handle, kind, getattr(metrics, metric, None)))
            told["limits"][f"{limit}_{name}_temperature"] = value if not isinstance(value, Mapping) else value.get("error")
    clocks = getattr(module, "AmdSmiClkType", None)
    for clock, name in (("GFX", "gfx"), ("MEM", "mem")):
        if hasattr(clocks, clock):
            told[f"clock_{name}"] = _plain(_call(module, "amdsmi_get_clock_info", handle, getattr(clocks, clock)))
    for name, call in (("fan_speed", "amdsmi_get_gpu_fan_speed"), ("fan_max", "amdsmi_get_gpu_fan_speed_max"), ("fan_rpm", "amdsmi_get_gpu_fan_rpms")):
        told[name] = _plain(_call(module, call, handle, 0))
    return told


def _blocks(module: Any, handle: Any) -> dict[str, Any]:
    """Error counters per block, for blocks that answer."""
    told: dict[str, Any] = {}
    for block in getattr(module, "AmdSmiGpuBlock", ()):
        if block.name in ("INVALID", "RESERVED"):
            continue
        counts = _plain(_call(module, "amdsmi_get_gpu_ecc_count", handle, block))
        if isinstance(counts, Mapping) and "error" not in counts:
            told[str(block.name)] = counts
    return told


def _ras(module: Any, handle: Any) -> dict[str, Any]:
    features = _plain(_call(module, "amdsmi_get_gpu_ras_feature_info", handle))
    states = _plain(_call(module, "amdsmi_get_gpu_ras_block_features_enabled", handle))
    told = dict(features) if isinstance(features, Mapping) and "error" not in features else {}
    if isinstance(states, list):
        told["ecc_block_state"] = states
    return told


def _link(module: Any, handles: Any, gpus: list[dict[str, Any]]) -> None:
    """The kind of link between each two cards."""
    known = handles if isinstance(handles, list) else []
    for one, gpu in zip(known, gpus, strict=False):
        links = []
        for other, peer in zip(known, gpus, strict=False):
            answer = _plain(_call(module, "amdsmi_topo_get_link_type", one, other)) if other is not one else None
            kind = _name(module, ("AmdSmiLinkType", "AmdSmiIoLinkType"), answer.get("type")) if isinstance(answer, Mapping) else ""
            word = next((word for word in ("XGMI", "PCIE") if word in kind.upper()), "")
            if word:
                links.append({"bdf": peer.get("bdf"), "link_type": word})
        if links:
            gpu["links"] = links


def _name(module: Any, kinds: tuple[str, ...], value: Any) -> str:
    """The name of a number in the first of the binding's enumerations that it has; "" where it has none. Numbers differ between releases, names do not."""
    for kind in kinds:
        members = getattr(module, kind, None)
        if members is not None and isinstance(value, int):
            return next((str(member.name) for member in members if int(member) == value), "")
    return ""


def _call(module: Any, name: str, *arguments: Any) -> Any:
    """The answer of a call; None where the installed module has no such function; an error's word and text where it fails."""
    function: Callable[..., Any] | None = getattr(module, name, None)
    if function is None:
        return None
    try:
        return function(*arguments)
    except module.AmdSmiException as error:
        return {"error": _WORDS.get(_code(error), "error"), "detail": _text(error)}
    except (AttributeError, KeyError, TypeError, ValueError, OSError) as error:
        return {"error": "error", "detail": f"{type(error).__name__}: {error}"[:200]}


def _code(error: Exception) -> int:
    code = getattr(error, "err_code", None)
    return code if isinstance(code, int) else -1


def _text(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _plain(value: Any, depth: int = 8) -> Any:
    """The value as JSON knows it: enumerations as their names, bytes and anything else as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if depth and isinstance(value, Mapping):
        return {str(key): _plain(each, depth - 1) for key, each in value.items()}
    if depth and isinstance(value, list | tuple):
        return [_plain(each, depth - 1) for each in value]
    return str(value)
