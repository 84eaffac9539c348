# SPDX-License-Identifier: Apache-2.0
"""Reports on disk until the server has them. Bounded in bytes and age, listings go before events, and a restart finds what was left.

One file per report: ``<order>-<lane>.report``, lane ``e`` for events and ``l`` for listings. A file is written beside and renamed, so it is whole or not there;
one that cannot be read all the same is set aside once, and said.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from muster.domain.model.errors import Unavailable
from muster.wire.report import ReportDoc, pack, unpack

_log = logging.getLogger("muster.spool")
_SUFFIX = ".report"
_BROKEN = ".broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes of all files together, and seconds that a listing and an event are kept for a server that does not answer."""

    size: int = 64 * 1024 * 1024
    listing_age: float = 24 * 3600.0
    event_age: float = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Kept:
    """One report in the spool."""

    order: int
    lane: str
    path: Path
    size: int


class Spool:
    """The folder of reports that are still to be delivered. For one process at a time; its threads may share it."""

    def __init__(self, folder: Path, limits: Limits | None = None) -> None:
        self._folder = folder
        self._limits = limits or Limits()
        self._lock = threading.RLock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._kept = {each.order: each for each in self._found()}
        except OSError as error:
            raise Unavailable(f"{folder}: {error.strerror}", hint="name another folder with --state") from error
        self._next = max(self._kept, default=0) + 1

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self._kept.values())

    def add(self, report: ReportDoc) -> bool:
        """Writes a report, and drops old ones that no longer fit. False, and said, when it cannot be written."""
        with self._lock:
            return self._add(report, pack(report))

    def _add(self, report: ReportDoc, body: bytes) -> bool:
        lane = "e" if report.events else "l"
        path = self._folder / f"{self._next:016d}-{lane}{_SUFFIX}"
        try:
            _write(path, body)
        except OSError as error:
            _log.error("report %s/%d is lost: %s: %s", report.incarnation, report.sequence, path, error.strerror)
            return False
        self._kept[self._next] = Kept(self._next, lane, path, len(body))
        self._next += 1
        self._fit()
        return True

    def oldest(self, now: float) -> tuple[Kept, ReportDoc] | None:
        """The report to deliver next: the oldest that is not too old. ``now`` is wall time."""
        with self._lock:
            return self._oldest(now)

    def _oldest(self, now: float) -> tuple[Kept, ReportDoc] | None:
        for order in sorted(self._kept):
            kept = self._kept[order]
            report = self._read(kept)
            if report is None:
                continue
            age = now - report.sent_at
            if age > (self._limits.event_age if kept.lane == "e" else self._limits.listing_age):
                _log.warning("report %s/%d is dropped undelivered: %.0f s old", report.incarnation, report.sequence, age)
                self.done(kept)
                continue
            return kept, report
        return None

    def done(self, kept: Kept) -> None:
        """Forgets a report."""
        with self._lock:
            self._kept.pop(kept.order, None)
            kept.path.unlink(missing_ok=True)

    def _read(self, kept: Kept) -> ReportDoc | None:
        try:
            return unpack(kept.path.read_bytes())
        except (msgspec.DecodeError, OSError) as error:
            _log.warning("%s cannot be read and is set aside: %s", kept.path, error)
        self._kept.pop(kept.order, None)
        try:
            kept.path.replace(kept.path.with_suffix(_BROKEN))
        except OSError:
            return None
        return None

    def _fit(self) -> None:
        while self.size > self._limits.size and len(self._kept) > 1:
            first = min(self._kept.values(), key=lambda each: (each.lane == "e", each.order))
            _log.warning("the spool is full: %s is dropped undelivered", first.path.name)
            self.done(first)

    def _found(self) -> Iterator[Kept]:
        for path in sorted(self._folder.iterdir()):
            order, _, lane = path.stem.partition("-")
            if path.suffix == _SUFFIX and order.isdecimal() and lane in ("e", "l"):
                yield Kept(int(order), lane, path, path.stat().st_size)
            elif path.suffix in (".part", _BROKEN):
                _log.warning("%s was not written whole and is removed", path)
                path.unlink(missing_ok=True)


def _write(path: Path, body: bytes) -> None:
    part = path.with_suffix(".part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
