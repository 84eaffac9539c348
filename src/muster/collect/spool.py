# SPDX-License-Identifier: Apache-2.0
"""Reports on disk until the server has them. Bounded in bytes and age, listings go before events, and a restart finds what was left.

One file per report: ``<order>-<lane>.report``, lane ``e`` for events and ``l`` for listings. A file is written beside and renamed, so it is whole or not there;
one that cannot be read all the same is set aside once, and said. A report that the server cannot take is set aside as ``.aside`` and kept for a person.
While the disk is full or broken, reports are held in memory, within a smaller bound, so that a server that answers still gets them.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from muster.domain.model.errors import Conflict, Unavailable
from muster.wire.report import SCHEMA, ReportDoc, pack, unpack

_log = logging.getLogger("muster.spool")
LISTINGS, EVENTS = "l", "e"
"""Lanes, as they stand in the names of files."""
_SUFFIX = ".report"
_BROKEN = ".broken"
_ASIDE = ".aside"
ASIDES = 64
"""Reports set aside that are kept; the oldest make room."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
HELD = 4 * 1024 * 1024
"""Bytes of reports held in memory while they cannot be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes of all files together, and seconds that a listing and an event are kept for a server that does not answer."""

    size: int = 64 * 1024 * 1024
    listing_age: float = 24 * 3600.0
    event_age: float = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Kept:
    """One report in the spool. ``body`` is set while it could not be written; ``since`` is the wall time of its writing."""

    order: int
    lane: str
    path: Path
    size: int
    since: float
    body: bytes = b""


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
            why = "it is no folder" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
            raise Unavailable(f"{folder}: {why}", hint="name another folder with --state or MUSTER_STATE") from error
        _refuse_newer(folder, found)
        self._lanes: dict[str, dict[int, Kept]] = {lane: {each.order: each for each in found if each.lane == lane} for lane in (LISTINGS, EVENTS)}
        self._next = max((each.order for each in found), default=0) + 1
        self.size = sum(each.size for each in found)
        """Bytes of all reports."""
        self.held = 0
        """Bytes of those that are in memory alone."""
        self.dropped = 0
        """Reports that the bounds, or a disk that failed, have cost so far."""
        self._trouble = ""
        self._newest: tuple[int, ReportDoc] | None = None
        self.came = threading.Event()
        """Set when a report is added; whoever waits for it clears it."""

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def since(self) -> float | None:
        """The wall time at which the oldest report was written; None when there is none."""
        with self._lock:
            first = self._first()
            return first.since if first else None

    def add(self, report: ReportDoc) -> bool:
        """Writes a report, and drops old ones that no longer fit. False when it cannot be written; it is held in memory then, where there is room."""
        with self._lock:
            return self._add(report, pack(report))

    def _add(self, report: ReportDoc, body: bytes) -> bool:
        lane = EVENTS if report.events else LISTINGS
        path = self._folder / f"{self._next:016d}-{lane}{_SUFFIX}"
        written = self._written(path, body, lane)
        self._lanes[lane][self._next] = Kept(self._next, lane, path, len(body), report.sent_at, b"" if written else body)
        self._newest = (self._next, report)
        self._next += 1
        self.size += len(body)
        self.held += 0 if written else len(body)
        self._fit()
        self.came.set()
        return written

    def _written(self, path: Path, body: bytes, lane: str) -> bool:
        """Writes the file. On a full disk an event pushes out listings, the oldest first."""
        while True:
            try:
                _write(path, body)
            except OSError as error:
                oldest = next((each for each in self._lanes[LISTINGS].values() if not each.body), None)
                if oldest is None or lane != EVENTS or error.errno not in _FULL:
                    self._said(error)
                    return False
                self._drop(oldest, "the disk is full")
                continue
            if self._trouble:
                _log.warning("reports are written to %s again", self._folder)
            self._trouble = ""
            return True

    def _said(self, error: OSError) -> None:
        text = error.strerror or str(error)
        if text != self._trouble:
            _log.error("reports cannot be written to %s: %s; the newest %d MiB are held in memory", self._folder, text, HELD // (1024 * 1024))
        self._trouble = text

    def oldest(self, now: float, mono: float = 0.0, boot_id: str = "") -> tuple[Kept, ReportDoc] | None:
        """The report to deliver next: the oldest that is not too old. ``now`` is wall time; within a boot the monotonic clock tells the age."""
        with self._lock:
            return self._oldest(now, mono, boot_id)

    def _oldest(self, now: float, mono: float, boot_id: str) -> tuple[Kept, ReportDoc] | None:
        while (kept := self._first()) is not None:
            report = self._read(kept)
            if report is None:
                continue
            age = mono - report.sent_mono if boot_id and report.boot_id == boot_id else now - report.sent_at
            if age <= (self._limits.event_age if kept.lane == EVENTS else self._limits.listing_age):
                return kept, report
            self._drop(kept, f"{age:.0f} s old")
        return None

    def _first(self) -> Kept | None:
        firsts = (next(iter(lane.values())) for lane in self._lanes.values() if lane)
        return min(firsts, key=lambda each: each.order, default=None)

    def done(self, kept: Kept) -> None:
        """Forgets a report."""
        with self._lock:
            self._forget(kept)
            if kept.body:
                return
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
                if kept.body:
                    _write(kept.path, kept.body)
                kept.path.replace(aside)
                for old in sorted(self._folder.glob(f"*{_ASIDE}"))[:-ASIDES]:
                    old.unlink(missing_ok=True)
            return aside

    def _forget(self, kept: Kept) -> None:
        if self._lanes[kept.lane].pop(kept.order, None) is not None:
            self.size -= kept.size
            self.held -= len(kept.body)

    def _read(self, kept: Kept) -> ReportDoc | None:
        newest, self._newest = self._newest, None
        if newest is not None and newest[0] == kept.order:
            self._newest = newest
            return newest[1]
        try:
            return unpack(kept.body or kept.path.read_bytes())
        except (msgspec.DecodeError, OSError, RecursionError, ValueError, MemoryError) as error:
            _log.warning("%s cannot be read and is set aside: %s", kept.path, str(error) or type(error).__name__)
        self._forget(kept)
        with contextlib.suppress(OSError):
            kept.path.replace(kept.path.with_suffix(_BROKEN))
        return None

    def _fit(self) -> None:
        while len(self) > 1 and (self.size > self._limits.size or self.held > HELD):
            held = self.held > HELD
            lanes = ([each for each in self._lanes[lane].values() if each.body or not held] for lane in (LISTINGS, EVENTS))
            self._drop(next(found[0] for found in lanes if found), "the spool is full")

    def _drop(self, kept: Kept, why: str) -> None:
        """Gives a report up undelivered."""
        self.dropped += 1
        if self.dropped == 1 or self.dropped % 100 == 0:
            _log.warning("%s: %s is dropped undelivered; %d so far", why, kept.path.name, self.dropped)
        self.done(kept)

    def _found(self) -> Iterator[Kept]:
        for path in sorted(self._folder.iterdir()):
            order, _, lane = path.stem.partition("-")
            ours = path.suffix == _SUFFIX and order.isdecimal() and lane in (LISTINGS, EVENTS)
            if not ours and path.suffix not in (".part", _BROKEN):
                continue
            found = _file(path)
            if found is not None and ours:
                yield Kept(int(order), lane, path, found.st_size, found.st_mtime)
            elif found is not None:
                _remove(path)


class _Schema(msgspec.Struct):
    """Of a report, the schema that it is written in."""

    schema: int = 1


_schema = msgspec.msgpack.Decoder(_Schema).decode


def _refuse_newer(folder: Path, found: Sequence[Kept]) -> None:
    """Raises Conflict where the newest reports are of a newer Muster: delivered by this one they would lose what it does not know of."""
    for each in {each.lane: each for each in found}.values():
        with contextlib.suppress(OSError, msgspec.DecodeError):
            newest = _schema(each.path.read_bytes()).schema
            if newest > SCHEMA:
                raise Conflict(
                    f"{folder} holds reports of a newer Muster (schema {newest}; this one writes {SCHEMA})",
                    hint="let the newer agent deliver them (`muster agent --once`), or move them away, or name another folder with --state or MUSTER_STATE",
                )


def _file(path: Path) -> os.stat_result | None:
    """What the system says of a regular file; None, and said, for anything else that has such a name."""
    try:
        found = path.lstat()
    except OSError as error:
        _log.warning("%s is passed over: %s", path, error.strerror)
        return None
    if stat.S_ISREG(found.st_mode):
        return found
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
