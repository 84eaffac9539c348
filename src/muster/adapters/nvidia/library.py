# SPDX-License-Identifier: Apache-2.0
"""The vendor's management library (NVML), through its own binding ``nvidia-ml-py``: one snapshot of all cards as plain JSON values.

Every call is guarded by itself: the binding is newer than most drivers, and one call that a card refuses must not cost the others.
A refused call leaves ``{"error": code, "name": text}`` in its place, with the library's own code. Units are in the names.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref
from typing import Any, TypeAlias

LIBRARY_NOT_FOUND = 12
CODE_UNKNOWN = 999
NOT_SUPPORTED = 3
LINKS = 36
SELDOM_S = 300.0
"""Seconds between two times that a card is asked who it is, and what does not change while its driver is loaded."""
_STILL = (
    *("name", "brand", "architecture", "serial", "board_part_number", "board_id", "minor_number", "vbios_version", "gsp_firmware_version", "inforom_image"),
    *("pci", "memory_affinity", "compute_capability", "temperature_shutdown_c", "temperature_slowdown_c", "power_limit_default_mw", "power_limits_mw"),
    *("clock_graphics_max_mhz", "clock_sm_max_mhz", "clock_memory_max_mhz", "pcie_generation_max", "pcie_width_max", "virtualization_mode"),
)
Kept: TypeAlias = dict[str, tuple[float, dict[str, Any]]]
_kept: Kept = {}
"""By UUID, when a card was asked and what it said."""
FIELDS = {
    "temperature_memory_c": (82, 0),
    "energy_mj": (83, 0),
    "retired_single_bit": (29, 0),
    "retired_double_bit": (30, 0),
    "retired_pending": (31, 0),
    "power_average_mw": (185, 0),
    "power_instant_mw": (186, 0),
    "power_average_module_mw": (185, 1),
    "power_instant_module_mw": (186, 1),
    "power_average_memory_mw": (185, 2),
    "power_instant_memory_mw": (186, 2),
    "power_limit_module_mw": (190, 1),
    "recovery_action": (230, 0),
}
"""Names of ours for the library's numbered fields: id and scope (0 card, 1 module, 2 memory)."""
_UNIONS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


def snapshot(nvml: Any = None) -> dict[str, Any]:
    """All cards now: ``{"driver_version", "nvml_version", "cuda_driver_version", "count", "gpus": [...]}``.

    ``{"error": {"error": code, "name": text}}`` where the library does not start.

    ``nvml`` is the binding; left out, the installed one is used. The library is shut down before this returns, so that nothing holds the device files.
    """
    kept: Kept = {}
    if nvml is None:
        kept = _kept
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError as missing:
            return {"error": {"error": LIBRARY_NOT_FOUND, "name": f"binding not installed: {missing}"}}
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return {"error": _error(error)}
    try:
        return _all(nvml, kept)
    finally:
        with _quiet(nvml):
            nvml.nvmlShutdown()


@contextmanager
def _quiet(nvml: Any) -> Iterator[None]:
    try:
        yield
    except nvml.NVMLError:
        return


def _error(error: Any) -> dict[str, Any]:
    return {"error": int(getattr(error, "value", CODE_UNKNOWN)), "name": str(error)}


