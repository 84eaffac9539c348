# SPDX-License-Identifier: Apache-2.0
"""The steps of one batch as they gather to what the store is given: the last record of each card, what came and went in between left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from muster.domain.decide.merge import Merged
from muster.domain.model.roll import CardRecord, Change, Finding, NodeRecord, Sample, SourceRecord
from muster.spi.store import Answered, Batch, CaptureRow, EventRow, Heard, Layout, Reporter, Said


@dataclass(slots=True)
class Gathered:
    """What one batch changes, while it is gathered."""

    cards: dict[str, CardRecord] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    vanished: set[str] = field(default_factory=set)
    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    nodes_gone: set[str] = field(default_factory=set)
    sources: dict[tuple[str, str], SourceRecord] = field(default_factory=dict)
    sources_gone: set[tuple[str, str]] = field(default_factory=set)
    samples: list[Sample] = field(default_factory=list)
    rebound: set[str] = field(default_factory=set)
    changes: dict[str, Change] = field(default_factory=dict)
    superseded: list[str] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    base: dict[str, bytes] = field(default_factory=dict)
    forget: list[int] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    captures: list[CaptureRow] = field(default_factory=list)
    audit: list[Mapping[str, Any]] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    reporters: dict[str, Reporter] = field(default_factory=dict)
    layouts: list[Layout] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    folded_to: dict[int, float] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    united: dict[str, str] = field(default_factory=dict)
    due: dict[str, float] = field(default_factory=dict)
    regions: dict[str, str] = field(default_factory=dict)

    def step(self, merged: Merged, samples: Iterable[Sample]) -> None:
        """Takes in what one word changed; ``samples`` are those of its gauges that are kept by series."""
        for old in merged.gone:
            self.cards.pop(old, None)
        self.cards |= {card.id: card for card in merged.cards if card.id not in merged.gone}
        self.gone |= merged.gone
        self.vanished = (self.vanished | set(merged.vanished)) - self.cards.keys()
        self.nodes |= {node.id: node for node in merged.nodes}
        self.nodes_gone = (self.nodes_gone | set(merged.nodes_gone)) - {node.id for node in merged.nodes}
        told = {(source.node, source.source): source for source in merged.sources}
        self.sources |= told
        self.sources_gone = (self.sources_gone | set(merged.sources_gone)) - told.keys()
        self.samples.extend(samples)
        self.rebound |= set(merged.rebound)
        for disproved in merged.superseded:
            self.changes.pop(disproved, None)
        self.superseded.extend(merged.superseded)
        self.changes |= {change.id: change for change in merged.changes}
        for part, orders in merged.folded.items():
            self.base[part] = msgspec.msgpack.encode(merged.roll.regions[part].base)
            self.forget.extend(orders)
        self._place(merged)

    def _place(self, merged: Merged) -> None:
        part = next(iter(merged.touched), "")
        for old in merged.dropped:
            self.base[old] = b""
            self.united[old] = part
            self.due.pop(old, None)
        self.regions |= dict.fromkeys((*(card.id for card in merged.cards), *(node.id for node in merged.nodes)), part)

    def part_of(self, part: str) -> str:
        """The part that this one went into within the batch."""
        while part in self.united:
            part = self.united[part]
        return part

    def batch(self, now: float) -> Batch:
        """As it is committed."""
        return Batch(
            at=now,
            said=tuple(replace(each, region=self.part_of(each.region)) for each in self.said),
            forget=tuple(self.forget),
            base=self.base,
            cards=tuple(self.cards.values()),
            gone=self.gone,
            vanished=tuple(sorted(self.vanished)),
            nodes=tuple(self.nodes.values()),
            sources=tuple(self.sources.values()),
            nodes_gone=tuple(sorted(self.nodes_gone)),
            sources_gone=tuple(sorted(self.sources_gone)),
            samples=tuple(self.samples),
            rebound=tuple(sorted(self.rebound)),
            changes=tuple(self.changes.values()),
            superseded=tuple(self.superseded),
            findings=tuple(self.findings.values()),
            closed=tuple(sorted(self.closed)),
            events=tuple(self.events),
            captures=tuple(self.captures),
            audit=tuple(self.audit),
            answered=tuple(self.answered),
            reporters=tuple(self.reporters.values()),
            layouts=tuple(self.layouts),
            heard=tuple(self.heard),
            folded_to=self.folded_to,
            names={name: self.part_of(part) for name, part in self.names.items()},
            united=self.united,
            due=self.due,
            regions={one: self.part_of(part) for one, part in self.regions.items()},
        )

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)
