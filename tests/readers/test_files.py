# SPDX-License-Identifier: Apache-2.0
"""The files reader: the flattened text, its marks, its limits, and a file that hangs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from muster.domain.model.source import Outcome, Source
from muster.readers import filetree
from muster.readers.files import FilesReader
from muster.readers.processes import Custody
from muster.readers.workers import Answer


@pytest.fixture
def reader(tmp_path: Path, clock: Callable[[], datetime]) -> Iterator[FilesReader]:
    reader = FilesReader(clock, Custody(), str(tmp_path), grace=0.3)
    yield reader
    reader.close()


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_one_line_per_line_in_natural_order(reader: FilesReader, tmp_path: Path, source: Callable[..., Source], second: timedelta) -> None:
    write(tmp_path, sys__card10__id="0x1\n", sys__card2__id="a: b\nc\n", sys__card2__empty="", sys__card2__other="no")

    (capture,) = reader.read(source("files", ("/sys/card*/{id,empty}",)), second)

    assert capture.payload == b"/sys/card2/empty: \n/sys/card2/id: a: b\n/sys/card2/id: c\n/sys/card10/id: 0x1\n"
    assert (capture.failure, capture.cut) == (None, False)


def test_marks(tmp_path: Path) -> None:
    write(tmp_path, dev__real="1")
    (tmp_path / "dev/folder").mkdir()
    (tmp_path / "dev/to_folder").symlink_to("../dev/folder")
    (tmp_path / "dev/to_file").symlink_to("real")
    (tmp_path / "dev/to_nothing").symlink_to("../gone")
    os.mkfifo(tmp_path / "dev/pipe")

    text = filetree.read(str(tmp_path), "/dev/*")["text"].splitlines()

    assert text == [
        "/dev/folder: !directory",
        "/dev/pipe: !device",
        "/dev/real: 1",
        "/dev/to_file: 1",
        "/dev/to_folder: -> ../dev/folder",
        "/dev/to_nothing: -> ../gone",
    ]


@pytest.mark.parametrize(("number", "mark"), [(13, "!not_permitted"), (1, "!not_permitted"), (5, "!error EIO"), (19, "!error ENODEV")])
def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, mark: str) -> None:
    write(tmp_path, a="1", b="2")
    real = os.open

    def refuse(path: str, *more: Any) -> int:
        if str(path).endswith("/a"):
            raise OSError(number, "no")
        return real(path, *more)

    monkeypatch.setattr(os, "open", refuse)

    assert filetree.read(str(tmp_path), "/*")["text"] == f"/a: {mark}\n/b: 2\n"


def test_a_long_file_is_cut(tmp_path: Path) -> None:
    write(tmp_path, a="x" * (filetree.FILE_LIMIT + 5), b="2")

    lines = filetree.read(str(tmp_path), "/*")["text"].splitlines()

    assert [len(lines[0]), *lines[1:]] == [len("/a: ") + filetree.FILE_LIMIT, "/a: !cut", "/b: 2"]


def test_bytes_that_are_no_text_come_through(reader: FilesReader, tmp_path: Path, source: Callable[..., Source], second: timedelta) -> None:
    (tmp_path / "a").write_bytes(b"\xff\xfe\x00z\n")

    (capture,) = reader.read(source("files", ("/a",)), second)

    assert capture.payload == b"/a: \xff\xfe\x00z\n"


def test_nothing_there_is_an_empty_text(reader: FilesReader, source: Callable[..., Source], second: timedelta) -> None:
    (capture,) = reader.read(source("files", ("/sys/class/acme/*",)), second)

    assert (capture.payload, capture.failure, capture.detail) == (b"", None, "no file matches /sys/class/acme/*")


def test_braces() -> None:
    assert set(filetree.expand("/a{b,c{d,e}}/{1,2}")) == {"/ab/1", "/ab/2", "/acd/1", "/acd/2", "/ace/1", "/ace/2"}


def test_a_file_that_hangs_does_not_stop_the_others(
    tmp_path: Path, clock: Callable[[], datetime], source: Callable[..., Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = tmp_path / "hang.py"
    hang.write_text("import time\ndef read(*_):\n    time.sleep(60)\n")
    write(tmp_path, a="1")
    reader = FilesReader(clock, Custody(), str(tmp_path), grace=0.3)
    told: list[Answer] = []

    def slow() -> None:
        worker = reader._borrow()
        told.append(worker.ask("hang:read", (), (str(tmp_path),), time.monotonic() + 1))

    thread = threading.Thread(target=slow)
    thread.start()
    started = time.monotonic()
    (capture,) = reader.read(source("files", ("/a",), adapter="other"), timedelta(seconds=5))
    took = time.monotonic() - started
    thread.join()
    reader.close()

    assert (capture.payload, took < 1) == (b"/a: 1\n", True)
    assert told[0].outcome is Outcome.TIMED_OUT
