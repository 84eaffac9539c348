# SPDX-License-Identifier: Apache-2.0
"""Which layout of this vendor's tools a text is. Strict: other vendors print look-alikes of several of them."""

from __future__ import annotations

import re

from muster.adapters.nvidia.failures import speaks
from muster.formats.text import decode

_LAYOUTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("nvidia-smi-xml", re.compile(r"<nvidia_smi_log\b|<!DOCTYPE nvidia_smi_log\b")),
    ("nvidia-smi-q", re.compile(r"^=+NVSMI LOG=+$|^GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\n {4}\S", re.MULTILINE)),
    ("prometheus-text", re.compile(r"^(?:DCGM_(?:FI|EXP)_\w+|dcgm_\w+|nvidia_smi_\w+)(?:\{| [-+0-9NI])", re.MULTILINE)),
    ("nvml-json", re.compile(r'^\s*\{(?=[\s\S]*"(?:cuda_driver_version|nvml_version)")')),
    ("nvidia-smi-table", re.compile(r"^\| NVIDIA-SMI \S+ ", re.MULTILINE)),
    ("nvidia-smi-list", re.compile(r"^GPU \d{1,4}: .*\(UUID: GPU-", re.MULTILINE)),
    ("nvidia-smi-monitor", re.compile(r"^#\s*(?:\S+\s+){0,2}gpu\s.*\b(?:pwr|gtemp|sm|pid)\b", re.MULTILINE)),
    ("nvidia-smi-topo", re.compile(r"^\s*GPU0\s+(?:GPU1|NIC0|mlx\d|CPU Affinity)[\s\S]*^GPU0\s+X\s", re.MULTILINE)),
    ("nvidia-smi-version", re.compile(r"^NVIDIA-SMI version\s*:", re.MULTILINE)),
    ("nvidia-smi-profiles", re.compile(r"^\| GPU instance profiles:", re.MULTILINE)),
    ("kernel-log", re.compile(r"\bNVRM: (?:Xid|GPU|The NVIDIA|Rate limiting|loading)|\bNVRM:.*\bXid \(|nvidia-nvswitch\d*: SXid \(")),
)
_COLUMN = re.compile(
    r"^(?:index|name|gpu_name|uuid|gpu_uuid|serial|gpu_serial|pci\.bus_id|gpu_bus_id|driver_version|timestamp|pid|count)$"
    r"|^(?:memory|power|temperature|utilization|clocks|pcie|ecc|fan|enforced|pstate|compute|mig|retired_pages|remapped_rows)(?:\.\S+|_\S+)?(?: \[\S+\])?$"
)
_GPU_UUID = re.compile(r"\bGPU-[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b")
_OWN_COLUMNS = re.compile(r"\b(?:memory\.(?:total|used|free)|power\.(?:draw|limit)|temperature\.gpu|utilization\.gpu|clocks\.|gpu_uuid|gpu_bus_id|pci\.bus_id)")


def recognise(head: bytes) -> str | None:
    """The format of the text, or None when it is not this vendor's."""
    text = decode(head)
    for form, pattern in _LAYOUTS:
        if pattern.search(text):
            return form
    if _is_csv(text):
        return "nvidia-smi-csv"
    return "nvidia-smi-text" if speaks(head) else None


def _is_csv(text: str) -> bool:
    rows = [row for row in text.split("\n") if row.strip() and not row.startswith("$ ")][:2]
    if not rows:
        return False
    cells = [cell.strip().strip('"') for cell in re.split(r"[;,\t]", rows[0])]
    columns = sum(1 for cell in cells if _COLUMN.match(cell))
    if len(cells) > 1 and columns * 2 > len(cells) and _OWN_COLUMNS.search(rows[0]):
        return True
    return _GPU_UUID.search(rows[0]) is not None and rows[0].count(",") >= 2 and columns == 0 and "{" not in rows[0] and ": " not in rows[0]
