# SPDX-License-Identifier: Apache-2.0
"""Bytes to lines: encodings, marks, cuts inside a character, escape codes, control characters, endless lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.formats.text import LINE_LIMIT, decode, lines


@pytest.mark.parametrize(
    ("payload", "right"),
    [
        (b"plain\n", "plain\n"),
        (b"\xef\xbb\xbfmarked", "marked"),
        ("41 °C".encode("utf-16"), "41 °C"),
        ("41 °C".encode("utf-16-be"), None),
        (b"\xfe\xff" + "41 °C".encode("utf-16-be"), "41 °C"),
        ("41 °C".encode("latin-1"), "41 °C"),
        ("41 °C".encode()[:-2], "41 "),
        (b"a\r\nb\rc", "a\nb\nc"),
        (b"\x1b[31;1mred\x1b[0m \x1b]0;title\x07ok\x1b(", "red ok("),
        (b"a\x00b\x07c\x7fd", "abcd"),
        (b"\xff\xfe\x00", "�"),
    ],
)
def test_decode(payload: bytes, right: str | None) -> None:
    text = decode(payload)

    assert "\x00" not in text
    assert right is None or text == right


def test_lines_are_trimmed_and_never_endless() -> None:
    assert lines(b"a  \n\tb\t\n") == ["a", "\tb", ""]
    assert len(lines(b"x" * (2 * LINE_LIMIT))[0]) == LINE_LIMIT


@given(st.binary(max_size=500))
def test_any_bytes_decode(payload: bytes) -> None:
    assert "\x1b[" not in decode(payload) or b"\x1b" in payload
    assert all(len(line) <= LINE_LIMIT for line in lines(payload))
