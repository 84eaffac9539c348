# SPDX-License-Identifier: Apache-2.0
"""Words that were said one by one and numbers that came in rounds, as one answer: of each subject, node, source and key the newest word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muster.domain.model.roll import Word
from muster.spi.store import CurrentValue


def newest(said: Sequence[CurrentValue], told: Sequence[CurrentValue]) -> list[CurrentValue]:
    """Both, and where both speak the one that is newer; a word that is as new as the number stands."""
    if not told:
        return list(said)
    numbers = {_key(value): value for value in told}
    found = []
    for value in said:
        number = numbers.get(_key(value))
        if number is not None and _at(number.word) > _at(value.word):
            continue
        numbers.pop(_key(value), None)
        found.append(value)
    return [*found, *numbers.values()]


def _key(value: CurrentValue) -> tuple[str, str, str, str]:
    return value.subject, value.node, value.source, value.key


def _at(word: Word) -> float:
    return max(word.at or 0.0, word.why_at or 0.0)


def rolled(said: Iterable[Mapping[str, Any]], told: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Minutes of both, in order of minute and source; one that both have is added up, and the round has its last word."""
    found: dict[tuple[int, str], Mapping[str, Any]] = {(row["minute"], row["source"]): row for row in said}
    for row in told:
        key = (row["minute"], row["source"])
        there = found.get(key)
        found[key] = row if there is None else _added(there, row)
    return [found[key] for key in sorted(found)]


def _added(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    sums = {name: one[name] + other[name] for name in ("count", "sum")}
    return {**other, **sums, "low": min(one["low"], other["low"]), "high": max(one["high"], other["high"])}
