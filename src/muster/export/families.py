# SPDX-License-Identifier: Apache-2.0
"""Families of series: their names, kinds and words, made from the dictionary of attributes. One table for every form of export, and for the docs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from muster.domain.model.attributes import ATTRIBUTES, Attribute, Kind, Level
from muster.domain.model.errors import InputError
from muster.domain.model.roll import FindingKind, Presence
from muster.domain.model.units import Unit

PREFIX = "muster_"


class Form(StrEnum):
    """What a family is to a store of metrics."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Series of one name. ``labels`` are the labels that they may have, ``per`` says how many there are, ``key`` is the attribute behind them."""

    name: str
    form: Form
    about: str
    labels: tuple[str, ...]
    per: str
    key: str = ""
    states: tuple[str, ...] = ()
    """One series for each, 1 for the one that holds and 0 for the others."""
    counts: bool = False
    """The value is how many things the reading lists."""


PRESENCES = tuple(each.value for each in Presence if each is not Presence.RETIRED)
"""Retired cards have left the fleet, and have no series."""
SOURCE_STATES = ("ok", "failed", "silent", "hung", "standing_by")
STATES: Mapping[str, tuple[str, ...]] = {
    "health.reported": ("ok", "warning", "critical", "unknown"),
    "recovery.action": ("none", "reset", "reboot", "drain", "drain_and_reset", "other"),
}
"""Attributes with a closed list of words."""

_SUFFIX = {
    Unit.BYTES: "_bytes",
    Unit.BYTES_PER_SECOND: "_bytes_per_second",
    Unit.WATT: "_watts",
    Unit.JOULE: "_joules",
    Unit.CELSIUS: "_celsius",
    Unit.KELVIN: "_kelvin",
    Unit.HERTZ: "_hertz",
    Unit.RATIO: "_ratio",
    Unit.VOLT: "_volts",
}
_NAMES = {
    "energy.total": "energy_joules_total",
    "link.total": "links_built",
    "link.active": "links_active",
    "link.bytes.received": "link_received_bytes_total",
    "link.bytes.transmitted": "link_transmitted_bytes_total",
    "memory.used.ratio": "memory_used_ratio",
    "memory.total": "memory_size_bytes",
    "node.memory.total": "node_memory_size_bytes",
    "node.cpu.count": "node_cpus",
}
"""Names that the rule below would make clumsy, or such that a store of metrics takes them for something else."""
_PLACES = frozenset({"numa.node"})
"""Numbers that name a place: nothing to draw or to add up."""
_OF_PART = ("card", "device", "partition")


def _name(entry: Attribute) -> str:
    if entry.key in _NAMES:
        return PREFIX + _NAMES[entry.key]
    plain = entry.key.replace(".", "_")
    suffix = _SUFFIX.get(entry.unit, "")
    plain = plain if plain.endswith(suffix) else plain + suffix
    return PREFIX + plain + ("_total" if entry.kind is Kind.COUNTER else "")


def _of(entry: Attribute) -> Family | None:
    """The family of an attribute; None where its values are texts, lists or maps, which are no numbers."""
    states = STATES.get(entry.key, ())
    if entry.key in _PLACES or not (entry.numeric or states or entry.unit is Unit.BOOL or (entry.unit is Unit.SET and entry.kind is Kind.GAUGE)):
        return None
    on_node = entry.of in (Level.NODE, Level.SERVER)
    about = f"How many stand now. {entry.about}" if entry.unit is Unit.SET else entry.about
    form = Form.COUNTER if entry.kind is Kind.COUNTER else Form.GAUGE
    labels: tuple[str, ...] = ("node", "node_id") if on_node else _OF_PART
    per = "node" if on_node else "card, device or partition that tells it"
    labels = (*labels, "state") if states else labels
    return Family(name=_name(entry), form=form, about=about, labels=labels, per=per, key=entry.key, states=states, counts=entry.unit is Unit.SET)


READINGS: Mapping[str, Family] = {key: family for key, entry in ATTRIBUTES.items() if (family := _of(entry)) is not None}
"""By attribute: the family of those whose values are numbers, yes or no, a word of a closed list, or a set that can be counted."""


def _gauge(name: str, about: str, labels: tuple[str, ...], per: str, states: tuple[str, ...] = ()) -> Family:
    return Family(name=PREFIX + name, form=Form.GAUGE, about=about, labels=labels, per=per, states=states)


def _counter(name: str, about: str, labels: tuple[str, ...], per: str) -> Family:
    return Family(name=PREFIX + name, form=Form.COUNTER, about=about, labels=labels, per=per)


