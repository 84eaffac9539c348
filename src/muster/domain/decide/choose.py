# SPDX-License-Identifier: Apache-2.0
"""Which of several sources' words is shown, and what is kept beside it: known before absent, fresh before stale, then precedence.

A stale better fact stays while the fresh lesser one agrees with it; some attributes show the worst fresh word. Pure, and the same for now and for then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from muster.domain.model.attributes import ATTRIBUTES, Compare, Kind
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.roll import Voice, Word
from muster.domain.model.source import WitnessClass

_SPACING = re.compile(r"[\s_\-]+")
_ASKS_THE_LIBRARY = frozenset({WitnessClass.DRIVER, WitnessClass.EXPORTER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The reading of one attribute with its source and age. ``dissent`` and ``absent`` are what other sources say, by source."""

    reading: Reading
    source: str
    node: str
    observed_at: float
    stale: bool = False
    dissent: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, Why] = field(default_factory=dict)
    capture: str = ""

    def age(self, now: float) -> float:
        """Seconds since it was seen, never negative."""
        return max(0.0, now - self.observed_at)


class _Said(NamedTuple):
    voice: Voice
    word: Word
    rank: int
    fresh: bool


def choose(key: str, voices: Sequence[Voice], policy: Policy, now: float, judged: Collection[tuple[str, str]] = ()) -> Shown | None:
    """What is shown of ``key``; None when no source speaks of it. ``judged`` are pairs of sources (``node/source``) held apart for a gauge."""
    speaking = [v for v in voices if key in v.words]
    if len(speaking) == 1:
        return _alone(speaking[0], speaking[0].words[key], now)
    order = policy.order(key)
    said = [_said(v, v.words[key], order, now) for v in speaking]
    if not said:
        return None
    known = [s for s in said if s.word.at is not None]
    if not known:
        return _absence(min(said, key=lambda s: (s.rank, -(s.word.why_at or 0))))
    best = _best(key, known, policy)
    return Shown(
        reading=Known(best.word.value),
        source=best.voice.source,
        node=best.voice.node,
        observed_at=best.word.at or 0.0,
        stale=not best.fresh,
        dissent={o.voice.source: o.word.value for o in known if o is not best and dissents(key, best, o, policy, judged)},
        absent={s.voice.source: s.word.why for s in said if s.word.why is not None},
        capture=best.word.capture,
    )


def leading(key: str, known: Sequence[tuple[Voice, Word]], policy: Policy, now: float) -> tuple[Voice, Any]:
    """Whose word `choose` shows of several that are known, and its value."""
    order = policy.order(key)
    best = _best(key, [_said(voice, word, order, now) for voice, word in known], policy)
    return best.voice, best.word.value


def chosen(key: str, voices: Sequence[Voice], policy: Policy, now: float) -> Word | None:
    """The word that `choose` shows a value of; None where it shows none."""
    speaking = [v for v in voices if key in v.words]
    if len(speaking) == 1:
        word = speaking[0].words[key]
        return word if word.at is not None else None
    order = policy.order(key)
    known = [s for v in speaking if (s := _said(v, v.words[key], order, now)).word.at is not None]
    return _best(key, known, policy).word if known else None


def disputed(key: str, voices: Sequence[Voice], policy: Policy, now: float, judged: Collection[tuple[str, str]] = ()) -> bool:
    """True when `choose` shows dissent."""
    speaking = [v for v in voices if key in v.words]
    if len(speaking) < 2:
        return False
    order = policy.order(key)
    known = [s for v in speaking if (s := _said(v, v.words[key], order, now)).word.at is not None]
    if len(known) < 2:
        return False
    best = _best(key, known, policy)
    return any(other is not best and dissents(key, best, other, policy, judged) for other in known)


def _alone(voice: Voice, word: Word, now: float) -> Shown:
    """What is shown where one source alone speaks."""
    if word.at is None:
        return _absence(_Said(voice, word, 0, False))
    stale = voice.witness is not WitnessClass.OPERATOR and now - word.at > voice.promise
    absent = {voice.source: word.why} if word.why is not None else {}
    return Shown(reading=Known(word.value), source=voice.source, node=voice.node, observed_at=word.at or 0.0, stale=stale, absent=absent, capture=word.capture)


