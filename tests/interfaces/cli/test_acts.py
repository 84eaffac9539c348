# SPDX-License-Identifier: Apache-2.0
"""The operator's words through the command line, and what the roll says afterwards."""

from __future__ import annotations

import json
import sys

import click
import pytest

from muster.domain.model.errors import InputError
from muster.interfaces.cli import acts

from .conftest import Muster


def test_words_as_values() -> None:
    assert acts.values(("a=1", "b=0.5", "c=true", "d=", "e=team-a", 'f="1"', "g=007", "h=x=y", "i=[1]")) == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": None,
        "e": "team-a",
        "f": "1",
        "g": "007",
        "h": "x=y",
        "i": "[1]",
    }
    with pytest.raises(InputError, match="is not key=value"):
        acts.values(("owner",))


def test_set_and_take_back(muster: Muster) -> None:
    owner = "jsonpath={.readings['asset.owner'].value}"
    assert muster("set", "card", "XQ47-1", "asset.owner=team-a", "--reason", "bought", "--by", "ann").code == 0
    assert muster("get", "card", "XQ47-1", "-o", owner).out == "team-a\n"
    assert muster("set", "node", "alpha", "asset.rack=r7").code == 0
    assert muster("set", "card", "XQ47-1", "asset.owner=").code == 0
    assert muster("get", "card", "XQ47-1", "-o", owner).out == "\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("set", "card", "XQ47-1", "colour=red"), 2),
        (("set", "source", "x", "asset.owner=a"), 2),
        (("set", "card", "nobody", "asset.owner=a"), 3),
        (("store", "XQ47-2"), 2),
        (("retire", "nobody", "-y"), 3),
        (("same", "XQ47-1", "nobody", "-y"), 3),
        (("source", "remove", "alpha"), 2),
        (("ack", "nothing"), 3),
    ],
)
def test_what_cannot_be_done_is_said(muster: Muster, words: tuple[str, ...], code: int) -> None:
    told = muster(*words)

    assert told.code == code
    assert told.err.strip()
    assert "Traceback" not in told.err


@pytest.mark.parametrize(
    ("words", "what", "changed"),
    [
        (("set", "card", "XQ47-1", "asset.owner=team-b"), "set", "alpha · "),
        (("store", "XQ47-2", "--place", "shelf 9"), "store", "alpha · "),
        (("retire", "XQ47-2"), "retire", "alpha · "),
        (("not-same", "XQ47-1", "XQ47-2"), "not_same", "no card now; it would take effect from the next listing on"),
        (("source", "remove", "alpha/other.smi"), "remove_source", "no card"),
    ],
)
def test_a_dry_run_says_what_would_be_said(muster: Muster, words: tuple[str, ...], what: str, changed: str) -> None:
    before = muster("get", "cards", "--all", "-o", "jsonpath={.items[*].presence}").out, muster("get", "changes", "-o", "name").out
    said = muster(*words, "--dry-run", "--by", "ann")

    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("muster: dry run, nothing is changed\n  would be said: what=" + what)
    assert "by=ann" in said.err
    assert changed in said.err.split("would change: ")[1]
    assert json.loads(muster(*words, "--dry-run", "-o", "json").out)["said"]["what"] == what
    assert (muster("get", "cards", "--all", "-o", "jsonpath={.items[*].presence}").out, muster("get", "changes", "-o", "name").out) == before


def test_a_dry_run_of_an_acknowledgement(muster: Muster) -> None:
    (finding,) = muster("get", "findings", "-o", "name").out.split()

    assert "what=acknowledge" in muster("ack", finding, "--dry-run").err
    assert "acknowledged" not in muster("get", "findings").out
    assert muster("ack", "nothing", "--dry-run").code == 3


def test_ack(muster: Muster) -> None:
    (finding,) = muster("get", "findings", "-o", "name").out.split()
    assert muster("ack", finding, "--reason", "known", "--by", "ann").code == 0
    assert "acknowledged" in muster("get", "findings").out


def test_a_no_at_the_terminal_changes_nothing(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", _Terminal())
    monkeypatch.setattr(click, "confirm", lambda *_, **__: False)

    assert muster("retire", "XQ47-2").code == 5
    assert muster("get", "card", "XQ47-2", "-o", "jsonpath={.presence}").out == "present\n"


def test_a_script_is_not_asked_and_told_how_to_take_it_back(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    told = muster("same", "XQ47-1", "XQ47-2", "--dry-run")
    assert "nobody was asked" not in told.err
    told = muster("not-same", "XQ47-1", "XQ47-2")
    assert "nobody was asked, as there is no terminal" in told.err
    assert "to take it back: `muster same XQ47-1 XQ47-2`" in told.err
    assert "nobody" not in muster("not-same", "XQ47-1", "XQ47-2", "-y").err
    assert muster("not-same", "XQ47-1", "XQ47-2", "-q").err == ""
    monkeypatch.setattr(sys, "stdin", None)
    assert "nobody was asked" in muster("not-same", "XQ47-1", "XQ47-2").err


class _Terminal:
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        """Nothing is kept."""


def test_not_same_then_store_then_retire(muster: Muster) -> None:
    assert muster("not-same", "XQ47-1", "XQ47-2", "-y").code == 0
    assert muster("store", "XQ47-2", "--place", "shelf 3", "-q").err == ""
    assert json.loads(muster("get", "card", "XQ47-2", "-o", "json").out)["place"] == "shelf 3"
    retired = muster("retire", "XQ47-2", "-o", "json")
    told = json.loads(retired.out)
    assert "is said to be retired" in retired.err
    assert f"to take it back: `muster store {told['cards'][0]} --place PLACE`" in retired.err
    assert len(told["cards"]) == 1
    assert len(muster("get", "cards", "-o", "name").out.split()) == 1
    assert len(muster("get", "cards", "--all", "-o", "name").out.split()) == 2


def test_a_source_is_removed(muster: Muster) -> None:
    assert muster("source", "remove", "alpha/other.smi").code == 0
    assert muster("get", "findings", "-o", "name").out == ""
