# SPDX-License-Identifier: Apache-2.0
"""Rounds to the documents of a report: listings and their two lanes, events, and the captures that changed facts and events rest on."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from muster.collect.bounds import bounded
from muster.collect.collector import Round
from muster.collect.evidence import Evidence
from muster.collect.privacy import process_names, redacted, without_names, without_secrets
from muster.collect.route import Routed, places
from muster.collect.swift import Numbers
from muster.domain.model.attributes import Level
from muster.domain.model.observation import Event, Interpretation
from muster.domain.model.source import Capture, SourceId
from muster.wire.lanes import facts, part, values
from muster.wire.mapping import Seeing, to_event_docs, to_listing_doc
from muster.wire.report import CaptureDoc, EventDoc, HeardDoc, ListingDoc, ObservationDoc

DETAIL_S = 600.0
"""Seconds after which what moved in the vendor's own detail alone is told: a clock or a counter in it is no change of facts."""


@dataclass(slots=True)
class Told:
    """What is still to be reported. ``heard`` says in two lanes what ``listings`` say whole."""

    listings: list[ListingDoc] = field(default_factory=list)
    heard: list[HeardDoc] = field(default_factory=list)
    events: list[EventDoc] = field(default_factory=list)
    captures: list[CaptureDoc] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.heard or self.events or self.captures)


@dataclass(frozen=True, slots=True)
class Said:
    """The facts of a source as they were last told, with the vendor's own detail and without, and when (monotonic)."""

    bare: bytes
    facts: bytes
    at: float


class Lanes:
    """Where the numbers of a source's cards stand in its lane, so that new ones can be put there."""

    def __init__(self, heard: HeardDoc) -> None:
        self._heard = heard
        self._places: list[dict[str, int]] | None = None
        self._numbers: list[float] = []

    def moved(self, each: Round, numbers: Numbers, boot_id: str) -> HeardDoc:
        """The round with these numbers in place of the last ones."""
        if self._places is None:
            self._places = [_placed(row) for row in facts(self._heard).observations if row.level == Level.CARD.value]
            self._numbers.extend(values(self._heard))
        for at, some in zip(self._places, numbers, strict=True):
            for key, value in some.items():
                self._numbers[at[key]] = value
        packed = struct.pack(f"<{len(self._numbers)}d", *self._numbers)
        return msgspec.structs.replace(self._heard, numbers=packed, observed_at=each.at, observed_mono=each.mono, boot_id=boot_id)


def _placed(row: ObservationDoc) -> dict[str, int]:
    return {key: reading["n"] for key, reading in row.readings.items() if "n" in reading}


class Teller:
    """Knows the boot that the monotonic clock is of. ``names`` keeps names of processes in rows and captures; secrets never stay."""

    def __init__(self, boot_id: str, evidence: Evidence | None = None, *, names: bool = False) -> None:
        self.evidence = evidence or Evidence()
        self._boot_id = boot_id
        self._names = names
        self._happened: dict[str, frozenset[tuple[str, int]]] = {}
        self._lanes: dict[SourceId, Lanes] = {}
        self._said: dict[str, Said] = {}

    def tell(self, rounds: Iterable[Round]) -> Told:
        """The documents of these rounds, in order."""
        told = Told()
        for each in rounds:
            if each.moved is None:
                self._round(each, told)
            elif (lanes := self._lanes.get(each.source.id)) is not None:
                told.heard.append(lanes.moved(each, each.moved, self._boot_id))
        return told

    def forget(self) -> None:
        """Tells all evidence and all events anew: a new incarnation begins."""
        self.evidence.forget()
        self._happened.clear()
        self._said.clear()

    def _round(self, each: Round, told: Told) -> None:
        kept = [(routed, without_secrets(routed.told if self._names else without_names(routed.told))) for routed in each.routed]
        events = self._fresh(str(each.source.id), [doc for routed, said in kept if said.events for doc in self._events(each, routed, said.events)])
        for routed, said in kept:
            if routed.own or said.observations:
                doc = self._listing(each, routed, said)
                heard = self._parted(doc, each.mono)
                if routed.own and not each.standing_by:
                    captures = partial(self._redacted, each)
                    told.captures.extend(self.evidence.attach(doc, captures, each.mono, lane=heard.facts, happened=bool(events)))
                    heard.capture = doc.capture
                told.listings.append(doc)
                told.heard.append(heard)
                if routed.own:
                    self._lanes[each.source.id] = Lanes(heard)
        told.events.extend(events)

    def _parted(self, doc: ListingDoc, now: float) -> HeardDoc:
        """The listing in two lanes. Where nothing but the vendor's own detail moved, the facts stay as they were told, for a while."""
        bare = part(msgspec.structs.replace(doc, observations=[msgspec.structs.replace(row, vendor={}) for row in doc.observations]))
        said = self._said.get(doc.source)
        if said is not None and said.bare == bare.facts and now - said.at < DETAIL_S:
            bare.facts = said.facts
            return bare
        heard = part(doc)
        self._said[doc.source] = Said(bare.facts, heard.facts, now)
        return heard

    def _listing(self, each: Round, routed: Routed, said: Interpretation) -> ListingDoc:
        seeing = Seeing(at=each.at, mono=each.mono, boot_id=self._boot_id)
        doc = to_listing_doc(each.source, bounded(said), seeing, adapter=routed.adapter, stuck=each.stuck, standing_by=each.standing_by)
        if not routed.own:
            doc.source = f"{each.source.id}:{routed.adapter}"
        return doc

    def _fresh(self, source: str, events: list[EventDoc]) -> list[EventDoc]:
        """Events that the round before did not tell already: a tool that prints what it remembers does so each time."""
        before = self._happened.get(source, frozenset())
        if before or events:
            self._happened[source] = frozenset((each.id, each.repeats) for each in events)
        return [each for each in events if (each.id, each.repeats) not in before]

    def _redacted(self, each: Round) -> list[Capture]:
        log = any(routed.told.events for routed in each.routed)
        names = frozenset[str]() if self._names else frozenset[str]().union(*(process_names(routed.told) for routed in each.routed))
        return [redacted(capture, names, log=log and not self._names) for capture in each.captures]

    def _events(self, each: Round, routed: Routed, events: Sequence[Event]) -> list[EventDoc]:
        boots = [boot for capture in each.captures if (boot := capture.context.get("boot_id"))]
        place = places(each.captures, each.cursor)
        raw = {id(kept): told for kept, told in zip(events, routed.told.events, strict=True)}
        return to_event_docs(
            events,
            source=str(each.source.id),
            adapter=routed.adapter,
            boot_id=boots[0] if boots else self._boot_id,
            place=lambda event: place(raw.get(id(event), event)),
            seen_at=each.at,
        )
