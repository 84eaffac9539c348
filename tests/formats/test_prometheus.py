# SPDX-License-Identifier: Apache-2.0
"""Prometheus pages: labels with signs in them, stamps, broken lines, and a page that is cut short."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.formats.prometheus import Sample, looks_like, parse_line, samples

PAGE = b"""# HELP power_watts Draw.
# TYPE power_watts gauge
power_watts{card="0",name="A \\"B\\" C\\\\D",note="x{y},z=1"} 61.5
power_watts{card="1",} 7 1800000000000
temperature 41
nonsense line
power_watts{card="2" 9
=5
"""


def test_a_page() -> None:
    told = list(samples(PAGE))

    assert told == [
        Sample("power_watts", {"card": "0", "name": 'A "B" C\\D', "note": "x{y},z=1"}, 61.5, None),
        Sample("power_watts", {"card": "1"}, 7.0, 1800000000000),
        Sample("temperature", {}, 41.0, None),
    ]


def test_a_number_that_may_go_on_is_not_read() -> None:
    assert [each.value for each in samples(b'clock{card="0"} 1980\nclock{card="1"} 19')] == [1980]
    assert [each.value for each in samples(b'clock{card="0"} 1980\r\n')] == [1980]


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("a 1", 1.0),
        ("a{} 1", 1.0),
        ("a{ } 1", 1.0),
        ('a{b="c" , d="e"} 1 # {trace="x"} 5', 1.0),
        ("a +Inf", math.inf),
        ("a1", None),
        ("a{b=c} 1", None),
        ("a one", None),
        ("9a 1", None),
        ("a 1 2 3", None),
        ("# a 1", None),
        ("", None),
    ],
)
def test_lines(line: str, right: float | None) -> None:
    found = parse_line(line)

    assert (found.value if found else None) == right


def test_nan_is_a_number_that_is_none() -> None:
    found = parse_line("a NaN")

    assert found is not None
    assert math.isnan(found.value)


def test_what_looks_like_a_page() -> None:
    assert looks_like(PAGE)
    assert not looks_like(b"")
    assert not looks_like(b"hello there\nthis is prose\n")


@given(st.binary(max_size=400))
def test_any_bytes_read(payload: bytes) -> None:
    for each in samples(payload):
        assert each.name
    looks_like(payload)


@given(
    st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=12), max_size=4)
)
def test_labels_come_back_as_they_were(labels: dict[str, str]) -> None:
    told = ",".join(f'{key}="{text.translate({92: chr(92) * 2, 34: chr(92) + chr(34)})}"' for key, text in labels.items())
    found = parse_line(f"a{{{told}}} 1")

    assert found is not None
    assert found.labels == labels
