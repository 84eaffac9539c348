# SPDX-License-Identifier: Apache-2.0
"""The documents of the API as msgspec structs: one shape for the server, `muster scan` and whoever reads them. Mapped from the domain in `muster.wire.shown`.

Times are RFC 3339 in UTC, ages seconds, sizes bytes, ratios 0..1. A field that is null has no value; a reading says why it has none.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339, UTC."""
Ids = dict[str, list[str]]
"""Names by kind, as they were printed."""


class ValueReading(Struct, omit_defaults=True):
    """A known value. ``dissent`` is what other fresh sources say instead, ``absent`` why others say nothing, both by source."""

    value: Any
    unit: str
    observed_at: Time
    source: str
    age: float
    stale: bool = False
    dissent: dict[str, Any] = {}
    absent: dict[str, str] = {}
    capture: str = ""
    """Digest of the capture that the value rests on: `/api/v1/captures/{digest}`."""


class AbsentReading(Struct, omit_defaults=True):
    """No value, and why: ``absent`` is one of the closed list of reasons, ``detail`` the tool's own text."""

    absent: str
    detail: str
    observed_at: Time
    source: str
    age: float
    capture: str = ""


Reading = Annotated[
    Any,
    Meta(extra_json_schema={"oneOf": [{"$ref": "#/components/schemas/ValueReading"}, {"$ref": "#/components/schemas/AbsentReading"}]}),
]
Readings = dict[str, Reading]


class Claim(Struct):
    """One source's sighting of a card on a node."""

    node: str
    node_id: str
    source: str
    channel: str
    ids: Ids
    slot: str | None
    addresses: list[str]
    index: str | None
    first_at: Time
    last_at: Time
    denied_at: Time | None
    sees: bool
    """It is a fresh sighting by a hardware source."""


class FindingRef(Struct):
    """A finding, as a card lists it."""

    id: str
    kind: str


class Device(Struct):
    """One processor of a card that has several."""

    id: str
    card: str
    name: str
    ordinal: int
    ids: Ids
    presence: str
    readings: Readings


class Partition(Struct):
    """An isolated slice of a card or of one of its devices (``under``)."""

    id: str
    card: str
    name: str
    ordinal: int
    ids: Ids
    presence: str
    under: str | None
    readings: Readings


class Together(Struct):
    """What the devices of a card say together where the card itself says nothing. No source told it, so it is no reading."""

    value: float
    unit: str
    how: Annotated[str, Meta(extra_json_schema={"enum": ["sum of devices", "most of devices"]})]


class Card(Struct):
    """A card as it is shown at a moment. ``name`` is "node · slot · model"; ``rung`` says by what it is known."""

    id: str
    name: str
    vendor: str | None
    model: str | None
    presence: str
    presence_since: Time
    created_at: Time
    rung: str
    role: str
    aside: bool
    """A view of a card that another witness names better: shown, not counted."""
    node: str | None
    node_id: str | None
    slot: str | None
    address: str | None
    index: str | None
    ids: Ids
    former_ids: Ids
    conflicts: list[str]
    seen_by: list[str]
    place: str | None
    """Where an operator stored it."""
    findings: list[FindingRef]
    readings: Readings
    together: dict[str, Together]
    """By attribute, only where the card has no value and all of its devices have one."""
    devices: list[Device]
    partitions: list[Partition]
    claims: list[Claim]
    increase: dict[str, float]
    """Use of each counter since its first reading, over resets."""
    details: dict[str, dict[str, Any]]
    """The tools' own names, codes and text beside the readings, by node/source."""


class Spool(Struct):
    """Reports that wait at a reporter. ``oldest``: seconds that the oldest has waited."""

    reports: int
    bytes: int
    oldest: float


class Agent(Struct):
    """A reporter as it told of itself last. ``skew``: seconds added to its wall clock. What it did not tell yet is null."""

    reporter: str
    version: str | None
    incarnation: str
    sequence: int
    skew: float
    heard_at: Time
    """When its last report came that told more than numbers."""
    spool: Spool | None
    dropped: int | None
    """Reports that the bounds of its spool cost since it began."""
    refused: int | None
    memory: int | None
    """Bytes in use by its processes."""
    cpu: float | None
    """Seconds of processor time since it began."""
    workers: dict[str, str]
    """Adapters whose worker is at work or stuck."""


