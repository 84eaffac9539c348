# SPDX-License-Identifier: Apache-2.0
"""What is told of versions and layouts never seen; what still reads is still given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.adapters.nvidia import interpret
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, Outcome, SourceId

FOLDER = Path(__file__).resolve().parent.parent / "machines"
LONG = (FOLDER / "a100-mig" / "qx.xml").read_text()
SNAPSHOT = json.loads((FOLDER / "h100-8" / "snapshot.json").read_text())
PAGE = (FOLDER / "h100-8" / "dcgm.prom").read_text()
UUID = "GPU-7c51aa02-0000-4000-8000-00000000a001"
COLUMNS = "index, uuid, driver_version, memory.total [MiB], temperature.gpu, power.draw [W], clocks_event_reasons_counters.sw_power_cap [us]"
ROW = f"0, {UUID}, 570.86.10, 81559 MiB, 41, 88.10 W, 12 us"
TABLE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 535.261.03    Driver Version: 535.261.03    CUDA Version: 12.2    |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA L4           Off  | 00000000:21:00.0 Off |                    0 |
| N/A   41C    P8    12W /  72W |      1MiB / 23034MiB |      0%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
"""


def told(form: str, text: str) -> Interpretation:
    return interpret([Capture(source=SourceId("t"), locator=("t",), format=form, payload=text.encode())], {})


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("nvidia-smi-xml", LONG),
        ("nvml-json", json.dumps(SNAPSHOT)),
        ("prometheus-text", PAGE),
        ("nvidia-smi-csv", f"{COLUMNS}\n{ROW}\n"),
        ("nvidia-smi-table", TABLE),
        ("nvidia-smi-table", TABLE.replace("535.261.03", "535.999.99")),
        ("nvidia-smi-version", "NVIDIA-SMI version  : 610.80\nDRIVER version      : Deprecated, see below\nKMD version         : 610.80\n"),
    ],
)
def test_what_was_seen_is_no_news(form: str, text: str) -> None:
    assert told(form, text).unknown_shape == ""


@pytest.mark.parametrize(
    ("form", "text", "news"),
    [
        ("nvidia-smi-xml", LONG.replace("nvsmi_device_v1", "nvsmi_device_v9"), "document type 9"),
        ("nvidia-smi-xml", LONG.replace("<attached_gpus>", "<turbines>3</turbines>\n\t<attached_gpus>"), "element <turbines> not known"),
        ("nvidia-smi-xml", LONG.replace("nvidia_smi_log", "turbine_log"), "element <turbine_log> not known"),
        ("nvidia-smi-table", TABLE.replace("535.261.03", "935.261.03"), "driver 935.261.03: newer than 610, the newest seen"),
        ("nvidia-smi-table", TABLE.replace("535.261.03", "99.261.03"), "driver 99.261.03: older than 304, the oldest seen"),
        ("nvidia-smi-table", TABLE.replace("Memory-Usage", "Memory-Tides"), "column Memory-Tides not known"),
        ("nvidia-smi-csv", f"{COLUMNS}, turbine.spin [Hz]\n{ROW}, 3 Hz\n", "column turbine.spin not known"),
        ("nvidia-smi-csv", f"{COLUMNS}\n{ROW}\n".replace("570.86", "970.86"), "driver 970.86.10: newer than 610, the newest seen"),
        ("nvml-json", json.dumps({**SNAPSHOT, "turbines": []}), "key turbines not known"),
        ("nvml-json", json.dumps({**SNAPSHOT, "driver_version": "901.1"}), "driver 901.1: newer than 610, the newest seen"),
        ("prometheus-text", f'DCGM_FI_TURBINE{{gpu="0",UUID="{UUID}"}} 3\n', "no metric family known, the first is DCGM_FI_TURBINE"),
        ("prometheus-text", PAGE.replace('DCGM_FI_DRIVER_VERSION="', 'DCGM_FI_DRIVER_VERSION="9'), "driver 9"),
        ("nvidia-smi-version", "NVIDIA-SMI version  : 999.80\n", "driver 999.80: newer than 610, the newest seen"),
    ],
)
def test_what_was_never_seen_is_told_and_the_values_are_given(form: str, text: str, news: str) -> None:
    found = told(form, text)

    assert found.unknown_shape.startswith(news)
    assert found.outcome is not Outcome.UNREADABLE
    assert found.observations or form == "nvidia-smi-version"


@pytest.mark.parametrize(
    ("form", "text", "version", "words"),
    [
        ("nvidia-smi-xml", LONG.replace("<gpu ", "<turbine ").replace("</gpu>", "</turbine>"), "", "element <turbine> not known"),
        ("nvidia-smi-xml", LONG[: LONG.index("<gpu ")], "", "nothing behind"),
        ("nvidia-smi-table", TABLE.replace("|   0  NVIDIA", "|  zero NVIDIA"), "535.261.03", '"zero NVIDIA L4 Off'),
        ("nvidia-smi-q", "Turbine report\nVersion: 1.2.3\n", "1.2.3", '"Turbine report"'),
        ("nvidia-smi-table", "| NVIDIA-SMI 999.10.01 |\n| Berth |\n", "NVIDIA-SMI 999.10.01", "Berth"),
        ("nvml-json", "oops", "", '"oops"'),
        ("nvidia-smi-csv", "spin, mood\n1, 2\n", "", '"spin, mood"'),
        ("prometheus-text", "# HELP x y\nturbine 3\n", "", "turbine"),
    ],
)
def test_a_text_that_does_not_read_says_its_version_and_what_did_not_fit(form: str, text: str, version: str, words: str) -> None:
    found = told(form, text)

    assert found.outcome is Outcome.UNREADABLE
    assert words in found.detail
    assert found.tool_version == version or (not version and found.tool_version)


def test_a_version_of_the_tool_alone_is_compared_too() -> None:
    assert "driver 999.10.01: newer" in told("nvidia-smi-table", "| NVIDIA-SMI 999.10.01 |\n| Berth |\n").unknown_shape
