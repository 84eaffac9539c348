# SPDX-License-Identifier: Apache-2.0
"""`muster audit`: few letters in a table, everything where it is asked for."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from muster.interfaces.cli.audit import _COLUMNS, BRIEF, brief, whole
from muster.interfaces.cli.output import render

DIGEST = "sha256:" + "ab" * 32
JOINED = {
    "target": "agent@rack12-node7",
    "result": "done",
    "token": "lqtoapmntu",
    "scope": {"reach": "node", "nodes": ["rack12-node7"], "cluster": ""},
    "capture": DIGEST,
    "expires_at": 1796074045.5,
    "generation": 1,
}
REFUSED = {"result": "denied", "why": "agent@n was revoked", "target": "agent@n", "count": 3}
TOKENS = {"tokens": [{"id": "tok-1", "name": "bob"}, {"id": "tok-2", "name": "eve"}]}


def printed(capsys: pytest.CaptureFixture[str], form: str) -> str:
    rows = [{"at": None, "by": "root", "what": "x", "detail": detail, "reason": "", "asked_by": ""} for detail in (JOINED, REFUSED, TOKENS, {})]
    render(rows, _COLUMNS, form, no_headers=False)
    return capsys.readouterr().out


def test_a_table_is_narrow_and_says_whom_and_why_first(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "table").splitlines()

    assert max(map(len, lines)) < 80
    assert "agent@rack12-node7, token=lqtoapmntu" in lines[1]
    assert "\u2026" in lines[1]
    assert "agent@n, denied, why=agent@n was revoked, count=3"[: BRIEF - 1] in lines[2]
    assert "id=tok-1, name=bob, id=tok-2, name=eve" in lines[3]
    assert lines[4].split() == ["-", "root", "x", "-", "-"]


def test_wide_json_and_csv_leave_nothing_out(capsys: pytest.CaptureFixture[str]) -> None:
    wide = printed(capsys, "wide")
    assert DIGEST in wide
    assert "result=done" in wide
    assert "expires_at=2026-11-30T21:27:25.500Z" in wide
    assert "\u2026" not in wide
    assert json.loads(printed(capsys, "json"))["items"][0]["detail"] == JOINED
    assert DIGEST in next(iter(csv.DictReader(io.StringIO(printed(capsys, "csv")))))["detail"]


@pytest.mark.parametrize(
    ("detail", "short"),
    [
        ({"finding": "f" * 40}, "finding=" + "f" * 25 + "\u2026"),
        ({"why": "a sentence with blanks is no id"}, "why=a sentence with blanks is no id"),
        ({"a\x1b": "\x1b[2J"}, "a\\x1b=\\x1b[2J"),
        ({"n": 0, "none": None, "empty": [], "yes": True}, "n=0, yes=yes"),
        ({"result": "done"}, "-"),
        ({}, "-"),
        ("word", "=word"),
    ],
)
def test_one_entry(detail: Any, short: str) -> None:
    assert brief(detail) == short
    assert len(brief({"x": "y " * 500, **({} if isinstance(detail, str) else detail)})) <= BRIEF
    assert "\u2026" not in whole(detail)
