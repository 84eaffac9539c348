# SPDX-License-Identifier: Apache-2.0
"""Recorded machines: loaded, replayed, written, and what is wrong with a folder said by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from muster.domain.model.errors import Conflict, InputError, NotFound
from muster.domain.model.source import Capture, Each, Outcome, Read, ReaderKind, Source, SourceId
from muster.readers.recorded import RecordedNode, RecordedReader, load_machine
from muster.readers.recording import Recorder, RecordingReader
from muster.readers.redact import Redactor

MACHINE = """
about = "one card"
[node]
name = "n1"
machine_id = "m1"
system = "Linux"
[context]
colour = "red"
[[captures]]
source = "acme.x"
locator = ["acme-smi", "-q"]
format = "text"
file = "q.txt"
exit_status = 3
stderr = "bad\\n"
duration_s = 0.5
taken_at = 2026-01-02T03:04:05Z
[[captures]]
source = "acme.x"
locator = ["acme-smi", "-t"]
format = "text"
failure = "tool_missing"
detail = "no such tool"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "machine.toml").write_text(MACHINE)
    (tmp_path / "q.txt").write_bytes(b"hello\n")
    return tmp_path


def test_a_machine_is_loaded(folder: Path) -> None:
    machine = load_machine(folder)
    first, second = machine.captures

    assert (machine.about, machine.node) == ("one card", RecordedNode(name="n1", machine_id="m1", system="Linux"))
    assert (first.payload, first.exit_status, first.stderr, first.duration) == (b"hello\n", 3, b"bad\n", timedelta(seconds=0.5))
    assert (first.taken_at, first.context) == (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), {"file": "q.txt", "colour": "red"})
    assert (second.payload, second.failure, second.detail) == (b"", Outcome.TOOL_MISSING, "no such tool")


