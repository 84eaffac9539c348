# SPDX-License-Identifier: Apache-2.0
"""Reports on disk until the server has them. Bounded in bytes and age, listings go before events, and a restart finds what was left.

One file per report: ``<order>-<lane>.report``, lane ``e`` for events and ``l`` for listings. A file is written beside and renamed, so it is whole or not there;
one that cannot be read all the same is set aside once, and said. A report that the server cannot take is set aside as ``.aside`` and kept for a person.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from muster.domain.model.errors import Unavailable
from muster.wire.report import ReportDoc, pack, unpack

_log = logging.getLogger("muster.spool")
LISTINGS, EVENTS = "l", "e"
"""Lanes, as they stand in the names of files."""
_SUFFIX = ".report"
_BROKEN = ".broken"
_ASIDE = ".aside"
ASIDES = 64
"""Reports set aside that are kept; the oldest make room."""


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
            found = list(self._found())
        except OSError as error:
            raise Unavailable(f"{folder}: {error.strerror}", hint="name another folder with --state") from error
        self._lanes: dict[str, dict[int, Kept]] = {lane: {each.order: each for each in found if each.lane == lane} for lane in (LISTINGS, EVENTS)}
        self._next = max((each.order for each in found), default=0) + 1
        self.size = sum(each.size for each in found)
        """Bytes of all files."""

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def add(self, report: ReportDoc) -> bool:
        """Writes a report, and drops old ones that no longer fit. False, and said, when it cannot be written."""
        with self._lock:
            return self._add(report, pack(report))

    def _add(self, report: ReportDoc, body: bytes) -> bool:
        lane = EVENTS if report.events else LISTINGS
        path = self._folder / f"{self._next:016d}-{lane}{_SUFFIX}"
        try:
            _write(path, body)
        except OSError as error:
            _log.error("report %s/%d is lost: %s: %s", report.incarnation, report.sequence, path, error.strerror)
            return False
        self._lanes[lane][self._next] = Kept(self._next, lane, path, len(body))
        self._next += 1
        self.size += len(body)
        self._fit()
        return True

    def oldest(self, now: float) -> tuple[Kept, ReportDoc] | None:
        """The report to deliver next: the oldest that is not too old. ``now`` is wall time."""
        with self._lock:
            return self._oldest(now)

    def _oldest(self, now: float) -> tuple[Kept, ReportDoc] | None:
        while (kept := self._first()) is not None:
            report = self._read(kept)
            if report is None:
                continue
            age = now - report.sent_at
            if age <= (self._limits.event_age if kept.lane == EVENTS else self._limits.listing_age):
                return kept, report
            _log.warning("report %s/%d is dropped undelivered: %.0f s old", report.incarnation, report.sequence, age)
            self.done(kept)
        return None

    def _first(self) -> Kept | None:
        firsts = (next(iter(lane.values())) for lane in self._lanes.values() if lane)
        return min(firsts, key=lambda each: each.order, default=None)

    def done(self, kept: Kept) -> None:
        """Forgets a report."""
        with self._lock:
            self._forget(kept)
            try:
                kept.path.unlink(missing_ok=True)
            except OSError as error:
                _log.warning("%s cannot be removed: %s", kept.path, error.strerror)

    def set_aside(self, kept: Kept) -> Path:
        """Forgets a report but keeps its file, under the name that is returned."""
        with self._lock:
            self._forget(kept)
            aside = kept.path.with_suffix(_ASIDE)
            with contextlib.suppress(OSError):
                kept.path.replace(aside)
                for old in sorted(self._folder.glob(f"*{_ASIDE}"))[:-ASIDES]:
                    old.unlink(missing_ok=True)
            return aside

    def _forget(self, kept: Kept) -> None:
        if self._lanes[kept.lane].pop(kept.order, None) is not None:
            self.size -= kept.size

    def _read(self, kept: Kept) -> ReportDoc | None:
        try:
            return unpack(kept.path.read_bytes())
        except (msgspec.DecodeError, OSError, RecursionError, ValueError, MemoryError) as error:
            _log.warning("%s cannot be read and is set aside: %s", kept.path, str(error) or type(error).__name__)
        self._forget(kept)
        with contextlib.suppress(OSError):
            kept.path.replace(kept.path.with_suffix(_BROKEN))
        return None

    def _fit(self) -> None:
        while self.size > self._limits.size and len(self) > 1:
            first = next(iter((self._lanes[LISTINGS] or self._lanes[EVENTS]).values()))
            _log.warning("the spool is full: %s is dropped undelivered", first.path.name)
            self.done(first)

    def _found(self) -> Iterator[Kept]:
        for path in sorted(self._folder.iterdir()):
            order, _, lane = path.stem.partition("-")
            ours = path.suffix == _SUFFIX and order.isdecimal() and lane in (LISTINGS, EVENTS)
            if not ours and path.suffix not in (".part", _BROKEN):
                continue
            size = _size(path)
            if size is not None and ours:
                yield Kept(int(order), lane, path, size)
            elif size is not None:
                _remove(path)


def _size(path: Path) -> int | None:
    """Bytes of a regular file; None, and said, for anything else that has such a name."""
    try:
        found = path.lstat()
    except OSError as error:
        _log.warning("%s is passed over: %s", path, error.strerror)
        return None
    if stat.S_ISREG(found.st_mode):
        return found.st_size
    _log.warning("%s is no file and is passed over", path)
    return None


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s was not written whole and cannot be removed: %s", path, error.strerror)
    else:
        _log.warning("%s was not written whole and is removed", path)


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
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
