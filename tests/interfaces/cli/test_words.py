# SPDX-License-Identifier: Apache-2.0
"""What a person types first, or mistypes: version, help, words that are near, and what happened lately."""

from __future__ import annotations

import json

import pytest

from muster.domain.model.errors import NotFound
from muster.interfaces.cli import get as listing
from muster.interfaces.cli import lookup
from muster.interfaces.cli.client import Address, Client
from muster.interfaces.cli.nouns import CARDS

from .conftest import Muster


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_the_version_by_an_option(alone: Muster, word: str) -> None:
    assert alone(word) == alone("version")
    assert alone(word).out.startswith("muster ")


def test_help_is_a_word(alone: Muster) -> None:
    assert "\n  help " in alone("help").out
    assert alone("help").out == alone("--help").out
    assert alone("help", "get").out == alone("get", "--help").out
    assert alone("help", "server", "backup").out == alone("server", "backup", "--help").out
    assert alone("help", "agent", "join").out == alone("agent", "join", "--help").out
    assert (alone("help", "gte").code, "Did you mean 'get'" in alone("help", "gte").err) == (2, True)
    assert (alone("help", "get", "cards").code, "muster get has no commands" in alone("help", "get", "cards").err) == (2, True)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("agnet",), "'agent'"),
        (("histroy",), "'history'"),
        (("server", "bakup"), "'backup'"),
        (("agent", "lst"), "'list'"),
        (("notsame",), "'not-same'"),
    ],
)
def test_a_mistyped_command(alone: Muster, words: tuple[str, ...], meant: str) -> None:
    told = alone(*words)
    assert told.code == 2
    assert f"No such command {words[-1]!r}. Did you mean {meant}" in told.err


def test_a_command_that_is_like_none(alone: Muster) -> None:
    assert "Error: No such command 'zzzz'.\n" in alone("zzzz").err


def test_an_option_of_the_commands_goes_after_them(alone: Muster) -> None:
    told = alone("--server", "http://127.0.0.1:9", "get", "cards")
    assert (told.code, "It goes after the command: muster COMMAND --server ..." in told.err) == (2, True)
    assert "goes after" not in alone("--colour").err


def numbers(muster: Muster, *words: str) -> list[int]:
    return [int(each) for each in muster(*words, "-o", "name").out.split()]


def test_changes_are_the_newest_and_the_last_stands_last(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert muster("store", "XQ47-2", "--place", "shelf 3", "-q").code == 0
    every = numbers(muster, "get", "changes")
    assert every == sorted(every)
    assert len(every) >= 3
    assert numbers(muster, "get", "changes", "--limit", "2") == every[-2:]
    assert numbers(muster, "get", "changes", "--all", "--limit", "2") == every[-2:]
    monkeypatch.setattr(listing, "CHANGES_ROWS", 1)
    told = muster("get", "changes")
    assert (told.out.splitlines()[1].split()[-1], len(told.out.splitlines())) == (str(every[-1]), 2)
    assert told.err == "muster: the newest 1 changes; --limit N shows more, --all and -o csv all of them\n"
    assert muster("get", "changes", "-q").err == ""
    assert len(muster("get", "changes", "--all").out.splitlines()) == len(every) + 1
    assert [each["number"] for each in json.loads(muster("get", "changes", "-o", "json").out)["items"]] == every


def test_a_history_is_bounded_at_its_old_end(muster: Muster) -> None:
    assert muster("retire", "XQ47-2", "-y", "-q").code == 0
    every = numbers(muster, "history", "card", "XQ47-2")
    assert len(every) >= 2
    assert numbers(muster, "history", "card", "XQ47-2", "--limit", "1") == every[-1:]


def test_nodes_stand_in_the_order_of_their_names(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def all_(*_: object, **query: object) -> dict[str, object]:
        asked.append(query.get("sort"))
        return {"items": [], "next": None}

    monkeypatch.setattr(Client, "all", all_)
    muster("get", "nodes")
    muster("get", "nodes", "--sort-by", "-cards")
    muster("get", "cards")
    assert asked == ["name", "-cards", None]


class Shelf(Client):
    """A server with two retired cards that were at one place, one after the other."""

    def get(self, path: str, **query: object) -> object:
        """Knows no card by its place."""
        del query
        raise NotFound(f"nothing at {path}", hint="")

    def all(self, path: str, limit: int | None = None, **query: object) -> dict[str, object]:
        """The retired cards, and the history of each."""
        del limit, query
        if path.endswith("/history"):
            return {"items": [{"detail": {"by": "ann"}}, {"detail": {"node": "n-1"}, "names": {"n-1": "alpha"}}], "next": None}
        cards = [{"id": f"c-{each}", "name": f"retired {each}", "ids": {"chassis_slot": ["PCIe 4"]}, "presence_since": "x"} for each in (1, 2)]
        return {"items": cards, "next": None}


def test_two_that_were_there_are_not_guessed_between() -> None:
    client = Shelf(Address("http://127.0.0.1:9"))
    with pytest.raises(Exception, match=r"2 that were are retired: retired 1 \(c-1\), retired 2 \(c-2\)"):
        lookup.one(client, CARDS, "Alpha/pcie 4")
    for name in ("beta/PCIe 4", "alpha/PCIe 5", "alpha"):
        with pytest.raises(NotFound):
            lookup.one(client, CARDS, name)
    with pytest.raises(NotFound):
        lookup.one(client, CARDS, "alpha/PCIe 4", "2026-01-01T00:00:00Z")
