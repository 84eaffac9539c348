# SPDX-License-Identifier: Apache-2.0
"""Rows that do not read, parts that share memory, and lines that a listing no longer has: nothing is lost in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from muster.domain.model.source import Outcome

if TYPE_CHECKING:
    from muster.adapters.nvidia.tests.conftest import Ask

TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 560.10                 Driver Version: 560.10         CUDA Version: 12.6     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:0F:00.0 Off |                   On |
| N/A   34C    P0            118W /  700W |     900MiB /  81559MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 80GB HBM3          On  |   00000000:2D:00.0 Off |                    0 |
| N/A   31C    P0             70W /  700W |       1MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|==================+==================================+===========+=======================|
|  0    2   0   0  |             600MiB / 40320MiB    | 16      0 |  3   0    3    0    3 |
|                  |               0MiB / 65535MiB    |           |                       |
+------------------+                                  +-----------+-----------------------+
|  0    2   1   1  |                                  | 32      0 |  3   0    3    0    3 |
|                  |                                  |           |                       |
+------------------+----------------------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""


def test_instances_that_share_memory_are_each_there(ask: Ask) -> None:
    told = ask(TABLE)

    assert told.told.complete
    assert [told.names(one)["compute_instance_id"] for one in told.partitions] == ["0", "1"]
    assert [told.plain(one)["memory.total"] for one in told.partitions] == [40320 * 2**20, "!not_reported"]
    assert [told.plain(one)["compute.units"] for one in told.partitions] == [16, 32]


def test_a_card_whose_first_line_does_not_read_is_missed(ask: Ask) -> None:
    for line in ("|   1  NVIDIA H100 80GB HBM3          On  |   00000000:2D:00.0 Off |                    0 |\n",):
        for instead in (line.replace("|   1 ", "|   - "), ""):
            told = ask(TABLE.replace(line, instead))
            assert len(told.cards) == 1
            assert (told.told.outcome, told.told.complete) == (Outcome.PARTIAL, False)
            assert told.values("power.draw") == [118]


def test_a_listing_that_lost_a_line_says_so(ask: Ask) -> None:
    groups = "<pci><x>1</x></pci><fb_memory_usage><total>10 MiB</total><used>1 MiB</used></fb_memory_usage><clocks><x>1</x></clocks>"
    rest = "<utilization><gpu_util>4 %</gpu_util></utilization><temperature><gpu_temp>40 C</gpu_temp></temperature>"
    shape = '<nvidia_smi_log><attached_gpus>1</attached_gpus><gpu id="00000000:4A:00.0">{}</gpu></nvidia_smi_log>'

    assert ask(shape.format(groups + rest)).values("power.draw") == ["!not_reported"]
    assert ask(shape.format(groups)).values("power.draw") == [None]
    assert ask(shape.format("<gpu_power_readings><power_state>P0</power_state></gpu_power_readings>")).values("power.draw") == ["!not_reported"]
    assert ask(shape.format("<utilization><memory_util>4 %</memory_util></utilization>")).values("utilization.core") == ["!not_reported"]
    assert ask(shape.format(groups + rest.replace("gpu_temp", "die_temp"))).values("temperature.core") == ["!not_reported"]


def test_every_card_carries_the_driver_it_runs_on(ask: Ask) -> None:
    assert ask(TABLE).values("driver.version") == ["560.10", "560.10"]


def test_links_that_were_cut_are_not_counted(ask: Ask) -> None:
    text = "GPU 0: NVIDIA H100 (UUID: GPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f0)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"

    assert ask(text).values("link.total") == [2]
    assert ask(text, cut=True).values("link.total") == ["!unreadable"]
    assert ask(text, cut=True).values("link.active") == ["!unreadable"]


def test_link_states_that_are_no_numbers(ask: Ask) -> None:
    gpu = {"index": 0, "uuid": "GPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f0", "nvlink": {"states": {"0": "1", "1": 1}}}
    told = ask(json.dumps({"count": 1, "nvml_version": "12", "gpus": [gpu]}))

    assert told.values("link.total") == [2]
    assert told.values("link.active") == ["!unreadable"]