def _call(nvml: Any, name: str, *arguments: Any) -> Any:
    """The answer of one call as a plain value, or its error. A binding that is too old to have the function answers like a driver that is."""
    function = getattr(nvml, name, None)
    if function is None:
        return {"error": 13, "name": "function not in this binding"}
    try:
        return _plain(function(*arguments))
    except nvml.NVMLError as error:
        return _error(error)
    except (TypeError, AttributeError, ValueError, UnicodeDecodeError) as error:
        return {"error": CODE_UNKNOWN, "name": f"{type(error).__name__}: {error}"[:120]}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, list | tuple) or hasattr(value, "_length_"):
        value = list(value)
        if value and all(isinstance(each, int | float) for each in value):
            return {str(place): each for place, each in enumerate(value)}  # by place, so that no copy of the text can shift it
        return [_plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    names = [field[0] for field in getattr(value, "_fields_", ())] or list(getattr(value, "__dict__", ()))
    return {name: _plain(getattr(value, name)) for name in names} if names else str(value)


def _all(nvml: Any, kept: Kept) -> dict[str, Any]:
    count = _call(nvml, "nvmlDeviceGetCount")
    told: dict[str, Any] = {
        "driver_version": _call(nvml, "nvmlSystemGetDriverVersion"),
        "nvml_version": _call(nvml, "nvmlSystemGetNVMLVersion"),
        "cuda_driver_version": _call(nvml, "nvmlSystemGetCudaDriverVersion_v2"),
        "count": count,
        "gpus": [],
    }
    for index in range(count if isinstance(count, int) else 0):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            told["gpus"].append({"index": index, **_error(error)})
            continue
        told["gpus"].append({"index": index, **_gpu(nvml, handle, kept)})
    return told


def _gpu(nvml: Any, handle: Any, kept: Kept) -> dict[str, Any]:
    told: dict[str, Any] = {}
    uuid, now = _call(nvml, "nvmlDeviceGetUUID", handle), time.monotonic()
    at, known = kept.get(str(uuid), (float("-inf"), {}))
    fresh = now - at >= SELDOM_S
    for key, name, arguments in _CALLS:
        told[key] = uuid if key == "uuid" else known[key] if key in known and not fresh else _call(nvml, name, handle, *arguments)
    if fresh and isinstance(uuid, str):
        kept[uuid] = (now, {name: told[name] for name in _STILL if _lasts(told[name])})
    told["memory"] = _memory(nvml, handle)
    told.update(_numbered(nvml, handle))
    told["fabric"] = _fabric(nvml, handle)
    told["nvlink"] = _links(nvml, handle)
    told["processes"] = _processes(nvml, handle)
    told["mig_devices"] = list(_instances(nvml, handle, told["mig_mode"]))
    return told


def _lasts(value: Any) -> bool:
    """True for an answer, and for the word that the card lacks it; another refusal may pass."""
    return not isinstance(value, dict) or value.get("error", NOT_SUPPORTED) == NOT_SUPPORTED


def _memory(nvml: Any, handle: Any) -> Any:
    """Version 2 keeps reserved memory apart; version 1, of older drivers, counts it as used."""
    version = getattr(nvml, "nvmlMemory_v2", None)
    second = _call(nvml, "nvmlDeviceGetMemoryInfo", handle, version) if version is not None else {"error": 13, "name": ""}
    return second if "error" not in second else _call(nvml, "nvmlDeviceGetMemoryInfo", handle)


def _numbered(nvml: Any, handle: Any) -> dict[str, Any]:
    try:
        values = nvml.nvmlDeviceGetFieldValues(handle, list(FIELDS.values()))
    except nvml.NVMLError as error:
        return {key: _error(error) for key in FIELDS}
    except (TypeError, AttributeError) as error:
        return {key: {"error": 13, "name": str(error)[:120]} for key in FIELDS}
    return {name: _field(nvml, value) for name, value in zip(FIELDS, values, strict=False)}


def _field(nvml: Any, value: Any) -> Any:
    code = int(value.nvmlReturn)
    if code:
        return {"error": code, "name": str(nvml.NVMLError(code))}
    kind = int(value.valueType)
    return getattr(value.value, _UNIONS[kind]) if kind < len(_UNIONS) else {"error": CODE_UNKNOWN, "name": f"value type {kind}"}


def _fabric(nvml: Any, handle: Any) -> Any:
    kind = getattr(nvml, "c_nvmlGpuFabricInfo_v2_t", None)
    if kind is None:
        return {"error": 13, "name": "function not in this binding"}
    info = kind()
    answer = _call(nvml, "nvmlDeviceGetGpuFabricInfoV", handle, byref(info))
    if isinstance(answer, dict):
        return answer
    return {
        "cluster_uuid": bytes(info.clusterUuid).hex(),
        "clique_id": info.cliqueId,
        "state": info.state,
        "status": info.status,
        "health_mask": info.healthMask,
    }


def _links(nvml: Any, handle: Any) -> Any:
    """State of each fast link, up to the first number that the card does not have."""
    states: dict[str, int] = {}
    for link in range(LINKS):
        state = _call(nvml, "nvmlDeviceGetNvLinkState", handle, link)
        if not isinstance(state, int):
            return {"states": states} if states else state
        states[str(link)] = state
    return {"states": states}


def _processes(nvml: Any, handle: Any) -> Any:
    told: dict[int, dict[str, Any]] = {}
    for kind, name in (("C", "nvmlDeviceGetComputeRunningProcesses"), ("G", "nvmlDeviceGetGraphicsRunningProcesses")):
        rows = _call(nvml, name, handle)
        if not isinstance(rows, list):
            return rows
        for row in (row for row in rows if isinstance(row, dict) and "pid" in row):
            one = told.setdefault(row["pid"], {"pid": row["pid"], "kind": "", "memory_bytes": row.get("usedGpuMemory")})
            one["kind"] = f"{one['kind']}+{kind}" if one["kind"] else kind
            one["gpu_instance_id"], one["compute_instance_id"] = row.get("gpuInstanceId"), row.get("computeInstanceId")
    for pid, one in told.items():
        name = _call(nvml, "nvmlSystemGetProcessName", pid)
        one["name"] = name if isinstance(name, str) else None
    return list(told.values())


def _instances(nvml: Any, handle: Any, mode: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(mode, dict) or mode.get("0") != 1:
        return
    most = _call(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle)
    for index in range(most if isinstance(most, int) else 0):
        try:
            instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nvml.NVMLError:
            continue
        yield {
            "index": index,
            "uuid": _call(nvml, "nvmlDeviceGetUUID", instance),
            "name": _call(nvml, "nvmlDeviceGetName", instance),
            "gpu_instance_id": _call(nvml, "nvmlDeviceGetGpuInstanceId", instance),
            "compute_instance_id": _call(nvml, "nvmlDeviceGetComputeInstanceId", instance),
            "memory": _memory(nvml, instance),
            "attributes": _call(nvml, "nvmlDeviceGetAttributes", instance),
        }


_Calls = tuple[tuple[str, str, tuple[int, ...]], ...]
_ERRORS: _Calls = tuple(
    (f"ecc_{side}_{span}_{place}", "nvmlDeviceGetMemoryErrorCounter", (error, counter, location))
    for side, error in (("corrected", 0), ("uncorrected", 1))
    for span, counter in (("volatile", 0), ("aggregate", 1))
    for place, location in (("dram", 2), ("sram", 7))
)
_CALLS: _Calls = (
    ("name", "nvmlDeviceGetName", ()),
    ("brand", "nvmlDeviceGetBrand", ()),
    ("architecture", "nvmlDeviceGetArchitecture", ()),
    ("uuid", "nvmlDeviceGetUUID", ()),
    ("serial", "nvmlDeviceGetSerial", ()),
    ("board_part_number", "nvmlDeviceGetBoardPartNumber", ()),
    ("board_id", "nvmlDeviceGetBoardId", ()),
    ("minor_number", "nvmlDeviceGetMinorNumber", ()),
    ("vbios_version", "nvmlDeviceGetVbiosVersion", ()),
    ("gsp_firmware_version", "nvmlDeviceGetGspFirmwareVersion", ()),
    ("inforom_image", "nvmlDeviceGetInforomImageVersion", ()),
    ("pci", "nvmlDeviceGetPciInfo", ()),
    ("memory_affinity", "nvmlDeviceGetMemoryAffinity", (4, 0)),
    ("compute_capability", "nvmlDeviceGetCudaComputeCapability", ()),
    ("utilization", "nvmlDeviceGetUtilizationRates", ()),
    ("encoder_percent", "nvmlDeviceGetEncoderUtilization", ()),
    ("decoder_percent", "nvmlDeviceGetDecoderUtilization", ()),
    ("jpeg_percent", "nvmlDeviceGetJpgUtilization", ()),
    ("ofa_percent", "nvmlDeviceGetOfaUtilization", ()),
    ("temperature_c", "nvmlDeviceGetTemperature", (0,)),
    ("temperature_margin_c", "nvmlDeviceGetMarginTemperature", ()),
    ("temperature_shutdown_c", "nvmlDeviceGetTemperatureThreshold", (0,)),
    ("temperature_slowdown_c", "nvmlDeviceGetTemperatureThreshold", (1,)),
    ("fan_percent", "nvmlDeviceGetFanSpeed", ()),
    ("power_usage_mw", "nvmlDeviceGetPowerUsage", ()),
    ("power_limit_enforced_mw", "nvmlDeviceGetEnforcedPowerLimit", ()),
    ("power_limit_default_mw", "nvmlDeviceGetPowerManagementDefaultLimit", ()),
    ("power_limits_mw", "nvmlDeviceGetPowerManagementLimitConstraints", ()),
    ("performance_state", "nvmlDeviceGetPerformanceState", ()),
    ("clock_graphics_mhz", "nvmlDeviceGetClockInfo", (0,)),
    ("clock_sm_mhz", "nvmlDeviceGetClockInfo", (1,)),
    ("clock_memory_mhz", "nvmlDeviceGetClockInfo", (2,)),
    ("clock_video_mhz", "nvmlDeviceGetClockInfo", (3,)),
    ("clock_graphics_max_mhz", "nvmlDeviceGetMaxClockInfo", (0,)),
    ("clock_sm_max_mhz", "nvmlDeviceGetMaxClockInfo", (1,)),
    ("clock_memory_max_mhz", "nvmlDeviceGetMaxClockInfo", (2,)),
    ("clock_reasons", "nvmlDeviceGetCurrentClocksEventReasons", ()),
    ("throttle_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", ()),
    ("ecc_mode", "nvmlDeviceGetEccMode", ()),
    ("remapped_rows", "nvmlDeviceGetRemappedRows", ()),
    ("remap_banks", "nvmlDeviceGetRowRemapperHistogram", ()),
    ("mig_mode", "nvmlDeviceGetMigMode", ()),
    ("virtualization_mode", "nvmlDeviceGetVirtualizationMode", ()),
    ("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", ()),
    ("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", ()),
    ("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", ()),
    ("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", ()),
    ("pcie_replays", "nvmlDeviceGetPcieReplayCounter", ()),
    *_ERRORS,
)
"""Key of ours, the library's function, arguments after the handle."""
