# SPDX-License-Identifier: Apache-2.0
"""The two exporters' pages: blanks, labels, instances, series that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muster.domain.model.source import Outcome

if TYPE_CHECKING:
    from muster.adapters.nvidia.tests.conftest import Ask

UUID = "GPU-2c4e6a80-1111-4222-8333-444455556666"
LABELS = f'gpu="2",UUID="{UUID}",device="nvidia2",modelName="NVIDIA L4",Hostname="exporter-x",DCGM_FI_DRIVER_VERSION="555.42.06"'


def page(**series: object) -> str:
    return "".join(f"DCGM_FI_{name}{{{LABELS}}} {value}\n" for name, value in series.items())


def test_units_and_labels(ask: Ask) -> None:
    told = ask(
        page(
            DEV_POWER_USAGE=31.5, DEV_FB_USED=100, DEV_GPU_UTIL=7, DEV_SM_CLOCK=2040, PROF_PIPE_TENSOR_ACTIVE=0.25, PROF_GR_ENGINE_ACTIVE=0.5, DEV_XID_ERRORS=43
        )
    )
    card = told.plain(told.cards[0])
    assert told.told.outcome is Outcome.DEVICES
    assert not told.told.complete
    assert told.names(told.cards[0]) == {"vendor_uuid": UUID.removeprefix("GPU-").replace("-", ""), "index": "2"}
    assert card["power.draw"] == 31.5
    assert card["memory.used"] == 100 * 2**20
    assert card["utilization.core"] == 0.07
    assert card["utilization.tensor"] == 0.25
    assert card["fault.last_code"] == "43"
    assert "fault.codes" not in card
    assert told.node == {"driver.version": "555.42.06"}


@pytest.mark.parametrize(
    ("blank", "why"),
    [
        ("2147483632", "not_sampled"),
        ("2147483634", "not_supported"),
        ("2147483635", "not_permitted"),
        ("9223372036854775794", "not_supported"),
        ("140737488355330", "not_supported"),
        ("NaN", "unreadable"),
    ],
)
def test_blanks_are_no_values(ask: Ask, blank: str, why: str) -> None:
    told = ask(page(DEV_MEMORY_TEMP=blank, DEV_GPU_TEMP=50, DEV_NEW_FIELD=blank))
    assert told.values("temperature.memory") == [f"!{why}"]
    assert told.values("temperature.core") == [50]
    assert "DCGM_FI_DEV_NEW_FIELD" not in told.cards[0].vendor


def test_instances_have_their_own_figures(ask: Ask) -> None:
    rows = page(DEV_GPU_UTIL=80) + f'DCGM_FI_DEV_GPU_UTIL{{{LABELS},GPU_I_ID="4",GPU_I_PROFILE="2g.12gb"}} 10\n'
    rows += f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{LABELS},GPU_I_ID="4",GPU_I_PROFILE="2g.12gb"}} 0.9\n'
    told = ask(rows)
    assert told.values("utilization.core") == [0.8]
    assert told.plain(told.partitions[0])["utilization.core"] == 0.1
    assert told.plain(told.partitions[0])["partition.profile"] == "2g.12gb"


def test_holders_links_and_violations(ask: Ask) -> None:
    rows = f'DCGM_FI_DEV_GPU_TEMP{{{LABELS},pod="p",namespace="n",container="c"}} 50\nDCGM_FI_DEV_FB_USED{{{LABELS},pod="",namespace=""}} 5\n'
    rows += "".join(f'DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{{gpu="2",gpu_uuid="{UUID}",nvlink="{n}"}} {n}\n' for n in (1, 2))
    told = ask(rows + page(DEV_POWER_VIOLATION=3000000000, DEV_ECC_DBE_VOL_TOTAL=1, DEV_CLOCKS_EVENT_REASONS=64))
    card = told.plain(told.cards[0])
    assert card["allocation.holders"] == ({"namespace": "n", "pod": "p", "container": "c"},)
    assert card["link.errors"] == {"replay": 3}
    assert card["throttle.time"] == {"power_cap": 3.0}
    assert card["errors.memory.uncorrected"] == 1
    assert card["throttle.reasons"] == ("thermal_hardware",)


BARE = UUID.removeprefix("GPU-")
INFO = 'name="NVIDIA L4",driver_version="555.42.06",cuda_version="12.5",index="1",pci_bus_id="00000000:31:00.0",serial="[N/A]"'
SERIES = {
    "memory_used_bytes": 1.048576e08,
    "clocks_current_sm_clock_hz": 2.04e09,
    "utilization_gpu_ratio": 0.07,
    "temperature_gpu": 50,
    "power_draw_watts": 31.5,
    "pstate": 2,
    "pci_device_id": 0x27B810DE,
    "clocks_event_reasons_active": 4,
    "gpu_recovery_action": 9,
    "compute_apps": 1,
}
SMI = f'nvidia_smi_command_exit_code 0\nnvidia_smi_gpu_info{{uuid="{BARE}",{INFO}}} 1\n'
SMI += "".join(f'nvidia_smi_{name}{{uuid="{BARE}"}} {value}\n' for name, value in SERIES.items())
SMI += f'nvidia_smi_compute_app_used_memory_bytes{{uuid="{BARE}",pid="77",process_name="p"}} 1048576\n'


def test_the_exporter_that_runs_the_tool(ask: Ask) -> None:
    told = ask(SMI)
    card = told.plain(told.cards[0])
    assert told.names(told.cards[0])["pci_address"] == "0000:31:00.0"
    assert told.node["runtime.version.max"] == "12.5"
    assert card["memory.used"] == 100 * 2**20
    assert card["clock.core"] == 2_040_000_000
    assert card["utilization.core"] == 0.07
    assert card["temperature.core"] == 50
    assert card["performance.state"] == "P2"
    assert card["pci.device_id"] == "27b8"
    assert card["throttle.reasons"] == ("power_cap",)
    assert card["recovery.action"] == "other"
    assert card["processes"] == ({"pid": 77, "name": "p", "kind": "C", "memory.used": 1048576},)
    assert card["fan.speed"] == "!not_reported"
    assert card["partition.mode"] == "!not_reported"


def test_an_exporter_whose_tool_failed(ask: Ask) -> None:
    assert ask("nvidia_smi_command_exit_code 9\nnvidia_smi_last_collect_success 0\n").told.outcome is Outcome.DRIVER_UNUSABLE
    assert ask("nvidia_smi_command_exit_code 6\n").told.outcome is Outcome.NO_DEVICES
