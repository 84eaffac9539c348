# SPDX-License-Identifier: Apache-2.0
"""Forms of output: what is escaped, what is left out, and what is never made up."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import sys
from collections.abc import Callable

import pytest
import yaml

from muster.domain.model.errors import InputError
from muster.interfaces.cli import output
from muster.interfaces.cli.cells import Missing, age, plain, quantity, rfc3339, safe, span
from muster.interfaces.cli.jsonpath import jsonpath
from muster.interfaces.cli.output import Column, aligned, fitted, render

COLUMNS = (
    Column(title="NAME", key="name", value=lambda row: row["name"], name=True),
    Column(title="USED", key="memory.used", value=lambda row: row.get("used"), show=lambda value: quantity(value, "bytes"), right=True),
    Column(title="SEEN", key="seen_at", value=lambda row: row.get("seen"), show=lambda value: age(value, 1_000_000.0), data=rfc3339),
    Column(title="NOTE", key="note", value=lambda row: row.get("note"), wide=True),
)
ROWS = [
    {"name": "zero", "used": 0, "seen": 999_820.0},
    {"name": "dark", "used": Missing("not_supported"), "seen": None},
    {"name": "\x1b[31m卡\u202e", "used": 1536, "note": "=1+1"},
]
Printed = Callable[..., str]


@pytest.mark.parametrize(("force", "no", "coloured"), [("", "", False), ("1", "", True), ("1", "1", False)])
def test_colours_are_forced_and_forbidden(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, force: str, no: str, coloured: bool) -> None:
    for name, value in (("FORCE_COLOR", force), ("NO_COLOR", no), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    column = Column(title="NAME", key="name", value=lambda row: row["name"], style=lambda _: "green")
    render([{"name": "x" * 200}], [column], "table", no_headers=False)
    out = capsys.readouterr().out

    assert ("\x1b[" in out) is coloured
    assert "x" * 200 in out


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    def call(form: str, **options: bool) -> str:
        render(ROWS, COLUMNS, form, no_headers=options.get("no_headers", False), document={"items": [{"name": row["name"]} for row in ROWS]})
        return capsys.readouterr().out

    return call


def test_a_table_shows_zero_as_zero_and_the_unknown_as_a_dash(printed: Printed) -> None:
    lines = printed("table").splitlines()

    assert [line.split() for line in lines[:3]] == [["NAME", "USED", "SEEN"], ["zero", "0", "B", "3m"], ["dark", "-", "-"]]


def test_wide_says_why(printed: Printed) -> None:
    assert "- (not supported)" in printed("wide")


def test_no_form_lets_control_characters_through(printed: Printed) -> None:
    for form in ("table", "wide", "json", "yaml", "csv", "name", "jsonpath={.items[*].name}"):
        told = printed(form)

        assert "\x1b" not in told, form
        assert "\u202e" not in told, form


def test_json_and_yaml_keep_the_values(printed: Printed) -> None:
    names = [row["name"] for row in ROWS]

    assert [each["name"] for each in json.loads(printed("json"))["items"]] == names
    assert [each["name"] for each in yaml.safe_load(printed("yaml"))["items"]] == names


def test_csv_has_plain_data_and_runs_no_formula(printed: Printed) -> None:
    rows = list(csv.DictReader(io.StringIO(printed("csv"))))

    assert rows[0] == {"name": "zero", "memory.used": "0", "seen_at": "1970-01-12T13:43:40Z", "note": ""}
    assert rows[1]["memory.used"] == ""
    assert rows[2]["note"] == "'=1+1"


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1", "\ufeff=1", "\u200b@x", "\u2060 \u3164+1", "\u034f\u2800-1"])
def test_every_beginning_of_a_formula_is_guarded(text: str) -> None:
    told = output.to_csv([{"name": text}], COLUMNS[:1], no_headers=True)

    assert told.startswith(("'", "\"'"))


def test_a_number_is_a_number_in_csv() -> None:
    assert output.to_csv([{"name": "x", "used": -3}], COLUMNS[:2], no_headers=True) == "x,-3\n"


def test_no_headers_and_columns_that_line_up(printed: Printed) -> None:
    lines = printed("table", no_headers=True).splitlines()

    assert len(lines) == 3
    assert lines[2].startswith("\\x1b[31m卡\\u202e  1.50 KiB")


def test_names_alone(printed: Printed) -> None:
    assert printed("name").splitlines()[:2] == ["zero", "dark"]


def test_an_unknown_form_is_told(printed: Printed) -> None:
    with pytest.raises(InputError, match="no output form 'xml'"):
        printed("xml")


def test_an_empty_table_talks_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    render([], COLUMNS, "table", no_headers=False, empty="no rows")

    assert capsys.readouterr() == ("", "no rows\n")


def test_an_empty_list_is_still_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    render([], COLUMNS, "json", no_headers=False)

    assert json.loads(capsys.readouterr().out) == {"items": []}


def on_terminal(code: str, **environment: str) -> str:
    """What a Python program prints on a terminal of 100 columns."""
    pid, handle = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "COLUMNS": "100", **environment})
        os.execv(sys.executable, [sys.executable, "-c", code])
    told = b""
    while True:
        try:
            part = os.read(handle, 4096)
        except OSError:
            break
        if not part:
            break
        told += part
    os.waitpid(pid, 0)
    return told.decode()


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_gets_colours_only_where_they_are_wanted(environment: dict[str, str], coloured: bool) -> None:
    code = (
        "from muster.interfaces.cli.output import *\n"
        "render([{'a': 'present'}], [Column(title='A', key='a', value=lambda r: r['a'], style=lambda v: 'green')], 'table', no_headers=False)"
    )
    told = on_terminal(code, **environment)

    assert "present" in told
    assert bool(re.search("\x1b\\[[0-9;]*32", told)) is coloured


def test_on_a_narrow_terminal_texts_give_way_and_numbers_never() -> None:
    columns = [Column(title="TEXT", key="a", value=lambda row: row["a"]), Column(title="N", key="b", value=lambda row: row["b"], right=True)]
    grid = [["x" * 60, "79.6 GiB"]]

    assert fitted(grid, columns, 100) == [60, 8]
    assert fitted(grid, columns, 40) == [28, 8]
    assert fitted(grid, columns, 10) == [18, 8]


def test_one_long_text_widens_only_its_own_line() -> None:
    columns = [Column(title="TEXT", key="a", value=lambda row: row["a"]), Column(title="B", key="b", value=lambda row: row["b"])]

    assert aligned([["x" * 20, "1"], ["y", "2"]], columns, no_headers=False, widest=10) == ["TEXT  B", "x" * 20 + "  1", "y     2"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "bytes", "0 B"),
        (85520809984, "bytes", "79.6 GiB"),
        (0.455, "ratio", "45.5 %"),
        (0, "ratio", "0 %"),
        (1410000000, "hertz", "1.41 GHz"),
        (61.2, "watt", "61.2 W"),
        (-5, "celsius", "-5 °C"),
        (True, "bool", "yes"),
        ([], "list", "none"),
        ({"a": 1}, "map", "a=1"),
    ],
)
def test_values_for_people(value: object, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0s"), (59, "59s"), (60, "1m"), (3600, "1h"), (7800, "2h10m"), (90000, "1d1h"), (864000, "10d"), (-5, "0s")]
)
def test_lengths_of_time(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_times_as_ages_and_as_data() -> None:
    assert age("1970-01-01T00:01:00Z", 180.0) == "2m"
    assert age("1970-01-01T00:05:00Z", 180.0) == "in 2m"
    assert age("soon\x1b", 180.0) == "soon\\x1b"
    assert rfc3339("1970-01-01T02:00:00+02:00") == "1970-01-01T00:00:00Z"
    assert rfc3339(0.25) == "1970-01-01T00:00:00.250Z"
    assert age(10**18, 0.0) == str(10**18)


def test_safe_shows_what_would_move_a_terminal() -> None:
    assert safe("a\x00\x1b]0;x\x07\x9b31m\u2066\n") == "a\\x00\\x1b]0;x\\x07\\x9b31m\\u2066\\n"
    assert plain({"\x1b": ["\x07"]}) == "\\x1b=\\x07"


BODY = {"items": [{"id": "a", "readings": {"memory.total": {"value": 1}}, "n": None}, {"id": "b", "readings": {}}], "at": "x"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.items[*].id}", "a b"),
        (".items[0].id", "a"),
        ("{.items[-1].id}", "b"),
        ("{.items[7].id}", ""),
        ("{.items[*].readings['memory.total'].value}", "1"),
        ('{.items[*].readings["memory.total"]}', '{"value": 1}'),
        ("{range .items[*]}{.id}{'\\t'}{end}{.at}", "a\tb\tx"),
        ("{$.items[0].n}", "null"),
        ("at={.at}!", "at=x!"),
        ("{.items[*]['id']}", "a b"),
        ("{range .nothing[*]}{.id}{end}", ""),
    ],
)
def test_jsonpath(template: str, text: str) -> None:
    assert jsonpath(template, BODY) == text


@pytest.mark.parametrize("template", ["{.items[?(@.id)]}", "{range .items[*]}{.id}", "{end}", "{.items", "{'a}", "{.items[x]}"])
def test_jsonpath_refuses_what_it_does_not_know(template: str) -> None:
    with pytest.raises(InputError, match="jsonpath"):
        jsonpath(template, BODY)
