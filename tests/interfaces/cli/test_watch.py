# SPDX-License-Identifier: Apache-2.0
"""`muster get --watch` and `-l`: what is printed again, what is not, and how a label becomes a filter."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muster.domain.model.errors import InputError, Unavailable
from muster.interfaces.cli import client, stream, watch
from muster.interfaces.cli.labels import narrowed
from muster.interfaces.cli.nouns import CARDS, FINDINGS, NODES

from .conftest import Muster

Page = dict[str, Any]


def page(*rows: tuple[str, str, int]) -> Page:
    """A page of cards: id, presence, and the second at which each was seen."""
    items = [
        {"id": id_, "name": f"n · {id_}", "presence": presence, "readings": {}, "claims": [{"last_at": f"2026-09-21T14:13:{second:02}Z"}]}
        for id_, presence, second in rows
    ]
    return {"items": items, "next": None, "total": len(items), "at": "2026-09-21T14:14:00Z"}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes the server tell these pages, one a look, until a person interrupts."""

    def tell(*pages: Page | Unavailable) -> None:
        left: Iterator[Page | Unavailable] = iter(pages)

        def one(*_: Any, **__: Any) -> Page:
            found = next(left, None)
            if found is None:
                raise KeyboardInterrupt
            if isinstance(found, Unavailable):
                raise found
            return found

        monkeypatch.setattr(client.Client, "all", one)
        monkeypatch.setattr(stream.News, "begin", lambda _: None)
        monkeypatch.setattr(stream.News, "within", lambda _, __: [])

    return tell


def test_rows_that_change_are_printed_again(muster: Muster, told: Callable[..., None]) -> None:
    told(page(("a", "present", 0), ("b", "present", 0)), page(("a", "present", 5), ("b", "missing", 0)), page(("a", "present", 9), ("c", "present", 9)))
    said = muster("get", "cards", "-w")
    lines = said.out.splitlines()

    assert said.code == 130
    assert [line.split()[2:4] for line in lines[1:]] == [["a", "present"], ["b", "present"], ["b", "missing"], ["c", "present"]]
    assert lines[0].startswith("CARD")
    assert "60s" not in lines[0]
    assert "1m" in lines[1]
    assert said.err.strip() == "muster: no longer listed: b"


def test_watch_only_leaves_out_what_there_is(muster: Muster, told: Callable[..., None]) -> None:
    told(page(("a", "present", 0)), page(("a", "missing", 0)), page(("a", "missing", 3)))

    assert muster("get", "cards", "--watch-only", "--no-headers", "-o", "name").out == "a\n"
    told(page(("a", "present", 0)), page(("a", "missing", 0)))
    assert json.loads(muster("get", "cards", "--watch-only", "-o", "json").out)["presence"] == "missing"
    told(page(("a", "present", 0)), page(("a", "missing", 0)))
    assert [line.split(",")[:2] for line in muster("get", "cards", "-w", "-o", "csv").out.splitlines()] == [
        ["name", "presence"],
        ["n · a", "present"],
        ["n · a", "missing"],
    ]


def test_a_server_that_is_away_is_told_once_and_asked_again(muster: Muster, told: Callable[..., None]) -> None:
    away = Unavailable("the server is away")
    told(page(("a", "present", 0)), away, away, page(("a", "missing", 0)))
    said = muster("get", "cards", "-w", "--no-headers")

    assert said.err.splitlines() == ["muster: the server is away; it is asked again"]
    assert [line.split()[3] for line in said.out.splitlines()] == ["present", "missing"]


def test_a_terminal_is_drawn_anew(muster: Muster, told: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    told(page(("a", "present", 0)), Unavailable("the server is away"), page(("a", "missing", 0)))
    monkeypatch.setattr(watch.Watch, "follow", None)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    screens = muster("get", "cards", "-w").out.split("\x1b[H")[1:]

    assert [("present" in each, "away" in each, "missing" in each) for each in screens] == [(True, False, False), (True, True, False), (False, False, True)]


@pytest.mark.parametrize("words", [("-o", "yaml"), ("--at", "1h")])
def test_what_cannot_be_watched(muster: Muster, words: tuple[str, ...]) -> None:
    assert muster("get", "cards", "-w", *words).code == 2


@pytest.mark.parametrize(
    ("label", "filter_"),
    [
        ("presence=missing", 'presence == "missing"'),
        ("node==a,model=Acme X1, Y", 'node == "a" && model == "Acme X1, Y"'),
        ("readings.memory.total=64Gi", "memory.total == 64Gi"),
        ("aside=true", "aside == true"),
        ("findings=card_missing", '"card_missing" in findings'),
        ('asset.owner="q"', 'asset.owner == "\\"q\\""'),
    ],
)
def test_labels(label: str, filter_: str) -> None:
    assert narrowed(CARDS, None, [label]) == filter_
    assert narrowed(CARDS, "x || y", [label]) == f"(x || y) && {filter_}"


def test_labels_of_other_lists_and_none() -> None:
    assert narrowed(NODES, None, ["cards=3"]) == "cards == 3"
    assert narrowed(FINDINGS, None, ["cards=c-1", "kind=x"]) == '"c-1" in cards && kind == "x"'
    assert narrowed(CARDS, None, []) is None
    assert narrowed(CARDS, "x", []) == "x"
    for wrong in ("presence", "=x", "memory.total=much", "aside=maybe", "a..b=1"):
        with pytest.raises(InputError):
            narrowed(CARDS, None, [wrong])


def test_labels_choose(muster: Muster) -> None:
    assert len(muster("get", "cards", "-l", "serial=XQ47-1", "-l", "presence=present", "-o", "name").out.split()) == 1
    assert muster("get", "cards", "-l", "presence=missing", "-o", "name").out == ""
    assert muster("get", "changes", "-l", "kind=installed").code == 2
    assert muster("get", "cards", "-l", "colour=red").code == 2
