# SPDX-License-Identifier: Apache-2.0
"""Is this a kernel log? Its lines show it by their stamps; a text without stamps only when the kernel's own sentences stand in it."""

from __future__ import annotations

from muster.adapters.kernel_log.parse_aer import AerParser
from muster.adapters.kernel_log.parse_lines import parse_line
from muster.formats.kernel_log import Entry, read_line
from muster.formats.text import lines

FORMAT = "kernel-log"
_LOOKED_AT = 200


def recognise(head: bytes) -> str | None:
    """``kernel-log`` when at least half of the first lines are the kernel's by their form, or when one says what this adapter knows."""
    seen = [line for line in lines(head) if line.strip()][:_LOOKED_AT]
    read = [entry for line in seen if (entry := read_line(line)) is not None]
    stamped = sum(1 for entry in read if entry.kernel)
    if seen and stamped * 2 >= len(seen):
        return FORMAT
    return FORMAT if any(_known(entry) for entry in read) else None


def _known(entry: Entry) -> bool:
    parser = AerParser()
    return parser.take(entry) or parse_line(entry) is not None
