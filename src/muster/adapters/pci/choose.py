# SPDX-License-Identifier: Apache-2.0
"""Which functions of the bus are cards, which are displays, and which are neither.

The class says most; where it does not, the size of the memory window does: an accelerator shows its memory, a sensor hub or a copy engine does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from muster.adapters.pci.function import Function
from muster.domain.model.observation import Role

LARGE_BAR = 64 * 1024 * 1024
"""Bytes of memory window from which a known vendor's function of an unspecific class is taken for an accelerator."""

MEMORY_BAR = 1024 * 1024 * 1024
"""Bytes of memory window from which a display controller of a known vendor (class 0380, no VGA) is taken for an accelerator."""

UNSPECIFIC = frozenset({"0000", "00ff", "0880", "0b40", "1180", "ff00"})
"""Classes under which some accelerators hide among sensors, copy engines and co-processors."""

OF_THE_PROCESSOR = ":00:02.0"
"""Where a processor puts its own graphics, which has no class of a screen when another chip drives it."""

DISPLAYS_ONLY = frozenset({"1af4", "1b36", "1234", "1013", "15ad", "80ee", "1414", "1a03", "102b"})
"""Makers of virtual displays and of the graphics chips of BMCs: whatever class they give, it is no accelerator."""

_ENGINES = re.compile(r"(?:^|_)(?:zip|sec2?|hpre|dsa|iax|idxd)$|\b(?:zip|compression|cryptographic|encryption|rsa|security) engine\b", re.IGNORECASE)


class Verdict(Enum):
    """What a function is. ``UNDECIDED`` may be a card: the text does not tell enough."""

    CARD = "card"
    NEITHER = "neither"
    UNDECIDED = "undecided"


def choose(function: Function, known: Iterable[str]) -> Verdict:
    """Whether a function is a card (or display) of its own. ``known`` are vendor ids of the adapters' manifests."""
    if function.virtual_of or _ENGINES.search(function.driver) or _ENGINES.search(function.name):
        return Verdict.NEITHER
    if function.base == "03" or function.kind == "1200":
        return Verdict.CARD
    if function.kind not in UNSPECIFIC:
        return Verdict.NEITHER
    if not function.vendor:
        return Verdict.UNDECIDED
    if function.vendor not in known:
        return Verdict.NEITHER
    if function.accel or (function.largest_bar or 0) >= LARGE_BAR:
        return Verdict.CARD
    return Verdict.UNDECIDED if function.largest_bar is None else Verdict.NEITHER


def role(function: Function, known: Iterable[str]) -> Role:
    """What the bus can say of a card's use: a display class is a display, but for one without a screen (0380) that shows gigabytes of memory.

    Where a text does not tell of memory windows at all, 0380 is taken for what it nearly always is: an accelerator.
    """
    if function.vendor in DISPLAYS_ONLY:
        return Role.DISPLAY
    if function.base != "03" or function.kind == "0302":
        return Role.ACCELERATOR
    if function.kind != "0380":
        return Role.DISPLAY
    if function.largest_bar is None:
        return Role.DISPLAY if function.address.endswith(OF_THE_PROCESSOR) else Role.ACCELERATOR
    return Role.ACCELERATOR if function.vendor in known and function.largest_bar >= MEMORY_BAR else Role.DISPLAY
