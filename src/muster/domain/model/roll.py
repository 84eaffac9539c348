# SPDX-License-Identifier: Apache-2.0
"""The nouns of the roll: what a source or an operator said, and the records, changes and findings that merge makes of it.

Times are seconds since the epoch (UTC) as floats: merge adds, compares and never formats them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster.domain.model.attributes import Level
from muster.domain.model.observation import Observation, Role
from muster.domain.model.reading import Reading, Why
from muster.domain.model.source import Channel, Outcome, WitnessClass


class Rung(StrEnum):
    """By what a card is known, best first."""

    UUID = "uuid"
    SERIAL_MODEL = "serial+model"
    SERIAL_SLOT = "serial+slot"
    NODE_SLOT = "node+slot"
    NODE_ADDRESS = "node+address"
    NODE_INDEX = "node+index"


RUNGS = tuple(Rung)
"""Rungs in order, best first."""


class Presence(StrEnum):
    """Where a card stands with those who should see it."""

    PRESENT = "present"
    UNKNOWN = "unknown"
    MISSING = "missing"
    REMOVED = "removed"
    STORED = "stored"
    RETIRED = "retired"


class Happening(StrEnum):
    """Kinds of history entries. The list is closed."""

    INSTALLED = "installed"
    IDENTIFIED = "identified"
    JOINED = "joined"
    ID_CHANGED = "id_changed"
    MOVED = "moved"
    READDRESSED = "readdressed"
    MISSING = "missing"
    FOUND = "found"
    REMOVED = "removed"
    STORED = "stored"
    RETIRED = "retired"
    RETURNED = "returned"
    DRIVER_CHANGED = "driver_changed"
    FIRMWARE_CHANGED = "firmware_changed"
    PARTITIONS_CHANGED = "partitions_changed"
    COUNTER_RESET = "counter_reset"
    IDENTITY_CONFLICT = "identity_conflict"
    CONFLICT_ENDED = "conflict_ended"
    SOURCE_LOST = "source_lost"
    SOURCE_BACK = "source_back"
    SOURCE_REMOVED = "source_removed"
    OPERATOR_CHANGED = "operator_changed"


class FindingKind(StrEnum):
    """Kinds of findings, each with who it is about."""

    CARD_MISSING = "card_missing"
    MISSING_FROM_SOURCE = "missing_from_source"
    VALUES_DISAGREE = "values_disagree"
    PARTITIONS_LOST = "partitions_lost"
    NO_ADAPTER = "no_adapter"
    OPERATOR_CONTRADICTED = "operator_contradicted"
    IDENTITY_CONFLICT = "identity_conflict"
    PLACEHOLDER_ID = "placeholder_id"
    PLACE_CONFLICT = "place_conflict"
    SOURCE_SILENT = "source_silent"
    SOURCE_FAILED = "source_failed"
    SOURCE_HUNG = "source_hung"
    SHAPE_UNKNOWN = "shape_unknown"
    UNJOINED_VIEW = "unjoined_view"
    ADAPTER_DRIFT = "adapter_drift"
    CLOCK_WRONG = "clock_wrong"
    SEQUENCE_CONFLICT = "sequence_conflict"
    NODE_CLONED = "node_cloned"
    COUNT_MISMATCH = "count_mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNames:
    """What a node calls itself in one report. ``system`` is the chassis serial or UUID."""

    name: str
    machine_id: str = ""
    system: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A source as merge sees it. ``cadence`` in seconds is its promise."""

    source: str
    channel: Channel
    witness: WitnessClass
    cadence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One source's word about one node, as it reaches merge. ``at`` is the corrected time of seeing, ``received_at`` that of arrival."""

    node: NodeNames
    witness: Witness
    reporter: str
    incarnation: str
    sequence: int
    at: float
    received_at: float
    complete: bool
    outcome: Outcome
    counts: Mapping[str, int] = field(default_factory=dict)
    observations: tuple[Observation, ...] = ()
    capture: str = ""
    """Digest of the capture that this rests on; empty when none is kept."""
    detail: str = ""
    unknown_shape: str = ""
    stuck: bool = False
    """The worker that reads this source hangs in a call that does not return."""
    standing_by: bool = False
    """Not needed in its chain now: promises nothing and is not silent."""


