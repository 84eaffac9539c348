# SPDX-License-Identifier: Apache-2.0
"""Layouts and rounds of numbers for the tests of the store."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

from muster.spi.store import Heard, Layout
from muster.store import Store

KEYS = ("power.draw", "errors.memory.corrected")


def layout(slot: int = 1, cards: tuple[str, ...] = ("c1",), keys: tuple[str, ...] = KEYS, **more: Any) -> Layout:
    """Each key of each card, in order."""
    pairs = [(card, key) for card in cards for key in keys]
    columns = [(card, card, key, place) for place, (card, key) in enumerate(pairs)]
    made = Layout(slot=slot, node="n1", source=f"s{slot}", reporter="r1", since=0.0, columns=columns, width=len(pairs))
    return replace(made, **more)


def heard(at: float, *numbers: float, slot: int = 1, **more: Any) -> Heard:
    """One round."""
    return replace(Heard(slot=slot, at=at, received_at=at + 1.0, numbers=struct.pack(f"<{len(numbers)}d", *numbers)), **more)


def told(store: Store, at: float | None = None, cards: list[str] | None = None) -> dict[tuple[str, str], Any]:
    """Value and time by subject and key."""
    return {(each.subject, each.key): (each.word.value, each.word.at) for each in store.reader.current(cards, at)}


def minutes(store: Store, subject: str = "c1", key: str = "power.draw") -> list[tuple[Any, ...]]:
    """Minute, count, sum, low, high, last."""
    return [tuple(row[name] for name in ("minute", "count", "sum", "low", "high", "last")) for row in store.reader.minutes(subject, key, 0, 1e9)]


def seal(store: Store, now: float) -> int:
    """Packs all that is ripe; how many steps it took."""
    steps = 0
    while store.seal(now):
        steps += 1
    return steps
