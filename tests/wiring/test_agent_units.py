# SPDX-License-Identifier: Apache-2.0
"""The service units: well formed, hardened as far as their sources allow, and true to what the programs do."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.needs import lacks, program

from muster.wiring.agent import Settings, state_folder

UNITS = sorted((Path(__file__).resolve().parents[2] / "deploy" / "systemd").glob("*.service"))
EXPOSED = {"muster-agent.service": 3.0, "muster-server.service": 1.5}
"""The most that the judge of units may find, of 10."""


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    """What systemd-analyze says; under CI it must be there."""
    return subprocess.run([program("systemd-analyze"), *words], capture_output=True, text=True, check=False)


def test_both_units_are_there() -> None:
    assert {path.name for path in UNITS} == set(EXPOSED)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_the_unit_is_well_formed(unit: Path) -> None:
    said = analyze("verify", "--man=no", str(unit))
    ours = [line for line in said.stderr.splitlines() if unit.name in line and "is not executable" not in line]

    assert ours == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_the_unit_is_hardened(unit: Path) -> None:
    said = analyze("security", "--offline=true", "--no-pager", str(unit))
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said.stdout)
    if found is None and "unrecognized option" in said.stderr:
        lacks(f"this systemd-analyze does not judge files: {said.stderr.strip()}")

    assert found is not None, said.stderr
    assert float(found.group(1)) <= EXPOSED[unit.name]


def settings(unit: Path) -> list[tuple[str, str]]:
    """Its lines."""
    return [(name, value) for line in unit.read_text().splitlines() if "=" in line and line[0] not in "#[" for name, _, value in [line.partition("=")]]


def test_a_watchdog_is_asked_for_only_where_we_answer_it() -> None:
    (agent, server) = (dict(settings(path)) for path in UNITS)

    assert (agent["Type"], "WatchdogSec" in agent) == ("notify", True)
    assert (server["Type"], "WatchdogSec" in server) == ("exec", False)


def test_every_capability_says_which_source_needs_it() -> None:
    for unit in UNITS:
        words = "\n".join(line for line in unit.read_text().splitlines() if line.startswith("#"))
        for name in dict(settings(unit))["CapabilityBoundingSet"].split():
            assert re.search(rf"{name}: \S+", words), name


def test_the_state_lies_where_the_programs_look_and_apart() -> None:
    agent, server = (dict(settings(path)) for path in UNITS)
    told = Settings.of({})

    assert state_folder(told, {}).parent == Path("/var/lib") / agent["StateDirectory"] or os.geteuid() != 0
    assert f"MUSTER_STATE=%S/{server['StateDirectory']}" in server["Environment"]
    assert agent["StateDirectory"] != server["StateDirectory"]
