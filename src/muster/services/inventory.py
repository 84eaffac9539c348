# SPDX-License-Identifier: Apache-2.0
"""The use cases of the roll: take a report, take an operator's word, let time pass. Each reads, calls merge, and writes once."""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from muster.domain.decide.merge import Entry, Merged, Region, Roll, merge, tick
from muster.domain.decide.merge.findings import make
from muster.domain.decide.merge.state import Site
from muster.domain.model.attributes import ATTRIBUTES
from muster.domain.model.errors import Ambiguous, Conflict, InputError, NotFound
from muster.domain.model.names import NameKind, canonical
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Absent
from muster.domain.model.roll import Act, ActKind, CardRecord, Finding, FindingKind, Listing, NodeNames, Witness
from muster.domain.model.source import Channel, Outcome, WitnessClass
from muster.domain.model.units import Unit
from muster.formats.numbers import quantity
from muster.services.events import place_events
from muster.spi.store import Batch, CaptureRow, EventRow, FindingRow, Received, RollWriter, Said
from muster.wire import report as wire
from muster.wire.mapping import to_observations
from muster.wire.report import ActDoc, AnswerDoc, ListingDoc, ReportDoc

APPLIED, DUPLICATE, REFUSED = "applied", "duplicate", "refused"
_SITE = msgspec.msgpack.Decoder(Site)
KEYS_KEPT = 50_000
"""Report keys held in memory to answer doubles; older ones are asked of nobody and taken as new, which merge survives."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """The journal form of a word."""

    listing: ListingDoc | None
    act: ActDoc | None
    node: wire.NodeDoc | None
    reporter: str
    incarnation: str
    sequence: int
    at: float
    received_at: float


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
        listings = sorted((_listing(doc, each, skew, now) for each in doc.listings), key=lambda pair: pair[0].at)
        received = Received(reporter=doc.reporter, incarnation=doc.incarnation, sequence=doc.sequence, digest=digest, received_at=now, answer=APPLIED)
        self._take(listings, doc, received, now)
        self._keys[key] = digest
        while len(self._keys) > KEYS_KEPT:
            self._keys.popitem(last=False)
        return AnswerDoc(APPLIED)

    def act(self, doc: ActDoc, now: float) -> list[str]:
        """Takes an operator's word; returns the ids of the cards it changed. Raises NotFound, Ambiguous, Conflict or InputError."""
        said = self._act(doc, now)
        resolved = msgspec.structs.replace(doc, card=dict(said.card), other=dict(said.other))
        stored = _Stored(None, resolved, None, doc.by, "", 0, now, now)
        merged = merge(self._roll, said, self._order, self._policy, now)
        audit = {"at": now, "by": doc.by, "what": doc.what, **{k: v for k, v in msgspec.to_builtins(doc).items() if k not in ("by", "what") and v}}
        self._commit(merged, now, said=[self._said(stored, "act")], audit=[audit])
        return sorted({c.id for c in merged.cards} | set(merged.gone.values()))

    def tick(self, now: float) -> None:
        """Lets time pass."""
        self._commit(tick(self._roll, self._policy, now), now)

    def acknowledge(self, finding: str, by: str, reason: str, now: float) -> FindingRow:
        """Marks an open finding as seen by a person."""
        return self._writer.acknowledge(finding, by, now, reason)

    def _take(self, listings: Iterable[tuple[Listing, ListingDoc]], doc: ReportDoc, received: Received, now: float) -> None:
        merged: Merged | None = None
        said: list[Said] = []
        for listing, each in listings:
            step = merge(self._roll if merged is None else merged.roll, listing, self._order, self._policy, now)
            stored = _Stored(each, None, doc.node, doc.reporter, doc.incarnation, doc.sequence, listing.at, now)
            said.append(self._said(stored, "listing"))
            merged = step if merged is None else _both(merged, step)
        roll = self._roll if merged is None else merged.roll
        events = place_events(roll, doc, self._policy)
        captures = [_capture(doc, each) for each in doc.captures]
        self._commit(merged or Merged(roll=roll), now, said=said, received=[received], events=events, captures=captures)

    def _said(self, stored: _Stored, kind: str) -> Said:
        order, self._order = self._order, self._order + 1
        return Said(order=order, at=stored.at, received_at=stored.received_at, kind=kind, body=msgspec.msgpack.encode(stored))

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

    def _act(self, doc: ActDoc, now: float) -> Act:
        try:
            what = ActKind(doc.what)
        except ValueError:
            raise InputError(f"nothing called {doc.what!r} can be said", hint=f"one of {', '.join(ActKind)}") from None
        card = self._resolve(doc.card, what) if doc.card else {}
        other = self._resolve(doc.other, ActKind.SAME) if doc.other else {}
        if what in (ActKind.SAME, ActKind.NOT_SAME) and not (card and other):
            raise InputError("two cards are needed", hint="name both by UUID, serial or id")
        if what is ActKind.REMOVE_SOURCE:
            self._known_source(doc)
        if what is ActKind.SET and not doc.values:
            raise InputError("nothing to set", hint="give at least one key=value; key= takes a word back")
        if what in (ActKind.STORE, ActKind.RETIRE) and not card:
            raise InputError("no card named", hint="name it by UUID, serial or id")
        return Act(
            what=what,
            by=doc.by or "operator",
            at=now,
            received_at=now,
            card=card,
            other=other,
            node=doc.node,
            source=doc.source,
            values={k: typed(k, v) for k, v in doc.values.items()},
            place=doc.place,
            reason=doc.reason,
        )

    def _resolve(self, ids: Mapping[str, str], what: ActKind) -> dict[str, str]:
        """The ids with our own card id beside them; unknown strong ids are kept for a card that only the operator knows."""
        unknown = set(ids) - {"id", *NameKind}
        if unknown:
            raise InputError(f"{', '.join(sorted(unknown))}: no kind of id", hint=f"one of id, {', '.join(NameKind)}")
        found: dict[str, CardRecord | None] = {}
        for region in self._roll.regions.values():
            for card in region.site.cards.values():
                if "id" in ids:
                    wanted = region.site.gone.get(ids["id"], ids["id"])
                    if card.id == wanted:
                        found[card.id] = None
                elif all(canonical(NameKind(k), v) in card.names.get(NameKind(k), {}) for k, v in ids.items()):
                    found[card.id] = None
        if len(found) > 1:
            raise Ambiguous(f"{len(found)} cards fit {dict(ids)}", hint="name one by its id: " + ", ".join(sorted(found)))
        if found:
            return {"id": next(iter(found))} | {k: v for k, v in ids.items() if k != "id"}
        may_be_new = what in (ActKind.STORE, ActKind.SET, ActKind.RETIRE) and any(k in ids for k in (NameKind.SERIAL.value, NameKind.VENDOR_UUID.value))
        if not may_be_new:
            raise NotFound(f"no card {dict(ids)}", hint="`muster get cards -o wide` lists them")
        return dict(ids)

    def _known_source(self, doc: ActDoc) -> None:
        for region in self._roll.regions.values():
            for (node, source), speaker in region.site.speakers.items():
                names = {node, canonical(NameKind.HOSTNAME, region.site.nodes[node].name)} if node in region.site.nodes else {node}
                if source == doc.source and ({doc.node, canonical(NameKind.HOSTNAME, doc.node)} & names):
                    if speaker.removed:
                        raise Conflict(f"{doc.node}/{doc.source} is removed already")
                    return
        raise NotFound(f"no source {doc.source} on {doc.node}", hint="`muster get sources` lists them")


