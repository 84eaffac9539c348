# SPDX-License-Identifier: Apache-2.0
"""The operator's words: set, store, retire, same, not-same, source remove, ack. Each is one call that the server writes into its audit log."""

from __future__ import annotations

import getpass
import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from muster.domain.model.errors import Conflict, InputError, NotFound
from muster.interfaces.cli.calls import confirm, connect, server_options, yes_option
from muster.interfaces.cli.cells import age, plain, word
from muster.interfaces.cli.client import Client, segment
from muster.interfaces.cli.documents import now, seen
from muster.interfaces.cli.lookup import document
from muster.interfaces.cli.names import complete_card, complete_finding, complete_name, complete_noun, complete_source
from muster.interfaces.cli.nouns import CARDS, FINDINGS, NODES, SOURCES, noun
from muster.interfaces.cli.output import note, to_json, write

F = TypeVar("F", bound=Callable[..., Any])


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _act_options(command: F) -> F:
    """What all acts share."""
    for option in (
        click.option("--by", metavar="WHO", help="Who says it; left out: who signed in at the server, else the user of this session."),
        click.option("--dry-run", is_flag=True, help="Say what would be said and which cards it would change; change nothing."),
        click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the act."),
        click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the answer."),
    ):
        command = option(command)
    return server_options(command)


def _client(options: Mapping[str, Any]) -> Client:
    return connect(options["server"], options["timeout"], options["verbose"])


def _by(client: Client, options: Mapping[str, Any]) -> str:
    """Who says it: as told, else nobody where the server knows the user by a token, else the user of this session."""
    return options["by"] or ("" if client.address.token else _user())


def _say(client: Client, options: Mapping[str, Any], done: str, **act: Any) -> int:
    """Sends one act and tells what became of it, or would become."""
    told = {**act, "by": _by(client, options), "reason": options["reason"]}
    if options["dry_run"]:
        answer = client.post("/acts", {**told, "dry_run": True})
        return _rehearsed(told, [_named(client, each) for each in answer["cards"]], answer, options)
    answer = client.post("/acts", told)
    later = answer.get("takes_effect", "now")
    done = done if later == "now" else f"{done}; it takes effect {later}"
    return _tell(answer, options, f"{done}: {', '.join(answer['cards'])}" if answer.get("cards") else done)


