# SPDX-License-Identifier: Apache-2.0
"""JSON of tools: what stands around it, what is broken in it, and what is kept of it."""

from __future__ import annotations

import json
import math

import pytest

from muster.formats.jsontext import DEPTH_LIMIT, documents, first, looks_like, walk

PRETTY = json.dumps([{"gpu": n, "power": {"value": 40 + n, "unit": "W"}, "list": [1, "N/A"]} for n in range(3)], indent=4)


def values(text: str | bytes, *, partial: bool = False) -> list[object]:
    return [d.value for d in documents(text, partial=partial)]


def test_plain_and_empty_documents() -> None:
    assert values('{"a": 1}') == [{"a": 1}]
    assert values("[]") == [[]]
    assert values("") == []
    assert values("no documents here") == []


def test_log_lines_before_the_document_are_passed_over() -> None:
    text = "WARNING: [driver] not initialised {yet}\n[2026-01-01 10:00:00] retry\n" + PRETTY + "\ndone [ok]\n"

    assert values(text) == [json.loads(PRETTY)]


def test_a_numbered_list_before_the_document_is_not_taken_for_it() -> None:
    found = first('[1]\n{"a": 1}')

    assert found is not None
    assert found.value == {"a": 1}


def test_documents_one_after_another() -> None:
    assert values('{"a": 1}{"b": 2}\n[3]') == [{"a": 1}, {"b": 2}, [3]]


def test_one_broken_line_costs_only_itself() -> None:
    assert values('{"n": 1}\n{"n": 2, "x": \n{"n": 3}\n') == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2,]", [1, 2]),
        ('{"a": N/A, "b": 2}', {"a": "N/A", "b": 2}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1, , "b": 2}', {"a": 1, "b": 2}),
        ('{"a": [1, 2}, "b": 3}', {"a": [1, 2]}),
    ],
)
def test_small_breaks(text: str, value: object) -> None:
    assert values(text)[0] == value


def test_not_a_number_is_kept_as_such() -> None:
    (value,) = values('{"a": NaN, "b": -Infinity,}')

    assert isinstance(value, dict)
    assert math.isnan(value["a"])
    assert value["b"] == -math.inf


def test_a_decimal_comma_never_becomes_a_shorter_number() -> None:
    (document,) = documents('{"value": 12,5, "unit": "W"}')

    assert document.value == {"value": "12,5", "unit": "W"}
    assert document.cut


def test_every_line_twice() -> None:
    doubled = "".join(line + "\n" + line + "\n" for line in PRETTY.split("\n"))
    (document,) = documents(doubled)

    assert [item["power"] for item in document.value] == [item["power"] for item in json.loads(PRETTY)]


@pytest.mark.parametrize("row", range(len(PRETTY.split("\n"))))
def test_any_one_line_twice(row: int) -> None:
    lines = PRETTY.split("\n")
    found = first("\n".join(lines[: row + 1] + lines[row:]), partial=True)

    assert found is not None
    assert [item["gpu"] for item in found.value] == [0, 1, 2]


@pytest.mark.parametrize("at", range(0, len(PRETTY), 13))
def test_a_cut_document_keeps_its_whole_items(at: int) -> None:
    whole = json.loads(PRETTY)
    found = first(PRETTY[:at])
    kept = found.value if found is not None else []

    assert kept == whole[: len(kept)]
    assert len(kept) >= PRETTY[:at].count("    },\n") // 2
    assert found is None or found.cut


def test_a_cut_document_with_partial_items() -> None:
    (document,) = documents('{"gpu_data": [{"gpu": 0, "w": 1}, {"gpu": 1, "w": 12', partial=True)

    assert document.value == {"gpu_data": [{"gpu": 0, "w": 1}, {"gpu": 1}]}
    assert document.cut


def test_a_missing_quote_costs_its_line() -> None:
    assert values('{"a": "x,\n"b": 2,\n"c": 3\n}')[0] == {"a": "x", "b": 2, "c": 3}


def test_nesting_has_a_limit() -> None:
    assert all(document.cut for document in documents("[" * 100_000 + "]" * 100_000, partial=True))
    inside = '{"a":' * (DEPTH_LIMIT + 5) + "1" + "}" * (DEPTH_LIMIT + 5)
    (document,) = documents(inside)
    assert document.cut


def test_numbers_too_long_stay_text() -> None:
    (value,) = values('{"a": ' + "9" * 5000 + "}")

    assert value == {"a": "9" * 5000}


def test_bytes_with_marks_and_nul() -> None:
    assert values(b'\xef\xbb\xbf{"a":\x00 1}\r\n') == [{"a": 1}]


def test_walk_and_looks_like() -> None:
    assert list(walk({"a": [1, {"b": None}]})) == [(("a", 0), 1), (("a", 1, "b"), None)]
    assert looks_like(b'warn\n  {"a": 1')
    assert not looks_like(b"GPU: 0\n  BDF: [x]")


@pytest.mark.parametrize("text", ['{"a":' + '\\"' * 40_000, "[1," * 40_000, '{"a": "' + "\\" * 40_001, '{ "' * 20_000, "{" + " " * 40_000 + "x"])
def test_hostile_text_takes_no_time_to_speak_of(text: str) -> None:
    assert all(document.cut for document in documents(text, partial=True))
