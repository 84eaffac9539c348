# SPDX-License-Identifier: Apache-2.0
"""What is told of versions and layouts never seen; what still reads is still given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.adapters.amd import interpret
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, Outcome, SourceId

FOLDER = Path(__file__).resolve().parent.parent / "machines"
ROWS = json.loads((FOLDER / "mi250x" / "static.json").read_text())
METRIC = (FOLDER / "mi250x" / "metric.json").read_text()
SNAPSHOT = json.loads((FOLDER / "mi300x-8" / "snapshot.json").read_text())
PAGE = (FOLDER / "mi300x-8" / "exporter.prom").read_text()
LIST = "GPU: 0\n    BDF: 0000:05:00.0\n    UUID: 3cff74a1-0000-1000-8091-a7705e2d1b04\n    KFD_ID: 20110\n"
VERSION = {"tool": "AMDSMI Tool", "version": "26.1.0+5df6c765", "amdsmi_library_version": "26.1.0", "rocm_version": "7.1.0"}


def told(form: str, *texts: str) -> Interpretation:
    return interpret([Capture(source=SourceId("t"), locator=("t",), format=form, payload=text.encode()) for text in texts], {})


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("amd-smi-json", json.dumps(ROWS)),
        ("amd-smi-json", METRIC),
        ("amd-smi-json", json.dumps([{**VERSION, "version": "26.9.0"}])),
        ("amd-smi-text", LIST),
        ("amdsmi-json", json.dumps(SNAPSHOT)),
        ("prometheus-text", PAGE),
    ],
)
def test_what_was_seen_is_no_news(form: str, text: str) -> None:
    assert told(form, text).unknown_shape == ""


@pytest.mark.parametrize(
    ("form", "text", "news"),
    [
        ("amd-smi-json", json.dumps(ROWS).replace('"asic"', '"silicon"'), "key silicon not known"),
        ("amd-smi-json", json.dumps({"gpu_berths": ROWS if isinstance(ROWS, list) else ROWS["gpu_data"]}), "key gpu_berths not known"),
        ("amd-smi-text", LIST + "    TURBINE:\n        SPIN: 3\n", "key turbine not known"),
        ("amdsmi-json", json.dumps({**SNAPSHOT, "turbines": 1}), "key turbines not known"),
        ("amdsmi-json", json.dumps({**SNAPSHOT, "amdsmi": {**SNAPSHOT["amdsmi"], "library": "99.1.0"}}), "amd-smi 99.1.0: newer than 26, the newest seen"),
    ],
)
def test_what_was_never_seen_is_told_and_the_values_are_given(form: str, text: str, news: str) -> None:
    found = told(form, text)

    assert found.unknown_shape == news
    assert found.outcome in (Outcome.DEVICES, Outcome.PARTIAL)
    assert found.observations


def test_the_version_of_one_answer_is_told_of_the_round() -> None:
    found = told("amd-smi-json", json.dumps(ROWS), json.dumps([{**VERSION, "version": "41.0.0"}]))

    assert (found.tool_version, found.unknown_shape) == ("41.0.0", "amd-smi 41.0.0: newer than 26, the newest seen")
    assert found.observations


@pytest.mark.parametrize(
    ("form", "text", "version", "words"),
    [
        ("amd-smi-text", "| AMD-SMI 99.9.9+ab   amdgpu version: 6.9   ROCm version: 9.9 |\n| Berth | Mood |\n", "99.9.9+ab", '"Berth | Mood"'),
        ("amd-smi-json", '{"turbines": [{"version": "1.2.3"}]}', "1.2.3", "key turbines"),
        ("amd-smi-text", "Turbine report\nVersion: 4.5\n", "4.5", '"Turbine report"'),
        ("rocm-smi-text", "Turbine report\n", "", '"Turbine report"'),
        ("prometheus-text", "# HELP x y\nturbine 3\n", "", '"turbine 3"'),
    ],
)
def test_a_text_that_does_not_read_says_its_version_and_what_did_not_fit(form: str, text: str, version: str, words: str) -> None:
    found = told(form, text)

    assert (found.outcome, found.tool_version) == (Outcome.UNREADABLE, version)
    assert words in found.detail
