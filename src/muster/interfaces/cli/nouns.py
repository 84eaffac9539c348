# SPDX-License-Identifier: Apache-2.0
"""What `muster get` can list: the names of each noun, where the API has it, and its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.domain.model.errors import InputError
from muster.domain.model.filters import Shape
from muster.interfaces.cli.cells import quantity, rfc3339, span, word
from muster.interfaces.cli.documents import ago, at_path, card_place, field, identity, measured, on_card, seen, when
from muster.interfaces.cli.lazy import near
from muster.interfaces.cli.output import Column, Row

_STYLES = {
    "present": "green",
    "failed": "bold red",
    "hung": "bold red",
    "silent": "yellow",
    "healthy": "green",
    "ok": "green",
    "devices": "green",
    "unknown": "yellow",
    "warning": "yellow",
    "partial": "yellow",
    "missing": "bold red",
    "critical": "bold red",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """One list of the API. ``names`` are plural, singular and short forms; ``empty`` is told when it has no row."""

    path: str
    names: tuple[str, ...]
    about: str
    columns: tuple[Column, ...]
    empty: str
    timed: bool = True
    """The list can be asked for as it was at a time."""
    page_timed: bool = False
    """One of them can."""
    paged: bool = True
    """One of them can be asked for by name."""
    filtered: bool = True
    """The list knows filter, order and choice of fields."""
    shapes: tuple[tuple[str, Shape], ...] = ()
    """Fields that hold something else than text."""
    more: tuple[tuple[str, str], ...] = ()
    """What `--all` adds to the question."""
    order: str = ""
    """The order in which people look for them, where it is not the API's own."""
    told_by: str = ""
    """Which entries of the server's stream say all that can happen to it; empty where some things only show when asked for."""


def _style(value: Any) -> str:
    return _STYLES.get(str(value), "")


def _state(title: str, path: str) -> Column:
    return Column(title=title, key=path, value=lambda row: at_path(row, path), show=lambda value: word(str(value)), style=_style)


_SEEN = Column(title="SEEN", key="seen_at", value=seen, show=ago, data=rfc3339, needs=("claims",), passes=True)
_ID = field("ID", "id", name=True)

CARDS = Noun(
    path="/cards",
    names=("cards", "card", "c"),
    about="cards: what each is, where it is, and what it does now",
    empty="no cards",
    page_timed=True,
    more=(("retired", "true"), ("role", "any")),
    shapes=(("aside", Shape.BOOL), ("conflicts", Shape.LIST), ("seen_by", Shape.LIST), ("findings", Shape.LIST)),
    columns=(
        field("CARD", "name"),
        _state("PRESENCE", "presence"),
        on_card("MEMORY", "memory.total", "bytes"),
        on_card("USED", "memory.used", "bytes"),
        on_card("BUSY", "utilization.core", "ratio"),
        on_card("TEMP", "temperature.core", "celsius"),
        on_card("POWER", "power.draw", "watt"),
        measured("HEALTH", "health.reported", "text"),
        _SEEN,
        _ID,
        field("VENDOR", "vendor", wide=True),
        field("MODEL", "model", wide=True),
        field("NODE", "node", wide=True),
        Column(title="PLACE", key="place", value=card_place, wide=True, needs=("slot", "address", "index")),
        field("RUNG", "rung", wide=True),
        identity("SERIAL", "serial"),
        identity("UUID", "vendor_uuid"),
        identity("ADDRESS", "pci_address"),
        measured("DRIVER", "driver.version", "text", wide=True),
        measured("FIRMWARE", "firmware.version", "text", wide=True),
        measured("OWNER", "asset.owner", "text", wide=True),
        Column(title="SEEN BY", key="seen_by", value=lambda row: row.get("seen_by") or None, wide=True),
        Column(title="FINDINGS", key="findings", value=lambda row: len(row.get("findings") or ()), right=True, wide=True),
    ),
)

_PART = (
    field("NAME", "name"),
    _state("PRESENCE", "presence"),
    measured("MEMORY", "memory.total", "bytes"),
    measured("USED", "memory.used", "bytes"),
    measured("BUSY", "utilization.core", "ratio"),
)

DEVICES = Noun(
    path="/devices",
    names=("devices", "device", "d"),
    about="devices: the processors that runtimes enumerate",
    empty="no devices",
    page_timed=True,
    shapes=(("ordinal", Shape.NUMBER),),
    columns=(
        *_PART,
        measured("TEMP", "temperature.core", "celsius"),
        _ID,
        field("CARD", "card", wide=True),
        identity("UUID", "vendor_uuid"),
        identity("ADDRESS", "pci_address"),
        measured("HEALTH", "health.reported", "text", wide=True),
    ),
)

