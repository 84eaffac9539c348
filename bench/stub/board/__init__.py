# SPDX-License-Identifier: Apache-2.0
"""An adapter for a tool of ours, so that a benchmark has a reader of tools at work."""

from __future__ import annotations

from collections.abc import Sequence

from muster.domain.model.gather import Gather
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, Outcome
from muster.spi.adapter import Models


def recognise(head: bytes) -> str | None:
    """Its lines begin with its name."""
    return "stub-board-line" if head.startswith(b"stub-board ") else None


def interpret(captures: Sequence[Capture], models: Models) -> Interpretation:
    """One card per line."""
    del models
    gather = Gather()
    for line in captures[0].payload.decode().splitlines():
        _, serial, watts = line.split()
        gather.card(serial).named(serial=serial).value("power.draw", float(watts))
    return Interpretation(outcome=Outcome.DEVICES, format="stub-board-line", complete=True, observations=gather.observations())
