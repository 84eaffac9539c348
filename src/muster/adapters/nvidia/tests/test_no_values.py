# SPDX-License-Identifier: Apache-2.0
"""Numbers that stand for no value, and numbers that are none: in no layout do they become a reading."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from muster.adapters.nvidia.tests.conftest import Ask

UUID = "GPU-5a0e7d10-1111-4a2b-9c3d-0123456789a{}"
NONE = ("4294967295", "18446744073709551615", "9223372036854775807", "-1")


def sample(metric: str, value: str, card: int = 0, **labels: str) -> str:
    told = {"gpu": "0", "UUID": UUID.format(card), "Hostname": "n1", **labels}
    return f"{metric}{{" + ",".join(f'{name}="{text}"' for name, text in told.items()) + f"}} {value}\n"


@pytest.mark.parametrize("none", NONE)
def test_counters_of_a_query(ask: Ask, none: str) -> None:
    columns = "ecc.errors.corrected.volatile.total, remapped_rows.correctable, retired_pages.single_bit_ecc.count, retired_pages.double_bit.count"
    row = f"0, {UUID.format(0)}, 45, {none}, {none}, {none}, 5, 0xFFFFFFFFFFFFFFFF"
    told = ask(f"index, uuid, temperature.gpu, {columns}, clocks_throttle_reasons.active\n{row}\n")

    for key in ("errors.memory.corrected", "memory.rows_remapped.corrected", "memory.pages_retired", "throttle.reasons"):
        assert told.values(key)[0].startswith("!"), key


@pytest.mark.parametrize("none", NONE)
def test_counters_of_xml(ask: Ask, none: str) -> None:
    counters = f"<volatile><dram_correctable>{none}</dram_correctable><sram_uncorrectable_parity>{none}</sram_uncorrectable_parity>"
    counters += "<sram_uncorrectable_secded>3</sram_uncorrectable_secded></volatile>"
    gpu = f'<gpu id="00000000:01:00.0"><uuid>{UUID.format(0)}</uuid><ecc_errors>{counters}</ecc_errors></gpu>'
    told = ask(f"<?xml version='1.0' ?>\n<nvidia_smi_log>\n<attached_gpus>1</attached_gpus>\n{gpu}\n</nvidia_smi_log>\n")

    assert told.values("errors.memory.corrected")[0].startswith("!")
    assert told.values("errors.sram.uncorrected")[0].startswith("!")


@pytest.mark.parametrize("none", NONE)
def test_counters_of_the_library(ask: Ask, none: str) -> None:
    gpu = {"index": 0, "uuid": UUID.format(0), "ecc_corrected_volatile_dram": int(none), "retired_single_bit": int(none), "retired_double_bit": 2}
    gpu["clock_reasons"] = int(none)
    told = ask(json.dumps({"driver_version": "570.86.15", "count": 1, "gpus": [gpu]}), "nvml-json")

    for key in ("errors.memory.corrected", "memory.pages_retired", "throttle.reasons"):
        assert told.values(key)[0].startswith("!"), key


@pytest.mark.parametrize("none", [*NONE, "NaN", "+Inf", "-7", "9.223372036854775e+18"])
def test_counters_of_dcgm(ask: Ask, none: str) -> None:
    metrics = ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL")
    told = ask("".join(sample(metric, none) for metric in metrics))

    for key in ("errors.memory.corrected", "throttle.time", "link.errors"):
        assert told.values(key)[0].startswith("!"), key
    assert str(told.values("fault.last_code")[0] or "!").startswith("!")


def test_one_counter_that_is_none_costs_only_itself(ask: Ask) -> None:
    told = ask(
        sample("DCGM_FI_DEV_POWER_VIOLATION", "NaN")
        + sample("DCGM_FI_DEV_THERMAL_VIOLATION", "2000000000")
        + sample("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT", "4", nvlink="0")
        + sample("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT", "NaN", nvlink="1")
        + sample("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT", "4", nvlink="0")
        + sample("DCGM_FI_DEV_XID_ERRORS", "79")
    )

    assert told.values("throttle.time") == [{"thermal": 2.0}]
    assert told.values("link.errors") == [{"crc_flit": 4}]
    assert told.values("fault.last_code") == ["79"]


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-Inf"])
def test_what_is_no_number_is_in_no_document(ask: Ask, odd: str) -> None:
    names = ("DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_SOMETHING_NEW", "DCGM_FI_DEV_GPU_TEMP")
    pages = ("".join(sample(name, odd) for name in names), "".join(f'nvidia_smi_{name}{{uuid="{UUID.format(0)}"}} {odd}\n' for name in _SMI))
    for page in pages:
        (card,) = ask(page).cards
        assert not list(_odd([dict(card.vendor), [getattr(reading, "value", "") for reading in card.readings.values()]]))


_SMI = ("power_draw_watts", "gpu_recovery_action", "pstate", "fabric_state", "something_new")


def _odd(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [each for part in value.values() for each in _odd(part)]
    if isinstance(value, list | tuple):
        return [each for part in value for each in _odd(part)]
    return [value] if isinstance(value, float) and not math.isfinite(value) else []