CARD_INFO = _gauge(
    "card_info",
    "What a card is and where it stands; always 1. Join other series to it on (card).",
    ("card", "name", "node", "node_id", "vendor", "model", "serial", "uuid", "slot", "address", "index", "driver", "firmware", "rung", "role"),
    "card",
)
DEVICE_INFO = _gauge("device_info", "A device of a card that has several; always 1.", ("card", "device", "ordinal", "uuid", "address"), "device")
PARTITION_INFO = _gauge(
    "partition_info", "A partition of a card or device; always 1.", ("card", "device", "partition", "ordinal", "uuid", "profile"), "partition"
)
CARD_PRESENCE = _gauge("card_presence", "How the card stands with those who should see it.", ("card", "state"), "card and state", PRESENCES)
CARD_SEEN = _gauge("card_last_seen_timestamp_seconds", "When a source last saw the card.", ("card",), "card that was ever seen")
NODE_INFO = _gauge("node_info", "A node; always 1.", ("node", "node_id", "machine_id", "agent", "kernel", "os"), "node")
NODE_SEEN = _gauge("node_last_seen_timestamp_seconds", "When something was last heard of the node.", ("node", "node_id"), "node")
SOURCE_SEEN = _gauge("source_last_seen_timestamp_seconds", "When the source last spoke.", ("source", "node", "node_id"), "source on a node")
SOURCE_STATE = _gauge("source_state", "How the source is.", ("source", "node", "node_id", "state"), "source on a node, and state", SOURCE_STATES)
CARDS = _gauge("cards", "Cards of this shard by make and presence.", ("vendor", "model", "presence"), "make and presence")
KNOWN = _gauge(
    "readings",
    "How many cards, devices and partitions of this shard have a fresh value (known), an old one (stale) or a reason why there is none (absent).",
    ("attribute", "state"),
    "attribute and state",
)
FINDINGS = _gauge("findings_open", "Open findings of the whole fleet by kind; told by the first shard alone.", ("kind",), "kind of finding")
READY = _gauge("server_ready", "1 while the server says that it can do its work, 0 when it says that it cannot; told by the first shard alone.", (), "export")

EXPORT_SHARD = _gauge("export_shard_info", "Which shard this export tells; always 1.", ("shard", "shards"), "export")
EXPORT_READ = _gauge("export_last_read_timestamp_seconds", "When the server last answered this export.", ("shard",), "export")
EXPORT_TIME = _gauge("export_read_duration_seconds", "How long the last reading of the server took.", ("shard",), "export")
EXPORT_FRESH = _gauge("export_fresh", "1 while the server answers; 0 when the fleet's series are left out, because they would be old.", ("shard",), "export")
EXPORT_SERIES = _gauge("export_series", "Series of the fleet in the last reading.", ("shard",), "export")
EXPORT_WAITING = _gauge("export_waiting_bytes", "What is read but not yet taken by the store of metrics.", ("shard",), "export that pushes")
EXPORT_FAILED = _counter("export_reads_failed_total", "Readings of the server that failed.", ("shard",), "export")
EXPORT_SENT = _counter("export_sent_total", "Series or groups of them that the store of metrics took.", ("shard",), "export that pushes")
EXPORT_DROPPED = _counter(
    "export_dropped_total",
    "What was given up: refused by the store of metrics, or too much that waited.",
    ("shard", "reason"),
    "export that pushes, and reason",
)
EXPORT_RETRIES = _counter("export_retries_total", "Posts that had to be tried again.", ("shard",), "export that pushes")

FLEET = (CARD_INFO, DEVICE_INFO, PARTITION_INFO, CARD_PRESENCE, CARD_SEEN, NODE_INFO, NODE_SEEN, SOURCE_SEEN, SOURCE_STATE, CARDS, KNOWN, FINDINGS, READY)
OWN = (
    *(EXPORT_SHARD, EXPORT_READ, EXPORT_TIME, EXPORT_FRESH, EXPORT_SERIES, EXPORT_FAILED),
    *(EXPORT_WAITING, EXPORT_SENT, EXPORT_DROPPED, EXPORT_RETRIES),
)
FINDING_KINDS = tuple(each.value for each in FindingKind)
INFO_KEYS = frozenset({"driver.version", "firmware.version"})
"""Attributes that become labels of `CARD_INFO`."""


def families() -> Iterator[Family]:
    """Every family that an export may write."""
    yield from FLEET
    yield from READINGS.values()
    yield from OWN


def chosen(text: str) -> frozenset[str]:
    """The attributes of ``KEY,KEY``; all that have a family when it is empty. Raises InputError."""
    asked = [word for word in (each.strip() for each in text.split(",")) if word]
    wrong = next((word for word in asked if word not in READINGS), None)
    if wrong is not None:
        why = "its values are texts or lists" if wrong in ATTRIBUTES else "the dictionary has none of that name"
        raise InputError(f"--attributes: no series for {wrong!r}: {why}", hint="docs/reference/metrics.md lists them")
    return frozenset(asked) or frozenset(READINGS)
