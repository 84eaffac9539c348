# SPDX-License-Identifier: Apache-2.0
"""Reports: who speaks, numbered within an incarnation, split when large. Events go in reports of their own, so that a full spool can keep them longest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import msgspec

from muster.collect.bounds import PARTITIONS, halves, within
from muster.collect.clock import Clock
from muster.domain.model.errors import InputError
from muster.wire.bounds import CAPTURES, ROUNDS
from muster.wire.lanes import facts, part, whole
from muster.wire.report import SCHEMA, AgentDoc, CaptureDoc, EventDoc, HeardDoc, ListingDoc, NodeDoc, ReportDoc

SPLIT = 1024 * 1024
"""Bytes above which a report is split."""

_ROW = 16
"""Bytes that the facts of one row take at least."""
_FRAME = 256
"""Bytes that the small fields of a document take, generously."""

Doc: TypeAlias = ListingDoc | HeardDoc | EventDoc | CaptureDoc
T = TypeVar("T", ListingDoc | HeardDoc, EventDoc, CaptureDoc)

_size = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who reports, about which node. ``boot_id`` is the reporter's own boot; ``reporter_name`` the name it was given when it joined, where it did."""

    node: NodeDoc
    boot_id: str = ""
    agent_version: str = ""
    adapters: Mapping[str, str] = field(default_factory=dict)
    reporter_name: str = ""

    @property
    def reporter(self) -> str:
        """The name under which it reports."""
        return self.reporter_name or f"agent@{self.node.name}"


class Reports:
    """Numbers the reports of one incarnation; threads may share it. ``mint`` gives a new incarnation's name."""

    def __init__(self, identity: Identity, clock: Clock, mint: Callable[[], str], split: int = SPLIT) -> None:
        self.identity = identity
        self._clock = clock
        self._mint = mint
        self._split = split
        self._lock = threading.Lock()
        self._fits: dict[str, bytes] = {}
        """Facts of each source that were last found to be within what one report may tell."""
        self.renew()

    def renew(self) -> None:
        """Begins a new incarnation, with a new numbering."""
        with self._lock:
            self.incarnation = self._mint()
            self.sequence = 0

    def build(
        self, rounds: Sequence[ListingDoc] | Sequence[HeardDoc], events: Sequence[EventDoc], captures: Sequence[CaptureDoc], agent: AgentDoc | None = None
    ) -> list[ReportDoc]:
        """The reports that say all of it: one where it fits. A round is parted only where it says more of a node than one report may.

        Captures go with it where there is room, else behind. ``agent`` goes into the first.
        """
        found = []
        rest = list(captures)
        parted = [self._within(each) for each in rounds]
        for some in _parts([first for first, *_ in parted], self._split, ROUNDS):
            used = sum(_bytes(each) for each in some)
            fit = [each for each in rest if (used := used + _bytes(each)) <= self._split]
            rest = [each for each in rest if each not in fit]
            found.append(self._report(rounds=some, captures=fit))
        found.extend(self._report(rounds=[each]) for _, *further in parted for each in further)
        found.extend(self._report(captures=some) for some in _parts(rest, self._split))
        found.extend(self._report(events=some) for some in _parts(events, self._split))
        if agent is not None:
            found = found or [self._report()]
            found[0].agent = agent
        return found

    def _within(self, each: ListingDoc | HeardDoc) -> list[ListingDoc | HeardDoc]:
        """A round in as many as its bounds ask."""
        if isinstance(each, ListingDoc):
            return [*within(each)]
        if len(each.facts) <= PARTITIONS * _ROW or self._fits.get(each.source) == each.facts:
            return [each]
        doc = whole(each, facts(each, bounded=False))
        found = within(doc)
        if found[0] is not doc:
            return [part(some) for some in found]
        self._fits[each.source] = each.facts
        return [each]

    def smaller(self, report: ReportDoc) -> list[ReportDoc]:
        """What a report that is too large for the server says, in two of it; empty where it cannot be parted."""
        docs: list[Doc] = [*report.listings, *report.heard, *report.events, *report.captures]
        pieces = [docs[: len(docs) // 2], docs[len(docs) // 2 :]] if len(docs) > 1 else [[each] for each in _cut(docs)]
        return [self._of(piece, report) for piece in pieces]

    def _of(self, docs: Iterable[Doc], like: ReportDoc) -> ReportDoc:
        docs = list(docs)
        made = self._report(
            rounds=[each for each in docs if isinstance(each, ListingDoc | HeardDoc)],
            events=[each for each in docs if isinstance(each, EventDoc)],
            captures=[each for each in docs if isinstance(each, CaptureDoc)],
        )
        return msgspec.structs.replace(made, node=like.node, reporter=like.reporter)

    def _report(self, rounds: Iterable[ListingDoc | HeardDoc] = (), events: Iterable[EventDoc] = (), captures: Iterable[CaptureDoc] = ()) -> ReportDoc:
        with self._lock:
            self.sequence += 1
            incarnation, sequence = self.incarnation, self.sequence
        who, rounds = self.identity, list(rounds)
        return ReportDoc(
            reporter=who.reporter,
            incarnation=incarnation,
            sequence=sequence,
            node=who.node,
            schema=SCHEMA,
            sent_at=self._clock.wall(),
            sent_mono=self._clock.mono(),
            boot_id=who.boot_id,
            agent_version=who.agent_version,
            adapters=dict(who.adapters),
            listings=[each for each in rounds if isinstance(each, ListingDoc)],
            heard=[each for each in rounds if isinstance(each, HeardDoc)],
            events=list(events),
            captures=list(captures),
        )


def _cut(docs: Sequence[Doc]) -> Sequence[Doc]:
    """One round in two by its cards; nothing where that cannot be."""
    for each in docs:
        if isinstance(each, ListingDoc):
            return halves(each)
        if isinstance(each, HeardDoc):
            try:
                return [part(half) for half in halves(whole(each))]
            except InputError:
                return []
    return []


def _parts(docs: Sequence[T], limit: int, most: int = CAPTURES) -> Iterator[list[T]]:
    """Runs of at most ``most`` documents that stay below ``limit`` bytes; one that is larger stands alone."""
    some: list[T] = []
    used = 0
    for each in docs:
        size = _bytes(each)
        if some and (used + size > limit or len(some) >= most):
            yield some
            some, used = [], 0
        some.append(each)
        used += size
    if some:
        yield some


def _bytes(doc: Doc) -> int:
    if isinstance(doc, HeardDoc):
        return len(doc.facts) + len(doc.numbers) + _FRAME
    if isinstance(doc, CaptureDoc):
        return len(doc.payload) + len(doc.stderr) + _FRAME
    return len(_size.encode(doc))
