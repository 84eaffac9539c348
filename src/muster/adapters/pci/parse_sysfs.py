# SPDX-License-Identifier: Apache-2.0
"""The flattened tree of `/sys/bus/pci` to functions."""

from __future__ import annotations

import re
from collections.abc import Callable

from muster.adapters.pci.function import Function
from muster.domain.model.names import pci_address, pci_device
from muster.formats.text import lines

_FILE = re.compile(r"/(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(?P<name>[a-z_]+)(?P<below>/[^:]*)?: ?(?P<content>.*)$")
_SLOT = re.compile(r"/bus/pci/slots/(?P<slot>[^/:]{1,64})/address: ?(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})\s*$")
_HEX = re.compile(r"^(?:0x)?([0-9a-f]{1,8})$")
_RESOURCE = re.compile(r"^0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16}) 0x[0-9a-f]{1,16}$")
_BARS = 6


def parse_sysfs(payload: bytes) -> dict[str, Function]:
    """Functions by canonical address, in order of appearance."""
    found: dict[str, Function] = {}
    slots: dict[str, str] = {}
    bars: dict[str, int] = {}
    for line in lines(payload):
        if (match := _FILE.search(line)) is not None:
            address = pci_address(match["address"]) or match["address"]
            function = found.setdefault(address, Function(address))
            _take(function, match["name"], match["below"] or "", match["content"].strip(), bars)
        elif (match := _SLOT.search(line)) is not None:
            slots.setdefault(pci_device(pci_address(match["address"]) or ""), match["slot"])
    for function in found.values():
        function.slot = slots.get(pci_device(function.address), "")
    return found


def _take(function: Function, name: str, below: str, content: str, bars: dict[str, int]) -> None:
    if name == "accel" and below.startswith("/accel"):
        function.accel = True
    if below:
        return
    function.told.add(name)
    if content.startswith("!"):
        function.marks.setdefault(name, content)
        function.lost = function.lost or content == "!error ENODEV"
    elif name == "resource":
        _bar(function, content, bars)
    elif name in _TEXTS and not getattr(function, _TEXTS[name][0]):
        field, read = _TEXTS[name]
        setattr(function, field, read(content))


def _hex(content: str) -> str:
    match = _HEX.match(content.lower())
    return match.group(1) if match is not None else ""


def _link(content: str) -> str:
    """The last part of a symbolic link's target."""
    return content.removeprefix("->").strip().rstrip("/").rpartition("/")[2] if content.startswith("->") else ""


def _text(content: str) -> str:
    return content


_TEXTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "class": ("class_", _hex),
    "vendor": ("vendor", _hex),
    "device": ("device", _hex),
    "subsystem_vendor": ("subsystem_vendor", _hex),
    "subsystem_device": ("subsystem_device", _hex),
    "revision": ("revision", _hex),
    "current_link_speed": ("speed", _text),
    "current_link_width": ("width", _text),
    "max_link_speed": ("speed_max", _text),
    "max_link_width": ("width_max", _text),
    "numa_node": ("numa", _text),
    "driver": ("driver", _link),
    "physfn": ("virtual_of", _link),
}


def _bar(function: Function, content: str, bars: dict[str, int]) -> None:
    """Takes one line of ``resource``: start, end and flags of a memory window; the first six are the function's own."""
    match = _RESOURCE.match(content.lower())
    place = bars[function.address] = bars.get(function.address, 0) + 1
    if match is None or place > _BARS:
        return
    start, end = int(match.group(1), 16), int(match.group(2), 16)
    size = end - start + 1 if end > start else 0
    function.largest_bar = max(function.largest_bar or 0, size)
