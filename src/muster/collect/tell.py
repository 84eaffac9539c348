# SPDX-License-Identifier: Apache-2.0
"""Rounds to the documents of a report: listings, events, and the captures that changed facts rest on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from muster.collect.collector import Round
from muster.collect.evidence import Evidence
from muster.collect.privacy import process_names, redacted, without_names
from muster.collect.route import Routed, places
from muster.domain.model.observation import Event
from muster.wire.mapping import Seeing, to_event_docs, to_listing_doc
from muster.wire.report import CaptureDoc, EventDoc, ListingDoc


@dataclass(slots=True)
class Told:
    """What is still to be reported."""

    listings: list[ListingDoc] = field(default_factory=list)
    events: list[EventDoc] = field(default_factory=list)
    captures: list[CaptureDoc] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.listings or self.events or self.captures)


class Teller:
    """Knows the boot that the monotonic clock is of. ``names`` keeps names of processes in rows and captures."""

    def __init__(self, boot_id: str, evidence: Evidence | None = None, *, names: bool = False) -> None:
        self.evidence = evidence or Evidence()
        self._boot_id = boot_id
        self._names = names

    def tell(self, rounds: Iterable[Round]) -> Told:
        """The documents of these rounds, in order."""
        told = Told()
        for each in rounds:
            for routed in each.routed:
                self._one(each, routed, told)
        return told

    def _one(self, each: Round, routed: Routed, told: Told) -> None:
        kept = routed.told if self._names else without_names(routed.told)
        if routed.own or kept.observations:
            doc = to_listing_doc(
                each.source,
                kept,
                Seeing(at=each.at, mono=each.mono, boot_id=self._boot_id),
                adapter=routed.adapter,
                stuck=each.stuck,
                standing_by=each.standing_by,
            )
            if not routed.own:
                doc.source = f"{each.source.id}:{routed.adapter}"
            told.listings.append(doc)
            told.captures.extend(self._attached(each, routed, doc))
        told.events.extend(self._events(each, routed, kept.events))

    def _attached(self, each: Round, routed: Routed, doc: ListingDoc) -> list[CaptureDoc]:
        if each.standing_by or not routed.own:
            return []
        names = frozenset() if self._names else process_names(routed.told)
        log = bool(routed.told.events) and not self._names
        captures = [redacted(capture, names, log=log) for capture in each.captures] if names or log else each.captures
        return self.evidence.attach(doc, captures, each.mono)

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
