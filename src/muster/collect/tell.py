# SPDX-License-Identifier: Apache-2.0
"""Rounds to the documents of a report: listings and their two lanes, events, and the captures that changed facts and events rest on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from muster.collect.bounds import bounded
from muster.collect.collector import Round
from muster.collect.evidence import Evidence
from muster.collect.privacy import process_names, redacted, without_names, without_secrets
from muster.collect.route import Routed, places
from muster.domain.model.observation import Event, Interpretation
from muster.domain.model.source import Capture
from muster.wire.lanes import part
from muster.wire.mapping import Seeing, to_event_docs, to_listing_doc
from muster.wire.report import CaptureDoc, EventDoc, HeardDoc, ListingDoc


@dataclass(slots=True)
class Told:
    """What is still to be reported. ``heard`` says in two lanes what ``listings`` say whole."""

    listings: list[ListingDoc] = field(default_factory=list)
    heard: list[HeardDoc] = field(default_factory=list)
    events: list[EventDoc] = field(default_factory=list)
    captures: list[CaptureDoc] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.listings or self.events or self.captures)


class Teller:
    """Knows the boot that the monotonic clock is of. ``names`` keeps names of processes in rows and captures; secrets never stay."""

    def __init__(self, boot_id: str, evidence: Evidence | None = None, *, names: bool = False) -> None:
        self.evidence = evidence or Evidence()
        self._boot_id = boot_id
        self._names = names
        self._happened: dict[str, frozenset[tuple[str, int]]] = {}

    def tell(self, rounds: Iterable[Round]) -> Told:
        """The documents of these rounds, in order."""
        told = Told()
        for each in rounds:
            self._round(each, told)
        return told

    def forget(self) -> None:
        """Tells all evidence and all events anew: a new incarnation begins."""
        self.evidence.forget()
        self._happened.clear()

    def _round(self, each: Round, told: Told) -> None:
        kept = [(routed, without_secrets(routed.told if self._names else without_names(routed.told))) for routed in each.routed]
        events = self._fresh(str(each.source.id), [doc for routed, said in kept if said.events for doc in self._events(each, routed, said.events)])
        for routed, said in kept:
            if routed.own or said.observations:
                doc = self._listing(each, routed, said)
                heard = part(doc)
                if routed.own and not each.standing_by:
                    captures = partial(self._redacted, each)
                    told.captures.extend(self.evidence.attach(doc, captures, each.mono, lane=heard.facts, happened=bool(events)))
                    heard.capture = doc.capture
                told.listings.append(doc)
                told.heard.append(heard)
        told.events.extend(events)

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
