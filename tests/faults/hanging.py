# SPDX-License-Identifier: Apache-2.0
"""An agent of a recorded machine whose driver can be made to hang: while HANG_AT names a pipe that is there, reads of HANG_SOURCE wait in the kernel for it.

Deadlines are a second long, so that a test need not wait for theirs. Run as ``python -m tests.faults.hanging --machine DIR --state DIR``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from unittest import mock

from muster.collect import hands
from muster.domain.model.source import Capture, Source
from muster.interfaces.agent.__main__ import main
from muster.readers.recorded import RecordedReader
from muster.wiring import agent

_read = RecordedReader.read
_tuned = agent._tuned


def hanging(self: RecordedReader, source: Source, deadline: timedelta) -> Iterable[Capture]:
    """As recorded, after the driver has let go."""
    where = os.environ["HANG_AT"]
    if source.id == os.environ["HANG_SOURCE"] and os.path.exists(where):
        with open(where, "rb") as pipe:
            pipe.read()
    return _read(self, source, deadline)


def hasty(source: Source, search: tuple[str, ...], cadence: float | None) -> Source:
    """The source with a deadline of a second."""
    return replace(_tuned(source, search, cadence), deadline=timedelta(seconds=1))


if __name__ == "__main__":
    with mock.patch.object(RecordedReader, "read", hanging), mock.patch.object(agent, "_tuned", hasty), mock.patch.object(hands, "GRACE_S", 1.0):
        sys.exit(main())
