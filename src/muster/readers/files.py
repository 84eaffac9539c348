# SPDX-License-Identifier: Apache-2.0
"""Reads files of the node (sysfs, proc, configuration) by glob patterns, in workers that can be let go when a driver's file hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from datetime import timedelta

from muster.domain.model.source import Capture, Outcome, Read, Source
from muster.readers.outcomes import Clock, Taking
from muster.readers.processes import GRACE_S, Custody
from muster.readers.workers import Answer, Worker

_CALL = "muster.readers.filetree:read"


class FilesReader:
    """Flattens files under ``root`` (see `filetree`). All adapters share one idle worker; one that is busy with another's files is not waited for."""

    def __init__(self, clock: Clock, custody: Custody, root: str = "/", grace: float = GRACE_S) -> None:
        self._clock = clock
        self._custody = custody
        self._root = root
        self._grace = grace
        self._lock = threading.Lock()
        self._idle: Worker | None = None

    def read(self, source: Source, deadline: timedelta) -> Iterable[Capture]:
        """One capture per read of the source, in order; ``deadline`` holds for each. Nothing that matches is an empty payload."""
        for read in source.reads:
            yield self._one(source, read, time.monotonic() + deadline.total_seconds())

    def close(self) -> None:
        """Ends the idle worker."""
        worker = self._borrow()
        worker.close()

    def _one(self, source: Source, read: Read, until: float) -> Capture:
        taking = Taking.begin(source, read, self._clock)
        with self._custody.turn(source.adapter, until) as refusal:
            if refusal:
                return taking.failed(Outcome.TIMED_OUT, refusal)
            answer = self._ask(source.adapter, read, until)
        if answer.outcome is not None:
            return taking.failed(answer.outcome, answer.detail, stderr=answer.stderr)
        told = answer.value()
        detail = "" if told["files"] else f"no file matches {' '.join(read.locator)}"
        return taking.brought(told["text"].encode("utf-8", "surrogateescape"), cut=told["cut"], detail=detail)

    def _ask(self, adapter: str, read: Read, until: float) -> Answer:
        worker = self._borrow()
        answer = worker.ask(_CALL, (self._root, *read.locator), (), until)
        if answer.stuck and worker.process is not None:
            self._custody.keep(adapter, worker.process, f"reading {' '.join(read.locator)}")
        elif not answer.gone:
            self._give_back(worker)
        return answer

    def _borrow(self) -> Worker:
        with self._lock:
            worker, self._idle = self._idle, None
        return worker or Worker(grace=self._grace)

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            surplus = worker if self._idle is not None else None
            self._idle = self._idle or worker
        if surplus is not None:
            surplus.close()
