# SPDX-License-Identifier: Apache-2.0
"""Asks a vendor's library through the adapter's worker: ``module:function`` and its arguments, answered by JSON."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import timedelta

from muster.domain.model.source import Capture, Source
from muster.readers.outcomes import Clock, Taking
from muster.readers.workers import Workers


class LibraryReader:
    """Calls the functions that sources name. The payload is the JSON text of what the function gave."""

    def __init__(self, clock: Clock, workers: Workers) -> None:
        self._clock = clock
        self._workers = workers

    def read(self, source: Source, deadline: timedelta) -> Iterable[Capture]:
        """One capture per read of the source, in order; ``deadline`` holds for each call."""
        for read in source.reads:
            taking = Taking.begin(source, read, self._clock)
            until = time.monotonic() + deadline.total_seconds()
            answer = self._workers.ask(source.adapter, "".join(read.locator[:1]), read.locator[1:], source.search, until)
            more = {"stderr": answer.stderr, "exit_status": answer.exit_status}
            if answer.outcome is not None:
                yield taking.failed(answer.outcome, answer.detail, **more)
            else:
                yield taking.brought(answer.text, **more)
