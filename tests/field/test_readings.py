# SPDX-License-Identifier: Apache-2.0
"""Field cases on values: one state told in several units, renamed groups, markers, repeated readings, memory of the host, decimal commas, two dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.domain.decide.fold import FoldedCard, fold
from muster.domain.decide.view import total
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.observation import Interpretation, Role
from muster.domain.model.roll import FindingKind
from tests.field.given import given, rows
from tests.field.site import Site, understand, value

MIB = 2**20


def cards(told: Interpretation) -> tuple[FoldedCard, ...]:
    return fold(told.observations)


def values(told: Interpretation, key: str) -> list[Any]:
    return [value(card.readings.get(key)) for card in cards(told)]


def _powers(row: dict[str, Any]) -> Interpretation:
    """The row in the form in which its tool tells it."""
    uuid = row["uuid"]
    match row["from"]:
        case "nvml":
            gpu = {"index": 0, "uuid": uuid, "power_usage": row["power_usage"], "enforced_limit": row["enforced_limit"]}
            return understand("nvidia", json.dumps({"count": 1, "nvml_version": "12", "gpus": [gpu]}))
        case "hwmon":
            root = "/sys/class/drm/card0/device"
            hwmon = f"{root}/hwmon/hwmon3"
            ids = f"{root}/vendor: 0x1002\n{root}/device: 0x744c\n{root}/uevent: DRIVER=amdgpu\n{root}/uevent: PCI_SLOT_NAME=0000:03:00.0\n"
            return understand(
                "amd",
                f"{ids}{hwmon}/name: amdgpu\n{hwmon}/power1_average: {row['power1_average']}\n{hwmon}/power1_cap: {row['power1_cap']}\n",
                form="sysfs-tree",
            )
        case _:
            return understand("nvidia", f"uuid, power.draw, power.limit\n{uuid}, {row['power.draw']}, {row['power.limit']}\n")


@given("FC-01-power-units.jsonl", ours=(212.75, 350), shared=(161.3, 250))
def test_fc_01_one_power_in_several_units(path: Path, right: tuple[float, float]) -> None:
    told = [_powers(row) for row in rows(path) if row["from"] != "redfish"]

    assert {each for one in told for each in values(one, "power.draw")} == {right[0]}
    assert {each for one in told for each in values(one, "power.limit")} == {right[1]}


def test_fc_01_a_power_far_above_the_limit_is_no_fact() -> None:
    told = understand("nvidia", "uuid, power.draw, power.limit\nGPU-f1e1d001-0000-4000-8000-000000000001, 212750, 350\n")

    assert values(told, "power.draw") == ["!implausible"]


@given("FC-02-new.xml", ours=(133.7, 131.05, 310), shared=(61.2, 60.4, 250))
def test_fc_02_a_renamed_group_is_the_same_power(path: Path, right: tuple[float, float, float]) -> None:
    new, old = (understand("nvidia", (path.parent / name).read_bytes()) for name in (path.name, "FC-02-old.xml"))

    assert values(new, "power.draw") == values(old, "power.draw") == [right[0]]
    assert values(new, "power.draw.average") == [right[1]]
    assert values(new, "power.limit") == values(old, "power.limit") == [right[2]]
    assert values(new, "power.module") == ["!not_supported"]


@given("FC-02-new.xml", ours="driver 530.41.07 to 556.12.03", shared="driver 525.10.01 to 555.20.02")
def test_fc_02_a_field_that_is_gone_is_a_drift_and_names_both_drivers(path: Path, right: str) -> None:
    site = Site()
    new = path.read_text()
    start, end = new.index("<gpu_power_readings>"), new.index("</gpu_power_readings>") + len("</gpu_power_readings>")
    bare = new[:start] + "<gpu_power_readings><power_state>P0</power_state></gpu_power_readings>" + new[end:]
    site.text(0, "n1", "nvidia", (path.parent / "FC-02-old.xml").read_bytes())
    site.text(60, "n1", "nvidia", bare)

    drifts = [each for each in site.findings() if each.kind is FindingKind.ADAPTER_DRIFT]
    assert "power.draw" in {each.attribute for each in drifts}
    assert all(right in each.about for each in drifts)
    assert value(site.cards()[0].readings["power.draw"].reading) != 0


@given("FC-03-markers.csv", ours=[0, None, 0.3, 0.45, None], shared=[0, None, 0.12, 0.13, None])
def test_fc_03_no_spelling_of_no_value_is_a_zero(path: Path, right: list[float | None]) -> None:
    told = understand("nvidia", path.read_bytes())
    known = [each for each in values(told, "utilization.core") if isinstance(each, int | float)]

    assert values(told, "utilization.core") == [right[0], "!not_supported", *right[2:4], "!device_lost"]
    assert sum(known) / len(known) == pytest.approx(sum(each for each in right if each is not None) / 3)
    assert values(told, "power.draw")[2:] == ["!not_supported", "!error", "!device_lost"]
    assert values(told, "fan.speed")[:2] == ["!not_supported"] * 2
    assert values(told, "fan.speed")[4] == "!error"
    assert values(told, "clock.core.max")[1] == "!not_supported"
    assert values(told, "temperature.core")[4] == "!device_lost"
    assert values(told, "recovery.action") == [None, None, None, None, "reset"]


@given("FC-04-two-power-columns.csv", ours=[22, 305], shared=[17, 212])
def test_fc_04_a_later_marker_wipes_out_nothing(path: Path, right: list[float]) -> None:
    told = understand("amd", path.read_bytes())

    assert values(told, "power.draw")[:2] == right
    assert values(told, "power.draw.average")[0] == right[0]
    assert str(values(told, "power.draw")[2]).startswith("!")


@given("FC-05-mig-prom.txt", ours=(201.25, 9000012.5, 5), shared=(112.5, 5000005.4, 4))
def test_fc_05_a_reading_of_the_card_told_by_each_slice_is_one(path: Path, right: tuple[float, float, int]) -> None:
    text = path.read_text().replace("total_energy_mj", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION").replace("power_usage", "DCGM_FI_DEV_POWER_USAGE")
    told = understand("nvidia", text)

    assert values(told, "power.draw") == [right[0]]
    assert values(told, "energy.total") == [right[1]]
    parts = cards(told)[0].partitions
    assert len(parts) == right[2]
    assert all("power.draw" not in part.readings and "energy.total" not in part.readings for part in parts)


def test_fc_06_memory_in_use_and_memory_busy_are_two_names() -> None:
    text = "DCGM_FI_DEV_FB_USED{u} 31566\nDCGM_FI_DEV_FB_FREE{u} 1202\nDCGM_FI_DEV_MEM_COPY_UTIL{u} 2\n".replace(
        "{u}", '{gpu="0",UUID="GPU-f1e1d006-0000-4000-8000-000000000001"}'
    )
    told = understand("nvidia", text)
    used, free = values(told, "memory.used")[0], values(told, "memory.free")[0]

    assert used / (used + free) == pytest.approx(0.9633, abs=1e-4)
    assert values(told, "utilization.memory_bandwidth") == [0.02]
    assert "memory controller" in ATTRIBUTES["utilization.memory_bandwidth"].about
    assert "memory.used" in ATTRIBUTES
    assert "utilization.memory" not in ATTRIBUTES


@given("FC-07-amdgpu-sysfs.json", ours=(21458059264, 536870912), shared=(34342961152, 2147483648))
def test_fc_07_memory_of_the_host_is_never_the_cards(path: Path, right: tuple[int, int]) -> None:
    lines = []
    for number, each in enumerate(json.loads(path.read_text())["cards"]):
        root = f"/sys/class/drm/card{number}/device"
        lines += [f"{root}/vendor: 0x1002", f"{root}/uevent: DRIVER=amdgpu", f"{root}/uevent: PCI_SLOT_NAME={each['bdf']}"]
        lines += [f"{root}/{name}: {each[name]}" for name in ("device", "class", "mem_info_vram_total", "mem_info_gtt_total", "mem_info_vram_vendor")]
    told = understand("amd", "\n".join(lines) + "\n", form="sysfs-tree")
    big, small = cards(told)

    assert [value(each.readings["memory.total"]) for each in (big, small)] == list(right)
    assert (big.role is Role.DISPLAY, small.role is Role.DISPLAY) == (False, True)


@given("FC-08-decimal-comma.csv", ours=([61.07, 1006.25, 71.5], [300, 1000, 300], 2048), shared=([228.82, 1028.5, 96.5], [250, 1200, 250], 1024))
def test_fc_08_decimal_commas(path: Path, right: tuple[list[float], list[float], int]) -> None:
    told = understand("nvidia", path.read_bytes())

    assert values(told, "power.draw") == right[0]
    assert values(told, "power.limit") == right[1]
    assert values(told, "memory.used")[2] == right[2] * MIB


def test_fc_08_a_number_that_may_be_two_is_none() -> None:
    told = understand("nvidia", "uuid;memory.used;temperature.gpu\nGPU-f1e1d008-0000-4000-8000-000000000003;2,048 MiB;46\n")

    assert values(told, "memory.used") == ["!unreadable"]


@given("FC-13-npu-two-dies.txt", ours=[201.3, 199.9], shared=[170.5, 168.0])
def test_fc_13_two_dies_on_one_board(path: Path, right: list[float]) -> None:
    told = understand("huawei", path.read_bytes())
    boards = cards(told)
    dies = [device for board in boards for device in board.devices]

    assert (len(boards), len(dies)) == (2, 4)
    assert [next(n.value for n in die.names if n.kind == "index") for die in dies] == ["0", "1", "2", "3"]
    assert values(told, "power.draw") == right
    assert [value(die.readings.get("power.draw")) for die in dies] == [None, "!not_present", None, "!not_present"]
    assert [value(die.readings["health.reported"]) for die in dies] == ["ok", "ok", "warning", "ok"]
    assert sum(value(die.readings["memory.total"]) for die in dies) == 4 * 65536 * MIB
    assert all(value(die.readings["memory.used"]) > 0 for die in dies)


@given("FC-13-npu-two-dies.txt", ours=401.2, shared=338.5)
def test_fc_13_the_fleet_counts_the_power_of_a_board_once(path: Path, right: float) -> None:
    site = Site()
    site.text(0, "n1", "huawei", path.read_bytes())

    assert total(site.cards(), "power.draw") == pytest.approx(right)
    assert total(site.cards(), "memory.total") == 4 * 65536 * MIB
