# SPDX-License-Identifier: Apache-2.0
"""An agent of a recorded machine whose cards count the rounds in which they are read: a counter and a gauge go up with each, the firmware with each third.

Waits and time limits on the way to the server are short, so that a test need not wait for theirs. Run as ``python -m tests.faults.counting``, with the words
of the agent. ``firmware_of`` and ``ENERGY`` say what a round tells.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from unittest import mock

from muster.collect.post import Poster
from muster.domain.model.source import Capture, Source
from muster.interfaces.agent.__main__ import main
from muster.readers.recorded import RecordedReader
from muster.wiring import agent

ENERGY = 1_000_000
"""Millijoules that each round adds: a kilojoule."""
WAIT, PATIENCE = 1.0, 2.0
"""Seconds between two tries at most, and until an answer is given up."""
_read = RecordedReader.read
_rounds: Counter[str] = Counter()


def firmware_of(turn: int) -> str:
    """What the round of that number says."""
    return f"96.00.{turn // 3:06d}"


def counting(self: RecordedReader, source: Source, deadline: timedelta) -> Iterable[Capture]:
    """As recorded, but for what the round's number changes."""
    _rounds[str(source.id)] += 1
    turn = _rounds[str(source.id)]
    for capture in _read(self, source, deadline):
        if not capture.payload.startswith(b"{"):
            yield capture
            continue
        told = json.loads(capture.payload)
        for card in told["gpus"]:
            card.update(energy_mj=turn * ENERGY, temperature_c=20 + turn % 60, vbios_version=firmware_of(turn))
        yield replace(capture, payload=json.dumps(told).encode())


if __name__ == "__main__":
    with (
        mock.patch.object(RecordedReader, "read", counting),
        mock.patch.object(agent, "LONGEST_WAIT_S", WAIT),
        mock.patch.object(agent, "Poster", partial(Poster, timeout=PATIENCE)),
    ):
        sys.exit(main())
