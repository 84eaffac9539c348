# SPDX-License-Identifier: Apache-2.0
"""Streams: records of the log device, tools that print for ever, and cursors over restarts and reboots."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from muster.domain.model.source import Capture, Outcome, Source
from muster.readers.feeds import DeviceFeed, Line, record_line
from muster.readers.processes import Custody
from muster.readers.stream import KernelStream
from muster.spi.readers import Cursor

BOOT = "0d9c1b7e-51f2-4c1b-8a77-2b6f4e90c3d1"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text(BOOT + "\n")
    (tmp_path / "stat").write_text("cpu 1 2\nbtime 1770091506\nprocesses 7\n")
    return tmp_path


@pytest.fixture
def stream(proc: Path, clock: Callable[[], datetime]) -> Iterator[KernelStream]:
    stream = KernelStream(clock, Custody(), proc)
    yield stream
    stream.close()


def script(tmp_path: Path, text: str) -> tuple[str, ...]:
    tool = tmp_path / "acme-log"
    tool.write_text(f"#!/bin/sh\n{text}\n")
    tool.chmod(0o755)
    return (str(tool), "--follow")


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (b"6,1234,74785660366,-;acme 0000:02:00.0: bad\n SUBSYSTEM=pci\n", (1234, b"[74785.660366] acme 0000:02:00.0: bad")),
        (b"4,5,1000,c,caller=T1;one\\x0atwo \\x5c \\xc3\\xbc\n", (5, "[    0.001000] one two \\ ü".encode())),
        (b"nonsense", None),
        (b"", None),
    ],
)
def test_records(record: bytes, line: tuple[int, bytes] | None) -> None:
    found = record_line(record)

    assert (found and (found.sequence, found.text)) == line


def test_the_device_gives_records_and_counts_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kmsg").write_text("x")
    answers: list[bytes | int] = [b"6,7,1000000,-;one\n", 32, b"6,9,2000000,-;three\n", 11]

    def read(_: int, __: int) -> bytes:
        answer = answers.pop(0) if answers else 11
        if isinstance(answer, int):
            raise OSError(answer, "no")
        return answer

    monkeypatch.setattr(os, "read", read)
    feed = DeviceFeed(str(tmp_path / "kmsg"))
    lines = feed.lines(0.1)
    feed.close()

    assert ([line.sequence for line in lines], feed.lost, feed.ended) == ([7, 9], 1, False)


def test_what_is_there_now(stream: KernelStream, tmp_path: Path, source: Callable[..., Source]) -> None:
    argv = script(tmp_path, "echo '[    1.000001] one'; echo '[    2.000002] two'; sleep 60")

    (capture,) = stream.read(source("stream", argv), timedelta(seconds=5))

    assert capture.payload == b"[    1.000001] one\n[    2.000002] two\n"
    assert capture.context == {"boot_id": BOOT, "booted_at": "2026-02-03T04:05:06+00:00"}
    assert capture.duration < timedelta(seconds=3)


def test_a_tool_is_followed_and_a_cursor_passes_over_what_was_seen(stream: KernelStream, tmp_path: Path, source: Callable[..., Source]) -> None:
    argv = script(tmp_path, "echo '[    1.000001] one'; sleep 0.5; echo '[    2.000002] two'; echo ' and more'; sleep 60")

    told = stream.follow(source("stream", argv), None)
    first, second = next(told), next(told)
    told.close()  # type: ignore[attr-defined]  # follow is a generator
    again = stream.follow(source("stream", argv), first[1])
    resumed = next(again)
    again.close()  # type: ignore[attr-defined]  # follow is a generator
    rebooted = stream.follow(source("stream", argv), Cursor("another-boot:99999999"))
    fresh = next(rebooted)
    rebooted.close()  # type: ignore[attr-defined]  # follow is a generator

    assert [c.payload for c in (first[0], second[0], resumed[0], fresh[0])] == [
        b"[    1.000001] one\n",
        b"[    2.000002] two\n and more\n",
        b"[    2.000002] two\n and more\n",
        b"[    1.000001] one\n",
    ]
    assert (first[1].text, second[1].text) == (f"{BOOT}:1000001", f"{BOOT}:2000002")


def test_a_stream_that_ends_says_so(stream: KernelStream, tmp_path: Path, source: Callable[..., Source]) -> None:
    captures = [capture for capture, _ in stream.follow(source("stream", script(tmp_path, "echo one; printf two; exit 4")), None)]

    assert b"".join(capture.payload for capture in captures) == b"one\ntwo\n"
    assert (captures[-1].failure, "exit status 4" in captures[-1].detail) == (Outcome.UNREACHABLE, True)


def test_closing_ends_what_is_followed(stream: KernelStream, tmp_path: Path, source: Callable[..., Source]) -> None:
    argv = script(tmp_path, f"echo $$ > {tmp_path}/pid; while :; do echo x; sleep 0.1; done")
    seen: list[Capture] = []
    thread = threading.Thread(target=lambda: seen.extend(capture for capture, _ in stream.follow(source("stream", argv), None)))
    thread.start()
    time.sleep(1)
    stream.close()
    thread.join(5)

    assert (thread.is_alive(), bool(seen)) == (False, True)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(("locator", "outcome"), [(("/dev/acme-no-such",), Outcome.TOOL_MISSING), (("acme-no-such", "-f"), Outcome.TOOL_MISSING)])
def test_nothing_to_follow(stream: KernelStream, source: Callable[..., Source], locator: tuple[str, ...], outcome: Outcome) -> None:
    ((capture, cursor),) = stream.follow(source("stream", locator, install="install it"), None)

    assert (capture.failure, cursor.text, "install it" in capture.detail) == (outcome, f"{BOOT}:-1", True)


def test_not_permitted(stream: KernelStream, source: Callable[..., Source], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "open", refuse)
    (capture,) = stream.read(source("stream", ("/dev/kmsg",)), timedelta(seconds=1))

    assert capture.failure is Outcome.NOT_PERMITTED


def device(tmp_path: Path) -> tuple[Path, int]:
    """A pipe in place of the log device, and its writing end: like the device it is ready only when there is a record."""
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(path, os.O_WRONLY)
    os.close(reading)
    return path, writing


def test_a_quiet_stream_costs_nothing_and_a_late_line_comes_at_once(
    stream: KernelStream, tmp_path: Path, source: Callable[..., Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, writing = device(tmp_path)
    seen: list[tuple[float, Capture]] = []
    looks: list[float] = []
    lines = DeviceFeed.lines

    def look(feed: DeviceFeed, seconds: float) -> list[Line]:
        looks.append(seconds)
        return lines(feed, seconds)

    monkeypatch.setattr(DeviceFeed, "lines", look)
    thread = threading.Thread(target=lambda: seen.extend((time.monotonic(), capture) for capture, _ in stream.follow(source("stream", (str(path),)), None)))
    thread.start()
    time.sleep(1.5)
    quiet = len(looks)
    written = time.monotonic()
    os.write(writing, b"6,7,1000000,-;one\n")
    end = written + 5
    while not seen and time.monotonic() < end:
        time.sleep(0.01)
    stream.close()
    thread.join(5)
    os.close(writing)

    assert quiet == 0
    assert [capture.payload for _, capture in seen] == [b"[    1.000000] one\n"]
    assert seen[0][0] - written < 0.4


def test_closing_ends_quiet_streams_at_once_and_leaves_no_handle(stream: KernelStream, tmp_path: Path, source: Callable[..., Source]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    argv = script(tmp_path, f"echo $$ >> {tmp_path}/pids; exec sleep 600")
    threads = [threading.Thread(target=lambda: list(stream.follow(source("stream", argv), None))) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not (tmp_path / "pids").exists() or len((tmp_path / "pids").read_text().split()) < 3:
        time.sleep(0.01)
    began = time.monotonic()
    stream.close()
    for thread in threads:
        thread.join(5)
    took = time.monotonic() - began

    assert took < 0.4
    assert len(os.listdir("/proc/self/fd")) == before
    for pid in (tmp_path / "pids").read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
    assert list(stream.follow(source("stream", argv), None)) == []
