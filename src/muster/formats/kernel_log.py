# SPDX-License-Identifier: Apache-2.0
"""Kernel log lines, however they were taken: the log device, dmesg and the journal in their styles, syslog files. Each gives the text alone, and its time.

What is understood in front of the text:

- ``6,1234,5678901,-;text`` (a record of the log device; lines of keys after it are passed over)
- ``[ 1843.308145] text``, with ``<6>``, ``kern  :err   :``, ``[T1234]`` or a host name around it
- ``[Sat Oct 12 18:35:32 2024] text`` and ``2024-10-12T18:35:32,123456+00:00 text``
- ``May 02 12:09:43 host kernel: text``, the same with an ISO time, and ``Thu 2024-05-02 12:09:43 UTC host kernel: text``
- one JSON object per line, as the journal exports it
- ``12:09:43 text`` and no time at all
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from muster.formats.text import lines

_RECORD = re.compile(r"^\d{1,4},\d{1,20},(?P<micros>\d{1,20}),[^;]{0,80};(?P<rest>.*)$")
_PREFIX = re.compile(r"^(?:<\d{1,3}>|(?:kern|user|daemon|syslog)\s*:\s*[a-z]+\s*:\s*)")
_UPTIME = re.compile(r"^\[\s*(?P<seconds>\d{1,12}\.\d{6})\]\s?(?P<rest>.*)$")
_CTIME = re.compile(r"^\[(?P<stamp>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\]\s?(?P<rest>.*)$")
_ISO = re.compile(r"^(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\s(?P<rest>.*)$")
_FULL = re.compile(r"^[A-Z][a-z]{2} (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<zone>[A-Z]{1,5}) (?P<rest>.*)$")
_SYSLOG = re.compile(r"^(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)\s(?P<rest>.*)$")
_TIME = re.compile(r"^(?P<stamp>\d\d:\d\d:\d\d(?:\.\d+)?)\s+(?P<rest>.*)$")
_CALLER = re.compile(r"^\[\s*[TC]\d{1,10}\]\s?")
_KERNEL = re.compile(r"^(?:\S{1,255} )?kernel: ?(?P<rest>.*)$")
_OTHER = re.compile(r"^\S{1,255} [A-Za-z][\w./@-]{0,80}(?:\[\d+\])?: ")
_MONTHS = {name: number for number, name in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a kernel log.

    ``text`` is what the kernel said. ``stamp`` is the time as written ("" when there is none), ``seconds`` since boot, ``at`` the date;
    a date without a zone is naive.
    ``kernel`` is True when the line itself shows that it is the kernel's.
    """

    text: str
    stamp: str = ""
    seconds: float | None = None
    at: datetime | None = None
    kernel: bool = False

    def dated(self, booted_at: datetime | None) -> datetime | None:
        """When it was said: its own date, or the seconds since boot added to ``booted_at``."""
        if self.at is not None or self.seconds is None or booted_at is None:
            return self.at
        return booted_at + timedelta(seconds=self.seconds)


def entries(payload: bytes) -> list[Entry]:
    """Lines of a kernel log in order, without blank ones and those that other programs wrote. A line without a time keeps that of the line before."""
    told: list[Entry] = []
    for entry in _read(payload):
        last = told[-1] if told else None
        bare = last is not None and not entry.stamp and not entry.kernel
        told.append(replace(last, text=entry.text) if bare and last is not None else entry)
    return told


def _read(payload: bytes) -> Iterator[Entry]:
    for line in lines(payload):
        entry = read_line(line)
        if entry is not None and entry.text.strip():
            yield entry


def read_line(line: str) -> Entry | None:
    """The entry in one line; None when another program wrote it, or when it is no line of a log at all (a journal's own remarks, keys of a record)."""
    if line.startswith("-- ") or not line.strip():
        return None
    if line.startswith("{"):
        return _journal(line)
    record = _RECORD.match(line)
    if record is not None:
        return _at_uptime(record["rest"], int(record["micros"]) / 1e6, "")
    if re.match(r"^ (?:SUBSYSTEM|DEVICE)=", line):
        return None
    return _stamped(_PREFIX.sub("", line, count=1))


def _stamped(line: str) -> Entry | None:
    if (match := _UPTIME.match(line)) is not None:
        return _at_uptime(_CALLER.sub("", match["rest"]), float(match["seconds"]), match["seconds"])
    if (match := _CTIME.match(line)) is not None:
        return Entry(_CALLER.sub("", match["rest"]), match["stamp"], at=_ctime(match["stamp"]), kernel=True)
    if (match := _FULL.match(line)) is not None:
        return _by_program(match["rest"], match["stamp"], _iso(match["stamp"] + ("+00:00" if match["zone"] in ("UTC", "GMT") else "")))
    if (match := _ISO.match(line)) is not None:
        return _by_program(match["rest"], match["stamp"], _iso(match["stamp"]))
    if (match := _SYSLOG.match(line)) is not None:
        return _by_program(match["rest"], match["stamp"], None)
    if (match := _TIME.match(line)) is not None:
        return Entry(match["rest"], match["stamp"])
    return Entry(line)


def _at_uptime(text: str, seconds: float, stamp: str) -> Entry:
    match = _KERNEL.match(text)
    return Entry(match["rest"] if match is not None else text, stamp or f"{seconds:.6f}", seconds=seconds, kernel=True)


def _by_program(rest: str, stamp: str, at: datetime | None) -> Entry | None:
    """A line of the journal or of syslog: the kernel's is kept, with the uptime it may print itself."""
    match = _KERNEL.match(rest)
    if match is None:
        return None if _OTHER.match(rest) else Entry(rest, stamp, at=at)
    uptime = _UPTIME.match(match["rest"])
    if uptime is None:
        return Entry(match["rest"], stamp, at=at, kernel=True)
    return Entry(_CALLER.sub("", uptime["rest"]), stamp, seconds=float(uptime["seconds"]), at=at, kernel=True)


def _journal(line: str) -> Entry | None:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    kernel = told.get("_TRANSPORT") == "kernel" or told.get("SYSLOG_IDENTIFIER") == "kernel"
    text = _message(told.get("MESSAGE"))
    if text is None or not (kernel or "_TRANSPORT" not in told):
        return None
    stamp = _digits(told.get("_SOURCE_REALTIME_TIMESTAMP") or told.get("__REALTIME_TIMESTAMP"))
    uptime = _digits(told.get("_SOURCE_MONOTONIC_TIMESTAMP") or told.get("__MONOTONIC_TIMESTAMP"))
    return Entry(text, stamp, int(uptime) / 1e6 if uptime else None, _epoch(stamp), kernel)


def _message(value: Any) -> str | None:
    """The text of a message; the journal writes one that is no UTF-8 as a list of bytes."""
    if isinstance(value, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def _digits(value: Any) -> str:
    text = str(value) if isinstance(value, str | int) else ""
    return text if text.isascii() and text.isdecimal() and len(text) < 20 else ""


def _epoch(micros: str) -> datetime | None:
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(micros)) if micros else None
    except OverflowError:
        return None


def _iso(stamp: str) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp.replace(",", "."))
    except ValueError:
        return None


def _ctime(stamp: str) -> datetime | None:
    _, month, day, time, year = stamp.split()
    try:
        return _iso(f"{int(year):04}-{_MONTHS[month]:02}-{int(day):02}T{time}")
    except (KeyError, ValueError):
        return None
