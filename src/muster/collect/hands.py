# SPDX-License-Identifier: Apache-2.0
"""Reads in workers: one at a time per adapter, each with a deadline, and never a second one beside one that hangs.

The readers end what hangs as well as they can; what not even they get back from is left here, said to be stuck, and waited for.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from dataclasses import dataclass, field
from datetime import timedelta

from muster.collect.clock import Clock
from muster.domain.model.source import Capture, Outcome, Source
from muster.spi.readers import Reader

GRACE_S = 6.0
"""Seconds that a reader has beyond its deadlines, to end what it started."""


IDLE = 1
"""Threads that are kept for the next read."""

IDLE_S = 45.0
"""Seconds that one of them waits for it."""


@dataclass(slots=True, eq=False)
class Job:
    """One read of one source. ``started`` and ``limit`` are monotonic; ``late`` is set once it is said to be stuck."""

    source: Source
    started: float
    started_wall: float
    limit: float
    captures: list[Capture] = field(default_factory=list)
    late: bool = False


class Hands:
    """Starts reads and hands back those that ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ended: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._jobs: dict[str, Job] = {}
        self._idle: list[queue.SimpleQueue[tuple[Job, Reader] | None]] = []
        self.woken = False
        """True when `wake` was called before or while `ended` waited last."""

    def free(self, adapter: str) -> bool:
        """True when nothing of this adapter is being read."""
        return adapter not in self._jobs

    def stuck(self, adapter: str) -> Job | None:
        """The read of this adapter that hangs."""
        job = self._jobs.get(adapter)
        return job if job is not None and job.late else None

    def doing(self) -> dict[str, str]:
        """Adapter to the source that is being read, or that hangs."""
        return {name: f"{'stuck' if job.late else 'reading'} {job.source.id}" for name, job in tuple(self._jobs.items())}

    def start(self, source: Source, reader: Reader) -> Job:
        """Begins a read in a thread that does nothing else meanwhile; the adapter must be free."""
        now = self._clock.mono()
        limit = now + source.longest.total_seconds() + GRACE_S
        job = Job(source, now, self._clock.wall(), limit)
        self._jobs[source.adapter] = job
        try:
            hand = self._idle.pop()
        except IndexError:
            hand = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(hand,), name="read", daemon=True).start()
        hand.put((job, reader))
        return job

    def dismiss(self) -> None:
        """Lets the threads end that have nothing to do."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().put(None)

    def ended(self, seconds: float) -> list[Job]:
        """Reads that ended, waiting ``seconds`` at most for the first. A late one that comes back only frees its adapter."""
        came: list[Job | None] = []
        try:
            came.append(self._ended.get(timeout=max(seconds, 0)) if seconds > 0 else self._ended.get_nowait())
            while True:
                came.append(self._ended.get_nowait())
        except queue.Empty:
            pass
        self.woken = None in came
        found = [job for job in came if job is not None]
        for job in found:
            del self._jobs[job.source.adapter]
        return [job for job in found if not job.late]

    def wake(self) -> None:
        """Ends a wait for reads to end; may be called from any thread."""
        self._ended.put(None)

    def overdue(self) -> list[Job]:
        """Reads that hang since the last call, each told once."""
        now = self._clock.mono()
        found = [job for job in self._jobs.values() if not job.late and now >= job.limit]
        for job in found:
            job.late = True
        return found

    def next_limit(self) -> float:
        """When the next read under way becomes overdue (monotonic)."""
        return min((job.limit for job in self._jobs.values() if not job.late), default=float("inf"))

    @property
    def busy(self) -> frozenset[str]:
        """Adapters of which a read is under way that does not hang."""
        return frozenset(name for name, job in self._jobs.items() if not job.late)

    def _work(self, hand: queue.SimpleQueue[tuple[Job, Reader] | None]) -> None:
        """Reads what it is given, one after the other; ends when it is not needed, or has waited long."""
        while (given := self._given(hand)) is not None:
            stays = False
            try:
                self._read(*given)
                stays = len(self._idle) < IDLE
                if stays:
                    self._idle.append(hand)
            finally:
                self._ended.put(given[0])
            del given
            if not stays:
                return

    def _given(self, hand: queue.SimpleQueue[tuple[Job, Reader] | None]) -> tuple[Job, Reader] | None:
        try:
            return hand.get(timeout=IDLE_S)
        except queue.Empty:
            try:
                self._idle.remove(hand)
            except ValueError:
                return hand.get()
            return None

    @staticmethod
    def _read(job: Job, reader: Reader) -> None:
        try:
            job.captures.extend(reader.read(job.source, job.source.deadline))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the edge of the worker: a reader promises not to raise, and one that does must not end the agent
            job.captures.append(_broken(job.source, error))


def _broken(source: Source, error: BaseException) -> Capture:
    read = source.reads[0] if source.reads else None
    return Capture(
        source=source.id,
        locator=read.locator if read else (),
        format=read.format if read else "",
        duration=timedelta(0),
        failure=Outcome.UNREADABLE,
        detail=f"the {source.reader} reader raised {type(error).__name__}: {str(error)[:200]}",
    )
