# SPDX-License-Identifier: Apache-2.0
"""The driver's lines in the kernel log: Xid and SXid codes, and cards that fell off the bus without any code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from muster.domain.model.names import pci_address
from muster.formats.text import lines

_XID = re.compile(r"(?<!S)\bXid \((?:PCI:)?([0-9A-Fa-f:.]{5,16})\):\s*(\d{1,6})\b")
_SXID = re.compile(r"\bSXid \((?:PCI:)?([0-9A-Fa-f:.]{5,16})\):\s*(\d{1,6})\b")
_UUID = re.compile(r"NVRM: GPU at (?:PCI:)?([0-9A-Fa-f:.]{5,16}): (GPU-[0-9A-Fa-f-]{36})")
_SERIAL = re.compile(r"NVRM: GPU Board Serial Number:\s*(\w+)")
_LOST = re.compile(r"NVRM: The NVIDIA GPU ([0-9A-Fa-f:.]{5,16})")
_LOST_LINE = re.compile(r"NVRM: GPU ([0-9A-Fa-f:.]{5,16}): GPU has fallen off the bus")
_LIMIT = re.compile(r"NVRM: Rate limiting .* for GPU at (?:PCI:)?([0-9A-Fa-f:.]{5,16})")
_PROBE = re.compile(r"NVRM: The NVIDIA probe routine failed for (\d+) device")
_LOADED = re.compile(r"NVRM: loading NVIDIA UNIX .*?(\d+\.\d+(?:\.\d+)?)")
_ISO = re.compile(r"^\[?(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,6})?(?:Z|[+-]\d{2}:?\d{2}))\b")
_MESSAGE = re.compile(r"(?:NVRM:|nvidia-nvswitch\d*:).*")
TEXT_LIMIT = 400

_SINGLE = ((_LIMIT, "events_lost"), (_PROBE, "probe_failed"), (_LOADED, "driver_loaded"))


@dataclass(frozen=True, slots=True)
class Line:
    """One event of the log. ``address`` is canonical, "" where the line names no card (a switch's address stands for the switch)."""

    kind: str
    code: str | None
    address: str
    text: str
    at: datetime | None = None
    uuid: str = ""
    serial: str = ""


def parse(payload: bytes) -> Iterator[Line]:
    """Events in the order of the log. Lines of others and lines that do not read are passed over."""
    rows = lines(payload)
    named: dict[str, str] = {}
    serials: dict[str, str] = {}
    coded: set[str] = set()
    last = ""
    for number, row in enumerate(rows):
        uuid, serial = _UUID.search(row), _SERIAL.search(row)
        if uuid is not None:
            last = _address(uuid.group(1))
            named[last] = uuid.group(2)
        elif serial is not None and last:
            serials[last] = serial.group(1)
        event = _coded(row) or _uncoded(rows, number, coded)
        if event is None:
            continue
        if event.code == "79":
            coded.add(event.address)
        yield Line(event.kind, event.code, event.address, event.text, event.at, named.get(event.address, ""), serials.get(event.address, ""))


def _coded(row: str) -> Line | None:
    for kind, pattern in (("xid", _XID), ("sxid", _SXID)):
        match = pattern.search(row)
        if match is not None:
            return Line(kind, str(int(match.group(2))), _address(match.group(1)), _text(row), _at(row))
    return None


def _uncoded(rows: list[str], number: int, coded: set[str]) -> Line | None:
    row = rows[number]
    match = _LOST.search(row)
    if match is not None:
        following = " ".join(_text(each) for each in rows[number : number + 4])
        if "fallen off the bus" not in following:
            return None
        return Line("fallen_off_bus", None, _address(match.group(1)), following.replace(" NVRM:", "")[:TEXT_LIMIT], _at(row))
    match = _LOST_LINE.search(row)
    if match is not None:
        address = _address(match.group(1))
        return None if address in coded else Line("fallen_off_bus", None, address, _text(row), _at(row))
    for pattern, kind in _SINGLE:
        match = pattern.search(row)
        if match is not None:
            address = _address(match.group(1)) if kind == "events_lost" else ""
            return Line(kind, None, address, _text(row), _at(row))
    return None


def _address(text: str) -> str:
    """The canonical address; the root complex's own (bus 0, device 0) stands where the driver did not know the card."""
    canonical = pci_address(text) or ""
    return "" if canonical.endswith(":00:00.0") and canonical.startswith("0000:00:") else canonical


def _text(row: str) -> str:
    match = _MESSAGE.search(row)
    return " ".join((match.group() if match else row).split())[:TEXT_LIMIT]


def _at(row: str) -> datetime | None:
    """The line's own time where it has a zone; without one it cannot be dated."""
    match = _ISO.match(row)
    if match is None:
        return None
    try:
        return datetime.fromisoformat(match.group(1).replace(",", "."))
    except ValueError:
        return None
