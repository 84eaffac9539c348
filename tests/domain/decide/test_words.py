# SPDX-License-Identifier: Apache-2.0
"""How a newer word replaces an older one, in whatever order they arrive, and when two words are the same."""

from __future__ import annotations

import pytest

from muster.domain.decide.choose import same
from muster.domain.decide.merge.words import heard, newest, said_at
from muster.domain.model.attributes import Compare
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.roll import Word

SUPPORTED, ERROR = Absent(Why.NOT_SUPPORTED, "N/A"), Absent(Why.ERROR, "Unknown Error")


def said(*told: tuple[float, Reading]) -> Word:
    word: Word | None = None
    for at, reading in told:
        word = heard(word, reading, at)
    assert word is not None
    return word


def test_a_passing_absence_leaves_the_value_and_one_for_good_replaces_it() -> None:
    passing = said((1, Known(90)), (2, ERROR))
    assert (passing.value, passing.at, passing.why, passing.why_at) == (90, 1, Why.ERROR, 2)
    assert said((1, Known(90)), (2, SUPPORTED)).value is None
    again = said((1, Known(90)), (2, ERROR), (3, Known(91)))
    assert (again.value, again.why) == (91, None)


def test_words_that_arrive_late_change_nothing_newer() -> None:
    assert said((5, Known(90)), (3, Known(80))).value == 90
    assert said((5, Known(90)), (3, SUPPORTED)).why is None
    assert said((5, ERROR), (3, SUPPORTED)).why is Why.ERROR
    assert said((5, SUPPORTED), (3, Known(80))).value is None
    late = said((5, ERROR), (3, Known(80)))
    assert (late.value, late.at, late.why) == (80, 3, Why.ERROR)


def test_a_word_keeps_the_tools_own_text_and_the_bytes_it_rests_on() -> None:
    known = heard(None, Known(90), 1.0, "d1")
    passing = heard(known, ERROR, 2.0, "d2")
    first = heard(None, ERROR, 2.0, "d2")
    gone = heard(known, SUPPORTED, 2.0, "d3")
    late = heard(first, Known(80), 1.5, "d4")

    assert known == Word(value=90, at=1.0, capture="d1")
    assert passing == Word(value=90, at=1.0, why=Why.ERROR, why_at=2.0, detail="Unknown Error", capture="d1")
    assert first == Word(why=Why.ERROR, why_at=2.0, detail="Unknown Error", capture="d2")
    assert gone == Word(why=Why.NOT_SUPPORTED, why_at=2.0, detail="N/A", capture="d3")
    assert late == Word(value=80, at=1.5, why=Why.ERROR, why_at=2.0, detail="Unknown Error", capture="d4")


def test_of_two_words_at_one_time_the_later_told_counts() -> None:
    assert said((5, Known(90)), (5, Known(80))).value == 80
    assert said((5, Known(90)), (5, SUPPORTED)).why is Why.NOT_SUPPORTED
    assert said((5, SUPPORTED), (5, ERROR)).why is Why.ERROR


def test_the_newest_of_two_sources_of_words() -> None:
    old, new = (
        {"a": Word(value=1, at=1.0), "b": Word(value=2, at=9.0)},
        {"a": Word(value=3, at=5.0), "b": Word(why=Why.ERROR, why_at=4.0), "c": Word(value=4, at=1.0)},
    )
    merged = newest(old, new)
    assert {key: word.value for key, word in merged.items()} == {"a": 3, "b": 2, "c": 4}
    assert said_at(Word(value=1, at=1.0, why=Why.ERROR, why_at=7.0)) == 7.0


@pytest.mark.parametrize(
    ("how", "by", "one", "other", "right"),
    [
        ("tolerance", 0.05, 100, 104, True),
        ("tolerance", 0.05, 100, 106, False),
        ("near", 10.0, 40, 50, True),
        ("near", 10.0, 40, 51, False),
        ("exact", 0.0, 40, 40.0, True),
        ("exact", 0.0, True, True, True),
        ("exact", 0.0, "a", "A", False),
        ("normalised", 0.0, "Acme  X-100", "x100", True),
        ("normalised", 0.0, "Acme_X 100 80GB", "ACME X100 80 GB", True),
        ("normalised", 0.0, "Acme", "X100", False),
        ("normalised", 0.0, "X100", 100, False),
    ],
)
def test_when_two_values_are_the_same(how: str, by: float, one: object, other: object, right: bool) -> None:
    assert same(Compare(how, by), one, other, {"acme"}) is right
