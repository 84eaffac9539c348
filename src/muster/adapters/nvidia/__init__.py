# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: the management library, the tool's listings in every layout, two exporters, and the driver's lines in the kernel log."""

from __future__ import annotations

from muster.adapters.nvidia.interpret import interpret
from muster.adapters.nvidia.recognise import recognise

__all__ = ["interpret", "recognise"]
