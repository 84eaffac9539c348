# SPDX-License-Identifier: Apache-2.0
"""One thing of the roll by a name that a person gives; where there is none, what may be meant: a retired card by its last place, a thing of another kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muster.domain.model.errors import Ambiguous, MusterError, NotFound
from muster.interfaces.cli.cells import plain, safe
from muster.interfaces.cli.client import Client, segment
from muster.interfaces.cli.documents import ago
from muster.interfaces.cli.nouns import CARDS, NODES, SOURCES, Noun
from muster.interfaces.cli.output import note

RETIRED = 1000
"""Retired cards that are looked through."""
ALIKE = 20
"""Of those that had such a place on some node, how many have their history read."""


def one(client: Client, kind: Noun, name: str, at: str | None = None, *, quiet: bool = False) -> dict[str, Any]:
    """The document of that name. A retired card is found by the place that it had, and a line says so. Raises NotFound with what may be meant."""
    try:
        return document(client, kind, name, at)
    except NotFound:
        card = _was_there(client, name) if kind is CARDS and at is None else None
        if card is None:
            raise
        if not quiet:
            note(f"muster: no card is at {safe(name)} now; {plain(card['name'])} ({card['id']}) was, until it was retired {ago(card['presence_since'])} ago")
        return card


def document(client: Client, kind: Noun, name: str, at: str | None = None) -> dict[str, Any]:
    """The document of that name. Raises NotFound, saying so when something of another kind is called so."""
    try:
        found: dict[str, Any] = client.get(f"{kind.path}/{segment(name)}", at=at)
    except NotFound as wrong:
        raise NotFound(wrong.message, hint=_other_kind(client, kind, name) or wrong.hint) from wrong
    return found


def newest(client: Client, path: str, most: int, **query: Any) -> dict[str, Any]:
    """The newest entries of a history, in its order: what happened last stands last. ``next`` tells that there are older ones."""
    body = client.all(path, most, **{**query, "sort": "-number"})
    return {**body, "items": body["items"][::-1]}


def _other_kind(client: Client, kind: Noun, name: str) -> str:
    if kind is CARDS and _there(client, NODES, name):
        return f"that is a node: `muster describe node {name}` shows it with its cards"
    if kind is NODES and _there(client, CARDS, name):
        return f"that is a card: `muster describe card {name}`"
    if kind is SOURCES and "/" not in name:
        return "a source is named NODE/SOURCE; `muster get sources -o name` lists them"
    return ""


def _there(client: Client, kind: Noun, name: str) -> bool:
    try:
        client.get(f"{kind.path}/{segment(name)}")
    except MusterError:
        return False
    return True


def _was_there(client: Client, name: str) -> dict[str, Any] | None:
    """The retired card that stood at NODE/PLACE last. Raises Ambiguous when several did."""
    node, slash, place = name.partition("/")
    if not slash or not place:
        return None
    retired = client.all(CARDS.path, RETIRED, filter='presence == "retired"', sort="-presence_since")["items"]
    alike = [card for card in retired if place.lower() in _places(card)][:ALIKE]
    found = [card for card in alike if _last_node(client, card) == node.lower()]
    if len(found) > 1:
        told = ", ".join(f"{plain(card['name'])} ({card['id']})" for card in found)
        raise Ambiguous(f"no card is at {name} now, and {len(found)} that were are retired: {told}", hint="name one of them by its id")
    return found[0] if found else None


def _places(card: Mapping[str, Any]) -> set[str]:
    return {str(value).lower() for kind in ("pci_address", "chassis_slot", "index") for value in (card.get("ids") or {}).get(kind, ())}


def _last_node(client: Client, card: Mapping[str, Any]) -> str:
    """The name of the node on which the card was last, by its history."""
    return next(_nodes(newest(client, f"{CARDS.path}/{segment(card['id'])}/history", ALIKE)["items"][::-1]), "")


def _nodes(changes: list[Mapping[str, Any]]) -> Iterator[str]:
    for each in changes:
        node = (each.get("detail") or {}).get("node")
        if node:
            yield str((each.get("names") or {}).get(node, node)).lower()
