# SPDX-License-Identifier: Apache-2.0
"""The PCI bus as a witness: it sees every card, whoever made it, and also one whose driver is missing or silent."""

from __future__ import annotations

from muster.adapters.pci.observe import interpret
from muster.adapters.pci.recognise import recognise

__all__ = ["interpret", "recognise"]
