# SPDX-License-Identifier: Apache-2.0
"""A source is one declared way of seeing; a capture is all bytes of one read of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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


EACH_MOST = 64
"""Times that one read is repeated at most in a round."""

EACH_SPAN = 3
"""Deadlines of its source that a round may take when reads are repeated; what is not read by then is left out."""

_EACH_HEAD = 1024 * 1024
_WORD = re.compile(r"\w{1,64}", re.ASCII)
_HOLE = re.compile(r"\{([01])\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Each:
    """What a read of a tool is repeated for: every different match of ``find``, one or two groups, in what earlier reads of the same round brought as ``of``.

    Raises ValueError for a pattern that is none or has other groups.
    """

    of: str
    find: str

    def __post_init__(self) -> None:
        try:
            groups = re.compile(self.find).groups
        except re.error as wrong:
            raise ValueError(f"each: {self.find!r} is no regular expression: {wrong}") from wrong
        if groups not in (1, 2):
            raise ValueError(f"each: {self.find!r} has {groups} groups, one or two are needed")

    def matches(self, outputs: Iterable[bytes]) -> list[tuple[str, ...]]:
        """Groups of the matches in order of appearance, each once, `EACH_MOST` at most. Only plain words count: they become arguments of a tool."""
        pattern, found = re.compile(self.find, re.MULTILINE), dict[tuple[str, ...], None]()
        for output in outputs:
            for match in pattern.finditer(output[:_EACH_HEAD].decode("utf-8", "replace")):
                groups = tuple(group or "" for group in match.groups())
                if all(_WORD.fullmatch(group) for group in groups):
                    found[groups] = None
                if len(found) == EACH_MOST:
                    return list(found)
        return list(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One thing that a source reads each round: argv of a tool, glob patterns of files, a URL, or ``module:function`` of a library.

    With ``each`` it is a pattern of an argv, read once per match: ``{0}`` and ``{1}`` stand for the groups.
    """

    locator: tuple[str, ...]
    format: str
    each: Each | None = None

    def filled(self, groups: tuple[str, ...]) -> Read:
        """The one read that a match stands for."""
        fill = dict(zip("01", groups, strict=False))
        return Read(locator=tuple(_HOLE.sub(lambda hole: fill.get(hole[1], hole[0]), part) for part in self.locator), format=self.format)

    def answered_by(self, locator: tuple[str, ...]) -> bool:
        """True when a capture with this locator is of this read."""
        if self.each is None:
            return locator == self.locator
        patterns = ("".join(r"\w{1,64}" if _HOLE.fullmatch(piece) else re.escape(piece) for piece in re.split(r"(\{[01]\})", part)) for part in self.locator)
        return len(locator) == len(self.locator) and all(re.fullmatch(pattern, part, re.ASCII) for pattern, part in zip(patterns, locator, strict=True))


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

    @property
    def longest(self) -> timedelta:
        """The longest that one round may take: a deadline for each read, and a bound of its own where reads are repeated."""
        repeated = any(read.each for read in self.reads)
        return self.deadline * max(1, sum(read.each is None for read in self.reads), EACH_SPAN if repeated else 1)


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
