# SPDX-License-Identifier: Apache-2.0
"""Asks the vendor's management library (libdcmi.so) through ctypes, in the worker only: a call may hang for ever.

Every call is made on its own and keeps its return code: one chip that does not answer costs nothing of its neighbours.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from typing import Any

FOLDERS = ("/usr/local/dcmi", "/usr/local/Ascend/driver/lib64/driver")
NAME = "libdcmi.so"
NO_FUNCTION = -99998
"""Our code for "the library has no such function", beside the library's own (0, -8001...)."""

_CARDS = 64
_CODES = 128
_PROCESSES = 256
_NPU, _VDIE, _DDR, _HBM = 0, 1, 0, 2
_FREQUENCIES = {"clock.memory": 6, "clock.core": 7, "clock.core.max": 9}
_RATES = {"memory": 1, "aicore": 2, "aicpu": 3, "ctrlcpu": 4, "ddr_bandwidth": 5, "hbm": 6, "hbm_bandwidth": 10, "vector": 12, "npu": 13}


class _ChipInfo(ctypes.Structure):
    _fields_ = (("chip_type", ctypes.c_char * 32), ("chip_name", ctypes.c_char * 32), ("chip_ver", ctypes.c_char * 32), ("aicore_cnt", ctypes.c_uint))


class _ChipInfoV2(ctypes.Structure):
    _fields_ = (*_ChipInfo._fields_, ("npu_name", ctypes.c_char * 32))


class _Pcie(ctypes.Structure):
    _fields_ = (
        ("venderid", ctypes.c_uint),
        ("subvenderid", ctypes.c_uint),
        ("deviceid", ctypes.c_uint),
        ("subdeviceid", ctypes.c_uint),
        ("domain", ctypes.c_int),
        ("bdf_busid", ctypes.c_uint),
        ("bdf_deviceid", ctypes.c_uint),
        ("bdf_funcid", ctypes.c_uint),
        ("reserve", ctypes.c_ubyte * 32),
    )


class _Die(ctypes.Structure):
    _fields_ = (("soc_die", ctypes.c_uint * 5),)


class _Hbm(ctypes.Structure):
    _fields_ = (
        ("memory_size", ctypes.c_ulonglong),
        ("freq", ctypes.c_uint),
        ("memory_usage", ctypes.c_ulonglong),
        ("temp", ctypes.c_int),
        ("bandwith_util_rate", ctypes.c_uint),
    )


class _Memory(ctypes.Structure):
    _fields_ = (
        ("memory_size", ctypes.c_ulonglong),
        ("memory_available", ctypes.c_ulonglong),
        ("freq", ctypes.c_uint),
        ("hugepagesize", ctypes.c_ulong),
        ("hugepages_total", ctypes.c_ulong),
        ("hugepages_free", ctypes.c_ulong),
        ("utiliza", ctypes.c_uint),
        ("reserve", ctypes.c_ubyte * 60),
    )


class _Ecc(ctypes.Structure):
    _fields_ = (
        ("enable_flag", ctypes.c_int),
        ("single_bit_error_cnt", ctypes.c_uint),
        ("double_bit_error_cnt", ctypes.c_uint),
        ("total_single_bit_error_cnt", ctypes.c_uint),
        ("total_double_bit_error_cnt", ctypes.c_uint),
        ("single_bit_isolated_pages_cnt", ctypes.c_uint),
        ("double_bit_isolated_pages_cnt", ctypes.c_uint),
        ("single_bit_next_isolated_pages_cnt", ctypes.c_uint),
        ("double_bit_next_isolated_pages_cnt", ctypes.c_uint),
    )


class _Board(ctypes.Structure):
    _fields_ = (("board_id", ctypes.c_uint), ("pcb_id", ctypes.c_uint), ("bom_id", ctypes.c_uint), ("slot_id", ctypes.c_uint))


class _Label(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_char * 256) for name in ("product_name", "model", "manufacturer", "manufacturer_date", "serial_number"))


class _Process(ctypes.Structure):
    _fields_ = (("proc_id", ctypes.c_int), ("proc_mem_usage", ctypes.c_ulong))


