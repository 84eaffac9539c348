# SPDX-License-Identifier: Apache-2.0
"""This side of the workers: starts them, asks them with a deadline, ends those that hang, and says what each is doing."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import msgspec

from muster.domain.model.source import Outcome
from muster.readers.outcomes import STDERR_LIMIT
from muster.readers.processes import GRACE_S, Custody, Process, end, exited
from muster.readers.tool import FOLDERS, environment

ANSWER_LIMIT = 64 * 1024 * 1024
"""Bytes of one answer; a worker that says more is ended."""

_CHUNK = 256 * 1024
_PACKAGES = str(Path(__file__).resolve().parents[2])
_LEAVE_S = 0.5


class Doing(StrEnum):
    """What a worker does."""

    IDLE = "idle"
    BUSY = "busy"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class WorkerState:
    """What the worker of an adapter does, since when (monotonic seconds), and how often one was started."""

    adapter: str
    doing: Doing
    since: float
    pid: int
    starts: int
    what: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker answered: a value, as JSON text, or an outcome with its detail.

    ``gone`` is set when the worker ended over it, ``stuck`` when it would not end.
    """

    text: bytes = b""
    outcome: Outcome | None = None
    detail: str = ""
    stderr: bytes = b""
    exit_status: int | None = None
    gone: bool = False
    stuck: bool = False

    def value(self) -> Any:
        """The value itself."""
        return _loaded(self.text)


