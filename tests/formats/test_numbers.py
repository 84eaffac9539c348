# SPDX-License-Identifier: Apache-2.0
"""Numbers with units: every spelling of no value, decimal signs, units of each kind, sentinels, and text that is none of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.formats.numbers import MARKERS, grouped, marker, number, quantity, sentinel


def value(reading: Reading) -> object:
    return reading.value if isinstance(reading, Known) else f"!{reading.why.value}"


@pytest.mark.parametrize("text", sorted(MARKERS))
def test_every_spelling_of_no_value_has_its_reason(text: str) -> None:
    for spelling in (text, text.upper(), f" {text} ", f"[{text}]"):
        assert marker(spelling) is MARKERS[text]
        assert value(quantity("power.draw", spelling)) == f"!{MARKERS[text].value}"


def test_a_field_that_moved_says_where_to() -> None:
    assert marker("Deprecated, see the other field") is Why.MOVED
    assert marker("0") is None
    assert marker("12 W") is None


@pytest.mark.parametrize(
    ("text", "comma", "right"),
    [
        ("12", False, 12),
        ("-3.5", False, -3.5),
        (".5", False, 0.5),
        ("1e3", False, 1000),
        ("1,024", False, None),
        ("1,024.5", False, 1024.5),
        ("1.024", True, 1024),
        ("1.024,5", True, 1024.5),
        ("228,82", True, 228.82),
        ("1,2,3", True, None),
        ("1.02,5", True, None),
        ("1,2.3", True, None),
        ("7.5", True, 7.5),
        ("word", False, None),
        ("wo,rd", True, None),
        ("", False, None),
        ("1e999", False, None),
        ("1" * 65, False, None),
    ],
)
def test_numbers(text: str, comma: bool, right: float | None) -> None:
    assert number(text, comma=comma) == right


def test_commas_that_can_only_group() -> None:
    assert grouped("1,024") == 1024
    assert grouped("1,024.5") == 1024.5
    assert grouped("1,02") is None
    assert grouped("12.5") == 12.5


@pytest.mark.parametrize(
    ("key", "text", "unit", "right"),
    [
        ("power.draw", "61.20 W", "", 61.2),
        ("power.draw", "61200 mW", "", 61.2),
        ("power.draw", "61.2", "W", 61.2),
        ("power.draw", "2 MW", "", "!unreadable"),
        ("power.draw", "61 parsec", "", "!unreadable"),
        ("power.draw", "about 61 W", "", "!unreadable"),
        ("power.draw", "1,024 W", "", "!unreadable"),
        ("power.draw", "1..2 W", "", "!unreadable"),
        ("energy.total", "5 mJ", "", 0.005),
        ("energy.total", "5 MJ", "", 5_000_000),
        ("memory.total", "81559 MiB", "", 81559 * 2**20),
        ("memory.total", "80 GiB", "", 80 * 2**30),
        ("memory.total", "1 KiB", "", 1024),
        ("memory.total", "81559", "MiB", 81559 * 2**20),
        ("memory.total", "81559", "", 81559),
        ("clock.core", "1980 MHz", "", 1_980_000_000),
        ("utilization.core", "37 %", "", 0.37),
        ("temperature.core", "51 C", "", 51),
        ("voltage.core", "850 mV", "", 0.85),
        ("fan.rpm", "1200 RPM", "", 1200),
    ],
)
def test_quantities(key: str, text: str, unit: str, right: object) -> None:
    assert value(quantity(key, text, unit=unit)) == right


def test_a_factor_beats_the_suffix_and_signs_are_heeded() -> None:
    assert value(quantity("memory.total", "64 MB", factor=2**20)) == 64 * 2**20
    assert value(quantity("power.draw", "1.028,50 W", comma=True)) == 1028.5
    assert value(quantity("memory.used", "1,024 MiB", point=True)) == 1024 * 2**20


@pytest.mark.parametrize(
    ("key", "told", "right"),
    [
        ("temperature.core", 41, 41),
        ("temperature.memory", 0x7FFFFFF2, "!not_supported"),
        ("temperature.memory", 0x7FFFFFFFFFFFFFF3, "!not_permitted"),
        ("power.draw", 140737488355328.0, "!not_sampled"),
        ("memory.used", 0xFFFFFFFF, "!not_supported"),
        ("utilization.core", 0xFFFF, "!not_supported"),
        ("power.draw", -1, "!not_sampled"),
        ("temperature.core", -1, -1),
    ],
)
def test_sentinels(key: str, told: float, right: object) -> None:
    assert value(sentinel(key, told)) == right


@given(st.text(max_size=80), st.booleans(), st.booleans())
def test_any_text_is_a_finite_number_or_an_absence(text: str, comma: bool, point: bool) -> None:
    for key in ("power.draw", "memory.total", "utilization.core"):
        reading = quantity(key, text, comma=comma, point=point)
        assert isinstance(reading, Absent) or math.isfinite(reading.value)


@given(st.integers(0, 10**12), st.integers(0, 99))
def test_both_signs_give_one_number(whole: int, fraction: int) -> None:
    plain = float(f"{whole}.{fraction:02}")
    assert number(f"{whole}.{fraction:02}") == pytest.approx(plain)
    assert number(f"{whole},{fraction:02}", comma=True) == pytest.approx(plain)
    assert number(f"{whole:,}.{fraction:02}") in (None, pytest.approx(plain)) if whole >= 1000 else True
