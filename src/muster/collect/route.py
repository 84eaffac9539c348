# SPDX-License-Identifier: Apache-2.0
"""Captures to adapters: the one that declared the source, and for a format that several share (a kernel log) every other that claims the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.domain.model.observation import Event, Interpretation
from muster.domain.model.source import Capture, Outcome, Source
from muster.spi.adapter import HEAD, Adapter

_DATED = 5


@dataclass(frozen=True, slots=True)
class Routed:
    """What one adapter made of one round. ``own`` is False for one that only shares the format."""

    adapter: str
    told: Interpretation
    own: bool


class Router:
    """Knows which formats are shared. ``context`` is added to every capture."""

    def __init__(self, adapters: Sequence[Adapter], context: Mapping[str, str]) -> None:
        self._adapters = {each.manifest.name: each for each in adapters}
        self._context = dict(context)
        uses = Counter(format_ for each in adapters for format_ in each.manifest.formats)
        self._shared = frozenset(format_ for format_, count in uses.items() if count > 1)

    def route(self, owner: str, captures: Sequence[Capture]) -> list[Routed]:
        """Interpretations of one round, the owner's first."""
        given = [replace(each, context={**self._context, **each.context}) for each in captures]
        found = [Routed(owner, guarded(self._adapters[owner], given), True)] if owner in self._adapters else []
        shared = [each for each in given if each.format in self._shared and each.payload]
        for name, adapter in self._adapters.items():
            claimed = [each for each in shared if name != owner and _claims(adapter, each)]
            if claimed:
                found.append(Routed(name, guarded(adapter, claimed), False))
        return found


def quiet(source: Source, detail: str) -> list[Routed]:
    """What is said of a source that brought nothing and that nothing is wrong with."""
    return [Routed(source.adapter, Interpretation(outcome=Outcome.NO_DEVICES, detail=detail), True)]


def _claims(adapter: Adapter, capture: Capture) -> bool:
    """True when the adapter knows the text. A shared text can be long and its line late, so every part of it is shown in turn."""
    if capture.format not in adapter.manifest.formats:
        return False
    parts = range(0, len(capture.payload), HEAD)
    try:
        return any(adapter.recognise(capture.payload[at : at + HEAD]) == capture.format for at in parts)
    except Exception:  # noqa: BLE001 - the edge of the process: an adapter that raises on a text does not know it
        return False


def guarded(adapter: Adapter, captures: Sequence[Capture]) -> Interpretation:
    """What the adapter says. One that raises, which it must not, is told as unreadable with the name of the error."""
    try:
        return adapter.interpret(captures)
    except Exception as error:  # noqa: BLE001 - the edge of the process: a fault in one adapter must not silence the others
        detail = f"the adapter {adapter.manifest.name} raised {type(error).__name__}: {str(error)[:200]}"
        return Interpretation(outcome=Outcome.UNREADABLE, format=captures[0].format if captures else "", detail=detail)


def places(captures: Sequence[Capture], cursor: str) -> Callable[[Event], str]:
    """Where an event stood: the whole line that its text is part of where that line begins with a time, else ``cursor``.

    Equal texts, asked for one after the other, stand in one such line after the other.
    """
    rows = [line for each in captures for line in each.payload.decode("utf-8", "replace").splitlines()]
    after: Counter[str] = Counter()

    def place(event: Event) -> str:
        first = event.text.partition("\n")[0].strip()
        for number, row in enumerate(rows[after[first] :] if first else (), after[first]):
            head, found, _ = row.partition(first)
            if found and sum(sign.isdigit() for sign in head) >= _DATED:
                after[first] = number + 1
                return row
        return cursor

    return place
