# SPDX-License-Identifier: Apache-2.0
"""`library.snapshot` against a binding of our own making: each call guarded, the library always closed."""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from muster.adapters.amd import interpret, library, recognise
from muster.domain.decide.fold import fold
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture, SourceId


class BindingError(Exception):
    """As the binding raises it: with a number."""

    def __init__(self, code: int) -> None:
        super().__init__(f"Error code:\n\t{code}")
        self.err_code = code


class Vram(enum.IntEnum):
    VRAM_TYPE_HBM3 = 4


class Block(enum.IntEnum):
    INVALID = 0
    UMC = 1
    GFX = 2


class LinkType(enum.IntEnum):
    AMDSMI_LINK_TYPE_XGMI = 7


@pytest.fixture
def binding() -> Iterator[Any]:
    module: Any = ModuleType("amdsmi")
    module.closed = 0
    module.AmdSmiException = BindingError
    module.AmdSmiInitFlags = SimpleNamespace(INIT_AMD_GPUS=1)
    module.AmdSmiVramType, module.AmdSmiGpuBlock, module.AmdSmiLinkType = Vram, Block, LinkType
    module.amdsmi_init = lambda flag: None
    module.amdsmi_shut_down = lambda: setattr(module, "closed", module.closed + 1)
    module.amdsmi_get_processor_handles = lambda: ["a", "b"]
    module.amdsmi_get_gpu_device_bdf = lambda h: f"0000:0{1 if h == 'a' else 2}:00.0"
    module.amdsmi_get_gpu_vram_info = lambda h: {"vram_type": 4, "vram_size": 196592}
    module.amdsmi_get_gpu_ecc_count = lambda h, b: {"correctable_count": int(b), "uncorrectable_count": 0, "deferred_count": 0}
    module.amdsmi_topo_get_link_type = lambda one, other: {"hops": 1, "type": 7}
    module.amdsmi_get_lib_version = lambda: {"major": 26, "minor": 1, "release": 0}
    sys.modules["amdsmi"] = module
    yield module
    del sys.modules["amdsmi"]


def refuse(code: int) -> Any:
    def call(*_: Any) -> Any:
        raise BindingError(code)

    return call


def test_snapshot_is_plain_and_read_back(binding: Any) -> None:
    binding.amdsmi_get_power_info = refuse(10)
    binding.amdsmi_get_fw_info = lambda h: 1 / 0 if False else {"fw_list": [{"fw_name": Block.GFX, "fw_version": "1"}]}
    told = json.dumps(library.snapshot()).encode()
    one, other = fold(interpret([Capture(source=SourceId("t"), locator=(), format=recognise(told) or "", payload=told)], {}).observations)

    assert binding.closed == 1
    assert one.readings["memory.kind"] == Known("hbm3")
    assert one.readings["errors.memory.corrected"] == Known(1)
    assert one.readings["link.peers"] == Known({"0000:02:00.0": "XGMI"})
    assert one.readings["firmware.components"] == Known({"GFX": "1"})
    assert other.names != one.names


@pytest.mark.parametrize(("code", "outcome"), [(10, "not_permitted"), (34, "driver_unusable"), (18, "driver_unusable")])
def test_a_library_that_does_not_open(binding: Any, code: int, outcome: str) -> None:
    binding.amdsmi_init = refuse(code)
    with pytest.raises(library.LibraryUnusable) as raised:
        library.snapshot()

    assert raised.value.outcome == outcome


def test_closed_even_when_the_binding_breaks(binding: Any) -> None:
    def broken() -> Any:
        raise MemoryError

    binding.amdsmi_get_processor_handles = broken
    with pytest.raises(MemoryError):
        library.snapshot()

    assert binding.closed == 1
