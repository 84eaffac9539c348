# SPDX-License-Identifier: Apache-2.0
"""What `muster scan` and `muster doctor` say of a tool that is not there while another source of its chain shows the cards: absent, and no failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.interfaces.cli.main import run
from muster.wiring.survey import Seen, survey

MACHINES = Path("src/muster/adapters/amd/machines")


def states(machine: Path, *, every: bool) -> dict[str, Seen]:
    """What each source of the maker's chain was found to be."""
    return {row.source: row for row in survey(machine, every=every, streams=every).seen()}


@pytest.mark.parametrize("every", [False, True])
def test_a_leader_that_is_not_there_is_absent_where_a_follower_speaks(every: bool) -> None:
    found = states(MACHINES / "apu", every=every)

    assert (found["amd.smi_library"].state, found["amd.smi_library"].why) == ("absent", "amd.sysfs speaks in its place")
    assert "amdsmi" in found["amd.smi_library"].detail
    assert "amd-smi-lib" in found["amd.smi_library"].help
    assert (found["amd.smi"].state, found["amd.sysfs"].state) == ("absent", "ok")
    assert len(found) == len(set(found))


def test_it_has_failed_where_nobody_speaks(tmp_path: Path) -> None:
    card = tmp_path / "sys/bus/pci/devices/0000:1b:00.0"
    card.mkdir(parents=True)
    for name, text in {"class": "0x120000", "vendor": "0x1002", "device": "0x74a1"}.items():
        (card / name).write_text(text + "\n")
    found = {row.source: row for row in survey(root=str(tmp_path)).seen()}

    assert {name: found[name].state for name in ("amd.smi_library", "amd.smi")} == {"amd.smi_library": "failed", "amd.smi": "failed"}
    assert found["pci.sysfs"].state == "ok"


def test_doctor_counts_an_absent_leader_as_no_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--machine", str(MACHINES / "mi250x"), "-o", "json"]) == 0
    rows = {row["source"]: row["state"] for row in json.loads(capsys.readouterr().out)["items"]}
    assert (rows["amd.smi_library"], rows["amd.smi"]) == ("absent", "ok")

    assert run(["scan", "--machine", str(MACHINES / "mi250x"), "-o", "wide"]) == 0
    out = capsys.readouterr().out
    assert "absent" in out
    assert "amd.smi speaks in its place" in out
    assert "failed" not in out
