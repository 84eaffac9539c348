# SPDX-License-Identifier: Apache-2.0
"""What a store gives back, and what it keeps beside the roll: rows as they are shown to those who ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from muster.domain.model.roll import CardRecord, Change, Finding, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """An event on a subject, as stored: ``card`` is empty while no card of the roll stands at its address."""

    id: str
    card: str
    node: str
    source: str
    adapter: str
    kind: str
    code: str | None
    text: str
    address: str
    first_at: float
    last_at: float
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRow:
    """The bytes that a value rests on, by the digest of their content."""

    digest: str
    source: str
    node: str
    format: str
    locator: tuple[str, ...]
    taken_at: float
    exit_status: int | None
    stderr: bytes
    cut: bool
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A change as stored, with its running number."""

    number: int
    change: Change
    superseded_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """A finding as stored."""

    finding: Finding
    last_seen_at: float
    acknowledged_at: float | None = None
    acknowledged_by: str = ""
    closed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentValue:
    """The newest word of one source on one gauge or counter of one subject."""

    subject: str
    card: str
    node: str
    source: str
    key: str
    word: Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """What was written since a commit: for those who keep columns of the roll."""

    version: int
    """Number of the last commit that this answers for."""
    cards: Iterable[CardRecord]
    """All there are come in no order and are read while they are gone over: go once."""
    gone: Sequence[str]
    """Cards that are no more."""
    regrounded: bool = False
    """True when ``after`` is too old to be answered: ``cards`` are then all there are, and what is not among them is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who may write."""

    holder: str
    token: int
    """Grows with every taking."""
    until: float
    """When the holder meant to have renewed it, by its own clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCheck:
    """What became of the audit log: ``broken`` is the number of the first row that is not as it was written, None when all are."""

    rows: int
    """Rows that were found whole."""
    broken: int | None = None
    why: str = ""
    head: str = field(default="", compare=False)
    """The digest of the last row, where all are whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What became of a finding: written in the commit that did it, under a number that only grows."""

    number: int
    at: float
    what: str
    """"opened", "closed" or "acknowledged"."""
    row: FindingRow
    """As it is now."""


Under: TypeAlias = tuple[str, str]
"""The key under which a request may come again, and the digest of its body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a request was answered, kept for one that comes again under the same key."""

    key: str
    digest: str
    """Of the request: another one under this key is refused."""
    at: float
    status: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """How far a reporter has come. One row for each that ever spoke, whatever it sends."""

    reporter: str
    incarnation: str
    high: int
    """The greatest sequence taken."""
    recent: bytes
    """The last sequences with their digests, as the service packs them: what a second copy is held against."""
    received_at: float
    skew: float = 0.0
    """Seconds added to its wall clock."""
    agent_version: str = ""
    boot_id: str = ""
    node: str = ""
    """Name of the node it spoke of last."""
    state: bytes = b""
    """What it said of itself last (spool, lag, workers), as it came on the wire."""
