# SPDX-License-Identifier: Apache-2.0
"""The driver's lines in the kernel log: Xid and SXid codes, and cards that fell off the bus without any code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from muster.domain.model.names import pci_address
from muster.formats.kernel_log import Entry, entries

_XID = re.compile(r"(?<!S)\bXid \((?:PCI:)?([0-9A-Fa-f:.]{5,16})\):\s*(\d{1,6})\b")
_SXID = re.compile(r"\bSXid \((?:PCI:)?([0-9A-Fa-f:.]{5,16})\):\s*(\d{1,6})\b")
_UUID = re.compile(r"NVRM: GPU at (?:PCI:)?([0-9A-Fa-f:.]{5,16}): (GPU-[0-9A-Fa-f-]{36})")
_SERIAL = re.compile(r"NVRM: GPU Board Serial Number:\s*(\w+)")
_LOST = re.compile(r"NVRM: The NVIDIA GPU ([0-9A-Fa-f:.]{5,16})")
_LOST_LINE = re.compile(r"NVRM: GPU ([0-9A-Fa-f:.]{5,16}): GPU has fallen off the bus")
_LIMIT = re.compile(r"NVRM: Rate limiting .* for GPU at (?:PCI:)?([0-9A-Fa-f:.]{5,16})")
_PROBE = re.compile(r"NVRM: The NVIDIA probe routine failed for (\d+) device")
_LOADED = re.compile(r"NVRM: loading NVIDIA UNIX .*?(\d+\.\d+(?:\.\d+)?)")
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


def parse(payload: bytes, booted: datetime | None = None) -> Iterator[Line]:
    """Events in the order of the log, dated from ``booted`` where lines count from the boot. Lines of others and lines that do not read are passed over."""
    rows = [entry for entry in entries(payload) if "NV" in entry.text or "nv" in entry.text]
    named: dict[str, str] = {}
    serials: dict[str, str] = {}
    coded: set[str] = set()
    last = ""
    for number, entry in enumerate(rows):
        uuid, serial = _UUID.search(entry.text), _SERIAL.search(entry.text)
        if uuid is not None:
            last = _address(uuid.group(1))
            named[last] = uuid.group(2)
        elif serial is not None and last:
            serials[last] = serial.group(1)
        event = _coded(entry.text) or _uncoded(rows, number, coded)
        if event is None:
            continue
        if event.code == "79":
            coded.add(event.address)
        yield replace(event, at=entry.dated(booted), uuid=named.get(event.address, ""), serial=serials.get(event.address, ""))


def _coded(row: str) -> Line | None:
    for kind, pattern in (("xid", _XID), ("sxid", _SXID)):
        match = pattern.search(row)
        if match is not None:
            return Line(kind, str(int(match.group(2))), _address(match.group(1)), _text(row))
    return None


def _uncoded(rows: Sequence[Entry], number: int, coded: set[str]) -> Line | None:
    row = rows[number].text
    match = _LOST.search(row)
    if match is not None:
        following = " ".join(_text(each.text) for each in rows[number : number + 4])
        if "fallen off the bus" not in following:
            return None
        return Line("fallen_off_bus", None, _address(match.group(1)), following.replace(" NVRM:", "")[:TEXT_LIMIT])
    match = _LOST_LINE.search(row)
    if match is not None:
        address = _address(match.group(1))
        return None if address in coded else Line("fallen_off_bus", None, address, _text(row))
    for pattern, kind in _SINGLE:
        match = pattern.search(row)
        if match is not None:
            return Line(kind, None, _address(match.group(1)) if kind == "events_lost" else "", _text(row))
    return None


def _address(text: str) -> str:
    """The canonical address; bus 0, device 0 stands where the driver did not know the card."""
    canonical = pci_address(text) or ""
    return "" if canonical == "0000:00:00.0" else canonical


def _text(row: str) -> str:
    match = _MESSAGE.search(row)
    return " ".join((match.group() if match else row).split())[:TEXT_LIMIT]
