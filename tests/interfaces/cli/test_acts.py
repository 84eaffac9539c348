# SPDX-License-Identifier: Apache-2.0
"""The operator's words through the command line, and what the roll says afterwards."""

from __future__ import annotations

import json
import re
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


@pytest.mark.parametrize(
    "words", [("retire", "XQ47-2"), ("same", "XQ47-1", "XQ47-2"), ("not-same", "XQ47-1", "XQ47-2"), ("source", "remove", "alpha/other.smi")]
)
def test_where_nobody_can_be_asked_nothing_is_done(muster: Muster, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    before = muster("audit", "-o", "json").out
    for stdin in (sys.stdin, None):
        monkeypatch.setattr(sys, "stdin", stdin)
        told = muster(*words)
        assert (told.code, told.out) == (5, "")
        assert "nothing was changed, for there is nobody to ask: " in told.err
        assert told.err.endswith("\n  -y says yes\n")
    assert json.loads(muster("audit", "-o", "json").out)["items"] == json.loads(before)["items"]


def test_who_acts_is_told_how_to_take_it_back(muster: Muster) -> None:
    assert "to take it back" not in muster("not-same", "XQ47-1", "XQ47-2", "--dry-run").err
    assert "to take it back: `muster same XQ47-1 XQ47-2`" in muster("not-same", "XQ47-1", "XQ47-2", "-y").err
    assert muster("not-same", "XQ47-1", "XQ47-2", "-y", "-q").err == ""


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
    place = "alpha/0000:22:00.0"
    retired = muster("retire", "XQ47-2", "-o", "json", "-y")
    told = json.loads(retired.out)
    assert f"to take it back: `muster store {told['cards'][0]} --place PLACE`" in retired.err
    assert len(told["cards"]) == 1
    assert len(muster("get", "cards", "-o", "name").out.split()) == 1
    assert len(muster("get", "cards", "--all", "-o", "name").out.split()) == 2
    for words in (("history", "card", place), ("describe", "card", place), ("get", "card", place)):
        found = muster(*words)
        assert found.code == 0, found.err
        assert f"muster: no card is at {place} now; retired · XQ47-2 · " in found.err
        assert f"({told['cards'][0]}) was, until it was retired " in found.err
    assert "retired" in muster("history", "card", place, "-q").out
    assert muster("history", "card", place, "-q").err == ""
    assert muster("retire", place, "-y").code == 3, "an act names it by its id"
    assert muster("describe", "card", "alpha/9").code == 3
    assert muster("describe", "card", "beta/0000:22:00.0").code == 3, "it never was on that node"


def test_a_card_that_is_there_is_not_retired_without_a_word(muster: Muster) -> None:
    told = muster("retire", "XQ47-1")
    assert re.search(r"muster: warning: alpha · .* is not gone: it was seen \d+s ago\n", told.err)
    assert "warning" not in muster("retire", "XQ47-1", "-q").err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("describe", "card", "alpha"), "no card alpha", "that is a node: `muster describe node alpha` shows it with its cards"),
        (("describe", "node", "XQ47-1"), "no node 'XQ47-1'", "that is a card: `muster describe card XQ47-1`"),
        (("describe", "source", "redfish"), "no source 'redfish'", "a source is named NODE/SOURCE; `muster get sources -o name` lists them"),
        (("get", "card", "nobody"), "no card nobody", "`muster get cards` lists the cards there are"),
        (("get", "crads"), "nothing is called 'crads'. Did you mean 'cards' or 'card'?", "one of cards, "),
        (("set", "card", "XQ47-1", "owner=me"), "no attribute 'owner'", "near it: asset.owner"),
        (("set", "card", "XQ47-1", "temprature.core=3"), "no attribute 'temprature.core'", "near it: temperature.core"),
        (("set", "card", "XQ47-1", "zz=1"), "no attribute 'zz'", "words of yours are asset.site, asset.rack, "),
        (
            ("set", "card", "XQ47-1", "memory.total=abc"),
            'memory.total=abc: a number in bytes from 1024 to 4.39805e+12 is wanted, or one with its unit like "80 GiB"',
            "Device memory",
        ),
        (("set", "card", "XQ47-1", "asset.warranty_until=soon"), "asset.warranty_until=soon: no date", "write YYYY-MM-DD"),
        (("get", "nodes", "--sort-by", "nmae"), "sort: no field 'nmae'; near it: name", "an order is like: -temperature.core,name"),
        (("get", "cards", "-l", "presence=presnt"), "filter: presence is never 'presnt'; near it: present", "its words are present, "),
    ],
)
def test_what_there_is_not_is_told_with_what_may_be_meant(muster: Muster, words: tuple[str, ...], message: str, hint: str) -> None:
    told = muster(*words)
    assert told.code in (2, 3)
    lines = told.err.splitlines()
    assert lines[0].startswith(f"muster: {message}")
    assert lines[1].startswith(f"  {hint}")


def test_a_source_is_removed(muster: Muster) -> None:
    assert "alpha/other.smi, which is failed and sees 0 cards?" in muster("source", "remove", "alpha/other.smi").err
    assert muster("source", "remove", "alpha/nothing", "-y").code == 3
    assert muster("source", "remove", "alpha/other.smi", "-y").code == 0
    assert muster("get", "findings", "-o", "name").out == ""
