# SPDX-License-Identifier: Apache-2.0
"""Times in and out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.model.errors import InputError
from muster.domain.model.moments import moment, rfc3339

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("now", NOW),
        ("-10m", NOW - 600),
        ("-1.5h", NOW - 5400),
        ("-2d", NOW - 172800),
        ("-999999999w", 0.0),
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01 00:01Z", 60.0),
        ("1970-01-01t00:01:00.5z", 60.5),
        ("1970-01-01T02:01:00+02:00", 60.0),
        ("1970-01-01T02:01:00 02:00", 60.0),
        ("1970-01-01T00:01:00.123456789Z", 60.123456),
    ],
)
def test_moment(text: str, at: float) -> None:
    assert moment(text, NOW) == pytest.approx(at)


@pytest.mark.parametrize(
    "text", ["", "10m", "-10", "-10y", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "0001-01-01T00:00:00+23:00"]
)
def test_no_moment(text: str) -> None:
    if text.startswith("0001"):
        assert moment(text, NOW) == 0.0
    else:
        with pytest.raises(InputError):
            moment(text, NOW)


@given(st.floats(0, 253402300799))
def test_there_and_back(at: float) -> None:
    assert moment(rfc3339(at), NOW) == pytest.approx(at, abs=0.002)


def test_beyond_the_calendar() -> None:
    assert rfc3339(-5) == "1970-01-01T00:00:00Z"
    assert rfc3339(1e300) == "9999-12-31T23:59:59Z"
    assert rfc3339(0.0004) == "1970-01-01T00:00:00Z"
    assert rfc3339(1.5) == "1970-01-01T00:00:01.500Z"
