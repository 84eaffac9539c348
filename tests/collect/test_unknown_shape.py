# SPDX-License-Identifier: Apache-2.0
"""A tool of a version or layout never seen opens a finding in the roll, its cards stay, and the finding closes when the tool is known again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collect.test_agent import Made
from tests.collect.world import Told

from muster.domain.model.policy import Policy
from muster.domain.model.roll import FindingKind
from muster.services.inventory import Inventory
from muster.store import Store, open_store
from muster.wire.lanes import older
from muster.wiring.adapters import TREE, adapter

BOX = (TREE / "huawei" / "machines" / "310p-duo" / "info.txt").read_bytes()
LONG = (TREE / "nvidia" / "machines" / "a100-mig" / "qx.xml").read_bytes()
ROWS = (TREE / "amd" / "machines" / "mi250x" / "static.json").read_bytes()
CASES = [
    ("huawei", "huawei.npu_smi", BOX, BOX.replace(b"25.5.1", b"99.9.9"), "npu-smi 99.9.9: newer than 26, the newest seen"),
    ("nvidia", "nvidia.smi", LONG, LONG.replace(b"nvsmi_device_v1", b"nvsmi_device_v9"), "document type 9"),
    ("amd", "amd.smi", ROWS, ROWS.replace(b'"asic"', b'"silicon"'), "key silicon not known"),
]


@pytest.fixture
def store() -> Iterator[Store]:
    """An empty store."""
    opened = open_store(None)
    yield opened
    opened.close()


def findings(store: Store, made: Made, inventory: Inventory) -> dict[str, str]:
    """One round of the agent through the inventory; open findings of an unknown shape by what did not fit."""
    made.agent.once()
    for report in made.wrote():
        inventory.report(older(report), made.hands.wall)
    told = [row.finding for row in store.reader.findings() if row.finding.kind is FindingKind.SHAPE_UNKNOWN]
    return {str(each.evidence["shape"]): each.about for each in told}


@pytest.mark.parametrize(("name", "source", "known", "strange", "words"), CASES, ids=[case[0] for case in CASES])
def test_a_strange_tool_opens_a_finding_and_keeps_its_cards(
    tmp_path: Path, store: Store, name: str, source: str, known: bytes, strange: bytes, words: str
) -> None:
    reader = Told({source: strange})
    made = Made(tmp_path, [adapter(name)], reader)
    inventory = Inventory(store.writer, Policy(), made.hands.wall)

    found = findings(store, made, inventory)
    assert len(found) == 1
    assert next(iter(found)).startswith(words)
    assert source in next(iter(found.values()))
    assert store.reader.cards()

    reader.by[source] = known
    made.hands.pass_(3600)
    made.agent.step(0.05)
    assert findings(store, made, inventory) == {}
