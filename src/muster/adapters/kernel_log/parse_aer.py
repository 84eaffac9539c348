# SPDX-License-Identifier: Apache-2.0
"""PCIe Advanced Error Reporting: the several lines of one error become one report.

The port that received the message speaks first and may name a requester (often the port itself, often a nonsense address);
the line "PCIe Bus Error" is said in the name of the device that has the error, and its bits follow one by one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from muster.domain.model.names import pci_address
from muster.formats.kernel_log import Entry

_DEVICE = r"^(?:\{\d+\})?(?P<driver>[\w.-]{1,64}) (?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): "
_RECEIVED = re.compile(
    _DEVICE + r"(?:AER: )?(?P<multiple>Multiple )?(?P<severity>Correct(?:ed|able)|Uncorrect(?:ed|able)(?: \([\w-]+\))?) error (?:message )?received",
    re.IGNORECASE,
)
_BUS_ERROR = re.compile(_DEVICE + r"(?:AER: )?PCIe Bus Error: severity=(?P<severity>[\w ()-]+?), type=(?P<layer>[\w ]+?)(?:,|$)", re.IGNORECASE)
_STATUS = re.compile(_DEVICE + r"(?:AER: )?\s*device \[(?P<ids>[0-9a-f]{4}:[0-9a-f]{4})\] error status/mask=(?P<status>[0-9a-f]+)/", re.IGNORECASE)
_BIT = re.compile(_DEVICE + r"(?:AER: )?\s*\[\s*\d+\]\s*(?P<name>[A-Za-z][\w /-]*?)\s*(?:\(First\))?\s*$")
_NO_DRIVER = re.compile(_DEVICE + r"(?:AER: )?(?:device has no AER-aware driver|can't recover \(no error_detected callback\))", re.IGNORECASE)
_RECOVERY = re.compile(_DEVICE + r"(?:AER: )?[Dd]evice recovery (?P<how>successful|failed)")
_WORDS = ("AER", "PCIe Bus Error", "[", "recover")
"""One of these stands in every line of a report."""


@dataclass(slots=True)
class Aer:
    """One reported error. ``severity`` is ``corrected``, ``nonfatal`` or ``fatal``; ``names`` are the error's bits as the kernel words them."""

    address: str
    severity: str
    entry: Entry
    layer: str = ""
    names: list[str] = field(default_factory=list)
    ids: str = ""
    status: str = ""
    told_by_device: bool = False

    @property
    def text(self) -> str:
        """The error in one line."""
        parts = [f"severity={self.severity}", f"type={self.layer}" if self.layer else "", f"device [{self.ids}]" if self.ids else ""]
        bits = ", ".join(self.names)
        return "PCIe Bus Error: " + ", ".join(part for part in parts if part) + (f": {bits}" if bits else "")


@dataclass(frozen=True, slots=True)
class AerNote:
    """What the kernel said of a device while it handled an error: that its driver does not take part, or how recovery went."""

    address: str
    code: str
    entry: Entry


class AerParser:
    """Takes the lines of a log one by one and collects the errors."""

    def __init__(self) -> None:
        self.errors: list[Aer] = []
        self.notes: list[AerNote] = []

    def take(self, entry: Entry) -> bool:
        """True when the line was part of an error report."""
        text = entry.text
        if not any(word in text for word in _WORDS):
            return False
        return self._note(text, entry) or self._received(text, entry) or self._bus_error(text, entry) or self._detail(text)

    def _note(self, text: str, entry: Entry) -> bool:
        match = _NO_DRIVER.match(text)
        recovery = _RECOVERY.match(text)
        if match is not None:
            self.notes.append(AerNote(_address(match), "no_aware_driver", entry))
        elif recovery is not None:
            self.notes.append(AerNote(_address(recovery), f"recovery_{recovery['how']}", entry))
        return match is not None or recovery is not None

    def _received(self, text: str, entry: Entry) -> bool:
        match = _RECEIVED.match(text)
        if match is None:
            return False
        self.errors.append(Aer(_address(match), severity(match["severity"]), entry))
        return True

    def _bus_error(self, text: str, entry: Entry) -> bool:
        match = _BUS_ERROR.match(text)
        if match is None:
            return False
        address, how = _address(match), severity(match["severity"])
        last = self.errors[-1] if self.errors else None
        if last is None or last.told_by_device or last.severity != how:
            last = Aer(address, how, entry)
            self.errors.append(last)
        last.address, last.layer, last.told_by_device = address, match["layer"].strip(), True
        return True

    def _detail(self, text: str) -> bool:
        status, bit = _STATUS.match(text), _BIT.match(text)
        match = status or bit
        if match is None:
            return False
        address = _address(match)
        last = next((error for error in reversed(self.errors[-8:]) if error.address == address), None)
        if last is None:
            return False
        if status is not None:
            last.ids, last.status = status["ids"], status["status"]
        elif bit is not None and bit["name"] not in last.names:
            last.names.append(bit["name"])
        return True


def severity(word: str) -> str:
    """``corrected``, ``nonfatal`` or ``fatal`` for the kernel's word of any version."""
    word = word.lower()
    if word.startswith("correct"):
        return "corrected"
    return "nonfatal" if "non" in word else "fatal"


def _address(match: re.Match[str]) -> str:
    return pci_address(match["address"]) or match["address"]
