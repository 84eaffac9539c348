# SPDX-License-Identifier: Apache-2.0
"""Recorded machines of ours: what is said of them stays as it was checked by hand, and no damage to a recording loses a card or invents a value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from muster.adapters.nvidia import recognise
from muster.domain.model.reading import Known
from muster.domain.model.source import Outcome
from muster.wiring.offline import interpret_folder

if TYPE_CHECKING:
    from muster.adapters.nvidia.tests.conftest import Answer, Ask

MACHINES = Path(__file__).resolve().parent.parent / "machines"
PAYLOADS = sorted(file for file in MACHINES.glob("*/*") if file.suffix in (".xml", ".prom", ".txt") or file.name == "snapshot.json")
OURS = [file for file in PAYLOADS if recognise(file.read_bytes()) not in (None, "kernel-log")]


@pytest.mark.parametrize("machine", sorted(path.name for path in MACHINES.iterdir()))
def test_machines_are_read_as_expected(machine: str) -> None:
    folder = MACHINES / machine
    told = [each for each in interpret_folder(folder, None) if each["adapter"] == "nvidia"]
    expected = [each for each in json.loads((folder / "expected.json").read_text()) if each["adapter"] == "nvidia"]
    assert json.loads(json.dumps(told)) == expected


def _facts(answer: Answer) -> dict[tuple[str, str], object]:
    values = {}
    for card in answer.cards:
        address = answer.names(card).get("pci_address") or answer.names(card).get("index", "")
        values.update({(address, key): r.value for key, r in card.readings.items() if isinstance(r, Known)})
    return values


@pytest.mark.parametrize("file", OURS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_harmless_damage_changes_nothing(ask: Ask, file: Path) -> None:
    payload = file.read_bytes()
    form = recognise(payload) or ""
    whole = ask(payload, form)
    half = len(payload) // 2
    for damaged in (
        payload.replace(b"\n", b"\r\n"),
        payload[:half] + b"\x00" + payload[half:],
        b"\xef\xbb\xbf" + payload,
        b"".join(line + line for line in payload.splitlines(keepends=True)),
    ):
        answer = ask(damaged, form)
        assert answer.told.outcome is whole.told.outcome
        assert _facts(answer) == _facts(whole)
        assert len(answer.partitions) == len(whole.partitions)


@pytest.mark.parametrize("file", OURS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_cut_recording_invents_nothing(ask: Ask, file: Path) -> None:
    payload = file.read_bytes()
    form = recognise(payload) or ""
    whole = _facts(ask(payload, form))
    for step in range(25):
        answer = ask(payload[: (step * 7919 * len(payload) // 100_003) % (len(payload) - 2)], form)
        told = _facts(answer)
        assert not answer.told.complete
        for (address, key), value in told.items():
            if (address, key) in whole and key not in ("energy.total", "processes"):
                assert value == whole[(address, key)], (address, key)


def test_one_broken_card_costs_no_other(ask: Ask) -> None:
    payload = (MACHINES / "a100-mig" / "qx.xml").read_bytes()
    broken = payload.replace(b"<product_brand>", b"<product_brand", 1)
    answer = ask(broken)
    assert len(answer.cards) == 4
    assert answer.told.outcome is Outcome.PARTIAL
    assert answer.values("memory.total")[1:] == [81920 * 2**20] * 3


def test_depth_and_entities_are_harmless(ask: Ask) -> None:
    deep = (
        b"<nvidia_smi_log><gpu id='00000000:2A:00.0'><uuid>GPU-1b2c3d4e-5f60-4172-8394-a5b6c7d8e9f0</uuid>"
        + b"<a>" * 5000
        + b"</a>" * 5000
        + b"</gpu></nvidia_smi_log>"
    )
    assert len(ask(deep).cards) == 1
    kind = b'<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    bomb = kind + b'<nvidia_smi_log><gpu id="00000000:2A:00.0"><uuid>&b;</uuid></gpu></nvidia_smi_log>'
    assert ask(bomb).told.outcome in (Outcome.PARTIAL, Outcome.UNREADABLE)
