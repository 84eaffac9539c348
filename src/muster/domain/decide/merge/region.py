# SPDX-License-Identifier: Apache-2.0
"""Parts of the site as values: the journal of each, its state, and what one step changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.decide.merge.calm import Calm
from muster.domain.decide.merge.state import Site
from muster.domain.model.roll import Act, Again, CardRecord, Change, Finding, Listing, NodeRecord, Sample, SourceRecord


@dataclass(frozen=True, slots=True)
class Entry:
    """A word in the journal of a part. ``order`` is its number of arrival."""

    at: float
    order: int
    said: Listing | Act | Again


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A part of the site: its journal, the state before it, checkpoints within it, and the state after it."""

    id: str
    base: Site
    journal: tuple[Entry, ...] = ()
    checkpoints: tuple[tuple[int, Site], ...] = ()
    """How many entries were folded, and the state then."""
    site: Site
    records: Mapping[str, CardRecord] | None = None
    """Its cards as they were last given to the store; None when that is not known."""
    calm: Calm | None = field(default=None, compare=False, repr=False)
    """What is known of its state where nothing is pending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roll:
    """All parts, and where a name is found."""

    regions: Mapping[str, Region] = field(default_factory=dict)
    index: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Kind and canonical value of node names and strong ids to the part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The roll after a step and what the step changed."""

    roll: Roll
    touched: frozenset[str] = frozenset()
    cards: tuple[CardRecord, ...] = ()
    gone: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[NodeRecord, ...] = ()
    sources: tuple[SourceRecord, ...] = ()
    samples: tuple[Sample, ...] = ()
    rebound: tuple[str, ...] = ()
    """Cards whose gauges must be written anew: a record was joined, split or folded again."""
    nodes_gone: tuple[str, ...] = ()
    sources_gone: tuple[tuple[str, str], ...] = ()
    vanished: tuple[str, ...] = ()
    """Cards that a late word showed never to have been, and that no other record stands for."""
    changes: tuple[Change, ...] = ()
    superseded: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    """All findings of the touched parts that are open now."""
    folded: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Journal entries that went into the base of a part."""
    dropped: tuple[str, ...] = ()
    """Parts that were united with another."""
    news: bool = False
    """More than times and moving numbers changed."""
