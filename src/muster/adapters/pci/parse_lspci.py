# SPDX-License-Identifier: Apache-2.0
"""The texts of lspci to functions: a line each, with or without numbers and details below, and the two forms for programs: quoted lines and records."""

from __future__ import annotations

import re

from muster.adapters.pci.function import Function
from muster.domain.model.names import pci_address
from muster.formats.text import lines

CLASS_WORDS = {
    "vga compatible controller": "0300",
    "xga compatible controller": "0301",
    "3d controller": "0302",
    "display controller": "0380",
    "processing accelerators": "1200",
    "host bridge": "0600",
    "isa bridge": "0601",
    "pci bridge": "0604",
    "bridge": "0680",
    "ethernet controller": "0200",
    "infiniband controller": "0207",
    "network controller": "0280",
    "audio device": "0403",
    "multimedia audio controller": "0401",
    "non-volatile memory controller": "0108",
    "system peripheral": "0880",
    "signal processing controller": "1180",
    "co-processor": "0b40",
    "usb controller": "0c03",
    "serial bus controller": "0c80",
}
"""Classes by the words of the PCI id list, where lspci was not asked for numbers."""

_ADDRESS = r"^(?P<address>(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
_NUMBERED = re.compile(
    _ADDRESS + r" (?P<words>[^\[\]:]{2,60}) \[(?P<class>[0-9a-f]{4})\]: (?P<name>.*?) ?\[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\](?P<rest>.*)$"
)
_NUMBERS = re.compile(_ADDRESS + r" (?:Class )?(?P<class>[0-9a-f]{4}): (?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})(?P<rest>.*)$")
_NAMED = re.compile(_ADDRESS + r" (?P<words>[A-Z0-9][^\[\]:\"]{2,60}): (?P<name>\S.*)$")
_UNKNOWN_CLASS = re.compile(_ADDRESS + r" [A-Z][^\[\]:\"]{2,60}: \S")
_QUOTED = re.compile(_ADDRESS + r' "(?P<class>[^"]*)" "(?P<vendor>[^"]*)" "(?P<device>[^"]*)"(?P<rest>.*)$')
_REVISION = re.compile(r"\(rev (?P<revision>[0-9a-f]{2})\)")
_DEVICE_ID = re.compile(r"\bDevice (?P<device>[0-9a-f]{4})(?: \(|$)")
_LAST_ID = re.compile(r"\[([0-9a-f]{4})\]$|^([0-9a-f]{4})$")
_PAIR = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_LINK = re.compile(r"^Lnk(?P<what>Cap|Sta):.*?Speed (?P<speed>[^,(]+?)(?: \([^)]*\))?, Width x(?P<width>\d+)")
_REGION = re.compile(r"^(?:Region [0-5]: )?Memory at .*\[size=(?P<size>\d+)(?P<unit>[KMGT]?)\]")
_NODE = re.compile(r"^Flags: .*\bNUMA node (?P<node>\d+)")
_RECORD = re.compile(
    r"^(?P<key>Slot|Device|Class|Vendor|SVendor|SDevice|PhySlot|Rev|NUMANode|Driver|Module|ProgIf|IOMMUGroup|DTNode):(?:\t\s*| {1,12})(?P<value>.*)$"
)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_lspci(payload: bytes) -> dict[str, Function]:
    """Functions by canonical address, in order of appearance. Lines that are none are passed over."""
    found: dict[str, Function] = {}
    current: Function | None = None
    for line in lines(payload):
        match = _RECORD.match(line)
        if match is not None:
            current = _record(found, current, match["key"], match["value"].strip())
            continue
        if line[:1] in (" ", "\t"):
            if current is not None:
                _detail(current, line.strip())
            continue
        current = parse_line(line)
        if current is not None:
            known = found.setdefault(current.address, current)
            known.lost = known.lost or current.lost or current.revision == "ff"
            current = known
    return found


def strangers(payload: bytes) -> bool:
    """True when a line has an address in front and yet does not read, or has none: it may have been a function."""
    seen = (line for line in lines(payload) if line and line[0] not in " \t#$" and not _RECORD.match(line))
    return any(parse_line(line) is None and not _UNKNOWN_CLASS.match(line) for line in seen)


def is_record(line: str) -> bool:
    """True for a line of the form for programs that gives each function a record (``Slot:``, ``Class:``, ...)."""
    return _RECORD.match(line) is not None


