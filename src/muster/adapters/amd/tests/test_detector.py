# SPDX-License-Identifier: Apache-2.0
"""The device list of the gpustack runtime. All values are ours."""

from __future__ import annotations

import json

from muster.adapters.amd import interpret, recognise
from muster.domain.decide.fold import fold, ids
from muster.domain.model.reading import Known
from muster.domain.model.source import Capture, Outcome, SourceId

ROW = {
    "manufacturer": "amd",
    "index": 1,
    "name": "AMD Radeon RX 7800 XT",
    "uuid": "GPU-51d20f6634ab9071",
    "driver_version": "6.16.13",
    "runtime_version": "7.2",
    "runtime_version_original": "7.2.0",
    "compute_capability": "gfx1101",
    "cores": 60,
    "cores_utilization": 13,
    "memory": 16368,
    "memory_used": 174,
    "memory_utilization": 1.06,
    "temperature": 43,
    "power": 236,
    "power_used": 10,
    "appendix": {"bdf": "0000:04:00.0", "numa": "0", "card_id": 9},
}


def test_rows_of_this_maker() -> None:
    payload = json.dumps([ROW, ROW | {"manufacturer": "other", "index": 0}]).encode()
    told = interpret([Capture(source=SourceId("t"), locator=(), format=recognise(payload) or "", payload=payload)], {})
    (card,) = fold(told.observations)

    assert told.outcome is Outcome.DEVICES
    assert not told.complete
    assert ids(card.names) == {"index": "1", "pci_address": "0000:04:00.0", "vendor_uuid": "GPU-51d20f6634ab9071"}
    assert card.readings["memory.total"] == Known(16368 * 1024**2)
    assert card.readings["power.limit"] == Known(236)
    assert card.readings["power.draw"] == Known(10)
    assert card.readings["runtime.version"] == Known("7.2.0")
    assert "utilization.memory_bandwidth" not in card.readings
