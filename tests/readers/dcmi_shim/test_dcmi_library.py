# SPDX-License-Identifier: Apache-2.0
"""The library module against a management library of ours: values, lacking functions, every return code, a call that hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.needs import program

from muster.adapters.huawei import interpret
from muster.adapters.huawei.failures import CODES
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Interpretation, Observation
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Capture, Outcome, SourceId

HERE = Path(__file__).resolve().parent
SRC = HERE.parents[2] / "src"
CALL = "import json, sys; from muster.adapters.huawei.library import snapshot; print(json.dumps(snapshot(*sys.argv[1:])))"


def compiled(folder: Path, *switches: str) -> Path:
    gcc = program("gcc")
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([gcc, "-shared", "-fPIC", "-O1", *switches, "-o", str(folder / "libdcmi.so"), str(HERE / "libdcmi.c")], check=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("dcmi"))


def called(folder: Path, /, *, timeout: float = 20, settings: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(SRC), **{f"DCMI_SHIM_{key.upper()}": value for key, value in (settings or {}).items()}}
    return subprocess.run([sys.executable, "-c", CALL, str(folder)], capture_output=True, timeout=timeout, env=environment, check=False)


def read(folder: Path, **settings: str) -> Interpretation:
    done = called(folder, settings=settings)
    assert done.returncode == 0, done.stderr.decode()
    capture = Capture(source=SourceId("huawei.dcmi"), locator=("snapshot",), format="dcmi-json", payload=done.stdout)
    return interpret([capture], {})


def level(found: Interpretation, wanted: Level) -> list[Observation]:
    return [each for each in found.observations if each.subject.level is wanted]


def value(observation: Observation, key: str) -> Any:
    reading = observation.readings[key]
    assert isinstance(reading, Known), f"{key}: {reading}"
    return reading.value


def test_two_cards_of_one_chip(shim: Path) -> None:
    found = read(shim)
    cards = level(found, Level.CARD)

    assert (found.outcome, found.complete, len(cards)) == (Outcome.DEVICES, True, 2)
    assert {n.canonical for n in cards[1].subject.names} == {"1", "shim770001", "0000:43:00.0", "0a10c0de11223344000000015566778899aa0001"}
    assert value(cards[0], "product.name") == "910B3"
    assert value(cards[0], "memory.total") == 65536 * 1024**2
    assert value(cards[0], "memory.used") == 3000 * 1024**2
    assert value(cards[0], "power.draw") == 91.5
    assert value(cards[0], "voltage.core") == 0.88
    assert value(cards[0], "clock.core") == 800_000_000
    assert value(cards[0], "utilization.core") == 0.57
    assert value(cards[0], "errors.memory.corrected.lifetime") == 12
    assert value(cards[0], "memory.pages_retired") == 4
    assert value(cards[0], "fault.codes") == []
    assert value(cards[1], "health.reported") == "warning"
    assert value(cards[1], "fault.codes") == ["80E01801"]
    assert value(cards[1], "processes") == [{"pid": 4101, "memory.used": 1073741824}]
    assert value(cards[0], "pci.device_id") == "d802"


def test_two_dies_share_one_power_sensor(shim: Path) -> None:
    found = read(shim, chips="2", cards="2")
    cards, devices = level(found, Level.CARD), level(found, Level.DEVICE)

    assert (len(cards), len(devices)) == (2, 4)
    assert sum(value(card, "power.draw") for card in cards) == 91.5 + 92.5
    assert devices[1].readings["power.draw"] == Absent(Why.NOT_PRESENT, "one sensor for the card")
    assert sorted(n.value for d in devices for n in d.subject.names if n.kind == "pci_address") == [
        "0000:41:00.0", "0000:43:00.0", "0000:45:00.0", "0000:47:00.0",
    ]  # fmt: skip


def test_two_chips_behind_one_address(shim: Path) -> None:
    found = read(shim, chips="2", cards="1", address="shared")

    assert [n.value for n in level(found, Level.CARD)[0].subject.names if n.kind == "pci_address"] == ["0000:41:00.0"]
    assert all(n.kind != "pci_address" for device in level(found, Level.DEVICE) for n in device.subject.names)


def test_functions_that_an_old_driver_lacks(tmp_path: Path) -> None:
    folder = compiled(tmp_path / "old", "-DWITHOUT_NEW", "-DWITHOUT_HBM")
    card = level(read(folder), Level.CARD)[0]

    assert value(card, "product.name") == "910B3"
    assert value(card, "memory.total") == 21525 * 1024**2
    assert "temperature.memory" not in card.readings


@pytest.mark.parametrize("code", sorted(c for c in CODES if c > -90000))
def test_every_return_code_costs_only_its_own_value(shim: Path, code: int) -> None:
    found = read(shim, rc=f"dcmi_get_device_temperature={code},dcmi_get_device_power_info={code},dcmi_get_device_health={code}")
    cards = level(found, Level.CARD)

    assert (found.outcome, len(cards)) == (Outcome.DEVICES, 2)
    for card in cards:
        for key in ("temperature.core", "power.draw", "health.reported"):
            reading = card.readings[key]
            assert isinstance(reading, Absent)
            assert reading.why is CODES[code][0]
            assert str(code) in reading.detail
        assert value(card, "memory.total") == 65536 * 1024**2


@pytest.mark.parametrize(
    ("codes", "outcome", "complete"),
    [
        ("dcmi_init=-8005", Outcome.DRIVER_UNUSABLE, False),
        ("dcmi_init=-8002", Outcome.NOT_PERMITTED, False),
        ("dcmi_init=-8020", Outcome.DRIVER_UNUSABLE, False),
        ("dcmi_get_card_list=-8008", Outcome.NO_DEVICES, True),
        ("dcmi_get_card_list=-8009", Outcome.DRIVER_UNUSABLE, False),
        ("dcmi_get_device_id_in_card=-8012", Outcome.PARTIAL, True),
    ],
)
def test_what_a_failure_stands_for(shim: Path, codes: str, outcome: Outcome, complete: bool) -> None:
    found = read(shim, rc=codes)

    assert (found.outcome, found.complete) == (outcome, complete)
    assert codes.partition("=")[2] in found.detail


def test_no_cards(shim: Path) -> None:
    assert read(shim, cards="0").outcome is Outcome.NO_DEVICES


@pytest.mark.parametrize("function", ["dcmi_init", "dcmi_get_device_health"])
def test_a_call_that_hangs_is_ended_from_outside(shim: Path, function: str) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        called(shim, timeout=1.5, settings={"hang": function})


def test_no_library_says_where_it_looked(tmp_path: Path) -> None:
    done = called(tmp_path)

    assert done.returncode != 0
    assert b"cannot open shared object file" in done.stderr
    assert str(tmp_path).encode() in done.stderr


def test_answers_are_plain_json(shim: Path) -> None:
    told = json.loads(called(shim, settings={"cards": "1"}).stdout)

    assert told["dcmi"]["init"] == {"rc": 0}
    assert told["cards"][0]["devices"][0]["ecc_ddr"] == {"rc": -8255}
    assert len(told["cards"][0]["devices"]) == 1
