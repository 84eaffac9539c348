# SPDX-License-Identifier: Apache-2.0
"""The fleet as an export needs it: the parts of the API's documents that become series, read page by page and kept to one shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from muster.domain.model.errors import Unavailable
from muster.export.shards import Shard
from muster.spi.sinks import Ask

PAGE = 1000
"""Items asked for at once."""
T = TypeVar("T")


class Told(Struct, frozen=True):
    """A reading. ``value`` is unset where there is none, ``stale`` marks one that its source no longer stands by."""

    value: Any = msgspec.UNSET
    stale: bool = False
    observed_at: str = ""

    @property
    def fresh(self) -> bool:
        """True for a value that may be drawn."""
        return self.value is not msgspec.UNSET and self.value is not None and not self.stale


Readings = dict[str, Told]
Ids = dict[str, list[str]]


class Part(Struct, frozen=True):
    """A device or a partition."""

    id: str
    ordinal: int = 0
    ids: Ids = {}
    under: str | None = None
    readings: Readings = {}


class Sight(Struct, frozen=True):
    """One source's sighting of a card."""

    last_at: str = ""


class Card(Struct, frozen=True):
    """A card."""

    id: str
    name: str = ""
    vendor: str | None = None
    model: str | None = None
    presence: str = "unknown"
    rung: str = ""
    role: str = ""
    aside: bool = False
    node: str | None = None
    node_id: str | None = None
    slot: str | None = None
    address: str | None = None
    index: str | None = None
    ids: Ids = {}
    readings: Readings = {}
    devices: list[Part] = []
    partitions: list[Part] = []
    claims: list[Sight] = []


class Node(Struct, frozen=True):
    """An operating system that holds cards."""

    id: str
    name: str = ""
    machine_id: str | None = None
    last_at: str = ""
    readings: Readings = {}


class Source(Struct, frozen=True):
    """One source on one node."""

    id: str
    node: str = ""
    node_id: str = ""
    source: str = ""
    adapter: str | None = None
    state: str = ""
    last_at: str = ""


class _Page(Struct, frozen=True):
    items: list[msgspec.Raw]
    next: str | None = None
    at: str = ""


class _Summary(Struct, frozen=True):
    at: str = ""
    findings: dict[str, int] = {}


class Fleet(Struct, frozen=True):
    """One shard of the fleet at one moment. What is of the whole, ``findings`` (open ones by kind) and ``ready``, is None in every shard but the first."""

    at: float
    """The server's time of its answer, in seconds since the epoch."""
    cards: list[Card]
    nodes: list[Node]
    sources: list[Source]
    findings: dict[str, int] | None
    ready: bool | None = None


CARD_FIELDS = tuple(field for field in Card.__struct_fields__ if field not in ("id", "readings"))
"""What is asked of a card beside its readings."""
_LONGEST = 1900
"""Characters of a list of fields; where it would be longer, all readings are asked for."""


def read(ask: Ask, shard: Shard, keys: frozenset[str]) -> Fleet:
    """The shard as the server sees it now, with the readings of ``keys``. Raises an error of Muster's own tree."""
    found = _decoded(ask("/sources", {"limit": "1"}), _Page)
    cards = {card.id: card for card in _items(ask, "/cards", Card, {"fields": _fields(keys)}) if not card.aside and shard.has(card.id)}
    nodes = {node.id: node for node in _items(ask, "/nodes", Node, {}) if shard.has(node.id)}
    sources = {each.id: each for each in _items(ask, "/sources", Source, {}) if each.state != "removed" and shard.has(each.id)}
    findings = _decoded(ask("/summary", {"totals": ""}), _Summary).findings if shard.first else None
    at = seconds(found.at)
    if at is None:
        raise Unavailable("the server does not say what time it is", hint="is it a muster server?")
    ready = ask.ready() if shard.first else None
    return Fleet(at=at, cards=list(cards.values()), nodes=list(nodes.values()), sources=list(sources.values()), findings=findings, ready=ready)


def _fields(keys: frozenset[str]) -> str:
    told = ",".join((*CARD_FIELDS, *(f"readings.{key}" for key in sorted(keys))))
    return told if len(told) <= _LONGEST else ",".join((*CARD_FIELDS, "readings"))


def _items(ask: Ask, path: str, kind: type[T], query: Mapping[str, str]) -> Iterator[T]:
    """Items of a list: streamed where the server can, else page by page. One that moves between two pages may come twice."""
    lines = ask.listed(path, query)
    if lines is not None:
        yield from (_decoded(line, kind) for line in lines if line.strip())
        return
    after: Mapping[str, str] = {}
    while True:
        page = _decoded(ask(path, {"limit": str(PAGE), **query, **after}), _Page)
        yield from (_decoded(bytes(item), kind) for item in page.items)
        if not page.next:
            return
        after = {"cursor": page.next}


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Unavailable(f"the server answers with a document of another shape: {wrong}", hint="is it a muster server, and not an older one?") from wrong


def seconds(text: str) -> float | None:
    """Seconds since the epoch of a time as the API writes it; None for what is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None
