# SPDX-License-Identifier: Apache-2.0
"""Versions, first lines that do not fit, and names outside of a table."""

from __future__ import annotations

import pytest

from muster.formats.shape import Majors, first_misfit, lacking, not_known, of_words, printed_version, sentences, unknown, word_set

TOOL = Majors("acmectl", 2, 5)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("| acmectl 9.1.2      Version: 9.1.3 |", "acmectl 9.1.2"),
        ("ACME-CTL v4.5.6+ab12 ready", "ACME-CTL 4.5.6+ab12"),
        ("hello\n\nDriver Version: 12.4", "12.4"),
        ('<?xml version="1.0" ?>\n<log><driver_version>71.2.3</driver_version>', "71.2.3"),
        ('{"version": "26.1.0+5d", "x": 1}', "26.1.0+5d"),
        ("Version 7.8.9.", "7.8.9"),
        ("eth0 10.0.0.1 up, load 0.5", ""),
        ("\n" * 40 + "Version: 1.2", ""),
        ("", ""),
    ],
)
def test_the_version_that_a_text_prints(text: str, version: str) -> None:
    assert printed_version(text) == version


def test_the_first_line_with_letters_is_named_and_never_a_border() -> None:
    assert first_misfit(b"+----+\n|====|\n12 / 13\n|  Card  | Mood |\n") == '"Card | Mood"'
    assert first_misfit(b"aa " * 100).endswith('..."')
    assert first_misfit(b"known\nother\n", lambda line: line == "known") == '"other"'
    assert first_misfit(b"known\n", lambda line: line == "known") == 'nothing behind "known"'
    assert first_misfit(b"\x00\x1b[0m 1 2\n") == ""


def test_a_sentence_says_what_is_lacking_and_where() -> None:
    assert lacking("no card", "") == "no card"
    assert lacking("no card", '"x y"') == 'no card; the first that does not fit: "x y"'
    assert lacking("no card", 'nothing behind "x"') == 'no card, nothing behind "x"'


@pytest.mark.parametrize(
    ("version", "news"),
    [
        ("5.99.1", ""),
        ("v2.0", ""),
        ("3", ""),
        ("6.0.1", "acmectl 6.0.1: newer than 5, the newest seen"),
        ("1.9", "acmectl 1.9: older than 2, the oldest seen"),
        ("N/A", ""),
        ("", ""),
        ("5" * 40, ""),
    ],
)
def test_only_a_major_outside_of_those_seen_is_news(version: str, news: str) -> None:
    assert TOOL.news(version) == news


def test_names_outside_of_a_table() -> None:
    words = word_set("memory used mb")

    assert of_words("Memory-Used(MB)", words)
    assert not of_words("memory.spin", words)
    assert unknown(["a", " ", "b", "a", "c", "d"], lambda name: name == "b") == ["a", "c", "d"]
    assert not_known("column", ["a"]) == "column a not known"
    assert not_known("key", ["a", "b"]) == "keys a, b not known"
    assert not_known("key", []) == ""
    assert sentences("", "x", "y", "x") == "x; y"
