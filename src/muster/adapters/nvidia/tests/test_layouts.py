# SPDX-License-Identifier: Apache-2.0
"""Every layout of the tool, in small texts of ours: listings, tables, monitors, links, topology, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muster.adapters.nvidia import recognise
from muster.domain.model.source import Outcome

if TYPE_CHECKING:
    from muster.adapters.nvidia.tests.conftest import Ask

UUID = "GPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f0"
SLICE = "MIG-0f1e2d3c-4b5a-5697-8877-665544332211"

LONG = f"""
==============NVSMI LOG==============

Timestamp                                              : Tue Mar  3 07:00:00 2026
Driver Version                                         : 575.64.03
CUDA Version                                           : 12.9

Attached GPUs                                          : 1
GPU 00000000:2A:00.0
    Product Name                                       : NVIDIA A30
    Product Architecture                               : Ampere
    MIG Mode
        Current                                        : Enabled
        Pending                                        : Disabled
    MIG Device
        Index                                          : 0
        GPU Instance ID                                : 3
        Compute Instance ID                            : 0
        Device Attributes
            Shared
                Multiprocessor count                   : 14
        Shared FB Memory Usage
            Total                                      : 5888 MiB
            Used                                       : 12 MiB
            Free                                       : 5876 MiB
    Serial Number                                      : 1320055512345
    GPU UUID                                           : {UUID}
    VBIOS Version                                      : 92.00.66.00.01
    FB Memory Usage
        Total                                          : 24576 MiB
        Used                                           : 40 MiB
    BAR1 Memory Usage
        Total                                          : 32768 MiB
        Used                                           : 1 MiB
    Utilization
        GPU                                            : N/A
    Clocks Throttle Reasons
        Idle                                           : Not Active
        HW Slowdown                                    : Active
            HW Thermal Slowdown                        : Active
            HW Power Brake Slowdown                    : Not Active
    Temperature
        GPU Current Temp                               : 91 C
        GPU Shutdown Temp                              : 92 C
        GPU Slowdown Temp                              : 89 C
    Power Readings
        Power Draw                                     : 99.10 W
        Power Limit                                    : 165.00 W
    Clocks
        Graphics                                       : 930 MHz
    Max Clocks
        Graphics                                       : 1440 MHz
    Processes
        GPU instance ID                                : 3
        Compute instance ID                            : 0
        Process ID                                     : 9901
            Type                                       : C
            Name                                       : D:\\job : one\\run.exe
            Used GPU Memory                            : Not available in WDDM driver model
        GPU instance ID                                : 3
        Compute instance ID                            : 0
        Process ID                                     : 9902
            Type                                       : C
            Name                                       : python
            Used GPU Memory                            : 12 MiB
"""


def test_the_long_listing_as_text(ask: Ask) -> None:
    told = ask(LONG)
    assert told.told.format == "nvidia-smi-q"
    assert told.told.outcome is Outcome.DEVICES
    assert told.told.complete
    assert told.node == {"driver.version": "575.64.03", "runtime.name": "cuda", "runtime.version.max": "12.9"}
    card = told.plain(told.cards[0])
    assert card["memory.total"] == 24576 * 2**20
    assert card["clock.core"] == 930_000_000
    assert card["clock.core.max"] == 1_440_000_000
    assert card["partition.mode"] == "mig"
    assert card["partition.mode.pending"] == "none"
    assert card["throttle.reasons"] == ("hardware_slowdown", "thermal_hardware")
    assert card["temperature.limit.shutdown"] == 92
    assert card["utilization.core"] == "!not_supported"
    assert card["processes"] == (
        {"pid": 9901, "name": "D:\\job : one\\run.exe", "kind": "C", "gpu_instance_id": "3", "compute_instance_id": "0"},
        {"pid": 9902, "name": "python", "kind": "C", "gpu_instance_id": "3", "compute_instance_id": "0", "memory.used": 12 * 2**20},
    )
    part = told.partitions[0]
    assert told.names(part) == {"index": "0", "gpu_instance_id": "3", "compute_instance_id": "0"}
    assert told.plain(part)["memory.total"] == 5888 * 2**20
    assert told.plain(part)["compute.units"] == 14


def test_a_long_listing_that_ends_inside_a_card_is_partial(ask: Ask) -> None:
    for end in range(LONG.index("    Utilization"), LONG.index("    Processes"), 7):
        told = ask(LONG[:end])
        assert told.told.outcome is Outcome.PARTIAL
        assert not told.told.complete
        assert told.names(told.cards[0])["pci_address"] == "0000:2a:00.0"
        assert told.values("throttle.reasons")[0] in (None, "!unreadable", ("hardware_slowdown", "thermal_hardware"))


LIST = f"""GPU 0: NVIDIA A100-SXM4-40GB (UUID: {UUID})
  MIG 3g.20gb     Device  0: (UUID: {SLICE})
  MIG 1c.2g.10gb  Device  1: (UUID: MIG-{UUID}/5/0)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f1)
