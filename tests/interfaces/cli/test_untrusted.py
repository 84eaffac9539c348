# SPDX-License-Identifier: Apache-2.0
"""Whatever a device says is text and nothing else, in every output: it moves no terminal, runs in no spreadsheet, forges no line, and stays itself in data."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from muster.interfaces.api.telling import cell as api_cell
from muster.interfaces.cli.cells import UNSAFE, plain, safe
from muster.interfaces.cli.documents import field
from muster.interfaces.cli.output import Column, aligned, cell, to_csv, to_json, to_yaml
from muster.wire.documents import encode

PIECES = [
    "\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://evil.example\x1b\\x", "\x9b31m", "\x90q\x9c", "\x07", "\x08\x08", "\r", "\n", "\r\n", "\t", "\x00", "\x7f",
    "\u202e", "\u2066", "\u2069", "\u200f", "\u061c", "\u200b", "\ufeff", "\u2028", "\u2029", "\x85", "\ufff9",
    "=cmd|' /C calc'!A0", "=HYPERLINK(\"http://evil.example\")", "+1+1", "-2+3", "@SUM(A1)", "=1+1", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20x",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&amp;", "\"", "'", ",", ";", "|", "`", "${x}", "{{7*7}}", "%s",
    "%n", "\\x1b", "\\", "{", "]}",
    "node-1", "Acme X1", "80 GiB", "é", "漢字", "🂡", " ",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=40), st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join), st.text(alphabet="=+-@\t\r\n ,\"';a1", max_size=12)
)
FORMULA = re.compile(r"^[\s\u115f\u1160\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0=+\-@]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""What a spreadsheet may take for the beginning of a formula."""
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What no cell holds; the ends of lines within quotes are the text's own."""


def columns(*names: str) -> list[Column]:
    return [field(name.upper(), name, name=name == "id") for name in names]


@given(TEXTS)
def test_safe_is_one_line_without_a_control(text: str) -> None:
    told = safe(text)

    assert not UNSAFE.search(told)
    assert "\n" not in told
    assert safe(told) == told


@given(st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6))
def test_whatever_is_shown_is_safe(value: Any) -> None:
    assert not UNSAFE.search(plain(value))


@given(st.lists(st.fixed_dictionaries({"id": TEXTS, "name": TEXTS, "about": TEXTS}), min_size=1, max_size=3))
@example([{"id": "a", "name": "\x1b[2J\n=1+1", "about": "\u202e"}])
def test_a_table_has_a_line_for_each_row_and_no_more(rows: list[dict[str, str]]) -> None:
    asked = columns("id", "name", "about")
    lines = aligned([[cell(column, row, wide=False) for column in asked] for row in rows], asked, no_headers=False)

    assert len(lines) == len(rows) + 1
    assert not any(UNSAFE.search(line) for line in lines)


@given(st.lists(st.fixed_dictionaries({"id": TEXTS, "name": TEXTS}), min_size=1, max_size=3))
@example([{"id": "=1+1", "name": "x,=1+1"}])
@example([{"id": " =1+1", "name": "\uff1d1+1"}])
def test_csv_of_the_command_line_runs_nothing(rows: list[dict[str, str]]) -> None:
    read = list(csv.reader(io.StringIO(to_csv(rows, columns("id", "name"), no_headers=False))))

    assert len(read) == len(rows) + 1
    for line in read:
        assert len(line) == 2
        for each in line:
            assert not FORMULA.match(each), each
            assert not UNSAFE.search(each)


@given(st.lists(TEXTS, min_size=1, max_size=3))
@example(["=1+1", "\uff1d1+1", "\t=1", "\ufeff=1", "\u200b\u3164@x"])
def test_csv_of_the_api_runs_nothing(texts: list[str]) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\r\n").writerow([api_cell(each) for each in texts])
    read = list(csv.reader(io.StringIO(stream.getvalue(), newline="")))

    assert len(read) == 1
    assert len(read[0]) == len(texts)
    for each in read[0]:
        assert not FORMULA.match(each), each
        assert not CONTROL.search(each), each


@given(st.dictionaries(TEXTS, TEXTS, max_size=4))
def test_json_and_yaml_of_the_command_line_keep_values_and_show_no_control(document: dict[str, str]) -> None:
    for text in (to_json(document), to_json(document, None), to_yaml(document)):
        assert not UNSAFE.search(text.replace("\n", ""))
    assert json.loads(to_json(document)) == document
    assert "\n" not in to_json(document, None)
    assert yaml.safe_load(to_yaml(document)) == document


@given(TEXTS.filter(lambda text: not re.search("[\ud800-\udfff]", text)))
def test_json_of_the_api_is_one_line_with_the_value_in_it(text: str) -> None:
    raw = encode({"text": text})

    assert b"\n" not in raw
    assert not re.search(rb"[\x00-\x1f]", raw)
    assert msgspec.json.decode(raw) == {"text": text}


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "csv", "name", "jsonpath={.items[*].readings}"])
@pytest.mark.parametrize("what", ["cards", "nodes", "sources", "findings", "events", "changes", "devices", "partitions"])
def test_lists_of_a_hostile_node(muster: Any, what: str, form: str) -> None:
    said = muster("get", what, "-o", form)

    assert said.code == 0, said.err
    assert not UNSAFE.search(said.out.replace("\n", "").replace("\t", ""))
    if form == "csv":
        for line in csv.reader(io.StringIO(said.out)):
            assert not any(FORMULA.match(each) and not _number(each) for each in line), line


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