def _rehearsed(told: Mapping[str, Any], changed: list[str], answer: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    """What an act would say, and what it would change."""
    if options["output"] == "json":
        write(to_json({**answer, "dry_run": True, "said": told}) + "\n")
        return 0
    later = answer.get("takes_effect", "now")
    none = "no card" if later == "now" else f"no card now; it would take effect {later}"
    note("muster: dry run, nothing is changed")
    note(f"  would be said: {plain({key: value for key, value in told.items() if value not in (None, '')})}")
    note(f"  would change: {', '.join(changed) or none}")
    return 0


def _named(client: Client, card: str) -> str:
    """A card's name with its id; the id alone of one that is not on the roll yet."""
    try:
        return f"{plain(_card(client, card)['name'])} ({card})"
    except NotFound:
        return card


def _tell(answer: Any, options: Mapping[str, Any], done: str) -> int:
    if options["output"] == "json":
        write(to_json(answer) + "\n")
    elif not options["quiet"]:
        note(f"muster: {plain(done)}")
    return 0


def _card(client: Client, name: str) -> Mapping[str, Any]:
    return document(client, CARDS, name)


def values(words: tuple[str, ...]) -> dict[str, Any]:
    """``key=value`` words as a mapping: JSON numbers and truth values are such, ``key=`` takes the word back, all else is text. Raises InputError."""
    found: dict[str, Any] = {}
    for each in words:
        key, sign, text = each.partition("=")
        if not sign or not key:
            raise InputError(f"{each!r} is not key=value", hint="for example asset.owner=team-a; key= takes an earlier word back")
        found[key] = _value(text)
    return found


def _value(text: str) -> Any:
    if text == "":
        return None
    try:
        told = json.loads(text)
    except ValueError:
        return text
    if isinstance(told, bool) or (isinstance(told, int | float) and str(told) == text):
        return told
    return told if isinstance(told, str) else text


@click.command(name="set")
@click.argument("what", metavar="card|node", shell_complete=complete_noun)
@click.argument("name", metavar="NAME", shell_complete=complete_name)
@click.argument("words", nargs=-1, required=True, metavar="KEY=VALUE...")
@_act_options
def set_(what: str, name: str, words: tuple[str, ...], **options: Any) -> int:
    """Say an owner, a rack or another word of yours on a card or node.

    KEY= without a value takes an earlier word back. Words of operators do not age, and win for asset keys.
    """
    kind, said = noun(what), values(words)
    if kind not in (CARDS, NODES):
        raise InputError(f"words are set on cards and nodes, not on {kind.names[0]}", hint="muster set card NAME KEY=VALUE, or muster set node NAME KEY=VALUE")
    subject = {"card": name} if kind is CARDS else {"node": name}
    return _say(_client(options), options, "set", what="set", values=said, **subject)


@click.command()
@click.argument("name", metavar="CARD", shell_complete=complete_card)
@click.option("--place", required=True, metavar="TEXT", help="Where it lies.")
@_act_options
def store(name: str, place: str, **options: Any) -> int:
    """Say that a card lies in a store, until it is seen again after it left."""
    return _say(_client(options), options, "stored", what="store", card=name, place=place)


@click.command()
@click.argument("name", metavar="CARD", shell_complete=complete_card)
@yes_option
@_act_options
def retire(name: str, yes: bool, **options: Any) -> int:
    """Say that a card is gone for good. It stays in history and is counted no more."""
    client = _client(options)
    card = _card(client, name)
    known = f"{plain(card['name'])} ({card['id']})"
    last = seen(card) if card["presence"] == "present" else None
    if last and not (options["quiet"] or options["dry_run"]):
        note(f"muster: warning: {known} is not gone: it was seen {age(last, now())} ago")
    confirm(f"Retire {known}?", yes or options["dry_run"])
    code = _say(client, options, "retired", what="retire", card=card["id"])
    _back(f"`muster store {card['id']} --place PLACE` says that it is only put away; it returns by itself once it was out of sight and is seen again", options)
    return code


@click.command()
@click.argument("one", metavar="CARD", shell_complete=complete_card)
@click.argument("other", metavar="OTHER", shell_complete=complete_card)
@yes_option
@_act_options
def same(one: str, other: str, yes: bool, **options: Any) -> int:
    """Say that two records are one card: the older one stays, with the history of both."""
    return _pair("same", one, other, yes, options)


@click.command(name="not-same")
@click.argument("one", metavar="CARD", shell_complete=complete_card)
@click.argument("other", metavar="OTHER", shell_complete=complete_card)
@yes_option
@_act_options
def not_same(one: str, other: str, yes: bool, **options: Any) -> int:
    """Say that two cards are not one, whatever their names say."""
    return _pair("not_same", one, other, yes, options)


def _pair(what: str, one: str, other: str, yes: bool, options: Mapping[str, Any]) -> int:
    client = _client(options)
    first, second = _card(client, one), _card(client, other)
    told = "one card" if what == "same" else "two cards"
    joined = first["id"] == second["id"]
    pair = f"{plain(first['name'])} ({plain(one) if joined else first['id']}) and {plain(second['name'])} ({plain(other) if joined else second['id']})"
    confirm(f"{pair} are {told}?", yes or options["dry_run"])
    names = (one, other) if joined else (first["id"], second["id"])
    code = _say(client, options, f"said to be {told}", what=what, card=names[0], other=names[1])
    _back(plain(f"`muster {'not-same' if what == 'same' else 'same'} {shlex.quote(one)} {shlex.quote(other)}`"), options)
    return code


def _back(how: str, options: Mapping[str, Any]) -> None:
    """Tells, once it is said, how to take it back."""
    if not (options["quiet"] or options["dry_run"]):
        note(f"  to take it back: {how}")


@click.group()
def source() -> None:
    """Sources of the roll; `muster get sources` lists them."""


@source.command()
@click.argument("name", metavar="NODE/SOURCE", shell_complete=complete_source)
@yes_option
@_act_options
def remove(name: str, yes: bool, **options: Any) -> int:
    """Remove a source for good: it is neither shown nor missed, and not listened to."""
    node, sign, what = name.partition("/")
    if not (sign and node and what):
        raise InputError(f"{name!r} is not NODE/SOURCE", hint="`muster get sources -o name` lists them")
    client = _client(options)
    if not options["dry_run"]:
        found = document(client, SOURCES, name)
        confirm(f"Remove {name}, which is {word(found['state'])} and sees {found['cards']} cards? It is not listened to any more, for good.", yes)
    return _say(client, options, f"removed {name}", what="remove_source", node=node, source=what)


@click.command()
@click.argument("finding", metavar="FINDING", shell_complete=complete_finding)
@_act_options
def ack(finding: str, **options: Any) -> int:
    """Acknowledge a finding: you have seen it. It stays open until it no longer holds."""
    client = _client(options)
    told = {"by": _by(client, options), "reason": options["reason"]}
    path = f"{FINDINGS.path}/{segment(finding)}"
    if options["dry_run"]:
        found = client.get(path)
        if found.get("closed_at"):
            raise Conflict(f"{finding} is closed", hint="`muster get findings` lists the open ones")
        return _rehearsed({"what": "acknowledge", "finding": finding, "about": found["about"], **told}, [], {"cards": []}, options)
    answer = client.post(f"{path}/acknowledge", told)
    return _tell(answer, options, f"acknowledged {finding}")