def typed(key: str, value: Any) -> Any:
    """An operator's value as its attribute has it. Raises InputError for a key that is not in the dictionary, or a value that is not of its kind."""
    entry = ATTRIBUTES.get(key)
    if entry is None:
        raise InputError(f"no attribute {key!r}", hint="docs/reference/attributes.md lists them; asset.* are the operator's own")
    if value is None or value == "":
        return None
    if entry.numeric and isinstance(value, str):
        reading = quantity(key, value)
        if isinstance(reading, Absent):
            raise InputError(f"{key}={value}: {reading.detail or reading.why}", hint=f"a number in {entry.unit}")
        return reading.value
    if entry.unit is Unit.BOOL and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if entry.unit is Unit.DATE and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", str(value)):
        raise InputError(f"{key}={value}: no date", hint="write YYYY-MM-DD")
    return value


def _news(old: Finding | None, new: Finding) -> bool:
    return old is None or replace(new, opened_at=old.opened_at) != old


def _listing(doc: ReportDoc, each: ListingDoc, skew: float, now: float) -> tuple[Listing, ListingDoc]:
    """A listing with its corrected time: by monotonic age where the boot is the same, else by the wall clock."""
    if each.boot_id == doc.boot_id and (each.observed_mono or doc.sent_mono):
        at = doc.sent_at - max(0.0, doc.sent_mono - each.observed_mono) + skew
    else:
        at = each.observed_at + skew
    return _domain(doc.node, doc.reporter, doc.incarnation, doc.sequence, each, min(at, now), now), each


def _domain(node: wire.NodeDoc, reporter: str, incarnation: str, sequence: int, each: ListingDoc, at: float, received_at: float) -> Listing:
    try:
        channel, witness, outcome = Channel(each.channel), WitnessClass(each.witness), Outcome(each.outcome)
    except ValueError as wrong:
        raise InputError(f"listing of {each.source}: {wrong}", hint="is the agent newer than the server? Upgrade the server first") from wrong
    return Listing(
        node=NodeNames(name=node.name, machine_id=node.machine_id, system=node.system),
        witness=Witness(source=each.source, channel=channel, witness=witness, cadence=each.cadence),
        reporter=reporter,
        incarnation=incarnation,
        sequence=sequence,
        at=at,
        received_at=received_at,
        complete=each.complete,
        outcome=outcome,
        counts=_counts(each.counts),
        observations=to_observations(each),
        capture=each.capture,
        detail=each.detail,
        unknown_shape=each.unknown_shape,
        stuck=each.stuck,
        standing_by=each.standing_by,
    )


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by plural; a level's own word is taken too."""
    return {(k if k.endswith("s") else k + "s"): v for k, v in counts.items()}


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
        entry = _entry(each)
        roll = merge(roll, entry.said, entry.order, policy, entry.said.received_at).roll
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


def _entry(said: Said) -> Entry:
    stored = msgspec.msgpack.decode(said.body, type=_Stored)
    if stored.act is not None:
        doc = stored.act
        act = Act(
            what=ActKind(doc.what),
            by=doc.by or "operator",
            at=stored.at,
            received_at=stored.received_at,
            card=doc.card,
            other=doc.other,
            node=doc.node,
            source=doc.source,
            values={k: typed(k, v) for k, v in doc.values.items()},
            place=doc.place,
            reason=doc.reason,
        )
        return Entry(stored.at, said.order, act)
    if stored.listing is None or stored.node is None:
        raise InputError(f"journal entry {said.order} is neither listing nor act", hint="the store is damaged: restore a backup")
    return Entry(
        stored.at,
        said.order,
        _domain(stored.node, stored.reporter, stored.incarnation, stored.sequence, stored.listing, stored.at, stored.received_at),
    )
