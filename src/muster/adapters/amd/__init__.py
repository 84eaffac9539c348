# SPDX-License-Identifier: Apache-2.0
"""AMD: Instinct and Radeon GPUs and APUs, as the installed ROCm's library and tools, the kernel driver's files and AMD's exporter tell of them."""

from __future__ import annotations

from muster.adapters.amd.interpret import interpret
from muster.adapters.amd.recognise import recognise

__all__ = ["interpret", "recognise"]