class Node(Struct):
    """An operating system that holds cards."""

    id: str
    name: str
    machine_id: str | None
    system: str | None
    former_names: list[str]
    created_at: Time
    last_at: Time
    age: float
    cards: dict[str, int]
    """Accelerators that stand in it, by presence."""
    agents: list[Agent]
    """Who reports of it."""
    readings: Readings


class Source(Struct):
    """One source on one node. ``state``: ok, failed, silent, hung, standing_by, removed."""

    id: str
    node: str
    node_id: str
    source: str
    adapter: str | None
    channel: str
    witness: str
    cadence: float
    promise: float
    reporter: str
    state: str
    outcome: str
    detail: str
    cards: int
    first_at: Time
    last_at: Time
    listed_at: Time | None
    age: float
    unknown_shape: str
    cost: float | None
    """Seconds that its last round took, as its reporter told."""
    worker: str | None
    """What the worker that reads it does, where that is more than to wait."""


class AdapterSource(Struct):
    """A way of seeing that an adapter declares."""

    id: str
    reader: str
    channel: str
    witness: str
    cadence: float
    provides: list[str]
    after: str | None
    install: str


class Adapter(Struct):
    """What the server knows of an adapter."""

    id: str
    title: str
    tier: str
    owners: list[str]
    pci_vendors: list[str]
    formats: dict[str, str]
    later: list[str]
    sources: list[AdapterSource]
    cards: int
    """Cards on the roll that one of its sources sees now."""


class Finding(Struct):
    """Something a person should know."""

    id: str
    kind: str
    subject: str
    about: str
    cards: list[str]
    node: str | None
    node_id: str | None
    source: str | None
    attribute: str | None
    evidence: dict[str, Any]
    names: dict[str, str]
    """Names of the cards and nodes that are spoken of, by our id."""
    opened_at: Time
    last_seen_at: Time
    age: float
    acknowledged_at: Time | None
    acknowledged_by: str | None
    closed_at: Time | None


class Change(Struct):
    """One entry of history: ``at`` when it was true, ``learnt_at`` when we learnt it."""

    number: int
    id: str
    subject: str
    kind: str
    at: Time
    learnt_at: Time
    detail: dict[str, Any]
    names: dict[str, str]
    """Names of the cards and nodes that are spoken of, by our id."""
    superseded_at: Time | None


class Event(Struct):
    """Something that happened, as a source told it. ``card`` is null while no card of the roll stands at its address."""

    id: str
    card: str | None
    node: str
    """Its name."""
    source: str
    adapter: str
    kind: str
    code: str | None
    text: str
    address: str | None
    first_at: Time
    last_at: Time
    repeats: int


class CaptureInfo(Struct):
    """The capture that a value rests on, without its bytes: those are `?raw=true`."""

    digest: str
    source: str
    node: str
    format: str
    locator: list[str]
    taken_at: Time
    exit_status: int | None
    stderr: str
    cut: bool
    size: int


class Point(Struct):
    """One minute of a gauge from one source."""

    minute: Time
    source: str
    count: int
    mean: float | None
    low: float | None
    high: float | None
    last: float | None


class Series(Struct):
    """Minute roll-ups of one gauge of one card, device or partition."""

    card: str
    subject: str
    key: str
    unit: str
    since: Time
    until: Time
    points: list[Point]


class Model(Struct):
    """Cards of one make. A null vendor or model is not known."""

    vendor: str | None
    model: str | None
    cards: int
    present: int


class Total(Struct):
    """A sum over present, counted cards. ``lacking`` of them have no value."""

    value: float
    unit: str
    cards: int
    lacking: int


class SourceCount(Struct):
    """Sources by state."""

    total: int
    by_state: dict[str, int]


class Summary(Struct):
    """The roll in numbers: accelerators that are not retired; displays and views kept aside stand apart."""

    at: Time
    cards: int
    displays: int
    aside: int
    nodes: int
    by_presence: dict[str, int]
    models: list[Model]
    findings: dict[str, int]
    sources: SourceCount
    totals: dict[str, Total]


def encode(document: Any) -> bytes:
    """A document as JSON bytes."""
    return _encoder.encode(document)


_encoder = msgspec.json.Encoder()
