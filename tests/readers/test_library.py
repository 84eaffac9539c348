# SPDX-License-Identifier: Apache-2.0
"""The library reader and its workers, driven by a shared library of ours that answers, refuses, lacks a function, prints, crashes, hangs, and ignores TERM."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.needs import lacks

from muster.domain.model.source import Capture, Outcome, Source
from muster.readers.library import LibraryReader
from muster.readers.processes import Custody
from muster.readers.workers import Doing, Workers

LIBRARY = r"""
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int acme_count(void) { return 4; }
int acme_power(int card, unsigned *milliwatts) { if (card == 2) return 15; *milliwatts = 61200 + card; return 0; }
int acme_loud(void) { printf("driver says hello\n"); fflush(stdout); return 1; }
int acme_hang(void) { for (;;) pause(); return 0; }
int acme_deaf(void) { signal(SIGTERM, SIG_IGN); for (;;) pause(); return 0; }
int acme_crash(void) { raise(SIGSEGV); return 0; }
"""

MODULE = """
import ctypes, os, time

lib = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libacme.so"))

class Lost(Exception):
    outcome = "device_lost"

def read(*words):
    cards = []
    for card in range(lib.acme_count()):
        value = ctypes.c_uint()
        code = lib.acme_power(card, ctypes.byref(value))
        cards.append({"power": value.value} if code == 0 else {"code": code})
    return {"cards": cards, "words": words, "pid": os.getpid(), "version": version()}

def version():
    try:
        return lib.acme_version()
    except AttributeError:
        return None

def loud(): return lib.acme_loud()
def hang(): return lib.acme_hang()
def deaf(): return lib.acme_deaf()
def crash(): return lib.acme_crash()
def lost(): raise Lost("card 2 does not answer")
def denied(): raise PermissionError(13, "no")
def wrong(): raise ValueError("seven")
def binary(): return b"x"
def needs(): return ctypes.CDLL("libacme-not-there.so")
def large(): return "x" * (9 * 1024 * 1024)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        lacks("no C compiler")
    folder = tmp_path_factory.mktemp("acme")
    (folder / "acme.c").write_text(LIBRARY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(folder / "libacme.so"), str(folder / "acme.c")], check=True)
    (folder / "acmelib.py").write_text(MODULE)
    return folder


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(Custody(), grace=0.3)
    yield workers
    workers.close()


@pytest.fixture
def call(folder: Path, clock: Callable[[], datetime], source: Callable[..., Source], workers: Workers) -> Callable[..., Capture]:
    reader = LibraryReader(clock, workers)

    def call(function: str, *arguments: str, seconds: float = 5, module: str = "acmelib") -> Capture:
        chosen = source("library", (f"{module}:{function}", *arguments), search=(str(folder),), install="pip install acme-ml")
        (capture,) = reader.read(chosen, timedelta(seconds=seconds))
        return capture

    return call


def test_values_error_codes_and_absent_functions(call: Callable[..., Capture]) -> None:
    told = json.loads(call("read", "a", "ü").payload)

    assert told["cards"] == [{"power": 61200}, {"power": 61201}, {"code": 15}, {"power": 61203}]
    assert (told["words"], told["version"]) == (["a", "ü"], None)


def test_the_worker_lives_on_and_can_be_let_go(call: Callable[..., Capture], workers: Workers) -> None:
    first, second = (json.loads(call("read").payload)["pid"] for _ in range(2))
    released = workers.release("acme")
    third = json.loads(call("read").payload)["pid"]

    assert (first == second, released, first == third) == (True, True, False)


def test_what_the_library_prints_does_not_disturb_the_answer(call: Callable[..., Capture]) -> None:
    capture = call("loud")

    assert (capture.payload, capture.stderr) == (b"1", b"driver says hello\n")
    assert call("read").stderr == b""


@pytest.mark.parametrize(
    ("function", "outcome", "detail"),
    [
        ("lost", Outcome.DEVICE_LOST, "card 2 does not answer"),
        ("denied", Outcome.NOT_PERMITTED, "PermissionError"),
        ("wrong", Outcome.DRIVER_UNUSABLE, "ValueError: seven"),
        ("binary", Outcome.UNREADABLE, "TypeError"),
        ("needs", Outcome.TOOL_MISSING, "pip install acme-ml"),
        ("no_such", Outcome.TOOL_MISSING, "no_such"),
    ],
)
def test_errors_become_outcomes(call: Callable[..., Capture], function: str, outcome: Outcome, detail: str) -> None:
    capture = call(function)

    assert capture.failure is outcome
    assert detail in capture.detail


def test_a_module_that_is_not_installed(call: Callable[..., Capture]) -> None:
    capture = call("read", module="acme_not_there")

    assert capture.failure is Outcome.TOOL_MISSING
    assert capture.detail.endswith("; pip install acme-ml")


def test_a_crash_is_told_and_the_next_call_has_a_new_worker(call: Callable[..., Capture]) -> None:
    capture = call("crash")

    assert capture.failure is Outcome.DRIVER_UNUSABLE
    assert capture.exit_status == -signal.SIGSEGV
    assert len(json.loads(call("read").payload)["cards"]) == 4


@pytest.mark.parametrize("function", ["hang", "deaf"])
def test_a_hang_is_cut_loose(call: Callable[..., Capture], workers: Workers, function: str) -> None:
    before = json.loads(call("read").payload)["pid"]

    capture = call(function, seconds=0.4)

    assert capture.failure is Outcome.TIMED_OUT
    assert capture.duration < timedelta(seconds=2)
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert json.loads(call("read").payload)["pid"] != before
    assert workers.states()[0].starts == 2


def test_never_a_second_worker_beside_one_that_will_not_end(call: Callable[..., Capture], workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = json.loads(call("read").payload)["pid"]
    real = os.killpg
    monkeypatch.setattr(os, "killpg", lambda *_: None)

    hung = call("hang", seconds=0.3)
    stuck = workers.states()[0]
    refused = call("read", seconds=0.3)
    starts = workers.states()[0].starts
    monkeypatch.setattr(os, "killpg", real)
    real(pid, signal.SIGKILL)
    until = time.monotonic() + 3
    while (capture := call("read")).failure and time.monotonic() < until:
        time.sleep(0.02)

    assert (hung.failure, refused.failure, starts) == (Outcome.TIMED_OUT, Outcome.TIMED_OUT, 1)
    assert (stuck.doing, stuck.pid, stuck.what) == (Doing.STUCK, pid, "acmelib:hang")
    assert f"process {pid}" in refused.detail
    assert json.loads(capture.payload)["pid"] != pid


def test_one_adapter_that_hangs_leaves_the_others_alone(call: Callable[..., Capture], workers: Workers, folder: Path) -> None:
    hung: list[Capture] = []
    thread = threading.Thread(target=lambda: hung.append(call("hang", seconds=1)))
    thread.start()
    time.sleep(0.2)

    started = time.monotonic()
    answer = workers.ask("other", "acmelib:read", (), (str(folder),), started + 5)
    took = time.monotonic() - started
    states = {state.adapter: state.doing for state in workers.states()}
    thread.join()

    assert (len(answer.value()["cards"]), took < 0.8) == (4, True)
    assert states == {"acme": Doing.BUSY, "other": Doing.IDLE}
    assert hung[0].failure is Outcome.TIMED_OUT


def test_a_long_answer_is_cut(call: Callable[..., Capture]) -> None:
    capture = call("large")

    assert (len(capture.payload), capture.cut) == (8 * 1024 * 1024, True)