PARTITIONS = Noun(
    path="/partitions",
    names=("partitions", "partition", "p"),
    about="partitions: isolated slices of devices",
    empty="no partitions",
    page_timed=True,
    shapes=(("ordinal", Shape.NUMBER),),
    columns=(
        *_PART,
        measured("PROFILE", "partition.profile", "text"),
        _ID,
        field("CARD", "card", wide=True),
        field("UNDER", "under", wide=True),
        identity("UUID", "vendor_uuid"),
        measured("SHARE", "partition.compute.share", "ratio", wide=True),
    ),
)


def _bytes(value: float) -> str:
    return quantity(value, "bytes")


def _seconds(value: float) -> str:
    return f"{value:.3g}s"


def _either_way(seconds: float) -> str:
    """A length of time that may be below zero: a clock that is ahead."""
    return f"-{span(-seconds)}" if seconds <= -1 else span(seconds)


def _agents(row: Mapping[str, Any], key: str) -> str | None:
    """What the reporters of a node tell, each once."""
    return ", ".join(sorted({str(each[key]) for each in row.get("agents") or () if each.get(key)})) or None


def _worst(row: Mapping[str, Any], key: str) -> float | None:
    """The number that is furthest from zero, of a node's reporters."""
    return max((each[key] for each in row.get("agents") or () if each.get(key) is not None), key=abs, default=None)


def _spool(row: Mapping[str, Any], key: str) -> float | None:
    """The most that waits at a reporter of a node."""
    return max((each["spool"][key] for each in row.get("agents") or () if each.get("spool")), default=None)


NODES = Noun(
    path="/nodes",
    names=("nodes", "node", "n"),
    about="nodes: the operating systems that hold cards",
    empty="no nodes",
    order="name",
    page_timed=True,
    shapes=(("cards", Shape.NUMBER),),
    columns=(
        field("NODE", "name", name=True),
        Column(title="CARDS", key="cards", value=lambda row: sum(row["cards"].values()) if row.get("cards") else 0, right=True),
        Column(title="PRESENT", key="cards.present", value=lambda row: (row.get("cards") or {}).get("present", 0), right=True, needs=("cards",)),
        when("SEEN", "last_at"),
        Column(title="AGENT", key="agents.version", value=lambda row: _agents(row, "version"), needs=("agents",)),
        Column(title="SKEW", key="agents.skew", value=lambda row: _worst(row, "skew"), show=_either_way, right=True, needs=("agents",)),
        Column(title="SPOOL", key="agents.spool", value=lambda row: _spool(row, "bytes"), show=_bytes, right=True, needs=("agents",)),
        Column(title="LAG", key="agents.lag", value=lambda row: _spool(row, "oldest"), show=span, right=True, needs=("agents",)),
        field("ID", "id"),
        Column(title="INCARNATION", key="agents.incarnation", value=lambda row: _agents(row, "incarnation"), wide=True, needs=("agents",)),
        field("MACHINE", "machine_id", wide=True),
        field("SYSTEM", "system", wide=True),
        measured("KERNEL", "node.kernel", "text", wide=True),
        measured("OS", "node.os", "text", wide=True),
    ),
)


SOURCES = Noun(
    path="/sources",
    names=("sources", "source", "s"),
    about="sources: each way of seeing on each node, and whether it keeps its promise",
    empty="no sources: no agent has reported yet",
    timed=False,
    shapes=(("cadence", Shape.NUMBER), ("promise", Shape.NUMBER), ("cards", Shape.NUMBER), ("age", Shape.NUMBER)),
    columns=(
        Column(title="SOURCE", key="source", value=lambda row: f"{row.get('node')}/{row.get('source')}", needs=("node", "source"), name=True),
        _state("STATE", "state"),
        _state("OUTCOME", "outcome"),
        field("CARDS", "cards", right=True),
        when("LAST", "last_at"),
        Column(title="CADENCE", key="cadence", value=lambda row: row.get("cadence"), show=span, right=True),
        Column(title="COST", key="cost", value=lambda row: row.get("cost"), show=_seconds, right=True),
        Column(title="PROMISE", key="promise", value=lambda row: row.get("promise"), show=span, right=True, wide=True),
        field("WORKER", "worker"),
        field("DETAIL", "detail"),
        field("CHANNEL", "channel", wide=True),
        field("WITNESS", "witness", wide=True),
        field("REPORTER", "reporter", wide=True),
        when("LISTED", "listed_at", wide=True),
    ),
)

