# SPDX-License-Identifier: Apache-2.0
"""The tool reader, driven by scripts written here: what tools do when they are well, slow, loud, garbled, deaf or not there."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from muster.domain.model.source import CAPTURE_LIMIT, EACH_MOST, Capture, Each, Outcome, Read, ReaderKind, Source, SourceId
from muster.readers import processes
from muster.readers.processes import Custody
from muster.readers.tool import FOLDERS, ToolReader


@pytest.fixture
def run(tmp_path: Path, clock: Callable[[], datetime], source: Callable[..., Source]) -> Callable[..., Capture]:
    custody = Custody()
    reader = ToolReader(clock, custody, (*FOLDERS, str(tmp_path)))

    def run(script: str, *arguments: str, seconds: float = 5, search: tuple[str, ...] = (), head: str = "#!/bin/sh") -> Capture:
        tool = tmp_path / "acme-smi"
        tool.write_text(f"{head}\n{script}\n")
        tool.chmod(0o755)
        (capture,) = reader.read(source("tool", ("acme-smi", *arguments), search=search, install="install acme-tools"), timedelta(seconds=seconds))
        return capture

    return run


@pytest.fixture
def rounds(tmp_path: Path, clock: Callable[[], datetime]) -> Callable[..., list[Capture]]:
    """Runs a script once plainly (``list``), and once per match of ``find`` in what that printed (``show {0} {1}``)."""

    def rounds(script: str, find: str, seconds: float = 5) -> list[Capture]:
        tool = tmp_path / "acme-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        reads = (
            Read(locator=("acme-smi", "list"), format="list"),
            Read(locator=("acme-smi", "show", "-i{0}", "{1}"), format="one", each=Each(of="list", find=find)),
        )
        made = Source(id=SourceId("acme.x"), adapter="acme", reader=ReaderKind.TOOL, reads=reads)
        return list(ToolReader(clock, Custody(), (*FOLDERS, str(tmp_path))).read(made, timedelta(seconds=seconds)))

    return rounds


def test_a_read_is_repeated_for_what_an_earlier_one_listed(rounds: Callable[..., list[Capture]]) -> None:
    told = rounds('[ "$1" = list ] && printf "4 a\\n4 b\\n4 a\\n7 $(id)\\n5 ;x\\n" || echo "$@"', r"^(\d) (\S+)")

    assert [(c.locator, c.format, c.payload) for c in told[1:]] == [
        (("acme-smi", "show", "-i4", "a"), "one", b"show -i4 a\n"),
        (("acme-smi", "show", "-i4", "b"), "one", b"show -i4 b\n"),
    ]


def test_repeated_reads_are_bounded_in_number_and_time(rounds: Callable[..., list[Capture]]) -> None:
    assert len(rounds('[ "$1" = list ] && seq 1000 || true', r"^(\d+)$")) == 1 + EACH_MOST
    began = time.monotonic()
    told = rounds('[ "$1" = list ] && seq 20 || sleep 0.25', r"^(\d+)$", seconds=0.4)

    assert time.monotonic() - began < 2.5
    assert 1 < len(told) < 10


def test_nothing_is_repeated_for_a_listing_that_failed(rounds: Callable[..., list[Capture]]) -> None:
    assert [c.failure for c in rounds("echo 1; sleep 9", r"^(\d+)$", seconds=0.3)] == [Outcome.TIMED_OUT]


@pytest.mark.parametrize("find", ["(", "no group", "(a)(b)(c)"])
def test_a_pattern_that_cannot_be_used_is_refused(find: str) -> None:
    with pytest.raises(ValueError, match="each: "):
        Each(of="list", find=find)


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_gone(pid: int) -> bool:
    until = time.monotonic() + 3
    while time.monotonic() < until and not gone(pid):
        time.sleep(0.02)
    return gone(pid)


def test_output_error_text_and_exit_status_are_kept(run: Callable[..., Capture]) -> None:
    capture = run('echo "$1"; echo bad >&2; exit 3', "two words; $(id)")

    assert (capture.payload, capture.stderr, capture.exit_status, capture.failure) == (b"two words; $(id)\n", b"bad\n", 3, None)


def test_environment_is_clean(run: Callable[..., Capture], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_SECRET", "x")

    lines = dict(line.split("=", 1) for line in run("env", search=("/opt/acme/bin",)).payload.decode().splitlines())

    assert "ACME_SECRET" not in lines
    assert (lines["LC_ALL"], lines["LD_LIBRARY_PATH"]) == ("C", "/opt/acme/bin")
    assert lines["PATH"].startswith("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:")
    assert lines["PATH"].endswith("/opt/acme/bin")


def test_garbage_is_kept_as_it_is(run: Callable[..., Capture]) -> None:
    assert run(r"printf '\377\000\033[31m'").payload == b"\xff\x00\x1b[31m"


def test_output_is_capped_and_says_so(run: Callable[..., Capture]) -> None:
    capture = run(f"head -c {10 * 1024 * 1024} /dev/zero; exit 0")

    assert (len(capture.payload), capture.cut, capture.exit_status, capture.failure) == (CAPTURE_LIMIT, True, 0, None)


def test_endless_output_is_ended(run: Callable[..., Capture]) -> None:
    capture = run("cat /dev/zero", seconds=20)

    assert capture.cut
    assert capture.duration < timedelta(seconds=15)


def test_a_tool_that_is_not_there(clock: Callable[[], datetime], source: Callable[..., Source], second: timedelta) -> None:
    (capture,) = ToolReader(clock, Custody()).read(source("tool", ("acme-no-such",), install="install acme-tools"), second)

    assert capture.failure is Outcome.TOOL_MISSING
    assert "install acme-tools" in capture.detail


def test_a_tool_that_may_not_be_run(tmp_path: Path, clock: Callable[[], datetime], source: Callable[..., Source], second: timedelta) -> None:
    (tmp_path / "acme-smi").write_text("#!/bin/sh\n")

    (capture,) = ToolReader(clock, Custody(), (str(tmp_path),)).read(source("tool", ("acme-smi",)), second)

    assert capture.failure is Outcome.NOT_PERMITTED


def test_a_tool_whose_interpreter_is_missing(run: Callable[..., Capture]) -> None:
    assert run("", head="#!/no/such/interpreter").failure is Outcome.TOOL_MISSING


def test_a_tool_that_hangs_is_ended_at_the_deadline(run: Callable[..., Capture]) -> None:
    capture = run("echo begun; sleep 60", seconds=0.5)

    assert (capture.failure, capture.payload) == (Outcome.TIMED_OUT, b"begun\n")
    assert capture.duration < timedelta(seconds=3)


def test_a_tool_that_ignores_term_dies_with_its_grandchild(run: Callable[..., Capture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.end, "__defaults__", (0.3,))

    capture = run(
        f"trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > {tmp_path}/grandchild; while :; do sleep 1; done' & echo $$ > {tmp_path}/child; wait; sleep 60",
        seconds=0.5,
    )

    assert capture.failure is Outcome.TIMED_OUT
    assert wait_gone(int((tmp_path / "child").read_text()))
    assert wait_gone(int((tmp_path / "grandchild").read_text()))


def test_a_child_that_keeps_the_pipe_open_does_not_hold_up_the_answer(run: Callable[..., Capture], tmp_path: Path) -> None:
    capture = run(f"sleep 60 & echo $! > {tmp_path}/left; echo done", seconds=20)

    assert (capture.payload, capture.exit_status, capture.failure) == (b"done\n", 0, None)
    assert capture.duration < timedelta(seconds=3)
    assert wait_gone(int((tmp_path / "left").read_text()))


def test_a_tool_killed_by_a_signal_keeps_its_number(run: Callable[..., Capture]) -> None:
    assert run("kill -SEGV $$").exit_status == -signal.SIGSEGV


def test_what_would_not_end_is_not_started_a_second_time(run: Callable[..., Capture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.end, "__defaults__", (0.1,))
    real = os.killpg
    monkeypatch.setattr(os, "killpg", lambda *_: None)

    first = run(f"echo $$ > {tmp_path}/pid; sleep 60", seconds=0.3)
    second = run("echo well", seconds=0.3)
    pid = int((tmp_path / "pid").read_text())
    monkeypatch.setattr(os, "killpg", real)
    real(pid, signal.SIGKILL)
    wait_gone(pid)
    third = run("echo well")

    assert (first.failure, second.failure, third.payload) == (Outcome.TIMED_OUT, Outcome.TIMED_OUT, b"well\n")
    assert f"process {pid}" in second.detail


def test_each_read_of_a_source_has_the_deadline(tmp_path: Path, clock: Callable[[], datetime], source: Callable[..., Source]) -> None:
    reader = ToolReader(clock, Custody())

    started = time.monotonic()
    captures = list(reader.read(source("tool", ("sleep", "60"), ("echo", "well")), timedelta(seconds=0.4)))

    assert [(capture.failure, capture.payload) for capture in captures] == [(Outcome.TIMED_OUT, b""), (None, b"well\n")]
    assert time.monotonic() - started < 3