def snapshot(*folders: str) -> dict[str, Any]:
    """Everything that the library says of every chip, as plain values.

    Shape: ``{"dcmi": {"library": path, "init": call, ...}, "cards": [{"card_id": 0, ..., "devices": [{"device_id": 0, NAME: call, ...}]}]}``,
    where a call is ``{"rc": 0, "value": ...}`` or ``{"rc": CODE}`` with the library's own code (`NO_FUNCTION` where it lacks the function).
    Raises OSError when no folder holds the library or it cannot be loaded.
    """
    path, library = _load(folders or FOLDERS)
    head: dict[str, Any] = {"library": path, "init": _plain(library, "dcmi_init")}
    told: dict[str, Any] = {"dcmi": head, "cards": []}
    if head["init"]["rc"] != 0:
        return told
    head["driver_version"] = _text(library, "dcmi_get_driver_version", 64)
    head["dcmi_version"] = _text(library, "dcmi_get_dcmi_version", 32)
    count, cards = ctypes.c_int(0), (ctypes.c_int * _CARDS)()
    head["card_list"] = _plain(library, "dcmi_get_card_list", ctypes.byref(count), cards, _CARDS)
    if head["card_list"]["rc"] == 0:
        head["card_list"]["value"] = count.value
        told["cards"] = [_card(library, cards[place]) for place in range(max(0, min(count.value, _CARDS)))]
    return told


def _load(folders: Iterable[str]) -> tuple[str, ctypes.CDLL]:
    tried = [os.path.join(folder, NAME) for folder in folders]
    for path in tried:
        if os.path.exists(path):
            return path, ctypes.CDLL(path)
    raise OSError(f"{NAME}: cannot open shared object file: looked at {', '.join(tried)}")


def _card(library: ctypes.CDLL, card: int) -> dict[str, Any]:
    devices, mcu, cpu = ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(-1)
    listed = _plain(library, "dcmi_get_device_id_in_card", card, ctypes.byref(devices), ctypes.byref(mcu), ctypes.byref(cpu))
    told: dict[str, Any] = {"card_id": card, "device_ids": listed, "devices": []}
    told["board_power"] = _number(library, "dcmi_mcu_get_power_info", ctypes.c_int, card)
    if listed["rc"] == 0:
        listed["value"] = devices.value
        told["devices"] = [_device(library, card, device) for device in range(max(0, min(devices.value, _CARDS))) if _is_npu(library, card, device)]
    return told


def _is_npu(library: ctypes.CDLL, card: int, device: int) -> bool:
    kind = _number(library, "dcmi_get_device_type", ctypes.c_uint, card, device)
    return bool(kind["rc"] != 0 or kind["value"] == _NPU)


