# SPDX-License-Identifier: Apache-2.0
"""One PCI function as plain values, whatever text it was read from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
"""Transfer rate in GT/s to the generation of PCI Express."""

ALL_ONES_WIDTH = 63
"""What the six bits of a link's width read when the device no longer answers."""

_SPEED = re.compile(r"^(\d{1,3}(?:\.\d{1,2})?)\s*GT/s")


@dataclass(slots=True)
class Function:
    """What a listing says of one function. Texts are as printed; an empty one was not told.

    ``class_`` is hex without ``0x``, base class first. Speeds are texts such as ``32.0 GT/s PCIe``, widths texts of a number.
    ``told`` are the names of what the listing told at all, so that a missing driver and an unspoken one differ. ``marks`` are what could not be read, by name.
    """

    address: str
    class_: str = ""
    vendor: str = ""
    device: str = ""
    subsystem_vendor: str = ""
    subsystem_device: str = ""
    revision: str = ""
    speed: str = ""
    speed_max: str = ""
    width: str = ""
    width_max: str = ""
    numa: str = ""
    driver: str = ""
    slot: str = ""
    name: str = ""
    largest_bar: int | None = None
    accel: bool = False
    virtual_of: str = ""
    lost: bool = False
    told: set[str] = field(default_factory=set)
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The first two digits of the class: ``03`` display, ``12`` processing accelerator."""
        return self.class_[:2]

    @property
    def kind(self) -> str:
        """The first four digits of the class."""
        return self.class_[:4]

    @property
    def gone(self) -> bool:
        """True when the device fell off the bus: everything in its configuration reads as ones."""
        return self.lost or self.revision.lower() == "ff" or number(self.width) in (ALL_ONES_WIDTH, 255)


def number(text: str) -> int | None:
    """A plain whole number, or None."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def generation(speed: str) -> int | None:
    """The generation of a transfer rate, or None when the text is none."""
    match = _SPEED.match(speed.strip())
    return GENERATIONS.get(float(match.group(1))) if match is not None else None