@dataclass(slots=True)
class Worker:
    """One worker process. Not for use by several threads at once."""

    search: Sequence[str] = ()
    grace: float = GRACE_S
    doing: Doing = Doing.IDLE
    what: str = ""
    since: float = field(default_factory=time.monotonic)
    starts: int = 0
    process: Process | None = None
    _errors: int = -1

    def ask(self, call: str, arguments: Sequence[str], search: Sequence[str], until: float) -> Answer:
        """The answer to one call, by ``until`` (monotonic seconds); the worker is started when there is none, and ended when it is late."""
        process = self._running()
        self._turns_to(Doing.BUSY, call)
        request = json.dumps({"call": call, "arguments": list(arguments), "search": list(search)}) + "\n"
        try:
            if process.stdin is None:
                return self._lost(process)
            process.stdin.write(request.encode())
            process.stdin.flush()
        except OSError:
            return self._lost(process)
        line = _line(process, until)
        if line is None:
            return self._late(process, call)
        if not line.endswith(b"\n"):
            return self._lost(process)
        self._turns_to(Doing.IDLE)
        return _understood(line, self._said())

    def alive(self) -> bool:
        """True when its process runs."""
        return self.process is not None and not exited(self.process)

    def close(self) -> None:
        """Lets it end by itself, and ends it when it does not."""
        if self.process is None:
            return
        _shut(self.process.stdin)
        if not _left(self.process, _LEAVE_S):
            end(self.process, self.grace)
        self.drop()

    def _running(self) -> Process:
        if self.process is not None and not exited(self.process):
            return self.process
        self.drop()
        self._errors = os.memfd_create("muster-worker-stderr")
        env = {**environment(FOLDERS, tuple(self.search)), "PYTHONPATH": _PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            (sys.executable, "-P", "-m", "muster.readers.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=env,
            cwd="/",
            start_new_session=True,
        )
        self.starts += 1
        return self.process

    def _late(self, process: Process, call: str) -> Answer:
        spent = time.monotonic() - self.since
        said = self._said()
        if not end(process, self.grace):
            self._turns_to(Doing.STUCK, call)
            return Answer(outcome=Outcome.TIMED_OUT, detail=f"{call} hangs, and its worker outlived KILL", stderr=said, stuck=True)
        self.drop()
        return Answer(outcome=Outcome.TIMED_OUT, detail=f"{call} did not answer within {spent:.1f} s; its worker was ended", stderr=said, gone=True)

    def _lost(self, process: Process) -> Answer:
        end(process, self.grace)
        status, said = process.returncode, self._said()
        self.drop()
        return Answer(
            outcome=Outcome.DRIVER_UNUSABLE, detail=f"the worker ended during the call ({_ending(status)})", stderr=said, exit_status=status, gone=True
        )

    def drop(self) -> None:
        """Forgets a process that has ended, or that is in custody."""
        process, self.process = self.process, None
        if process is not None:
            exited(process)
            _shut(process.stdin)
            _shut(process.stdout)
            if process.returncode is None and exited(process):
                process.wait()
        if self._errors >= 0:
            os.close(self._errors)
            self._errors = -1
        self._turns_to(Doing.IDLE)

    def _turns_to(self, doing: Doing, what: str = "") -> None:
        self.doing, self.what, self.since = doing, what, time.monotonic()

    def _said(self) -> bytes:
        """The end of what was printed during the last call; the file is emptied for the next."""
        if self._errors < 0:
            return b""
        size = os.fstat(self._errors).st_size
        said = os.pread(self._errors, STDERR_LIMIT, max(size - STDERR_LIMIT, 0))
        os.ftruncate(self._errors, 0)
        os.lseek(self._errors, 0, os.SEEK_SET)
        return said


class Workers:
    """A long-lived worker per adapter, started at the first call."""

    def __init__(self, custody: Custody, grace: float = GRACE_S) -> None:
        self._custody = custody
        self._grace = grace
        self._lock = threading.Lock()
        self._workers: dict[str, Worker] = {}

    def ask(self, adapter: str, call: str, arguments: Sequence[str], search: Sequence[str], until: float) -> Answer:
        """The answer of the adapter's worker. A worker that would not end is left alone, and no other is started beside it until it is gone."""
        with self._custody.turn(adapter, until) as refusal:
            if refusal:
                return Answer(outcome=Outcome.TIMED_OUT, detail=refusal)
            with self._lock:
                worker = self._workers.setdefault(adapter, Worker(search, self._grace))
            if worker.doing is Doing.STUCK:
                worker.drop()
            answer = worker.ask(call, arguments, search, until)
            if answer.stuck and worker.process is not None:
                self._custody.keep(adapter, worker.process, call)
            return answer

    def states(self) -> tuple[WorkerState, ...]:
        """What each worker does now."""
        with self._lock:
            workers = tuple(self._workers.items())
        return tuple(WorkerState(name, w.doing, w.since, w.process.pid if w.process else 0, w.starts, w.what) for name, w in workers)

    def release(self, adapter: str, seconds: float = GRACE_S) -> bool:
        """Lets go of the vendor's library and its handle (before a reset or a driver upgrade). False when the worker is busy or stuck."""
        with self._custody.turn(adapter, time.monotonic() + seconds) as refusal:
            if refusal:
                return False
            with self._lock:
                worker = self._workers.pop(adapter, None)
            if worker is not None:
                worker.close()
            return True

    def close(self) -> None:
        """Ends all workers."""
        with self._lock:
            workers, self._workers = tuple(self._workers.values()), {}
        for worker in workers:
            worker.close()


def _line(process: Process, until: float) -> bytes | None:
    """One line of the worker's output; what there is when the worker ends or says too much; None when it is late."""
    if process.stdout is None:
        return b""
    handle = process.stdout.fileno()
    os.set_blocking(handle, False)
    parts: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(handle, selectors.EVENT_READ)
        while size <= ANSWER_LIMIT:
            if not selector.select(max(until - time.monotonic(), 0)):
                return None
            data = os.read(handle, _CHUNK)
            parts.append(data)
            size += len(data)
            if not data or data.endswith(b"\n"):
                break
    return b"".join(parts) if size <= ANSWER_LIMIT else b""


_BY_KIND = {"import": Outcome.TOOL_MISSING, "function": Outcome.TOOL_MISSING, "not_json": Outcome.UNREADABLE}
_BY_TYPE = {"PermissionError": Outcome.NOT_PERMITTED, "TimeoutError": Outcome.TIMED_OUT, "FileNotFoundError": Outcome.TOOL_MISSING}


class _Told(msgspec.Struct):
    """A worker's line. The value stays the text that it came as: a snapshot is long, and who reads it goes by the text."""

    value: msgspec.Raw = msgspec.Raw(b"")
    error: str = ""
    type: str = ""
    detail: str = ""
    outcome: str = ""


_decode = msgspec.json.Decoder(_Told).decode
_decode_any = msgspec.json.Decoder().decode


def _loaded(text: bytes) -> Any:
    try:
        return _decode_any(text)
    except ValueError:
        return json.loads(text)  # not-a-number and the like, which strict JSON has not


def _split(line: bytes) -> _Told:
    try:
        return _decode(line)
    except ValueError:
        told = json.loads(line)
        return _Told(**{**told, "value": msgspec.Raw(json.dumps(told.get("value")).encode())})


def _understood(line: bytes, said: bytes) -> Answer:
    told = _split(line)
    if not told.error:
        return Answer(text=bytes(told.value), stderr=said)
    outcome = _BY_KIND.get(told.error) or _BY_TYPE.get(told.type, Outcome.DRIVER_UNUSABLE)
    if told.outcome in set(Outcome):
        outcome = Outcome(told.outcome)
    return Answer(outcome=outcome, detail=f"{told.type}: {told.detail}", stderr=said)


def _ending(status: int | None) -> str:
    return f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"


def _shut(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        try:
            pipe.close()
        except OSError:
            return


def _left(process: Process, seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
