# SPDX-License-Identifier: Apache-2.0
"""The kernel's own lines, whoever made the card: PCIe error reports, hanging tasks, memory errors. Vendors' lines belong to their adapters."""

from __future__ import annotations

from muster.adapters.kernel_log.observe import interpret
from muster.adapters.kernel_log.recognise import recognise

__all__ = ["interpret", "recognise"]
