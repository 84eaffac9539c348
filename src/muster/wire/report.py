# SPDX-License-Identifier: Apache-2.0
"""The report: one bounded document from a reporter to the server, in msgpack or JSON. Idempotent by (reporter, incarnation, sequence).

Schema 2 parts what should stay the same (facts) from numbers that move, so that a server that heard the same facts before decodes numbers alone.
Schema 1 has listings whole; both are understood. A newer schema adds keys and keeps these: attributes and fields of a row that are not known are kept as
detail of its subject (`mapping.with_newer`), others are passed over.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

SCHEMA = 2
OLDEST = 1
"""The oldest schema that is still understood."""


class NodeDoc(msgspec.Struct, omit_defaults=True):
    """What the node calls itself."""

    name: str
    machine_id: str = ""
    system: str = ""


class ObservationDoc(msgspec.Struct, omit_defaults=True):
    """One subject. ``readings`` values are ``{"v": value}``, ``{"a": reason, "d": detail}``, or in facts ``{"n": place}`` for the number at that place."""

    level: str
    ids: list[tuple[str, str]] = []
    parent: list[tuple[str, str]] = []
    ordinal: int = 0
    role: str = ""
    readings: dict[str, dict[str, Any]] = {}
    vendor: dict[str, Any] = {}


class ListingDoc(msgspec.Struct, omit_defaults=True):
    """One round of one source. ``observed_mono`` is the reporter's monotonic clock (seconds) at the time of seeing, within ``boot_id``."""

    source: str
    channel: str
    witness: str
    cadence: float
    outcome: str
    complete: bool
    observed_at: float
    observed_mono: float = 0.0
    boot_id: str = ""
    adapter: str = ""
    counts: dict[str, int] = {}
    observations: list[ObservationDoc] = []
    capture: str = ""
    detail: str = ""
    tool_version: str = ""
    unknown_shape: str = ""
    stuck: bool = False
    standing_by: bool = False


class FactsDoc(msgspec.Struct, omit_defaults=True):
    """What a round says that should stay the same; numbers that move are told by their place. Equal facts are equal bytes."""

    source: str
    channel: str
    witness: str
    cadence: float
    outcome: str
    complete: bool
    adapter: str = ""
    counts: dict[str, int] = {}
    observations: list[ObservationDoc] = []
    detail: str = ""
    tool_version: str = ""
    unknown_shape: str = ""
    stuck: bool = False
    standing_by: bool = False


class HeardDoc(msgspec.Struct, omit_defaults=True):
    """One round of one source in two lanes. ``facts`` is a packed `FactsDoc`; ``numbers`` are float64, little endian, NaN where nothing was told."""

    source: str
    facts: bytes
    observed_at: float
    numbers: bytes = b""
    observed_mono: float = 0.0
    boot_id: str = ""
    capture: str = ""


class AgentDoc(msgspec.Struct, omit_defaults=True):
    """What a reporter says of itself, now and then."""

    spool_reports: int = 0
    spool_bytes: int = 0
    spool_oldest: float = 0.0
    """Seconds that the oldest report has waited."""
    dropped: int = 0
    """Reports that the spool's bounds cost since the agent began."""
    refused: int = 0
    memory: int = 0
    """Bytes in use by all its processes."""
    cpu: float = 0.0
    """Seconds of processor time since it began."""
    workers: dict[str, str] = {}
    """Adapter to the state of its worker: idle, reading, stuck since ..."""
    costs: dict[str, float] = {}
    """Source to the seconds that its last round took."""


class EventDoc(msgspec.Struct, omit_defaults=True):
    """Something that happened; ``ids`` name the card, empty for the node."""

    id: str
    source: str
    adapter: str
    text: str
    level: str = "card"
    ids: list[tuple[str, str]] = []
    kind: str = ""
    code: str | None = None
    first_at: float = 0.0
    last_at: float = 0.0
    repeats: int = 1


class CaptureDoc(msgspec.Struct, omit_defaults=True):
    """Bytes that a listing rests on, by the digest of their content."""

    digest: str
    source: str
    format: str
    locator: list[str]
    taken_at: float
    payload: bytes
    exit_status: int | None = None
    stderr: bytes = b""
    cut: bool = False


class ReportDoc(msgspec.Struct, omit_defaults=True):
    """The report. ``sent_at`` and ``sent_mono`` are the reporter's clocks at sending and no part of its digest, so that a retry is the same report."""

    reporter: str
    incarnation: str
    sequence: int
    node: NodeDoc
    sent_at: float
    schema: int = OLDEST
    sent_mono: float = 0.0
    boot_id: str = ""
    agent_version: str = ""
    adapters: dict[str, str] = {}
    listings: list[ListingDoc] = []
    events: list[EventDoc] = []
    captures: list[CaptureDoc] = []
    heard: list[HeardDoc] = []
    agent: AgentDoc | None = None


class AnswerDoc(msgspec.Struct, omit_defaults=True):
    """What became of a report: ``applied``, ``duplicate`` (acknowledged, no effect) or ``refused`` with the reason."""

    answer: str
    detail: str = ""
    wanted: list[str] = []
    """Digests of captures that the server would like to have."""


class ActDoc(msgspec.Struct, omit_defaults=True):
    """An operator's word. Times are set by the server."""

    what: str
    by: str = ""
    card: dict[str, str] = {}
    other: dict[str, str] = {}
    node: str = ""
    source: str = ""
    values: dict[str, Any] = {}
    place: str = ""
    reason: str = ""
    asked_by: str = ""
    """How the server knows who says it; for the audit."""


_pack = msgspec.msgpack.Encoder(order="sorted")
_unpack = msgspec.msgpack.Decoder(ReportDoc)


def pack(report: ReportDoc) -> bytes:
    """The report as msgpack."""
    return _pack.encode(report)


def unpack(body: bytes) -> ReportDoc:
    """The report in ``body``. Raises msgspec.ValidationError or DecodeError, both with the place that does not fit."""
    return _unpack.decode(body)


def digest(report: ReportDoc) -> str:
    """SHA-256 of what the report says, whenever it was sent; 32 hex digits."""
    said = (report.node, report.listings, report.events, report.heard) if report.heard else (report.node, report.listings, report.events)
    return hashlib.sha256(_pack.encode(said)).hexdigest()[:32]
