# SPDX-License-Identifier: Apache-2.0
"""Answers of which a part does not read: the rest stands, nothing else is taken in its place, and the listing is not whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.adapters.huawei import interpret, recognise
from muster.adapters.huawei.tests.test_npu_smi import MIB, TWO_DIES, level, read, value
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Interpretation
from muster.domain.model.reading import Absent, Why
from muster.domain.model.source import Capture, Outcome, SourceId

MACHINES = Path(__file__).resolve().parent.parent / "machines"
MAPPING = "NPU ID   Chip ID   Chip Logic ID   Chip Name\n4   0   0   Ascend 910B9\n5   0   1   Ascend 910B9\n"


def chip(**change: Any) -> Any:
    told = json.loads((MACHINES / "910c-library" / "snapshot.json").read_text())
    told["cards"][0]["devices"][0].update(change)
    return level(read(json.dumps(told), format_="dcmi-json"), Level.DEVICE)[0]


def test_an_error_is_no_word_on_what_memory_there_is() -> None:
    found = chip(hbm={"rc": -8006}, memory={"rc": 0, "value": {"memory_size": 21000, "memory_available": 20000}})
    none = chip(hbm={"rc": -8255}, memory={"rc": 0, "value": {"memory_size": 21000, "memory_available": 20000}})

    assert found.readings["memory.total"] == Absent(Why.TIMED_OUT, "ret is -8006 (time out)")
    assert value(none, "memory.total") == 21000 * MIB


@pytest.mark.parametrize("hbm", [None, {"rc": 0, "value": "N/A"}, {"rc": 0, "value": 5}, {"rc": "-", "value": {}}])
def test_memory_of_the_control_processors_never_stands_in(hbm: Any) -> None:
    found = chip(hbm=hbm, memory={"rc": 0, "value": {"memory_size": 21000, "memory_available": 20000}})

    for key in ("memory.total", "memory.used"):
        assert found.readings[key] == Absent(Why.UNREADABLE, "no answer on HBM")


def test_a_part_of_a_sum_that_does_not_read() -> None:
    counts = {"enable_flag": 1, "single_bit_isolated_pages_cnt": 3, "double_bit_isolated_pages_cnt": "N/A"}
    found = chip(ecc_hbm={"rc": 0, "value": counts}, ecc_ddr={"rc": -8255})

    reading = found.readings["memory.pages_retired"]

    assert isinstance(reading, Absent)
    assert (reading.why, "'N/A'" in reading.detail) == (Why.UNREADABLE, True)


def test_a_mapping_whose_id_does_not_read() -> None:
    assert read(MAPPING).complete
    found = read(MAPPING.replace("5   0   1", "N/A   0   1"))

    assert (len(level(found, Level.CARD)), found.complete) == (1, False)


def test_a_round_whose_summary_is_garbage() -> None:
    def both(summary: str) -> Interpretation:
        texts = {"npu-smi-info": summary, "npu-smi-mapping": MAPPING}
        return interpret([Capture(source=SourceId("t"), locator=(), format=form, payload=text.encode(), exit_status=0) for form, text in texts.items()], {})

    assert recognise(TWO_DIES.encode()) == "npu-smi-info"
    assert both("").outcome is Outcome.PARTIAL
    assert not both("core dumped\n").complete


def test_a_chip_id_that_does_not_read_makes_no_second_chip() -> None:
    view = "\tNPU ID                         : 2\n\tChip Count                     : 1\n\n\t{:<31}: {}\n\tChip ID                        : {}\n"
    texts = (view.format("Power Dissipation(W)", 90.5, 0), view.format("Temperature(C)", 51, "-"))
    captures = [Capture(source=SourceId("t"), locator=(), format="npu-smi-view", payload=text.encode()) for text in texts]
    found = interpret(captures, {})

    assert (len(level(found, Level.CARD)), len(level(found, Level.DEVICE))) == (1, 0)
    assert value(level(found, Level.CARD)[0], "power.draw") == 90.5


def test_an_exporter_that_tells_only_what_is_used() -> None:
    label = '{id="0",model_name="910B3",vdie_id="A1B2C3D4-00000001-00000002-00000003-00000004",pcie_bus_info="0000:C1:00.0"}'
    found = read(f"npu_chip_info_hbm_used_memory{label} 3351\n")
    none = read(f"npu_chip_info_hbm_total_memory{label} -1\nnpu_chip_info_hbm_used_memory{label} 3351\n")

    assert value(level(found, Level.CARD)[0], "memory.used") == 3351 * MIB
    assert level(none, Level.CARD)[0].readings["memory.total"] == Absent(Why.ERROR, "-1: the exporter could not read it")
