# SPDX-License-Identifier: Apache-2.0
"""Which layout of this vendor's tools a text is. Strict: other vendors print look-alikes of several of them."""

from __future__ import annotations

import re

from muster.adapters.nvidia.failures import speaks
from muster.adapters.nvidia.parse_csv import HEADER_LINES, is_header
from muster.adapters.nvidia.parse_dcgm import SIGN
from muster.formats.text import decode

_LAYOUTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("nvidia-smi-xml", re.compile(r"<nvidia_smi_log\b|<!DOCTYPE nvidia_smi_log\b")),
    ("nvidia-smi-q", re.compile(r"^=+NVSMI LOG=+\s*$|^GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7][ \t]*\n {4}\S", re.MULTILINE)),
    ("prometheus-text", re.compile(r"^(?:DCGM_(?:FI|EXP)_\w+|dcgm_\w+|nvidia_smi_\w+)(?:\{| [-+0-9NI])", re.MULTILINE)),
    ("nvml-json", re.compile(r'^\s*\{(?=[\s\S]*"(?:cuda_driver_version|nvml_version)")')),
    ("nvidia-smi-table", re.compile(r"^\| NVIDIA-SMI \S+ ", re.MULTILINE)),
    ("nvidia-smi-list", re.compile(r"^GPU \d{1,4}: .*\(UUID: GPU-", re.MULTILINE)),
    ("nvidia-smi-monitor", re.compile(r"^#\s*(?:\S+\s+){0,2}gpu\s.*\b(?:pwr|gtemp|sm|pid)\b", re.MULTILINE)),
    ("nvidia-smi-topo", re.compile(r"^\s*GPU0\s+(?:GPU1|NIC0|mlx\d|CPU Affinity)[\s\S]*^GPU0\s+X\s", re.MULTILINE)),
    ("nvidia-smi-version", re.compile(r"^NVIDIA-SMI version\s*:", re.MULTILINE)),
    ("nvidia-smi-profiles", re.compile(r"^\| GPU instance profiles:", re.MULTILINE)),
    ("dcgmi-text", SIGN),
    ("kernel-log", re.compile(r"\bNVRM: (?:Xid|GPU|The NVIDIA|Rate limiting|loading)|\bNVRM:.*\bXid \(|nvidia-nvswitch\d*: SXid \(")),
)
_GPU_UUID = re.compile(r"\bGPU-[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b")


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
    rows = [row for row in text.split("\n")[:HEADER_LINES] if row.strip() and not row.startswith("$ ")]
    if any(is_header(row) for row in rows):
        return True
    first = rows[0] if rows else ""
    return _GPU_UUID.search(first) is not None and first.count(",") >= 2 and "{" not in first and ": " not in first