def _device(library: ctypes.CDLL, card: int, device: int) -> dict[str, Any]:
    told: dict[str, Any] = {"device_id": device}
    logic = ctypes.c_uint(0)
    told["logic_id"] = _valued(_plain(library, "dcmi_get_device_logic_id", ctypes.byref(logic), card, device), lambda: logic.value)
    if told["logic_id"]["rc"] == 0:
        told["phy_id"] = _number(library, "dcmi_get_device_phyid_from_logicid", ctypes.c_uint, logic.value)
    told["chip"] = _struct(library, "dcmi_get_device_chip_info_v2", _ChipInfoV2(), card, device)
    if told["chip"]["rc"] == NO_FUNCTION:
        told["chip"] = _struct(library, "dcmi_get_device_chip_info", _ChipInfo(), card, device)
    told["pcie"] = _struct(library, "dcmi_get_device_pcie_info_v2", _Pcie(), card, device)
    told["vdie"] = _struct(library, "dcmi_get_device_die_v2", _Die(), card, device, _VDIE)
    told["board"] = _struct(library, "dcmi_get_device_board_info", _Board(), card, device)
    told["label"] = _struct(library, "dcmi_get_device_elabel_info", _Label(), card, device)
    told["health"] = _number(library, "dcmi_get_device_health", ctypes.c_uint, card, device)
    told["error_codes"] = _codes(library, card, device)
    told["network_health"] = _number(library, "dcmi_get_device_network_health", ctypes.c_uint, card, device)
    told["temperature"] = _number(library, "dcmi_get_device_temperature", ctypes.c_int, card, device)
    told["power"] = _number(library, "dcmi_get_device_power_info", ctypes.c_int, card, device)
    told["voltage"] = _number(library, "dcmi_get_device_voltage", ctypes.c_uint, card, device)
    told["hbm"] = _struct(library, "dcmi_get_device_hbm_info", _Hbm(), card, device)
    told["memory"] = _struct(library, "dcmi_get_device_memory_info_v3", _Memory(), card, device)
    told["ecc_ddr"] = _struct(library, "dcmi_get_device_ecc_info", _Ecc(), card, device, _DDR)
    told["ecc_hbm"] = _struct(library, "dcmi_get_device_ecc_info", _Ecc(), card, device, _HBM)
    told["frequency"] = {name: _asked(library, "dcmi_get_device_frequency", card, device, kind) for name, kind in _FREQUENCIES.items()}
    told["rates"] = {name: _asked(library, "dcmi_get_device_utilization_rate", card, device, kind) for name, kind in _RATES.items()}
    told["processes"] = _processes(library, card, device)
    return told


def _processes(library: ctypes.CDLL, card: int, device: int) -> dict[str, Any]:
    rows, count = (_Process * _PROCESSES)(), ctypes.c_int(0)
    call = _plain(library, "dcmi_get_device_resource_info", card, device, rows, ctypes.byref(count))
    return _valued(call, lambda: [{"pid": row.proc_id, "bytes": row.proc_mem_usage} for row in rows[: max(0, min(count.value, _PROCESSES))]])


def _codes(library: ctypes.CDLL, card: int, device: int) -> dict[str, Any]:
    count, codes = ctypes.c_int(0), (ctypes.c_uint * _CODES)()
    call = _plain(library, "dcmi_get_device_errorcode_v2", card, device, ctypes.byref(count), codes, _CODES)
    return _valued(call, lambda: list(codes[: max(0, min(count.value, _CODES))]))


def _asked(library: ctypes.CDLL, name: str, card: int, device: int, kind: int) -> dict[str, Any]:
    found = ctypes.c_uint(0)
    return _valued(_plain(library, name, card, device, kind, ctypes.byref(found)), lambda: found.value)


def _number(library: ctypes.CDLL, name: str, kind: type[ctypes.c_int] | type[ctypes.c_uint], *arguments: int) -> dict[str, Any]:
    found = kind(0)
    return _valued(_plain(library, name, *arguments, ctypes.byref(found)), lambda: found.value)


def _text(library: ctypes.CDLL, name: str, size: int) -> dict[str, Any]:
    found = ctypes.create_string_buffer(size)
    return _valued(_plain(library, name, found, size), lambda: _decoded(found.value))


def _struct(library: ctypes.CDLL, name: str, found: ctypes.Structure, card: int, device: int, *more: int) -> dict[str, Any]:
    return _valued(_plain(library, name, card, device, *more, ctypes.byref(found)), lambda: _fields(found))


def _fields(found: ctypes.Structure) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for entry in found._fields_:
        value = getattr(found, entry[0])
        if isinstance(value, bytes):
            told[entry[0]] = _decoded(value)
        elif isinstance(value, int):
            told[entry[0]] = value
        elif entry[0] != "reserve":
            told[entry[0]] = list(value)
    return told


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace").strip()


def _valued(call: dict[str, Any], value: Callable[[], Any]) -> dict[str, Any]:
    return {**call, "value": value()} if call["rc"] == 0 else call


def _plain(library: ctypes.CDLL, name: str, *arguments: Any) -> dict[str, Any]:
    try:
        function = getattr(library, name)
    except AttributeError:
        return {"rc": NO_FUNCTION}
    function.restype = ctypes.c_int
    return {"rc": int(function(*arguments))}