"""


def test_the_short_listing(ask: Ask) -> None:
    told = ask(LIST)
    assert told.told.complete
    assert [told.names(card)["index"] for card in told.cards] == ["0", "1"]
    assert told.values("partition.mode") == ["mig", None]
    assert [told.plain(part)["partition.profile"] for part in told.partitions] == ["3g.20gb", "1c.2g.10gb"]
    assert told.names(told.partitions[1])["gpu_instance_id"] == "5"
    assert not ask(LIST[: LIST.index("GPU 1")].rstrip()).told.complete
    assert len(ask(LIST[: LIST.index(" (UUID: GPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f1")]).cards) == 1


def test_links_of_a_listing(ask: Ask) -> None:
    head = f"GPU 0: NVIDIA V100 (UUID: {UUID})\n"
    told = ask(head + "\t Link 0: 25.781 GB/s\n\t Link 1: 25.781 GB/s\n\t Link 2: <inactive>\n")
    assert told.values("link.total") == [3]
    assert told.values("link.active") == [2]
    assert told.values("link.speed") == [25_781_000_000]
    assert not told.told.complete
    refused = ask(head + "Nvlink queries are not supported for Devices in MIG mode\n")
    assert refused.values("link.total") == ["!not_supported"]
    assert ask(head + "\t Link 0: 25.781 GB/s\n\t Link 1: 25.7").values("link.total") == ["!unreadable"]


TABLE = """Wed Mar  4 10:11:12 2026
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 535.261.03    Driver Version: 535.261.03    CUDA Version: 12.2    |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  On   | 00000000:3C:00.0 Off |                    2 |
| N/A   44C    P0    58W / 300W |    811MiB / 32510MiB |     17%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
|   1  NVIDIA A30          Off  | 00000000:3D:00.0 Off |                   On |
| 31%   39C    P0    ERR! / 165W |   26MiB / 24576MiB |     N/A      Default |
|                               |                      |             Enabled* |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| MIG devices:                                                                |
+------------------+----------------------+-----------+-----------------------+
|  1    3   0   0  |     12MiB /  5888MiB | 14      0 |  1   0    0    0    0 |
|                  |      0MiB /  8191MiB |           |                       |
+------------------+----------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|=============================================================================|
|    0   N/A  N/A      4100      C   /opt/my app/run me               805MiB |
|    1     3    0      4200      C   python                            12MiB |
+-----------------------------------------------------------------------------+
"""


def test_the_table_for_people(ask: Ask) -> None:
    told = ask(TABLE)
    assert told.told.complete
    assert told.node["driver.version"] == "535.261.03"
    assert told.values("product.name") == ["!unreadable", "NVIDIA A30"]
    assert told.values("power.draw") == [58, "!error"]
    assert told.values("power.limit") == [300, 165]
    assert told.values("errors.memory.uncorrected") == [2, "!not_reported"]
    assert told.values("ecc.enabled") == [True, True]
    assert told.values("partition.mode") == ["!not_supported", "mig"]
    assert told.values("fan.speed") == ["!not_supported", 0.31]
    assert told.values("processes")[0] == ({"pid": 4100, "name": "/opt/my app/run me", "kind": "C", "memory.used": 805 * 2**20},)
    assert told.plain(told.partitions[0])["memory.total"] == 5888 * 2**20
    assert not ask(TABLE[:-200]).told.complete
    older = TABLE.replace("   N/A  N/A      4100", "                4100").replace("     3    0      4200", "                4200")
    assert [len(p) for p in ask(older).values("processes")] == [1, 1]


def test_branch_610_says_versions_under_new_names(ask: Ask) -> None:
    text = 'NVIDIA-SMI version  : 610.80\nNVML version        : 610.80\nDRIVER version      : Deprecated, see "KMD version" instead\n'
    told = ask(text + 'CUDA version        : Deprecated, see "CUDA UMD version" instead\nKMD version         : 610.80.02\nCUDA UMD version    : 13.4\n')
    assert told.node == {"driver.version": "610.80.02", "runtime.version.max": "13.4", "runtime.name": "cuda", "runtime.library.version": "610.80"}
    assert told.cards == []
    listing = LONG.replace("Driver Version ", "KMD Version    ").replace("CUDA Version    ", "CUDA UMD Version")
    assert ask(listing).node["driver.version"] == "575.64.03"
    table = TABLE.replace("Driver Version", "KMD Version").replace("CUDA Version", "CUDA UMD Version")
    assert ask(table).node["runtime.version.max"] == "12.2"


def test_monitors_tell_the_last_sample(ask: Ask) -> None:
    head = "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk     fb\n"
    head += "# Idx      W      C      C      %      %      %      %    MHz    MHz     MB\n"
    samples = "    0     60     40      -     10      2      0      0   5001   1590   1000\n"
    samples += "    1     61     41     50      0      0      0      0    405    300      3\n"
    told = ask(head + samples * 2)
    assert told.told.format == "nvidia-smi-monitor"
    assert not told.told.complete
    assert told.values("power.draw") == [60, 61]
    assert told.values("temperature.memory") == ["!not_supported", 50]
    assert told.values("memory.used") == [1000 * 2**20, 3 * 2**20]
    rows = "    0     1200    C     40     2     -     -    train one\n    1        -    -      -     -     -     -    -\n"
    processes = ask("# gpu        pid  type    sm   mem   enc   dec   command\n# Idx          #   C/G     %     %     %     %   name\n" + rows)
    assert processes.values("processes") == [({"pid": 1200, "name": "train one", "kind": "C"},), ()]


def test_topology(ask: Ask) -> None:
    told = ask(
        "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \tNV4\tPXB\t0-15\t0\t\tN/A\n"
        "GPU1\tNV4\t X \tSYS\t16-31\tN/A\t\tN/A\nNIC0\tPXB\tSYS\t X \t\t\t\n\nLegend:\n\n  X    = Self\n"
    )
    assert told.values("link.peers") == [{"GPU1": "NV4", "NIC0": "PXB"}, {"GPU0": "NV4", "NIC0": "SYS"}]
    assert told.values("numa.node") == [0, "!not_supported"]


def test_profiles_are_a_catalogue_and_no_card(ask: Ask) -> None:
    told = ask("+----+\n| GPU instance profiles:                         |\n|   0  MIG 1g.12gb         19     7/7        10.75 |\n+----+\n")
    assert told.cards == []
    assert told.told.format == "nvidia-smi-profiles"
    assert not told.told.complete


def test_rows_of_processes_and_retired_pages(ask: Ask) -> None:
    head = "gpu_name, gpu_bus_id, gpu_uuid, pid, max_memory_usage [MiB], time [ms]\n"
    rows = f"NVIDIA A30, 00000000:2A:00.0, {UUID}, 11, 0 MiB, 812 ms\nNVIDIA A30, 00000000:2A:00.0, {UUID}, 12, 700 MiB, 0 ms\n"
    told = ask(head + rows)
    assert told.values("processes") == [({"pid": 12},)]
    assert not told.told.complete
    head = "gpu_uuid, gpu_bus_id, retired_pages.address, retired_pages.cause\n"
    pages = f"{UUID}, 00000000:2A:00.0, 0x0000000000012345, Double Bit ECC\n{UUID}, 00000000:2A:00.0, 0x0000000000012346, Single Bit ECC\n"
    assert ask(head + pages).values("memory.pages_retired") == [2]
    assert ask(head + f"{UUID}, 00000000:2A:00.0, [N/A], Single Bit ECC\n").values("memory.pages_retired") == ["!not_supported"]
    assert ask("pid, process_name, used_memory [MiB]\n12, python, 700 MiB\n", "nvidia-smi-csv").cards == []


def test_a_row_with_more_cells_than_columns_keeps_its_card(ask: Ask) -> None:
    told = ask(f"uuid, name, memory.total [MiB]\n{UUID}, Odd, Name, 100 MiB\nGPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f1, NVIDIA A30, 24576 MiB\n")
    assert told.values("memory.total") == ["!unreadable", 24576 * 2**20]
    assert told.told.outcome is Outcome.PARTIAL


def test_rows_without_a_header_keep_their_cards(ask: Ask) -> None:
    told = ask(f"0, NVIDIA A30, {UUID}, 00000000:2A:00.0, 24576\n1, NVIDIA A30, {UUID[:-1]}1, 00000000:2B:00.0, 24576\n")
    assert [told.names(card)["pci_address"] for card in told.cards] == ["0000:2a:00.0", "0000:2b:00.0"]
    assert told.values("memory.total") == [None, None]
    assert told.cards[0].vendor["column.4"] == "24576"
    assert not told.told.complete


def test_repeated_listings_tell_the_newer_values(ask: Ask) -> None:
    told = ask(f"uuid, temperature.gpu\n{UUID}, 40\n{UUID}, 41\n")
    assert told.values("temperature.core") == [41]
    again = LONG + LONG.replace("91 C", "71 C").replace("99.10 W", "70.50 W")
    assert ask(again).values("temperature.core") == [71]
    document = '<nvidia_smi_log><gpu id="00000000:2A:00.0"><temperature><gpu_temp>40 C</gpu_temp></temperature></gpu></nvidia_smi_log>\n'
    assert ask(document + document.replace("40 C", "41 C")).values("temperature.core") == [41]


def test_masked_identities_leave_the_address(ask: Ask) -> None:
    zeros = "GPU-00000000-0000-0000-0000-000000000000"
    told = ask(f"uuid, serial, pci.bus_id, memory.total [MiB]\n{zeros}, 0000000000000, 00000000:2A:00.0, 1 MiB\n{zeros}, [N/A], 00000000:2B:00.0, 1 MiB\n")
    assert [told.names(card) for card in told.cards] == [{"pci_address": "0000:2a:00.0"}, {"pci_address": "0000:2b:00.0"}]


def test_damaged_ids_are_no_ids(ask: Ask) -> None:
    ids = "<pci><pci_device_id>000000DE</pci_device_id><pci_sub_system_id>N/A</pci_sub_system_id></pci>"
    told = ask(f'<nvidia_smi_log><gpu id="00000000:2A:00.0">{ids}</gpu></nvidia_smi_log>')
    assert told.values("pci.device_id") == ["!unreadable"]
    assert told.values("pci.subsystem_device_id") == ["!not_supported"]
    assert not told.told.complete


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "index,name\n1,2\n",
        "GPU: 0\n    BDF: 0000:23:00.0\n",
        "+---+\n| other-smi 1.0  Driver Version: 3 |\n",
        "uuid: 4\nname: x\n",
        '{"a": 1}',
        "device,Temperature (Sensor edge) (C),GPU use (%)\ncard0,41.0,0\n",
        "# HELP other_metric x\nother_metric 1\n",
        "node,serial,asset_tag,uuid\nn1,S,A,U\n",
    ],
)
def test_texts_of_others_are_not_claimed(text: str) -> None:
    assert recognise(text.encode()) is None


def test_what_is_unreadable_says_so(ask: Ask) -> None:
    for form in ("nvidia-smi-xml", "nvidia-smi-csv", "nvidia-smi-q", "nvml-json", "nvidia-smi-table", "prometheus-text", "nvidia-smi-text", "nothing"):
        assert ask("\x00\xff garbage", form).told.outcome is Outcome.UNREADABLE
    assert ask("[" * 5000, "nvml-json").told.outcome is Outcome.UNREADABLE
    assert ask("[1]", "nvml-json").told.outcome is Outcome.UNREADABLE
    assert ask('{"count": 1}', "nvml-json").told.outcome is Outcome.UNREADABLE
