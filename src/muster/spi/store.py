# SPDX-License-Identifier: Apache-2.0
"""What the roll needs of a store: one writer that commits a batch whole, and one reader for every plain query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from muster.domain.model.roll import CardRecord, Change, Finding, NodeRecord, Sample, SourceRecord
from muster.spi.lease import Answers, Lease
from muster.spi.reading import RollReader
from muster.spi.rows import Answered, AuditCheck, CaptureRow, ChangeRow, CurrentValue, EventRow, FindingRow, Fresh, Holder, News, Reporter, Under

__all__ = [
    "Answered",
    "Answers",
    "AuditCheck",
    "Batch",
    "CaptureRow",
    "ChangeRow",
    "CurrentValue",
    "EventRow",
    "FindingRow",
    "Fresh",
    "Heard",
    "Holder",
    "Layout",
    "Lease",
    "Loaded",
    "News",
    "Received",
    "RegionRows",
    "Reporter",
    "RollReader",
    "RollWriter",
    "Said",
    "Slot",
    "Under",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One report as an older store kept it: each by its key. Now a reporter's row says which were taken (`Reporter.recent`)."""

    reporter: str
    incarnation: str
    sequence: int
    digest: str
    received_at: float
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One entry of the journal from which the roll is rebuilt: a listing or an act in wire form. ``order`` breaks ties of ``at``."""

    order: int
    at: float
    received_at: float
    kind: str
    """"listing", "act" or "again"."""
    body: bytes
    region: str = ""
    """The part of the site whose journal it stands in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What the numbers of one source are of, from ``since`` on until its next layout.

    ``columns[i]`` is (subject, card, key, place) of the number at ``place`` in every `Heard` that follows; one place may serve several columns.
    """

    slot: int
    """The source's number: given once, never again to another."""
    node: str
    source: str
    reporter: str
    since: float
    columns: Sequence[tuple[str, str, str, int]]
    width: int
    """How many numbers each `Heard` has."""
    before: int = 0
    """Where in ``Batch.heard`` it begins: of its slot, rounds from this index on are of this layout, those before it of the layout there was."""
    promise: float = 0.0
    """Seconds for which a word of this source holds."""
    bounds: bytes = b""
    """What the service holds new numbers against; kept with the layout and given back in `Slot`."""
    node_names: tuple[str, str, str] = ("", "", "")
    """What the node calls itself: name, machine id, system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One round of numbers of one source: float64, little endian, NaN where nothing was told. Also says how far its reporter has come."""

    slot: int
    at: float
    """Corrected time of seeing."""
    received_at: float
    numbers: bytes
    incarnation: str = ""
    sequence: int = -1
    again: bool = False
    """True when the source said the same facts as before: what it said last holds until ``at``."""
    facts: bytes = b""
    """Digest of the facts that came with it; kept for the next comparison."""
    capture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A source as a starting writer finds it."""

    slot: int
    node: str
    source: str
    reporter: str
    at: float
    """Up to when the records have its words: its last full word, or "said again" that was folded (`Batch.folded_to`)."""
    received_at: float
    numbers: bytes
    incarnation: str
    sequence: int
    again_at: float | None
    """Until when its last full word holds, by rounds that said the same; None: it never said the same again."""
    facts: bytes
    region: str = ""
    promise: float = 0.0
    bounds: bytes = b""
    node_names: tuple[str, str, str] = ("", "", "")
    width: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Everything that one step changes; it is committed whole or not at all."""

    at: float
    said: Sequence[Said] = ()
    forget: Sequence[int] = ()
    """Orders of journal entries that are folded into the base."""
    reporters: Sequence[Reporter] = ()
    layouts: Sequence[Layout] = ()
    heard: Sequence[Heard] = ()
    """Rounds of numbers, in order of arrival; several of one source may stand in one batch."""
    folded_to: Mapping[int, float] = field(default_factory=dict)
    """Slots to the time up to which "said again" is in the records now: what the records say of these sources' words is of that time."""
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Names (kind, canonical value) to the part of the site that knows them; ("card", id) and ("node", id) too. An empty part takes a name away."""
    united: Mapping[str, str] = field(default_factory=dict)
    """Parts that are no more, to the part that took them in: journal, names, cards, nodes and slots go with them."""
    due: Mapping[str, float] = field(default_factory=dict)
    """When a part must be looked at even if nobody speaks; infinity: never."""
    regions: Mapping[str, str] = field(default_factory=dict)
    """Card, node ids and slots (as ``str``) of this batch to their part of the site."""
    base: Mapping[str, bytes] = field(default_factory=dict)
    """State of each part of the site before its journal, by part; empty bytes remove one."""
    cards: Sequence[CardRecord] = ()
    gone: Mapping[str, str] = field(default_factory=dict)
    """Card ids that were joined into another: old to new."""
    vanished: Sequence[str] = ()
    """Cards that a late report showed never to have been: no longer believed, and nothing stands for them."""
    nodes: Sequence[NodeRecord] = ()
    sources: Sequence[SourceRecord] = ()
    nodes_gone: Sequence[str] = ()
    """Nodes that a late report showed to be another."""
    sources_gone: Sequence[tuple[str, str]] = ()
    samples: Sequence[Sample] = ()
    rebound: Sequence[str] = ()
    """Cards whose current gauges and counters (theirs and their parts') are replaced whole by ``samples``; those samples add no point to the roll-ups."""
    changes: Sequence[Change] = ()
    superseded: Sequence[str] = ()
    """Ids of changes that a late report disproved: kept, marked, no longer believed."""
    findings: Sequence[Finding] = ()
    """Findings that are open now and new or changed."""
    closed: Sequence[str] = ()
    """Ids of findings that no longer hold."""
    events: Sequence[EventRow] = ()
    captures: Sequence[CaptureRow] = ()
    audit: Sequence[Mapping[str, Any]] = ()
    answered: Sequence[Answered] = ()
    """What requests are answered for it: kept with it or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a starting writer needs."""

    said: Sequence[Said]
    base: Mapping[str, bytes]
    received: Sequence[Received]
    """Reports that only an older store tells of."""
    findings: Sequence[Finding]
    """Open findings."""
    next_order: int
    ids: Mapping[str, str] = field(default_factory=dict)
    """Card ids once shown to card ids now."""
    reporters: Sequence[Reporter] = ()
    slots: Sequence[Slot] = ()
    due: Mapping[str, float] = field(default_factory=dict)
    """Every part of the site, and when it is due."""
    next_slot: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionRows:
    """All that one part of the site is rebuilt from: the state before its journal (empty: none), and its journal in order of number."""

    base: bytes
    said: Sequence[Said]


class RollWriter(Protocol):
    """The one writer."""

    def load(self) -> Loaded:
        """State at start."""

    def region(self, part: str) -> RegionRows:
        """What the part is rebuilt from. Raises NotFound."""

    def regions_of(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The parts that know these names; unknown names are left out."""

    def lacking(self, digests: Sequence[str]) -> list[str]:
        """Those of these captures that are not kept here and would be: who has them is asked for these alone."""

    def commit(self, batch: Batch) -> None:
        """Writes the batch in one transaction, durable when it returns. Raises Unavailable when the store cannot be written."""

    def acknowledge(self, finding: str, by: str, at: float, reason: str) -> FindingRow:
        """Marks an open finding as seen. Raises NotFound or Conflict (already closed)."""

    def trim(self, now: float, keep: Mapping[str, float]) -> int:
        """Drops roll-ups, events and captures older than ``keep`` seconds by kind; returns rows dropped."""
