# SPDX-License-Identifier: Apache-2.0
"""`muster interpret` on what it cannot read: the version printed, the first that did not fit, the formats known; and on folders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from muster.wiring.adapters import adapter, adapters

from .conftest import Muster

BANNER = "+------+\n| npu-smi 99.9.9   Version: 99.9.9 |\n+------+\n| Berth  Mood | Tide |\n+------+\n"


def written(folder: Path, text: str, name: str = "file.txt") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_text_that_no_format_fits(alone: Muster, tmp_path: Path) -> None:
    told = alone("interpret", written(tmp_path, "+====+\n| 1 |\n| Turbine overview |\nVersion: 4.5.6\n"))

    assert told.code == 1
    assert json.loads(told.out)["outcome"] == "unreadable"
    assert "tool version 4.5.6" in told.err
    assert '"Turbine overview"' in told.err
    for each in adapters():
        assert all(form in told.err for form in each.manifest.formats)


def test_a_layout_that_its_own_adapter_cannot_read(alone: Muster, tmp_path: Path) -> None:
    told = alone("interpret", written(tmp_path, BANNER))
    said = json.loads(told.out)

    assert (told.code, said["outcome"], said["tool_version"]) == (1, "unreadable", "npu-smi 99.9.9")
    assert said["unknown_shape"].startswith("npu-smi 99.9.9: newer than ")
    assert "tool version npu-smi 99.9.9" in told.err
    assert '"Berth Mood | Tide"' in told.err
    assert "formats known: huawei: " in told.err
    assert all(form in told.err for form in adapter("huawei").manifest.formats)


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("nvidia-smi-xml", "<nvidia_smi_log><driver_version>999.1</driver_version><turbine>1</turbine></nvidia_smi_log>", "999.1 <turbine>"),
        ("nvidia-smi-table", "| NVIDIA-SMI 999.10   Driver Version: 999.10 |\n| GPU  Name |\n| Berth  Mood |\n", "999.10 Berth"),
        ("nvidia-smi-q", "Turbine report\nVersion: 3.4.5\n", "3.4.5 Turbine"),
        ("nvml-json", '{"turbines": []}', "turbines"),
        ("amd-smi-json", '{"turbines": [{"version": "99.1.0"}]}', "99.1.0 turbines"),
        ("amd-smi-text", "AMD-SMI 99.1.0\nTURBINE: 3\n", "99.1.0 TURBINE"),
        ("dcmi-json", "turbine 3\n", "turbine"),
        ("npu-smi-view", "Turbine report 1.2.3\n", "1.2.3 Turbine"),
        ("npu-log", "Turbine report\n", "Turbine"),
        ("prometheus-text", "# HELP x y\nturbine_speed 3\n", "turbine_speed"),
        ("lspci", "Turbine report\n", "Turbine"),
        ("kernel-log", "Turbine report\n", "Turbine"),
    ],
)
def test_each_format_says_what_did_not_fit(alone: Muster, tmp_path: Path, form: str, text: str, words: str) -> None:
    owners = [each.manifest.name for each in adapters() if form in each.manifest.formats]
    for name in owners:
        told = alone("interpret", "--adapter", name, "--format", form, written(tmp_path, text))
        if told.code == 0:
            assert json.loads(told.out)["outcome"] != "unreadable"
            continue
        assert (told.code, told.err.count("\n")) == (1, 1)
        assert all(word in told.err for word in words.split())
        assert f"formats known: {name}: " in told.err


def test_control_characters_of_a_text_do_not_reach_the_terminal(alone: Muster, tmp_path: Path) -> None:
    assert "\u202e" not in alone("interpret", written(tmp_path, "odd \u202e text\n")).err


def test_an_empty_file_says_so(alone: Muster, tmp_path: Path) -> None:
    told = alone("interpret", written(tmp_path, ""))

    assert told.code == 1
    assert "nothing is in it" in told.err


def test_an_empty_folder_is_refused(alone: Muster, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    told = alone("interpret", str(tmp_path))

    assert (told.code, told.out) == (2, "")
    assert "there is no file in the folder" in told.err


def test_a_folder_of_texts_that_no_format_fits_is_unreadable(alone: Muster, tmp_path: Path) -> None:
    written(tmp_path, "12\n", "a.txt")
    written(tmp_path, "Turbine report 3.2.1\n", "b.txt")
    told = alone("interpret", str(tmp_path))

    assert told.code == 1
    assert [each["outcome"] for each in json.loads(told.out)] == ["unreadable"]
    assert "3.2.1" in told.err
    assert "Turbine" in told.err


@pytest.mark.parametrize(("name", "file"), [("amd", "mi300x-8/exporter.prom"), ("nvidia", "h100-8/dcgm.prom")])
def test_a_format_that_several_share_goes_to_the_one_that_knows_the_text(alone: Muster, name: str, file: str) -> None:
    path = adapter(name).folder / "machines" / file
    told = alone("interpret", "--format", "prometheus-text", str(path))
    said = json.loads(told.out)

    assert (told.code, said["adapter"], said["outcome"]) == (0, name, "devices")
    assert said["cards"]


def test_a_format_that_nobody_claims_goes_to_the_one_that_reads_most(alone: Muster, tmp_path: Path) -> None:
    text = (adapter("nvidia").folder / "machines" / "h100-8" / "dcgm.prom").read_text()
    late = written(tmp_path, "# HELP other_thing x\n" + "other_thing 1\n" * 20_000 + text)
    told = alone("interpret", "--format", "prometheus-text", late)

    assert (told.code, json.loads(told.out)["adapter"]) == (0, "nvidia")
    assert alone("interpret", "--format", "prometheus-text", written(tmp_path, "turbine_speed 3\n")).code == 1


def test_pipes_and_devices_are_refused(alone: Muster, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/null"):
        told = alone("interpret", path)
        assert (told.code, told.out) == (2, "")
        assert f"{path} is no regular file" in told.err
    assert alone("interpret", str(tmp_path)).code == 2
    (tmp_path / "machine.toml").write_text('about = "x"\n[node]\nname = "a"\n[[captures]]\nsource = "s"\nformat = "f"\nfile = "pipe"\n')
    assert "pipe is no regular file" in alone("interpret", str(tmp_path)).err
