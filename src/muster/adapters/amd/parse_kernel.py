# SPDX-License-Identifier: Apache-2.0
"""The driver's lines in the kernel log: hardware errors, rings that hang, resets and how they ended.

The card that raises a fatal interrupt is often not the card with the bad memory: both print the same number in braces, which is kept in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from muster.domain.model.names import pci_address
from muster.formats.kernel_log import Entry, entries

DRIVER = re.compile(r"\bamdgpu ((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]): (?:amdgpu: ?|\[drm\] ?)*")
TEXT_LIMIT = 400
_ACA = re.compile(r"^\{(\d{1,10})\}\[Hardware Error\]: ")
_ACA_HEAD = "Accelerator Check Architecture events logged"
_ACA_STATUS = re.compile(r"aca entry\[\d+\]\.(STATUS|IPID)=(0x[0-9a-fA-F]{1,16})")
_KINDS = (
    ("athub_uncorrectable", re.compile(r"uncorrectable hardware error\s?\(ERREVENT_ATHUB", re.IGNORECASE)),
    ("ras_uncorrected", re.compile(r"\b[1-9]\d* (?:new )?uncorrectable hardware errors? detected", re.IGNORECASE)),
    ("ras_deferred", re.compile(r"\b[1-9]\d* (?:new )?deferred hardware errors? detected", re.IGNORECASE)),
    ("ras_corrected", re.compile(r"\b[1-9]\d* (?:new )?correctable hardware errors? detected", re.IGNORECASE)),
    ("ring_reset_failed", re.compile(r"\bring \S+ reset failed", re.IGNORECASE)),
    ("ring_timeout", re.compile(r"\bring \S+ timeout\b", re.IGNORECASE)),
    ("gpu_reset_failed", re.compile(r"\bGPU reset(?:\(\d+\))? (?:end with ret|failed)|\bASIC reset failed", re.IGNORECASE)),
    ("gpu_reset_ok", re.compile(r"\bGPU reset(?:\(\d+\))? succe", re.IGNORECASE)),
    ("gpu_reset_begin", re.compile(r"\bGPU reset begin", re.IGNORECASE)),
    ("vram_lost", re.compile(r"\bVRAM is lost", re.IGNORECASE)),
    ("reset_detail", re.compile(r"\bMES failed to respond|\bfailed to unmap legacy queue", re.IGNORECASE)),
    ("device_lost", re.compile(r"\bdevice lost from bus", re.IGNORECASE)),
    ("bad_pages", re.compile(r"\breserve bad pages|\bbad page threshold|\bpage retirement", re.IGNORECASE)),
    ("page_fault", re.compile(r"\[(?:gfx|mm)hub\d*\].*\bpage fault", re.IGNORECASE)),
    ("probe_failed", re.compile(r"\bFatal error during GPU init", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One thing the driver said of the card at ``address``. ``code`` is the status word of a logged hardware error."""

    kind: str
    address: str
    text: str
    code: str | None = None
    at: datetime | None = None
    repeats: int = 1


def parse(payload: bytes, booted: datetime | None = None) -> Iterator[Line]:
    """Events in the order of the log; the lines of one logged hardware error are one event, and so are lines that say the same again in a row."""
    held: Line | None = None
    group = ""
    for entry in entries(payload):
        found = _line(entry, booted)
        if found is None:
            continue
        line, number = found
        if held is not None and number and number == group and line.address == held.address and line.kind == "" and held.kind == "aca_event":
            held = _with(held, line.text)
            continue
        if line.kind == "":
            continue
        if held is not None and (line.kind, line.address) == (held.kind, held.address) and line.kind in ("reset_detail", "page_fault", "ras_corrected"):
            held = replace(held, repeats=held.repeats + 1)
            continue
        if held is not None:
            yield held
        held, group = line, number
    if held is not None:
        yield held


def _line(entry: Entry, booted: datetime | None) -> tuple[Line, str] | None:
    match = DRIVER.search(entry.text)
    address = pci_address(match.group(1)) if match is not None else None
    if match is None or address is None:
        return None
    text = " ".join(entry.text[match.end() :].split())[:TEXT_LIMIT]
    aca = _ACA.match(text)
    if aca is not None:
        return Line("aca_event" if _ACA_HEAD in text else "", address, text, at=entry.dated(booted)), aca.group(1)
    kind = next((kind for kind, pattern in _KINDS if pattern.search(text)), "")
    return Line(kind, address, text, at=entry.dated(booted)), ""


def _with(event: Line, text: str) -> Line:
    """The hardware error with the words of one more of its lines; the first status is its code."""
    match = _ACA_STATUS.search(text)
    if match is None:
        return event
    code = match.group(2) if match.group(1) == "STATUS" and event.code is None else event.code
    return replace(event, text=f"{event.text}; {match.group()}"[:TEXT_LIMIT], code=code)
