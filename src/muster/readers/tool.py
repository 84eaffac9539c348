# SPDX-License-Identifier: Apache-2.0
"""Runs a vendor's own tool: by argument list, without a shell, in a clean environment, in a process group of its own, until a deadline."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from muster.domain.model.source import CAPTURE_LIMIT, EACH_SPAN, Capture, Outcome, Read, Source
from muster.readers.outcomes import STDERR_LIMIT, Clock, Taking
from muster.readers.processes import Custody, Process, end, exited, wait

FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""Where tools are looked for, before the folders that the source names."""

DRAIN_LIMIT = 4 * CAPTURE_LIMIT
"""Bytes after which a tool that goes on printing is ended."""

_LINGER_S = 0.5
_STEP_S = 0.05
_CHUNK = 64 * 1024


def environment(folders: Sequence[str], search: Sequence[str]) -> dict[str, str]:
    """The whole environment of a tool: one language, one path, and the folders of the vendor also for its shared libraries."""
    base = {"PATH": ":".join((*folders, *search)), "LC_ALL": "C", "LANG": "C", "HOME": "/", "TERM": "dumb"}
    return {**base, "LD_LIBRARY_PATH": ":".join(search)} if search else base


@dataclass(slots=True)
class _Output:
    """What a tool printed so far, and how much more of it was dropped."""

    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    seen: int = 0

    def add(self, name: str, data: bytes) -> None:
        buffer, limit = (self.out, CAPTURE_LIMIT + 1) if name == "out" else (self.err, STDERR_LIMIT)
        buffer.extend(data[: max(limit - len(buffer), 0)])
        self.seen += len(data)

    @property
    def flood(self) -> bool:
        return self.seen > DRAIN_LIMIT

    def fields(self) -> Mapping[str, bytes]:
        return {"payload": bytes(self.out), "stderr": bytes(self.err)}


class ToolReader:
    """Runs tools. One at a time per adapter, and none beside one that would not end."""

    def __init__(self, clock: Clock, custody: Custody, folders: Sequence[str] = FOLDERS) -> None:
        self._clock = clock
        self._custody = custody
        self._folders = tuple(folders)

    def read(self, source: Source, deadline: timedelta) -> Iterable[Capture]:
        """One capture per read of the source, in order; ``deadline`` holds for each.

        A read with ``each`` gives a capture per match in the earlier ones, until `EACH_SPAN` deadlines of the whole round are used.
        """
        last = time.monotonic() + EACH_SPAN * deadline.total_seconds()
        brought: list[tuple[str, bytes]] = []
        for read in source.reads:
            for one in _meant(read, brought):
                now = time.monotonic()
                if read.each is not None and now >= last:
                    return
                until = now + deadline.total_seconds()
                capture = self._one(source, one, until if read.each is None else min(until, last))
                brought.append((capture.format, capture.payload if capture.failure is None else b""))
                yield capture

    def _one(self, source: Source, read: Read, until: float) -> Capture:
        taking = Taking.begin(source, read, self._clock)
        with self._custody.turn(source.adapter, until) as refusal:
            return taking.failed(Outcome.TIMED_OUT, refusal) if refusal else self._start(taking, until)

    def _start(self, taking: Taking, until: float) -> Capture:
        argv, search = taking.read.locator, taking.source.search
        found = shutil.which(argv[0], path=":".join((*self._folders, *search))) if argv else None
        if found is None:
            return self._missing(taking)
        try:
            process = subprocess.Popen(
                (found, *argv[1:]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(self._folders, search),
                cwd="/",
                start_new_session=True,
            )
        except PermissionError as error:
            return taking.failed(Outcome.NOT_PERMITTED, f"{found}: {error.strerror}")
        except (OSError, ValueError) as error:
            return taking.failed(Outcome.TOOL_MISSING, f"{found} cannot be run: {error}")
        return self._follow(taking, process, until)

    def _missing(self, taking: Taking) -> Capture:
        name = taking.read.locator[0] if taking.read.locator else ""
        places = [name] if "/" in name else [f"{folder}/{name}" for folder in (*self._folders, *taking.source.search)]
        denied = next((place for place in places if name and os.path.isfile(place)), None)
        if denied is not None:
            return taking.failed(Outcome.NOT_PERMITTED, f"{denied} may not be run")
        return taking.failed(Outcome.TOOL_MISSING, f"{name or 'no tool named'} is not in {', '.join((*self._folders, *taking.source.search))}")

    def _follow(self, taking: Taking, process: Process, until: float) -> Capture:
        output = _Output()
        try:
            if _drain(process, output, until):
                return taking.brought(**output.fields(), exit_status=process.returncode)
            return self._late(taking, process, output)
        finally:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def _late(self, taking: Taking, process: Process, output: _Output) -> Capture:
        what = taking.read.locator[0]
        if not end(process):
            stuck = self._custody.keep(taking.source.adapter, process, what)
            return taking.failed(Outcome.TIMED_OUT, str(stuck), **output.fields())
        if output.flood:
            return taking.brought(**output.fields(), exit_status=process.returncode, cut=True, detail=f"ended after {output.seen} bytes")
        spent = time.monotonic() - taking.started
        return taking.failed(Outcome.TIMED_OUT, f"{what} was ended after {spent:.1f} s", **output.fields())


def _meant(read: Read, brought: Sequence[tuple[str, bytes]]) -> list[Read]:
    """The read itself, or what it is repeated for in the formats and payloads of the reads before it."""
    each = read.each
    if each is None:
        return [read]
    return [read.filled(groups) for groups in each.matches(payload for form, payload in brought if form == each.of)]


def _drain(process: Process, output: _Output, until: float) -> bool:
    """Collects what the tool prints. True when it has ended by itself; False at the deadline or when it floods."""
    with selectors.DefaultSelector() as selector:
        for name, pipe in (("out", process.stdout), ("err", process.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe.fileno(), selectors.EVENT_READ, name)
        last: float | None = None
        while selector.get_map() and not output.flood:
            now = time.monotonic()
            if last is None and exited(process):
                last = now + _LINGER_S
            if now >= (until if last is None else min(until, last)):
                break
            for name, data in _ready(selector, min(_STEP_S, until - now)):
                output.add(name, data)
    return not output.flood and wait(process, max(until - time.monotonic(), 0))


def _ready(selector: selectors.BaseSelector, seconds: float) -> Iterator[tuple[str, bytes]]:
    for key, _ in selector.select(max(seconds, 0)):
        data = os.read(key.fd, _CHUNK)
        if data:
            yield key.data, data
        else:
            selector.unregister(key.fd)
