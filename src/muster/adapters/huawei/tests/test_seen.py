# SPDX-License-Identifier: Apache-2.0
"""What is told of versions and layouts never seen; what still reads is still given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.adapters.huawei import interpret
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, Outcome, SourceId

FOLDER = Path(__file__).resolve().parent.parent / "machines"
BOX = (FOLDER / "310p-duo" / "info.txt").read_text()
MAP = (FOLDER / "910c" / "info-m.txt").read_text()
SNAPSHOT = json.loads((FOLDER / "910c-library" / "snapshot.json").read_text())
VIEW = "NPU ID : 2\nChip Count : 1\n\nAicore Usage Rate(%) : 7\nHBM Capacity(MB) : 65536\nChip ID : 0\n"
PAGE = 'npu_chip_info_temperature{id="0",model_name="910B3"} 41\n'


def told(form: str, text: str) -> Interpretation:
    return interpret([Capture(source=SourceId("t"), locator=("t",), format=form, payload=text.encode())], {})


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("npu-smi-info", BOX),
        ("npu-smi-info", BOX.replace("25.5.1", "25.99.1")),
        ("npu-smi-mapping", MAP),
        ("npu-smi-view", VIEW),
        ("dcmi-json", json.dumps(SNAPSHOT)),
        ("prometheus-text", PAGE),
        ("prometheus-text", "machine_npu_nums 0\n"),
    ],
)
def test_what_was_seen_is_no_news(form: str, text: str) -> None:
    assert told(form, text).unknown_shape == ""


@pytest.mark.parametrize(
    ("form", "text", "news"),
    [
        ("npu-smi-info", BOX.replace("25.5.1", "99.9.9"), "npu-smi 99.9.9: newer than 26, the newest seen"),
        ("npu-smi-info", BOX.replace("25.5.1", "2.0.1"), "npu-smi 2.0.1: older than 20, the oldest seen"),
        ("npu-smi-info", BOX.replace("AICore(%)", "AITide(%)"), "column AITide(%) not known"),
        ("npu-smi-mapping", MAP.replace("Chip Logic ID", "Chip Berth ID"), "column Chip Berth ID not known"),
        ("npu-smi-view", VIEW.replace("Aicore Usage", "Turbine Spin"), "key Turbine Spin Rate(%) not known"),
        ("dcmi-json", json.dumps({**SNAPSHOT, "turbines": []}), "key turbines not known"),
        (
            "dcmi-json",
            json.dumps({**SNAPSHOT, "dcmi": {**SNAPSHOT["dcmi"], "driver_version": {"rc": 0, "value": "77.1"}}}),
            "driver 77.1: newer than 26, the newest seen",
        ),
        ("prometheus-text", PAGE.replace("temperature", "turbine"), "no metric family known, the first is npu_chip_info_turbine"),
    ],
)
def test_what_was_never_seen_is_told_and_the_values_are_given(form: str, text: str, news: str) -> None:
    found = told(form, text)

    assert found.unknown_shape == news
    assert found.outcome in (Outcome.DEVICES, Outcome.PARTIAL)
    assert found.observations


@pytest.mark.parametrize(
    ("form", "text", "version", "words"),
    [
        ("npu-smi-info", "| npu-smi 99.9.9  Version: 99.9.9 |\n| Berth  Mood | Tide |\n", "npu-smi 99.9.9", '"Berth Mood | Tide"'),
        ("npu-smi-info", "| npu-smi 25.5.1  Version: 25.5.1 |\n| NPU  Name | Health |\n", "npu-smi 25.5.1", 'nothing behind "NPU Name | Health"'),
        ("npu-smi-view", "NPU ID : x\nTurbine report 1.2.3\n", "report 1.2.3", '"Turbine report 1.2.3"'),
        ("dcmi-json", "oops 1.2\n", "", '"oops 1.2"'),
        ("prometheus-text", "# HELP x y\nturbine 3\n", "", '"turbine 3"'),
        ("npu-log", "Turbine report\n", "", '"Turbine report"'),
    ],
)
def test_a_text_that_does_not_read_says_its_version_and_what_did_not_fit(form: str, text: str, version: str, words: str) -> None:
    found = told(form, text)

    assert (found.outcome, found.tool_version) == (Outcome.UNREADABLE, version)
    assert words in found.detail