class ActKind(StrEnum):
    """What an operator can say."""

    SET = "set"
    STORE = "store"
    RETIRE = "retire"
    REMOVE_SOURCE = "remove_source"
    SAME = "same"
    NOT_SAME = "not_same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """An operator's word. ``card`` and ``other`` are ids by kind (or ``{"id": our card id}``); a value of None takes an earlier word back."""

    what: ActKind
    by: str
    at: float
    received_at: float
    card: Mapping[str, str] = field(default_factory=dict)
    other: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    source: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Same:
    """A source of a node that went on, from after ``since`` up to ``at``, saying the facts that it had said before."""

    node: NodeNames
    source: str
    since: float
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Sources of one part of the site that went on saying the same, each until when: one word for all that they said since their last full one."""

    at: float
    """The latest of those times."""
    received_at: float
    same: tuple[Same, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What one source last said of one attribute: the last value that still counts and when it was last said, and the absence that came after it."""

    value: Any = None
    at: float | None = None
    """When the value was last said; None when there is no value."""
    why: Why | None = None
    why_at: float | None = None
    detail: str = ""
    capture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """One source on one node as it speaks of one subject: its words by attribute."""

    node: str
    source: str
    channel: Channel
    witness: WitnessClass
    promise: float
    """Seconds after which its word is stale."""
    words: Mapping[str, Word]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One source's sighting of a card on one node. ``denied_at`` is its first complete listing without the card since it was last seen."""

    node: str
    source: str
    channel: Channel
    ids: Mapping[str, tuple[str, ...]]
    slot: str = ""
    addresses: tuple[str, ...] = ()
    index: str = ""
    first_at: float = 0.0
    at: float = 0.0
    promise: float = 0.0
    denied_at: float | None = None
    confirmed_at: float | None = None
    void: bool = False
    """Another card arrived in this place after this sighting: it counts no more."""

    def sees(self, now: float) -> bool:
        """True when this is a fresh sighting by a hardware source."""
        hardware = self.channel in (Channel.IN_BAND, Channel.OUT_OF_BAND)
        return hardware and not self.void and self.denied_at is None and now - self.at <= self.promise


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRecord:
    """A device or partition of a card. ``id`` is ours and outlives reports."""

    id: str
    level: Level
    ordinal: int
    ids: Mapping[str, tuple[str, ...]]
    under: str = ""
    """Id of the device that a partition stands on; empty for the card."""
    voices: tuple[Voice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRecord:
    """A card as merge believes it to be. Facts and compared gauges are in ``voices``; other gauges and counters are kept apart by subject."""

    id: str
    role: Role
    created_at: float
    rung: Rung
    presence: Presence
    presence_at: float
    node: str | None
    """Id of the node it stands in; None when removed, stored, retired."""
    node_name: str = ""
    system: str = ""
    slot: str = ""
    address: str = ""
    index: str = ""
    ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    former_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()
    aside: bool = False
    """A view of a card that another witness names better: shown, not counted."""
    claims: tuple[Claim, ...] = ()
    voices: tuple[Voice, ...] = ()
    node_voices: tuple[Voice, ...] = ()
    """The operator's words on its node."""
    devices: tuple[PartRecord, ...] = ()
    partitions: tuple[PartRecord, ...] = ()
    increase: Mapping[str, float] = field(default_factory=dict)
    """Use of each counter of the chosen source since its first reading, over resets."""
    counted: Mapping[str, float] = field(default_factory=dict)
    """The number at which each counter of ``increase`` stood when it was counted: what the counter has grown since is to be added."""
    disagree: tuple[tuple[str, str, str], ...] = ()
    """Gauges judged apart when last read close together: attribute and two sources (``node/source``)."""
    place: str = ""
    """Where the operator stored it."""
    details: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The tools' own names, codes and text beside the readings, by ``node/source``: what each last said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """A node: an operating system that holds cards."""

    id: str
    name: str
    machine_id: str = ""
    system: str = ""
    former_names: tuple[str, ...] = ()
    created_at: float = 0.0
    last_at: float = 0.0
    voices: tuple[Voice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """One source on one node: its promise, its last word, and whether it is silent, failed, removed."""

    node: str
    node_name: str
    source: str
    channel: Channel
    witness: WitnessClass
    cadence: float
    promise: float
    reporter: str
    first_at: float
    last_at: float
    listed_at: float | None
    outcome: Outcome
    detail: str = ""
    cards: int = 0
    silent: bool = False
    removed: bool = False
    stuck: bool = False
    standing_by: bool = False
    unknown_shape: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One entry of history. ``at`` is when it was true, ``learnt_at`` when we learnt it; ``id`` is stable under replay."""

    id: str
    subject: str
    """Card id (or node id for a node's own entries)."""
    kind: Happening
    at: float
    learnt_at: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something a person should know. ``id`` is stable while the finding stands; the store keeps who acknowledged it and when it closed."""

    id: str
    kind: FindingKind
    subject: str
    """Card id, node id, ``node/source``, reporter, or id value."""
    about: str
    """One sentence: what is so, and what to do."""
    opened_at: float
    cards: tuple[str, ...] = ()
    node: str = ""
    source: str = ""
    attribute: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One gauge or counter reading bound to its subject (card, device or partition id), for the current table and the minute roll-ups."""

    subject: str
    card: str
    node: str
    source: str
    key: str
    at: float
    value: float | None
    """A number, for the roll-ups; None when the value is no number or there is none."""
    word: Word
    reading: Reading | None = None
    """The reading as it was told: by it a number is found in the lane of numbers."""
    rollup: bool = True
    """False when this only says again what is current (a card was joined or folded anew): no point of the roll-ups."""
