# SPDX-License-Identifier: Apache-2.0
"""The device list of the gpustack runtime (``detect --format json``): entries of this maker to the records of `parse_smi`. Memory is MiB, power the cap."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from muster.adapters.amd.parse_smi import Listing, Record
from muster.adapters.amd.values import whole
from muster.formats.jsontext import documents

OURS = re.compile(r'"manufacturer"\s*:\s*"amd"', re.IGNORECASE)


def from_json(payload: bytes) -> Listing | None:
    """Rows of the list that say they are this maker's; None when there is none."""
    found = documents(payload, partial=True)
    rows = [row for document in found if isinstance(document.value, list) for row in document.value if isinstance(row, Mapping)]
    records = tuple(_record(place, row) for place, row in enumerate(rows) if str(row.get("manufacturer")).lower() == "amd")
    return Listing(records, any(document.cut for document in found)) if records else None


def _record(place: int, row: Mapping[str, Any]) -> Record:
    more = row.get("appendix")
    more = more if isinstance(more, Mapping) else {}
    index = whole(row.get("index"))
    asic = {"market_name": row.get("name"), "target_graphics_version": row.get("compute_capability"), "num_compute_units": row.get("cores")}
    return {
        "gpu": place if index is None else index,
        "bdf": more.get("bdf"),
        "uuid": row.get("uuid"),
        "asic": asic,
        "driver": {"version": row.get("driver_version")},
        "rocm_version": row.get("runtime_version_original") or row.get("runtime_version"),
        "vram": {"size": row.get("memory")},
        "mem_usage": {"used_vram": row.get("memory_used")},
        "usage": {"gfx_activity": row.get("cores_utilization")},
        "temperature": {"edge": row.get("temperature")},
        "limit": {"socket_power_limit": row.get("power")},
        "power": {"socket_power": row.get("power_used")},
        "numa": {"node": more.get("numa")},
        "detector": {key: row.get(key) for key in ("memory_status", "memory_utilization") if key in row} | dict(more),
    }
