# SPDX-License-Identifier: Apache-2.0
"""How a source's newest word on an attribute replaces its older one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.reading import Known, Reading
from muster.domain.model.roll import Word

_MOVING = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT)


def heard(old: Word | None, new: Reading, at: float, capture: str = "") -> Word:
    """The word after ``new`` was said at ``at``. An absence for good replaces the value, a passing one leaves it with its age."""
    old = old or Word()
    if isinstance(new, Known):
        if old.at is not None and old.at > at:
            return old
        later = old.why is not None and old.why_at is not None and old.why_at > at
        if later and old.why is not None and not old.why.passing:
            return old
        kept = (old.why, old.why_at, old.detail) if later else (None, None, "")
        return Word(value=new.value, at=at, why=kept[0], why_at=kept[1], detail=kept[2], capture=capture)
    if old.at is not None and old.at > at:
        return old
    if old.why_at is not None and old.why_at > at:
        return old
    if new.why.passing:
        return Word(value=old.value, at=old.at, why=new.why, why_at=at, detail=new.detail, capture=old.capture or capture)
    return Word(why=new.why, why_at=at, detail=new.detail, capture=capture)


def hear(words: dict[str, Word], readings: Mapping[str, Reading], at: float, capture: str, made: dict[Any, Word]) -> None:
    """Takes readings into the words of one source, as `heard` does one by one. ``made`` keeps the words of this listing: equal facts share one."""
    for key, reading in readings.items():
        old = words.get(key)
        if reading.__class__ is not Known or not (old is None or (old.why is None and (old.at is None or old.at <= at))):
            words[key] = heard(old, reading, at, capture)
            continue
        value = reading.value
        if value.__class__ is not str and (value.__class__ is not int or key in _MOVING):
            words[key] = Word(value=value, at=at, capture=capture)
            continue
        word = made.get(value)
        if word is None:
            word = made[value] = Word(value=value, at=at, capture=capture)
        words[key] = word


def newest(one: Mapping[str, Word], two: Mapping[str, Word]) -> dict[str, Word]:
    """Per attribute the word that was said last; of equals the first mapping's."""
    merged = dict(one)
    for key, word in two.items():
        mine = merged.get(key)
        if mine is None or said_at(word) > said_at(mine):
            merged[key] = word
    return merged


def said_at(word: Word) -> float:
    """When the source last spoke of it."""
    return max(word.at if word.at is not None else float("-inf"), word.why_at if word.why_at is not None else float("-inf"))
