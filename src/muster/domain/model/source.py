# SPDX-License-Identifier: Apache-2.0
"""A source is one declared way of seeing; a capture is all bytes of one read of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

SourceId = NewType("SourceId", str)


class Channel(StrEnum):
    """The four witnesses."""

    IN_BAND = "in_band"
    OUT_OF_BAND = "out_of_band"
    CLUSTER = "cluster"
    OPERATOR = "operator"


class WitnessClass(StrEnum):
    """What kind of source speaks; precedence is by class."""

    DRIVER = "driver"
    EXPORTER = "exporter"
    BMC = "bmc"
    PCI = "pci"
    CLUSTER = "cluster"
    OPERATOR = "operator"


class ReaderKind(StrEnum):
    """Which reader brings the bytes."""

    FILES = "files"
    TOOL = "tool"
    LIBRARY = "library"
    HTTP = "http"
    STREAM = "stream"


class Outcome(StrEnum):
    """What became of a read. The list is closed."""

    DEVICES = "devices"
    PARTIAL = "partial"
    NO_DEVICES = "no_devices"
    TOOL_MISSING = "tool_missing"
    DRIVER_UNUSABLE = "driver_unusable"
    NOT_PERMITTED = "not_permitted"
    DEVICE_LOST = "device_lost"
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    UNREADABLE = "unreadable"

    @property
    def failed(self) -> bool:
        """True when the read says nothing about the cards it did not show."""
        return self not in {Outcome.DEVICES, Outcome.NO_DEVICES, Outcome.DEVICE_LOST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One thing that a source reads each round: argv of a tool, glob patterns of files, a URL, or ``module:function`` of a library."""

    locator: tuple[str, ...]
    format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One declared way of seeing. ``after`` names the source of the same chain that leads it: this one runs only when the leader is absent."""

    id: SourceId
    adapter: str
    reader: ReaderKind
    reads: tuple[Read, ...]
    channel: Channel = Channel.IN_BAND
    witness: WitnessClass = WitnessClass.DRIVER
    cadence: timedelta = timedelta(seconds=60)
    deadline: timedelta = timedelta(seconds=20)
    provides: tuple[str, ...] = ()
    after: SourceId | None = None
    cost: str = ""
    search: tuple[str, ...] = ()
    """Folders in which a library reader looks for the vendor's own module."""
    install: str = ""
    """What to install or permit when the tool or library is missing, for `doctor`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """All bytes of one read. ``failure`` is set by the reader when there was nothing to interpret (tool missing, timed out, not permitted, unreachable)."""

    source: SourceId
    locator: tuple[str, ...]
    format: str
    taken_at: datetime | None = None
    duration: timedelta = timedelta(0)
    exit_status: int | None = None
    stderr: bytes = b""
    cut: bool = False
    payload: bytes = b""
    failure: Outcome | None = None
    detail: str = ""
    context: Mapping[str, str] = field(default_factory=dict)
    """Facts that the world handed to the reader and the interpreter needs: file name, vendor ids known to the manifests."""


CAPTURE_LIMIT = 8 * 1024 * 1024
"""Bytes of payload kept of one read; what is longer is cut and says so."""
