# SPDX-License-Identifier: Apache-2.0
"""`xrt-smi examine`: the NPU beside the CPU. It has no memory of its own; what the text says of memory is the host's."""

from __future__ import annotations

import re

from muster.adapters.amd.values import word
from muster.domain.model.gather import Gather
from muster.domain.model.names import pci_address
from muster.formats.text import lines

_DEVICE = re.compile(r"^\|?\s*\[([0-9a-fA-F:.]+)\]\s*[:|]?\s*(\S[^|]*?)\s*\|?\s*$")
_PAIR = re.compile(r"^\s*(Version|amdxdna|NPU Firmware Version)\s*:\s*([^,]+)")


def observe(gather: Gather, payload: bytes) -> None:
    """Puts the NPUs of the table into ``gather``."""
    told: dict[str, str] = {}
    for line in lines(payload):
        pair = _PAIR.match(line)
        if pair is not None:
            told.setdefault(pair.group(1), pair.group(2).strip())
        match = _DEVICE.match(line)
        address = pci_address(match.group(1)) if match is not None else None
        if match is None or address is None:
            continue
        card = gather.card(address).named(pci_address=address)
        card.value("product.name", word(match.group(2))).value("memory.unified", True).value("driver.name", "amdxdna")
        card.value("firmware.version", told.get("NPU Firmware Version")).value("driver.version", told.get("amdxdna"))
        if "Version" in told:
            card.value("runtime.name", "xrt").value("runtime.version", told["Version"])