def test_a_folder_of_captures(tmp_path: Path) -> None:
    for name, text in {"b.txt": "2", "a.txt": "1", ".hidden": "x", "expected.json": "{}"}.items():
        (tmp_path / name).write_text(text)

    assert [(c.locator, c.format, c.payload, c.context) for c in load_machine(tmp_path).captures] == [
        (("a.txt",), "", b"1", {"file": "a.txt"}),
        (("b.txt",), "", b"2", {"file": "b.txt"}),
    ]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[[captures]\n", "machine.toml"),
        ('captures = "x"\n', "captures"),
        ("node = 3\n", "node"),
        ('[[captures]]\nfile = "gone.txt"\n', "gone.txt"),
        ('[[captures]]\nfile = "../../etc/passwd"\n', "outside"),
        ('[[captures]]\nfailure = "sad"\n', "sad"),
        ("[[captures]]\nlocator = 4\n", "locator"),
        ('[[captures]]\nexit_status = "x"\n', "exit_status"),
        ('[[captures]]\ntaken_at = "soon"\n', "taken_at"),
        ("[[captures]]\ntaken_at = 2026-01-02\n", "taken_at"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "machine.toml").write_text(text)

    with pytest.raises(InputError, match=word.replace(".", "\\.")):
        load_machine(tmp_path)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        load_machine(tmp_path / "x")


def test_replay(folder: Path, source: Callable[..., Source], second: timedelta) -> None:
    reader = RecordedReader(load_machine(folder))

    told = list(reader.read(source("tool", ("acme-smi", "-q"), ("acme-smi", "-t")), second))
    other = {kind: next(iter(reader.read(source(kind, ("z",), adapter="other"), second))).failure for kind in ("tool", "files", "http", "library", "stream")}

    assert [(c.payload, c.failure) for c in told] == [(b"hello\n", None), (b"", Outcome.TOOL_MISSING)]
    assert other == {
        "tool": Outcome.TOOL_MISSING,
        "files": None,
        "http": Outcome.UNREACHABLE,
        "library": Outcome.TOOL_MISSING,
        "stream": Outcome.UNREACHABLE,
    }


def test_repeated_reads_are_replayed_as_recorded(folder: Path) -> None:
    each = Each(of="list", find=r"^(\d+) (\d+)")
    repeated = Read(locator=("acme-smi", "-t", "{0}", "-c", "{1}"), format="text", each=each)
    mine = Source(id=SourceId("acme.x"), adapter="acme", reader=ReaderKind.TOOL, reads=(Read(locator=("acme-smi", "-q"), format="text"), repeated))
    table = "".join(f'[[captures]]\nsource = "acme.x"\nlocator = ["acme-smi", "-t", "{n}", "-c", "0"]\nformat = "text"\n' for n in (4, 7))

    assert [c.locator for c in RecordedReader(load_machine(folder)).read(mine, timedelta(seconds=1))] == [("acme-smi", "-q")]
    (folder / "machine.toml").write_text(MACHINE + table)
    told = list(RecordedReader(load_machine(folder)).read(mine, timedelta(seconds=1)))
    assert [c.locator[2:] for c in told[1:]] == [("4", "-c", "0"), ("7", "-c", "0")]
    other = replace(mine, reads=(Read(locator=("acme-smi", "-v"), format="text"), repeated))
    assert [c.locator[1] for c in RecordedReader(load_machine(folder)).read(other, timedelta(seconds=1))] == ["-q", "-t", "-t", "-t"]


class Fixed:
    def __init__(self, *captures: Capture) -> None:
        self.captures = captures

    def read(self, source: Source, deadline: timedelta) -> tuple[Capture, ...]:
        return self.captures


CAPTURES = (
    Capture(source=SourceId("acme.x"), locator=("acme-smi", "-q"), format="acme-smi-xml", payload=b"Serial Number : AC1650123456\n\xff\x00", exit_status=0),
    Capture(
        source=SourceId("acme.x"),
        locator=("acme-smi", 'a "b" \\ \x7f'),
        format="acme-smi-xml",
        payload=b"card AC1650123456 ok\n",
        stderr=b"no\x1b[0m\n",
        cut=True,
    ),
    Capture(
        source=SourceId("acme.y"),
        locator=("/dev/kmsg",),
        format="kernel-log",
        taken_at=datetime(2026, 1, 2, tzinfo=UTC),
        failure=Outcome.TIMED_OUT,
        detail="late on node-blue17",
        context={"booted_at": "x"},
    ),
)


def record(folder: Path, redactor: Redactor | None, source: Source) -> tuple[Capture, ...]:
    recorder = Recorder("ours", RecordedNode(name="node-blue17", machine_id="0123456789abcdef0123456789abcdef"), redactor)
    tuple(RecordingReader(Fixed(*CAPTURES), recorder.keep).read(source, timedelta(seconds=1)))
    recorder.write(folder)
    return load_machine(folder).captures


def test_what_is_recorded_comes_back(tmp_path: Path, source: Callable[..., Source]) -> None:
    back = record(tmp_path / "new", None, source("tool", ("x",)))

    assert [(c.source, c.locator, c.format, c.payload, c.stderr, c.exit_status, c.cut, c.failure, c.detail, c.taken_at) for c in back] == [
        (c.source, c.locator, c.format, c.payload, c.stderr, c.exit_status, c.cut, c.failure, c.detail, c.taken_at) for c in CAPTURES
    ]
    assert back[2].context == {"booted_at": "x"}
    with pytest.raises(Conflict):
        record(tmp_path / "new", None, source("tool", ("x",)))


def test_what_identifies_is_not_written(tmp_path: Path, source: Callable[..., Source]) -> None:
    first, second, third = record(tmp_path / "new", Redactor(b"salt"), source("tool", ("x",)))
    text = b"".join(path.read_bytes() for path in (tmp_path / "new").iterdir())

    assert not [word for word in (b"AC1650123456", b"node-blue17", b"0123456789abcdef") if word in text]
    serial = first.payload.split()[3]
    assert (len(serial), serial in second.payload) == (12, True)
    assert third.detail.startswith("late on ")
    assert load_machine(tmp_path / "new").node.machine_id != ""


def test_a_short_name_of_the_machine_is_not_written_where_a_name_stands(tmp_path: Path) -> None:
    named = Capture(source=SourceId("node.files"), locator=(), format="node-files", payload=b"/proc/sys/kernel/hostname: gx\n", context={"host": "gx"})
    recorder = Recorder("ours", RecordedNode(name="gx", machine_id="", system=""), Redactor(b"salt", ["gx"]))
    recorder.keep(named)
    recorder.write(tmp_path / "m")
    told = load_machine(tmp_path / "m")

    assert "gx" not in (tmp_path / "m" / "machine.toml").read_text()
    assert told.node.name == told.captures[0].payload.decode().split()[-1] != "gx"
