# SPDX-License-Identifier: Apache-2.0
"""The use cases of the roll: take a report, take an operator's word, let time pass. Each reads, calls merge, and writes once."""

from __future__ import annotations

import hashlib
import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from muster.domain.decide.merge import Merged, Region, Roll, merge, tick
from muster.domain.decide.merge.findings import make
from muster.domain.decide.merge.state import Site
from muster.domain.model.errors import InputError
from muster.domain.model.names import NameKind, canonical
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Finding, FindingKind, Listing
from muster.services.events import place_events
from muster.services.journal import Stored, entry, listing
from muster.services.operator import understand
from muster.spi.store import Batch, CaptureRow, EventRow, FindingRow, Received, RollWriter, Said
from muster.wire import report as wire
from muster.wire.report import ActDoc, AnswerDoc, ListingDoc, ReportDoc

APPLIED, DUPLICATE, REFUSED = "applied", "duplicate", "refused"
_SITE = msgspec.msgpack.Decoder(Site)
KEYS_KEPT = 50_000
"""Report keys held in memory to answer doubles; older ones are asked of nobody and taken as new, which merge survives."""


class Inventory:
    """The writer's half of the roll. Single-threaded: the caller hands it one thing at a time."""

    def __init__(self, writer: RollWriter, policy: Policy, now: float) -> None:
        self._writer = writer
        self._policy = policy
        loaded = writer.load()
        self._order = loaded.next_order
        self._keys: OrderedDict[tuple[str, str, int], str] = OrderedDict(((r.reporter, r.incarnation, r.sequence), r.digest) for r in loaded.received)
        self._open: dict[str, Finding] = {f.id: f for f in loaded.findings}
        self._own: dict[str, Finding] = {f.id: f for f in loaded.findings if f.kind in (FindingKind.CLOCK_WRONG, FindingKind.SEQUENCE_CONFLICT)}
        self._by_region: dict[str, set[str]] = {}
        self._roll = _rebuild(loaded.said, loaded.base, policy)
        self._commit(tick(self._roll, policy, now), now)

    def report(self, doc: ReportDoc, now: float) -> AnswerDoc:
        """Takes a report: applied, a duplicate of one taken before, or refused because its number was used for other words."""
        if doc.schema < 1:
            raise InputError(f"schema {doc.schema} is not known", hint="this server reads schema 1 and newer")
        key, digest = (doc.reporter, doc.incarnation, doc.sequence), wire.digest(doc)
        known = self._keys.get(key)
        if known == digest:
            return AnswerDoc(DUPLICATE)
        if known is not None:
            about = f"{doc.reporter}: number {doc.sequence} of {doc.incarnation} came again with other words; a copied state file? Restart the agent there"
            self._raise(make(FindingKind.SEQUENCE_CONFLICT, doc.reporter, about, now), now)
            return AnswerDoc(REFUSED, about)
        self._lower(FindingKind.SEQUENCE_CONFLICT, doc.reporter, now)
        skew = self._clock(doc, now)
        listings = sorted((listing(doc, each, skew, now) for each in doc.listings), key=lambda pair: pair[0].at)
        received = Received(reporter=doc.reporter, incarnation=doc.incarnation, sequence=doc.sequence, digest=digest, received_at=now, answer=APPLIED)
        self._take(listings, doc, received, now)
        self._keys[key] = digest
        while len(self._keys) > KEYS_KEPT:
            self._keys.popitem(last=False)
        return AnswerDoc(APPLIED)

    def act(self, doc: ActDoc, now: float, *, dry_run: bool = False) -> list[str]:
        """Takes an operator's word; returns the ids of the cards it changed. With ``dry_run`` those that it would change, and nothing is kept.

        Raises NotFound, Ambiguous, Conflict or InputError.
        """
        said = understand(self._roll, doc, now)
        resolved = msgspec.structs.replace(doc, card=dict(said.card), other=dict(said.other))
        stored = Stored(None, resolved, None, doc.by, "", 0, now, now)
        merged = merge(self._roll, said, self._order, self._policy, now)
        touched = sorted({c.id for c in merged.cards} | set(merged.gone.values()))
        if dry_run:
            return touched
        audit = {"at": now, "by": doc.by, "what": doc.what, **{k: v for k, v in msgspec.to_builtins(doc).items() if k not in ("by", "what") and v}}
        self._commit(merged, now, said=[self._said(stored, "act")], audit=[audit])
        return touched

    def tick(self, now: float) -> None:
        """Lets time pass."""
        self._commit(tick(self._roll, self._policy, now), now)

    def acknowledge(self, finding: str, by: str, reason: str, now: float) -> FindingRow:
        """Marks an open finding as seen by a person."""
        return self._writer.acknowledge(finding, by, now, reason)

    def _take(self, listings: Iterable[tuple[Listing, ListingDoc]], doc: ReportDoc, received: Received, now: float) -> None:
        merged: Merged | None = None
        said: list[Said] = []
        for word, each in listings:
            step = merge(self._roll if merged is None else merged.roll, word, self._order, self._policy, now)
            stored = Stored(each, None, doc.node, doc.reporter, doc.incarnation, doc.sequence, word.at, now)
            said.append(self._said(stored, "listing"))
            merged = step if merged is None else _both(merged, step)
        roll = self._roll if merged is None else merged.roll
        events = place_events(roll, doc, self._policy)
        captures = [_capture(doc, each) for each in doc.captures if hashlib.sha256(each.payload).hexdigest() == each.digest]
        self._commit(merged or Merged(roll=roll), now, said=said, received=[received], events=events, captures=captures)

    def _said(self, stored: Stored, kind: str) -> Said:
        order, self._order = self._order, self._order + 1
        return Said(order=order, at=stored.at, received_at=stored.received_at, kind=kind, body=stored.packed())

    def _commit(
        self,
        merged: Merged,
        now: float,
        *,
        said: Iterable[Said] = (),
        received: Iterable[Received] = (),
        events: Iterable[EventRow] = (),
        captures: Iterable[CaptureRow] = (),
        audit: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        new, closed = self._findings(merged)
        base = {i: msgspec.msgpack.encode(merged.roll.regions[i].base) for i in merged.folded} | dict.fromkeys(merged.dropped, b"")
        batch = Batch(
            at=now,
            received=tuple(received),
            said=tuple(said),
            forget=tuple(order for orders in merged.folded.values() for order in orders),
            base=base,
            cards=merged.cards,
            gone=merged.gone,
            vanished=merged.vanished,
            nodes_gone=merged.nodes_gone,
            sources_gone=merged.sources_gone,
            nodes=merged.nodes,
            sources=merged.sources,
            samples=merged.samples,
            rebound=merged.rebound,
            changes=merged.changes,
            superseded=merged.superseded,
            findings=tuple(new),
            closed=tuple(closed),
            events=tuple(events),
            captures=tuple(captures),
            audit=tuple(audit),
        )
        if any((batch.received, batch.said, batch.cards, batch.nodes, batch.sources, batch.changes, batch.findings, batch.closed, batch.audit)):
            self._writer.commit(batch)
        self._roll = merged.roll
        self._remember(merged, new, closed)

    def _findings(self, merged: Merged) -> tuple[list[Finding], list[str]]:
        """Findings to write, and ids of those that hold no more. Those of untouched parts stay as they are."""
        now_open = {f.id: f for f in merged.findings}
        mine = {f for region in (*merged.touched, *merged.dropped) for f in self._by_region.get(region, set())}
        whole = set(merged.touched) >= set(merged.roll.regions)
        if whole and merged.touched:
            mine = set(self._open) - set(self._own)
        new = [f for f in now_open.values() if _news(self._open.get(f.id), f)]
        return new, sorted(mine - now_open.keys())

    def _remember(self, merged: Merged, new: list[Finding], closed: list[str]) -> None:
        self._open.update({f.id: f for f in new})
        for each in closed:
            self._open.pop(each, None)
        if len(merged.touched) == 1:
            self._by_region[next(iter(merged.touched))] = {f.id for f in merged.findings}
        elif merged.touched:
            self._by_region = {}
            for region in merged.touched:
                nodes = merged.roll.regions[region].site.nodes
                cards = merged.roll.regions[region].site.cards
                self._by_region[region] = {f.id for f in merged.findings if f.node in nodes or any(c in cards for c in f.cards)}

    def _raise(self, finding: Finding, now: float) -> None:
        if finding.id not in self._own:
            self._writer.commit(Batch(at=now, findings=(finding,)))
            self._own[finding.id] = finding
            self._open[finding.id] = finding

    def _lower(self, kind: FindingKind, subject: str, now: float) -> None:
        for each in [f for f in self._own.values() if f.kind is kind and f.subject == subject]:
            self._writer.commit(Batch(at=now, closed=(each.id,)))
            del self._own[each.id]
            self._open.pop(each.id, None)

    def _clock(self, doc: ReportDoc, now: float) -> float:
        """Seconds to add to the reporter's wall clock; 0 while it is within tolerance."""
        skew = now - doc.sent_at
        if abs(skew) <= self._policy.clock_tolerance:
            self._lower(FindingKind.CLOCK_WRONG, doc.reporter, now)
            return 0.0
        about = f"{doc.reporter}: its clock is {abs(skew):.0f} s {'behind' if skew > 0 else 'ahead'}; its times are corrected by that; set the clock there"
        self._raise(make(FindingKind.CLOCK_WRONG, doc.reporter, about, now, evidence={"skew_s": round(skew, 3)}), now)
        return skew


def _news(old: Finding | None, new: Finding) -> bool:
    return old is None or replace(new, opened_at=old.opened_at) != old


def _capture(doc: ReportDoc, each: wire.CaptureDoc) -> CaptureRow:
    return CaptureRow(
        digest=each.digest,
        source=each.source,
        node=doc.node.name,
        format=each.format,
        locator=tuple(each.locator),
        taken_at=each.taken_at,
        exit_status=each.exit_status,
        stderr=each.stderr,
        cut=each.cut,
        payload=each.payload,
    )


def _both(one: Merged, two: Merged) -> Merged:
    """Two steps as one: the later record of a card wins, what was gone and came back is not gone."""
    cards = {c.id: c for c in (*one.cards, *two.cards) if c.id not in two.gone}
    findings = {f.id: f for f in two.findings}
    if one.touched - two.touched - set(two.dropped):
        findings = {f.id: f for f in (*one.findings, *two.findings)}
    return replace(
        two,
        touched=(one.touched - set(two.dropped)) | two.touched,
        cards=tuple(cards.values()),
        gone={**one.gone, **two.gone},
        nodes=tuple({n.id: n for n in (*one.nodes, *two.nodes)}.values()),
        sources=tuple({(s.node, s.source): s for s in (*one.sources, *two.sources)}.values()),
        samples=(*one.samples, *two.samples),
        rebound=tuple({*one.rebound, *two.rebound}),
        nodes_gone=tuple({*one.nodes_gone, *two.nodes_gone} - {n.id for n in (*one.nodes, *two.nodes)}),
        sources_gone=tuple({*one.sources_gone, *two.sources_gone} - {(s.node, s.source) for s in two.sources}),
        vanished=tuple(({*one.vanished, *two.vanished}) - cards.keys()),
        changes=tuple(c for c in (*one.changes, *two.changes) if c.id not in two.superseded),
        superseded=(*one.superseded, *two.superseded),
        findings=tuple(findings.values()),
        folded={**one.folded, **two.folded},
        dropped=(*one.dropped, *two.dropped),
    )


def _rebuild(said: Iterable[Said], base: Mapping[str, bytes], policy: Policy) -> Roll:
    """The roll from its bases and journal, in the order of arrival: the same steps give the same records and ids."""
    roll = Roll()
    policy = replace(policy, late_listings=sys.maxsize)  # nothing is folded into a base before the store can forget it in the same step
    for i, body in base.items():
        site = _SITE.decode(body)
        roll = _with_region(roll, Region(id=i, base=site, site=site.copy()))
    for each in sorted(said, key=lambda s: s.order):
        word = entry(each)
        roll = merge(roll, word.said, word.order, policy, word.said.received_at).roll
    return roll


def _with_region(roll: Roll, region: Region) -> Roll:
    names: dict[tuple[str, str], str] = {}
    for node in region.site.nodes.values():
        for kind, value in (("system", node.system), ("machine_id", node.machine_id), ("name", canonical(NameKind.HOSTNAME, node.name))):
            if value:
                names[kind, value] = region.id
        names.update({("name", former): region.id for former in node.former})
    for card in region.site.cards.values():
        for kind in (NameKind.VENDOR_UUID, NameKind.SERIAL):
            names.update({(kind.value, value): region.id for value in card.names.get(kind, {})})
    return Roll(regions={**roll.regions, region.id: region}, index={**roll.index, **names})
