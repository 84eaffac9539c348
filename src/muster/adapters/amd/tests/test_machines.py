# SPDX-License-Identifier: Apache-2.0
"""Each recorded machine gives what its `expected.json` says, and survives what happens to text on its way."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from muster.adapters.amd import interpret, recognise
from muster.domain.decide.fold import fold, ids
from muster.domain.model.source import Capture, Outcome, SourceId

MACHINES = sorted(path.parent for path in (Path(__file__).parent.parent / "machines").glob("*/machine.toml"))


def captures(machine: Path) -> dict[str, list[Capture]]:
    told: dict[str, list[Capture]] = {}
    for entry in tomllib.loads((machine / "machine.toml").read_text())["captures"]:
        if "file" in entry:
            payload = (machine / entry["file"]).read_bytes()
            told.setdefault(entry["source"], []).append(
                Capture(source=SourceId(entry["source"]), locator=tuple(entry["locator"]), format=entry["format"], payload=payload)
            )
    return told


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.name)
def test_names_are_as_expected(machine: Path) -> None:
    expected = [each for each in json.loads((machine / "expected.json").read_text()) if each["cards"]]
    found = [interpret(round_, {}) for round_ in captures(machine).values()]

    assert [told.outcome.value for told in found] == [each["outcome"] for each in expected]
    for told, each in zip(found, expected, strict=True):
        assert [ids(card.names) for card in fold(told.observations)] == [card["ids"] for card in each["cards"]]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.name)
def test_every_capture_is_recognised(machine: Path) -> None:
    for round_ in captures(machine).values():
        for capture in round_:
            assert recognise(capture.payload[:65536]) == capture.format


@pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.name)
def test_cut_anywhere_nothing_raises_and_nothing_is_invented(machine: Path) -> None:
    for round_ in captures(machine).values():
        whole = len(fold(interpret(round_, {}).observations))
        first = round_[0]
        for at in range(1, len(first.payload), max(1, len(first.payload) // 23)):
            cut = Capture(source=first.source, locator=first.locator, format=first.format, payload=first.payload[:at])
            told = interpret([cut], {})
            assert told.outcome in (Outcome.PARTIAL, Outcome.UNREADABLE, Outcome.DEVICES, Outcome.NO_DEVICES)
            assert len(fold(told.observations)) <= whole
