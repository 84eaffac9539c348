# SPDX-License-Identifier: Apache-2.0
"""Reports: who speaks, numbered within an incarnation, split when large. Events go in reports of their own, so that a full spool can keep them longest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from muster.collect.clock import Clock
from muster.wire.report import CaptureDoc, EventDoc, ListingDoc, NodeDoc, ReportDoc

SPLIT = 2 * 1024 * 1024
"""Bytes above which a report is split."""

T = TypeVar("T", ListingDoc, EventDoc, CaptureDoc)

_size = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who reports, about which node. ``boot_id`` is the reporter's own boot."""

    node: NodeDoc
    boot_id: str = ""
    agent_version: str = ""
    adapters: Mapping[str, str] = field(default_factory=dict)

    @property
    def reporter(self) -> str:
        """The name under which it reports."""
        return f"agent@{self.node.name}"


class Reports:
    """Numbers the reports of one incarnation. ``mint`` gives a new incarnation's name."""

    def __init__(self, identity: Identity, clock: Clock, mint: Callable[[], str], split: int = SPLIT) -> None:
        self.identity = identity
        self._clock = clock
        self._mint = mint
        self._split = split
        self.renew()

    def renew(self) -> None:
        """Begins a new incarnation, with a new numbering."""
        self.incarnation = self._mint()
        self.sequence = 0

    def build(self, listings: Sequence[ListingDoc], events: Sequence[EventDoc], captures: Sequence[CaptureDoc]) -> list[ReportDoc]:
        """The reports that say all of it: one where it fits. A listing is never parted; captures go with it where there is room, else behind."""
        found = []
        rest = list(captures)
        for part in _parts(listings, self._split):
            used = sum(_bytes(each) for each in part)
            fit = [each for each in rest if (used := used + _bytes(each)) <= self._split]
            rest = [each for each in rest if each not in fit]
            found.append(self._report(listings=part, captures=fit))
        found.extend(self._report(captures=part) for part in _parts(rest, self._split))
        found.extend(self._report(events=part) for part in _parts(events, self._split))
        return found

    def _report(self, listings: Iterable[ListingDoc] = (), events: Iterable[EventDoc] = (), captures: Iterable[CaptureDoc] = ()) -> ReportDoc:
        self.sequence += 1
        who = self.identity
        return ReportDoc(
            reporter=who.reporter,
            incarnation=self.incarnation,
            sequence=self.sequence,
            node=who.node,
            sent_at=self._clock.wall(),
            sent_mono=self._clock.mono(),
            boot_id=who.boot_id,
            agent_version=who.agent_version,
            adapters=dict(who.adapters),
            listings=list(listings),
            events=list(events),
            captures=list(captures),
        )


def _parts(docs: Sequence[T], limit: int) -> Iterator[list[T]]:
    """Runs of documents that stay below ``limit`` bytes; one that is larger stands alone."""
    part: list[T] = []
    used = 0
    for each in docs:
        size = _bytes(each)
        if part and used + size > limit:
            yield part
            part, used = [], 0
        part.append(each)
        used += size
    if part:
        yield part


def _bytes(doc: ListingDoc | EventDoc | CaptureDoc) -> int:
    return len(_size.encode(doc))