def _record(found: dict[str, Function], current: Function | None, key: str, value: str) -> Function | None:
    """Takes one line of a record; ``Slot``, or ``Device`` with an address, begins the next."""
    address = pci_address(value) if key in ("Slot", "Device") else None
    if address is not None:
        return found.setdefault(address, Function(address))
    if current is None:
        return None
    if key in _IDS:
        field = _IDS[key]
        setattr(current, field, getattr(current, field) or _last_id(value) or (CLASS_WORDS.get(value.lower(), "") if key == "Class" else ""))
        if key == "Device":
            current.name = current.name or re.sub(r" ?\[[0-9a-f]{4}\]$", "", value)
    elif key == "Rev":
        current.revision = current.revision or value
    elif key == "PhySlot":
        current.slot = current.slot or value
    elif key == "Driver":
        current.driver = current.driver or value
    elif key == "NUMANode":
        current.numa = current.numa or value
        current.told.add("numa_node")
    return current


_IDS = {"Class": "class_", "Vendor": "vendor", "Device": "device", "SVendor": "subsystem_vendor", "SDevice": "subsystem_device"}


def parse_line(line: str) -> Function | None:
    """The function in one line of a listing, or None when it is no such line."""
    match = _NUMBERED.match(line)
    if match is not None:
        return _function(match, match["class"], match["vendor"], match["device"], match["rest"], match["name"])
    match = _NUMBERS.match(line)
    if match is not None:
        return _function(match, match["class"], match["vendor"], match["device"], match["rest"], "")
    match = _QUOTED.match(line)
    if match is not None:
        return _quoted(match)
    match = _NAMED.match(line)
    class_ = CLASS_WORDS.get(match["words"].lower()) if match is not None else None
    if match is None or class_ is None:
        return None
    device = _DEVICE_ID.search(match["name"])
    return _function(match, class_, "", device["device"] if device else "", match["name"], _REVISION.split(match["name"])[0].strip())


def _function(match: re.Match[str], class_: str, vendor: str, device: str, rest: str, name: str) -> Function:
    revision = _REVISION.search(rest)
    return Function(
        pci_address(match["address"]) or match["address"],
        class_=class_,
        vendor=vendor,
        device=device,
        revision=revision["revision"] if revision else "",
        name=name,
    )


def _quoted(match: re.Match[str]) -> Function:
    class_ = _last_id(match["class"]) or CLASS_WORDS.get(match["class"].lower(), "")
    name = re.sub(r" ?\[[0-9a-f]{4}\]$", "", match["device"])
    function = _function(match, class_, _last_id(match["vendor"]), _last_id(match["device"]), "", name)
    revision = re.search(r" -r([0-9a-f]{2})\b", match["rest"])
    function.revision = revision.group(1) if revision else ""
    quoted = re.findall(r'"([^"]*)"', match["rest"])
    function.subsystem_vendor, function.subsystem_device = (_last_id(text) for text in (*quoted, "", "")[:2])
    return function


def _last_id(text: str) -> str:
    match = _LAST_ID.search(text)
    return (match.group(1) or match.group(2)) if match is not None else ""


def _detail(function: Function, text: str) -> None:
    """Takes one of the indented lines of -v, -vv and -k."""
    if (match := _LINK.match(text)) is not None:
        speed, width = ("speed", "width") if match["what"] == "Sta" else ("speed_max", "width_max")
        setattr(function, speed, getattr(function, speed) or match["speed"].strip())
        setattr(function, width, getattr(function, width) or match["width"])
    elif (match := _REGION.match(text)) is not None and len(match["size"]) < 10:
        function.largest_bar = max(function.largest_bar or 0, int(match["size"]) * _UNITS[match["unit"]])
    elif text.startswith("!!! Unknown header type"):
        function.lost = True
    elif (match := _NODE.match(text)) is not None:
        function.numa = function.numa or match["node"]
        function.told.add("numa_node")
    else:
        _pair(function, text)


def _pair(function: Function, text: str) -> None:
    key, _, value = text.partition(": ")
    value = value.strip()
    if key == "Subsystem" and (match := _PAIR.search(value)) is not None:
        function.subsystem_vendor, function.subsystem_device = match.groups()
    elif key == "Physical Slot":
        function.slot = function.slot or value
    elif key == "NUMA node":
        function.numa = function.numa or value
        function.told.add("numa_node")
    elif key == "Kernel driver in use":
        function.driver = function.driver or value
