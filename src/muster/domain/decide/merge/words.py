# SPDX-License-Identifier: Apache-2.0
"""How a source's newest word on an attribute replaces its older one."""

from __future__ import annotations

from collections.abc import Mapping

from muster.domain.model.reading import Known, Reading
from muster.domain.model.roll import Word


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