ADAPTERS = Noun(
    path="/adapters",
    names=("adapters", "adapter", "a"),
    about="adapters the server knows",
    empty="no adapters",
    timed=False,
    shapes=(("owners", Shape.LIST), ("pci_vendors", Shape.LIST), ("later", Shape.LIST), ("cards", Shape.NUMBER)),
    columns=(
        field("NAME", "id", name=True),
        field("TITLE", "title"),
        field("TIER", "tier"),
        field("CARDS", "cards", right=True),
        Column(title="SOURCES", key="sources", value=lambda row: [each["id"] for each in row.get("sources") or ()] or None),
        Column(title="FORMATS", key="formats", value=lambda row: sorted(row.get("formats") or ()) or None, wide=True),
        Column(title="NOT YET", key="later", value=lambda row: row.get("later") or None, wide=True),
        Column(title="OWNERS", key="owners", value=lambda row: row.get("owners") or None, wide=True),
    ),
)


def _finding_state(row: Row) -> str:
    if row.get("closed_at"):
        return "closed"
    return "acknowledged" if row.get("acknowledged_at") else "open"


FINDINGS = Noun(
    path="/findings",
    names=("findings", "finding", "f"),
    about="findings: what a person should know",
    empty="no findings: nothing needs you",
    told_by="finding",
    more=(("closed", "true"),),
    shapes=(("cards", Shape.LIST),),
    columns=(
        field("ID", "id", name=True),
        Column(title="KIND", key="kind", value=lambda row: row.get("kind"), show=lambda value: word(str(value))),
        Column(title="STATE", key="state", value=_finding_state, needs=("closed_at", "acknowledged_at")),
        when("OPENED", "opened_at"),
        field("SUBJECT", "subject", wide=True),
        field("ABOUT", "about"),
        field("NODE", "node", wide=True),
        field("SOURCE", "source", wide=True),
        field("ATTRIBUTE", "attribute", wide=True),
        field("BY", "acknowledged_by", wide=True),
    ),
)

EVENTS = Noun(
    path="/events",
    names=("events", "event", "ev"),
    about="events: what happened to cards and nodes, as the machines told it",
    empty="no events",
    paged=False,
    shapes=(("repeats", Shape.NUMBER),),
    columns=(
        when("LAST", "last_at"),
        field("NODE", "node"),
        field("CARD", "card"),
        field("KIND", "kind"),
        field("CODE", "code"),
        field("TIMES", "repeats", right=True),
        field("TEXT", "text"),
        field("ID", "id", wide=True, name=True),
        when("FIRST", "first_at", wide=True),
        field("SOURCE", "source", wide=True),
        field("ADDRESS", "address", wide=True),
    ),
)


def _named(row: Row, value: Any) -> Any:
    """The name of a card or node where the value is our id of one that the document names."""
    return (row.get("names") or {}).get(value, value) if isinstance(value, str) else value


def _detail(row: Row) -> Any:
    return {key: _named(row, value) for key, value in (row.get("detail") or {}).items() if value not in (None, "")} or None


CHANGES = Noun(
    path="/changes",
    names=("changes", "change", "ch"),
    about="changes: the history of the whole roll",
    empty="no changes",
    told_by="change",
    filtered=False,
    columns=(
        when("AT", "at"),
        Column(title="SUBJECT", key="subject", value=lambda row: _named(row, row.get("subject"))),
        Column(title="CHANGE", key="kind", value=lambda row: row.get("kind"), show=lambda value: word(str(value))),
        Column(title="DETAIL", key="detail", value=_detail),
        Column(title="DISPROVED", key="superseded_at", value=lambda row: row.get("superseded_at"), show=ago, data=rfc3339, wide=True),
        when("LEARNT", "learnt_at", wide=True),
        field("ID", "id", wide=True),
        field("NUMBER", "number", right=True, name=True),
    ),
)

NOUNS = (CARDS, DEVICES, PARTITIONS, NODES, SOURCES, ADAPTERS, FINDINGS, EVENTS, CHANGES)


def noun(name: str) -> Noun:
    """The noun called ``name`` in any of its forms. Raises InputError with the list."""
    for each in NOUNS:
        if name.lower() in each.names:
            return each
    meant = near(name, [word for each in NOUNS for word in each.names[:2]])
    raise InputError(f"nothing is called {name!r}{meant}", hint=f"one of {', '.join(each.names[0] for each in NOUNS)}")


def needed(columns: Iterable[Column]) -> str:
    """The `fields` parameter that gives what ``columns`` show."""
    return ",".join(dict.fromkeys(each for column in columns for each in column.needs or (column.key,)))
