# SPDX-License-Identifier: Apache-2.0
"""How the conformance suite listens to an adapter: one round of captures in, what it says out, and whatever it raises kept as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from muster.domain.decide.fold import FoldedCard, fold
from muster.domain.model.observation import Interpretation
from muster.domain.model.source import Capture, SourceId
from muster.spi.adapter import Adapter


@dataclass(slots=True)
class Raised:
    """A ``with`` block that keeps what a vendor's code raises, so that it becomes a result."""

    error: str = ""

    def __enter__(self) -> Raised:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        self.error = f"{kind.__name__}: {error}"[:200]
        return True


@dataclass(slots=True)
class Heard:
    """What one round of one machine says, with the problems met on the way."""

    machine: str
    source: SourceId
    captures: Sequence[Capture]
    told: Interpretation | None
    problem: str = ""
    cards: tuple[FoldedCard, ...] = ()


def hear(adapter: Adapter, machine: str, source: SourceId, captures: Sequence[Capture]) -> Heard:
    """What the adapter says of one round; ``told`` is None when it raised."""
    with Raised() as raised:
        told = adapter.interpret(captures)
        return Heard(machine, source, captures, told, cards=fold(told.observations))
    return Heard(machine, source, captures, None, problem=f"{source}: interpret raised {raised.error}")
