# SPDX-License-Identifier: Apache-2.0
"""The snapshot of the library, taken from a binding of ours that behaves like the vendor's."""

from __future__ import annotations

import ctypes
import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from muster.adapters.nvidia.library import FIELDS, snapshot

if TYPE_CHECKING:
    from muster.adapters.nvidia.tests.conftest import Ask

MIB = 2**20


class NVMLError(Exception):
    """The binding's error: the library's code stands in ``value``."""

    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


class _Fabric(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("clusterUuid", ctypes.c_uint8 * 16),
        ("status", ctypes.c_uint),
        ("cliqueId", ctypes.c_uint32),
        ("state", ctypes.c_uint),
        ("healthMask", ctypes.c_uint32),
    )


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Pci(ctypes.Structure):
    _fields_ = (("domain", ctypes.c_uint), ("pciDeviceId", ctypes.c_uint), ("pciSubSystemId", ctypes.c_uint), ("busId", ctypes.c_char * 32))


class Binding:
    """Two cards: one whole and cut into an instance, one whose handle cannot be had. Everything else is refused like by a card that lacks it."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 0x02000028
    c_nvmlGpuFabricInfo_v2_t = _Fabric

    def __init__(self, *, starts: bool = True) -> None:
        self.starts = starts
        self.calls: list[str] = []
        self.answers: dict[str, Any] = {
            "nvmlDeviceGetCount": 2,
            "nvmlSystemGetDriverVersion": b"565.57.01",
            "nvmlSystemGetNVMLVersion": "12.565.57.01",
            "nvmlSystemGetCudaDriverVersion_v2": 12070,
            "nvmlDeviceGetName": "NVIDIA A30",
            "nvmlDeviceGetUUID": "GPU-9a8b7c6d-1111-4222-8333-444455556666",
            "nvmlDeviceGetTemperature": 44,
            "nvmlDeviceGetPowerUsage": 81500,
            "nvmlDeviceGetMigMode": [1, 1],
            "nvmlDeviceGetMaxMigDeviceCount": 2,
            "nvmlDeviceGetGpuInstanceId": 3,
            "nvmlDeviceGetComputeInstanceId": 0,
            "nvmlDeviceGetNvLinkState": 1,
            "nvmlDeviceGetRemappedRows": (0, 0, 0, 1),
            "nvmlDeviceGetPciInfo": _Pci(0, 0x20B710DE, 0x153210DE, b"00000000:2A:00.0"),
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=55, usedGpuMemory=512 * MIB, gpuInstanceId=3, computeInstanceId=0)],
            "nvmlDeviceGetGraphicsRunningProcesses": [],
            "nvmlDeviceGetMemoryAffinity": (ctypes.c_ulong * 2)(0, 2),
            "nvmlSystemGetProcessName": b"train",
        }

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            return self._answer(name, arguments)

        return call

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "nvmlInit" and not self.starts:
            raise NVMLError(18)
        if name == "nvmlDeviceGetHandleByIndex" and arguments[0] == 1:
            raise NVMLError(15)
        if name == "nvmlDeviceGetMigDeviceHandleByIndex" and arguments[1] == 1:
            raise NVMLError(6)
        if name == "nvmlDeviceGetNvLinkState" and arguments[1] >= 4:
            raise NVMLError(2)
        if name == "nvmlDeviceGetMemoryInfo":
            if len(arguments) > 1 and arguments[0] == "card":
                raise NVMLError(13)
            return _Memory(24576 * MIB, 0, 24000 * MIB, 576 * MIB) if arguments[0] == "card" else _Memory(5888 * MIB, 0, 5800 * MIB, 88 * MIB)
        if name == "nvmlDeviceGetFieldValues":
            return [self._field(one) for one in arguments[1]]
        if name == "nvmlDeviceGetGpuFabricInfoV":
            return 0
        if name in ("nvmlInit", "nvmlShutdown"):
            return None
        if name == "nvmlDeviceGetHandleByIndex":
            return "card"
        if name == "nvmlDeviceGetMigDeviceHandleByIndex":
            return "slice"
        if name == "nvmlDeviceGetName" and arguments[0] == "slice":
            return "NVIDIA A30 MIG 1g.6gb"
        if name not in self.answers:
            raise NVMLError(3)
        return self.answers[name]

    @staticmethod
    def _field(one: tuple[int, int]) -> SimpleNamespace:
        known = {(82, 0): (0, 1, 51), (83, 0): (0, 3, 123456), (230, 0): (0, 1, 4), (186, 0): (0, 9, 1)}
        code, kind, value = known.get(one, (3, 0, 0))
        return SimpleNamespace(nvmlReturn=code, valueType=kind, value=SimpleNamespace(uiVal=value, ullVal=value, dVal=float(value)))


def test_every_call_is_guarded_and_the_library_is_let_go(ask: Ask) -> None:
    binding = Binding()
    told = snapshot(binding)
    assert binding.calls[0] == "nvmlInit"
    assert binding.calls[-1] == "nvmlShutdown"
    json.dumps(told)
    card, lost = told["gpus"]
    assert lost == {"index": 1, "error": 15, "name": "code 15"}
    assert card["temperature_memory_c"] == 51
    assert card["fan_percent"] == {"error": 3, "name": "code 3"}
    assert card["memory"]["total"] == 24576 * MIB
    assert card["nvlink"] == {"states": {"0": 1, "1": 1, "2": 1, "3": 1}}
    assert card["power_instant_mw"]["error"] == 999
    assert set(FIELDS) <= set(card)
    answer = ask(json.dumps(told))
    first = answer.plain(answer.cards[0])
    assert answer.names(answer.cards[0])["pci_address"] == "0000:2a:00.0"
    assert first["power.draw"] == 81.5
    assert first["energy.total"] == 123.456
    assert first["recovery.action"] == "drain_and_reset"
    assert first["link.active"] == 4
    assert first["numa.node"] == 65
    assert first["memory.remap.failed"] is True
    assert first["processes"][0]["name"] == "train"
    assert first["product.name"] == "NVIDIA A30"
    part = answer.plain(answer.partitions[0])
    assert part["partition.profile"] == "1g.6gb"
    assert part["memory.total"] == 5888 * MIB
    assert answer.node["runtime.version.max"] == "12.7"
    assert answer.values("power.draw")[1] == "!device_lost"


def test_a_library_that_does_not_start_is_not_shut_down() -> None:
    binding = Binding(starts=False)
    assert snapshot(binding) == {"error": {"error": 18, "name": "code 18"}}
    assert binding.calls == ["nvmlInit"]


def test_a_binding_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert snapshot()["error"]["error"] == 12


def test_an_installed_binding_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Binding(starts=False))
    assert snapshot()["error"]["error"] == 18
