# SPDX-License-Identifier: Apache-2.0
"""Cases from the field, with inputs of ours: units, renamed groups, markers, repeated card readings, decimal commas, spellings of one address."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from muster.adapters.nvidia.tests.conftest import Ask

ID = "GPU-7d0c4b1a-0000-4000-8000-0000000000"


def test_one_power_told_by_three_layouts_is_one_power(ask: Ask) -> None:
    told = [
        ask(json.dumps({"count": 1, "nvml_version": "12", "gpus": [{"index": 0, "uuid": ID + "01", "power_usage": 98700, "enforced_limit": 300000}]})),
        ask(f"uuid, power.draw [W], power.limit [W]\n{ID}01, 98.70 W, 300.00 W\n"),
        ask(f"uuid, power.draw, power.limit\n{ID}01, 98.70, 300.00\n"),
        ask(f"{ID}01, 98.70, 300.00\n", locator=["nvidia-smi", "--query-gpu=uuid,power.draw,power.limit", "--format=csv,noheader,nounits"]),
    ]
    assert {one.values("power.draw")[0] for one in told} == {98.7}
    assert {one.values("power.limit")[0] for one in told} == {300}
    assert [one.told.complete for one in told] == [True, False, False, True]


def test_a_power_above_twice_the_limit_is_not_shown_as_a_fact(ask: Ask) -> None:
    told = ask(f"uuid, power.draw, power.limit\n{ID}01, 987.0, 300.00\n")
    assert told.values("power.draw") == ["!implausible"]


OLD = "<power_readings><power_draw>47.30 W</power_draw><power_limit>280.00 W</power_limit></power_readings>"
BETWEEN = "<gpu_power_readings><power_draw>47.30 W</power_draw><current_power_limit>280.00 W</current_power_limit></gpu_power_readings>"
NEW = (
    "<gpu_power_readings><average_power_draw>46.90 W</average_power_draw><instant_power_draw>47.30 W</instant_power_draw>"
    "<current_power_limit>280.00 W</current_power_limit></gpu_power_readings>"
    "<module_power_readings><instant_power_draw>N/A</instant_power_draw></module_power_readings>"
)


@pytest.mark.parametrize(("group", "average"), [(OLD, None), (BETWEEN, None), (NEW, 46.9)])
def test_renamed_power_groups_give_the_same_power(ask: Ask, group: str, average: float | None) -> None:
    told = ask(f'<nvidia_smi_log><attached_gpus>1</attached_gpus><gpu id="00000000:4A:00.0"><uuid>{ID}02</uuid>{group}</gpu></nvidia_smi_log>')
    assert told.values("power.draw") == [47.3]
    assert told.values("power.limit") == [280]
    assert told.values("power.draw.average") == [average]
    assert told.values("power.module") in ([None], ["!not_supported"])


MARKERS = f"""uuid, utilization.gpu [%], temperature.gpu, power.draw [W], clocks.max.sm [MHz], fan.speed [%], memory.total [MiB]
{ID}31, 0 %, 41, 71.90 W, 1755 MHz, [N/A], 46068 MiB
{ID}32, [N/A], 42, 72.00 W, [N/A], N/A, 46068 MiB
{ID}33, 20 %, 43, [Not Supported], 1755 MHz, 41 %, 46068 MiB
{ID}34, 40 %, 44, [Unknown Error], 1755 MHz, 41 %, 46068 MiB
{ID}35, [GPU requires reset], [GPU requires reset], [GPU requires reset], 1755 MHz, ERR!, 46068 MiB
{ID}36, [Insufficient Permissions], [Requested functionality has been deprecated], , 1755 MHz, 0 %, 46068 MiB
"""


def test_every_spelling_of_no_value_keeps_its_reason(ask: Ask) -> None:
    told = ask(MARKERS)
    assert told.values("utilization.core") == [0, "!not_supported", 0.2, 0.4, "!device_lost", "!not_permitted"]
    assert told.values("power.draw") == [71.9, 72, "!not_supported", "!error", "!device_lost", "!not_sampled"]
    assert told.values("temperature.core") == [41, 42, 43, 44, "!device_lost", "!moved"]
    assert told.values("fan.speed") == ["!not_supported", "!not_supported", 0.41, 0.41, "!error", 0]
    assert told.values("recovery.action") == [None, None, None, None, "reset", None]


SLICES = "".join(
    f'power_usage{{gpu="0",UUID="{ID}51",GPU_I_ID="{gi}",GPU_I_PROFILE="1g.10gb"}} 208.25\n'
    f'total_energy_consumption{{gpu="0",UUID="{ID}51",GPU_I_ID="{gi}",GPU_I_PROFILE="1g.10gb"}} {energy}\n'
    f'fb_used{{gpu="0",UUID="{ID}51",GPU_I_ID="{gi}",GPU_I_PROFILE="1g.10gb"}} {gi}00\n'
    for gi, energy in ((7, 81000000), (8, 81000090), (9, 81000000))
)


@pytest.mark.parametrize("prefix", ["DCGM_FI_DEV_", "dcgm_", ""])
def test_card_readings_repeated_on_each_slice_are_read_once(ask: Ask, prefix: str) -> None:
    rows = [line.partition("{") for line in SLICES.splitlines()]
    text = "".join(f"{prefix}{name.upper() if prefix.isupper() else name}{brace}{rest}\n" for name, brace, rest in rows)
    told = ask(text, "prometheus-text")
    assert told.values("power.draw") == [208.25]
    assert told.values("energy.total") == [81000.09]
    assert told.values("memory.used") == [None]
    assert [told.plain(one)["memory.used"] for one in told.partitions] == [700 * 2**20, 800 * 2**20, 900 * 2**20]
    assert all("power.draw" not in one.readings for one in told.partitions)


def test_decimal_commas(ask: Ask) -> None:
    rows = f"{ID}81;64,18 W;300,00 W;2048 MiB;38\n{ID}82;1.064,50 W;1.200,00 W;2048 MiB;39\n{ID}83;64.5 W;300.00 W;2,048 MiB;40\n"
    told = ask("uuid;power.draw;power.limit;memory.used;temperature.gpu\n" + rows)
    assert told.values("power.draw") == [64.18, 1064.5, 64.5]
    assert told.values("power.limit") == [300, 1200, 300]
    assert told.values("memory.used") == [2048 * 2**20] * 3
    alone = ask(f"uuid;memory.used;temperature.gpu\n{ID}84;2,048 MiB;40\n")
    assert alone.values("memory.used") == ["!unreadable"]


def test_seven_spellings_are_two_addresses(ask: Ask) -> None:
    one = ask(f"uuid, pci.bus_id, memory.total [MiB]\n{ID}91, 00000000:3B:00.0, 1024 MiB\n{ID}92, 00007FA1:00:00.0, 1024 MiB\n")
    assert [one.names(card)["pci_address"] for card in one.cards] == ["0000:3b:00.0", "7fa1:00:00.0"]
    log = "".join(
        f"NVRM: Xid ({text}): 63, pid='<unknown>', name=<unknown>, Row Remapper\n" for text in ("PCI:0000:3b:00", "0000:3B:00", "PCI:00000000:3B:00.0")
    )
    assert [address for _, _, address in ask(log).events] == ["0000:3b:00.0"] * 3
