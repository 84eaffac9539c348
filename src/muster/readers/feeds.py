# SPDX-License-Identifier: Apache-2.0
"""What a stream is fed from: the kernel's log device, one record per read, or a tool's lines. Both give whole lines with a growing sequence."""

from __future__ import annotations

import errno
import os
import re
import select
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.readers.processes import Process, end, wait
from muster.readers.tool import FOLDERS, environment

LINE_LIMIT = 64 * 1024
"""Bytes kept of one line."""

_RECORD = 16 * 1024
_ROUND = 512
_HEADER = re.compile(rb"^(\d+),(\d+),(\d+),[^;]*;(.*)$", re.DOTALL)
_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")
_STAMP = re.compile(rb"^\[\s*(\d+)\.(\d{6})\]")


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end. ``sequence`` grows within a boot."""

    sequence: int
    text: bytes


class Feed(Protocol):
    """Gives lines as they come. ``prompt`` is True when what is there is there at once; ``lost`` counts gaps; ``ended`` is True when no more will come."""

    prompt: bool
    lost: int
    ended: bool

    def fileno(self) -> int:
        """What can be waited on: it is ready when `lines` has something, or when it ended."""

    def lines(self, seconds: float) -> list[Line]:
        """What came, after waiting for it ``seconds`` at most."""

    def ending(self) -> str:
        """Why it ended."""

    def close(self) -> Process | None:
        """Lets go. Gives the process that would not end, if there is one."""


def open_feed(locator: Sequence[str], search: Sequence[str]) -> Feed:
    """The feed of a device (a path in ``/dev``) or of a tool (its argument list). Raises OSError when there is none, or when it is not permitted."""
    if locator and (locator[0].startswith("/dev/") or (len(locator) == 1 and "/" in locator[0])):
        return DeviceFeed(locator[0])
    return ToolFeed(locator, search)


class DeviceFeed:
    """The kernel's log device. Records come out as a kernel log's lines, ``[seconds.microseconds] text``."""

    prompt = True

    def __init__(self, path: str) -> None:
        self.lost = 0
        self.ended = False
        self._why = ""
        self._handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """The device."""
        return self._handle

    def lines(self, seconds: float) -> list[Line]:
        """What came, some hundred records at most."""
        if not select.select([self._handle], [], [], max(seconds, 0))[0]:
            return []
        found = (self._record() for _ in range(_ROUND))
        lines: list[Line] = []
        for record in found:
            if record is None:
                break
            lines += [record] if record.text else []
        return lines

    def ending(self) -> str:
        """Why it ended."""
        return self._why

    def close(self) -> Process | None:
        """Closes the device."""
        os.close(self._handle)
        return None

    def _record(self) -> Line | None:
        """One record; an empty one for a gap or for what is no record; None when there is no more now."""
        try:
            data = os.read(self._handle, _RECORD)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.EINVAL):
                self.lost += 1
                return Line(-1, b"")
            data, self._why = b"", error.strerror or str(error)
        if not data:
            self.ended = True
            return None
        return record_line(data) or Line(-1, b"")


def record_line(record: bytes) -> Line | None:
    """A record of the log device (``priority,sequence,microseconds,flags;text``, then lines of keys) as a line; None when it is none."""
    match = _HEADER.match(record)
    if match is None:
        return None
    _, sequence, micros, rest = match.groups()
    text = _ESCAPE.sub(_unescaped, rest.partition(b"\n")[0])[:LINE_LIMIT]
    stamp = b"[%5d.%06d] " % divmod(int(micros), 1_000_000)
    return Line(int(sequence), stamp + text)


def _unescaped(match: re.Match[bytes]) -> bytes:
    sign = bytes([int(match.group(1), 16)])
    return b" " if sign in b"\r\n\0" else sign


class ToolFeed:
    """A tool that prints lines and does not end. A line's sequence is the time since boot that it begins with, else that of the line before.

    Where no line begins with a time, it is the number of the line.
    """

    prompt = False

    def __init__(self, locator: Sequence[str], search: Sequence[str]) -> None:
        self.lost = 0
        self.ended = False
        self._rest = b""
        self._last = 0
        self._stamped = False
        found = shutil.which(locator[0], path=":".join((*FOLDERS, *search))) if locator else None
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such tool")
        self._process = subprocess.Popen(
            (found, *locator[1:]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(FOLDERS, search),
            cwd="/",
            start_new_session=True,
        )
        self._handle = self._process.stdout.fileno() if self._process.stdout else -1

    def fileno(self) -> int:
        """The end of its output that is read."""
        return self._handle

    def lines(self, seconds: float) -> list[Line]:
        """What came; a last line without its end is given when the tool ended."""
        if self.ended or not select.select([self._handle], [], [], max(seconds, 0))[0]:
            return []
        data = os.read(self._handle, LINE_LIMIT)
        self.ended = not data
        *whole, self._rest = (self._rest + (data or b"\n")).split(b"\n")
        if len(self._rest) > LINE_LIMIT:
            whole, self._rest = [*whole, self._rest], b""
        return [self._line(text) for text in whole if text.strip()]

    def ending(self) -> str:
        """Its exit status."""
        return f"exit status {self._process.returncode}" if wait(self._process, 0.5) else "it closed its output"

    def close(self) -> Process | None:
        """Ends the tool."""
        gone = end(self._process)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return None if gone else self._process

    def _line(self, text: bytes) -> Line:
        match = _STAMP.match(text)
        if match is None:
            self._last += not self._stamped
        else:
            self._stamped = True
            self._last = int(match.group(1)) * 1_000_000 + int(match.group(2))
        return Line(self._last, text[:LINE_LIMIT])
