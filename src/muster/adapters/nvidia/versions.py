# SPDX-License-Identifier: Apache-2.0
"""``nvidia-smi --version``: versions only, no card. Branch 610 says the driver's and the runtime's under new names."""

from __future__ import annotations

from muster.adapters.nvidia.board import Listing
from muster.formats.tree import parse

_KEYS = {
    "NVIDIA-SMI version": "tool_version",
    "NVML version": "nvml_version",
    "DRIVER version": "driver_version",
    "CUDA version": "cuda_version",
    "KMD version": "kmd_version",
    "CUDA UMD version": "cuda_umd_version",
}


def parse_versions(payload: bytes) -> Listing:
    """The head fields of the text."""
    root = parse(payload)
    return Listing(head={name: text for key, name in _KEYS.items() if (text := root.text(key))})
