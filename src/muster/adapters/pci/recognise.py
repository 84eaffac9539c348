# SPDX-License-Identifier: Apache-2.0
"""Is this a listing of the bus?"""

from __future__ import annotations

import re

from muster.adapters.pci.parse_lspci import is_record, parse_line
from muster.formats.text import lines

LSPCI = "lspci"
SYSFS = "sysfs-tree"

_TREE = re.compile(r"^/\S*/bus/pci/(?:devices/[0-9a-f:.]{7,15}|slots/[^/]+)/\S+:(?: |$)")
_LOOKED_AT = 400


def recognise(head: bytes) -> str | None:
    """``lspci`` or ``sysfs-tree`` when at least half of the lines (details, remarks and blanks aside) are of that form."""
    seen = [line for line in lines(head)[:_LOOKED_AT] if line and line[0] not in " \t#"]
    listed = sum(1 for line in seen if parse_line(line) is not None or is_record(line))
    if listed and not any(parse_line(line) is not None or line.startswith(("Slot:", "Device:")) for line in seen):
        listed = 0
    if listed and listed * 2 >= len(seen):
        return LSPCI
    tree = sum(1 for line in seen if _TREE.match(line))
    return SYSFS if tree and tree * 2 >= len(seen) else None
