# SPDX-License-Identifier: Apache-2.0
"""`npu-smi info -t topo`: a matrix of links, keyed by NPU or by physical id, with a legend below that is no row."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muster.adapters.huawei.said import Said

_WORD = re.compile(r"^[A-Z][A-Z0-9_]{0,15}$")
LABEL = re.compile(r"^(?:NPU|Phy-ID)\d{1,6}$")


def read(lines: Sequence[str], said: Said, *, open_end: bool = False) -> bool:
    """Adds the link words of each row; True when there was a matrix."""
    peers: list[str] = []
    seen = False
    for number, line in enumerate(lines):
        cells = line.split()
        labels = [cell for cell in cells if LABEL.match(cell)]
        if not labels:
            continue
        if len(labels) > 1 or (not peers and cells == labels):
            peers, seen = labels, True
        elif peers and LABEL.match(cells[0]):
            whole = cells[1:-1] if open_end and number == len(lines) - 1 else cells[1:]
            found = dict(zip(peers, whole, strict=False))
            if len(found) < len(peers) or not all(_WORD.match(word) for word in found.values()) or not _aligned(cells[0], found):
                said.cut = True
                continue
            said.peers.setdefault(cells[0], {}).update({peer: word for peer, word in found.items() if word != "X"})
    return seen


def _aligned(label: str, found: dict[str, str]) -> bool:
    """True when the cross of a chip with itself stands in its own column, and nowhere else."""
    return [peer for peer, word in found.items() if word == "X"] == ([label] if label in found else [])