def _said(voice: Voice, word: Word, order: Sequence[WitnessClass], now: float) -> _Said:
    rank = order.index(voice.witness) if voice.witness in order else len(order)
    ageless = voice.witness is WitnessClass.OPERATOR
    return _Said(voice, word, rank, word.at is not None and (ageless or now - word.at <= voice.promise))


def _absence(said: _Said) -> Shown:
    why = said.word.why or Why.NOT_SAMPLED
    return Shown(
        reading=Absent(why, said.word.detail), source=said.voice.source, node=said.voice.node, observed_at=said.word.why_at or 0.0, capture=said.word.capture
    )


def _best(key: str, known: list[_Said], policy: Policy) -> _Said:
    fresh = [s for s in known if s.fresh]
    first = min(known, key=_rank)
    if not fresh:
        return first
    worst = policy.worst.get(key)
    if worst:
        return min(fresh, key=lambda s: (worst.index(s.word.value) if s.word.value in worst else len(worst), _rank(s)))
    best = min(fresh, key=_rank)
    entry = ATTRIBUTES.get(key)
    is_fact = entry is None or entry.kind is Kind.FACT
    if first is not best and is_fact and _rank(first)[0] < _rank(best)[0] and agree(key, first.word.value, best.word.value, policy):
        return first
    return best


def _rank(said: _Said) -> tuple[int, float]:
    return said.rank, -(said.word.at or 0.0)


def dissents(key: str, best: _Said, other: _Said, policy: Policy, judged: Collection[tuple[str, str]]) -> bool:
    """True when another fresh witness says something else, beyond what the attribute tolerates."""
    compare = policy.compare.get(key)
    if compare is None or compare.how == "never" or not other.fresh or _one_witness(best.voice, other.voice):
        return False
    if compare.how == "near":
        return pair(best.voice, other.voice) in judged
    return not agree(key, best.word.value, other.word.value, policy)


def _one_witness(one: Voice, other: Voice) -> bool:
    same_library = one.witness in _ASKS_THE_LIBRARY and other.witness in _ASKS_THE_LIBRARY
    return one.channel is other.channel and one.node == other.node and same_library


def pair(one: Voice, other: Voice) -> tuple[str, str]:
    """The two sources in one order, as `CardRecord.disagree` keeps them."""
    first, second = sorted((f"{one.node}/{one.source}", f"{other.node}/{other.source}"))
    return first, second


def agree(key: str, one: Any, other: Any, policy: Policy) -> bool:
    """True when two values of ``key`` are the same for its comparison (exact where the policy names none)."""
    if key == "pci.class":
        short, long = sorted((str(one).lower().removeprefix("0x"), str(other).lower().removeprefix("0x")), key=len)
        return long.startswith(short)
    return same(policy.compare.get(key) or Compare("exact"), one, other, policy.vendor_words)


def same(compare: Compare, one: Any, other: Any, vendor_words: Collection[str] = ()) -> bool:
    """True when two values are the same: exactly, normalised, within a relative tolerance, or near each other."""
    if isinstance(one, int | float) and isinstance(other, int | float) and not isinstance(one, bool) and not isinstance(other, bool):
        if compare.how == "tolerance":
            return abs(one - other) <= compare.by * max(abs(one), abs(other))
        if compare.how == "near":
            return abs(one - other) <= compare.by
        return one == other
    if compare.how == "normalised" and isinstance(one, str) and isinstance(other, str):
        return normalised(one, vendor_words) == normalised(other, vendor_words)
    return bool(one == other)


def normalised(text: str, vendor_words: Collection[str] = ()) -> str:
    """Without case, blanks, underscores, dashes, and a leading vendor name."""
    words = _SPACING.sub(" ", text.strip().lower()).split(" ")
    if len(words) > 1 and words[0] in vendor_words:
        words = words[1:]
    return "".join(words)
