# SPDX-License-Identifier: Apache-2.0
"""The roll: parts of the site that share no name, each a fold over its journal in the order of the corrected times.

A word that comes late is put in its place and what followed is folded again from a checkpoint, so that the roll always equals ordered delivery.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.domain.decide.essence import essence
from muster.domain.decide.merge.again import Ahead, ahead_of, go_on
from muster.domain.decide.merge.apply import advance, apply
from muster.domain.decide.merge.findings import findings
from muster.domain.decide.merge.match import Point
from muster.domain.decide.merge.nodes import keys
from muster.domain.decide.merge.record import aside, card_record, measured_words, node_record, source_record
from muster.domain.decide.merge.state import STRONG, Card, Site, digest
from muster.domain.decide.merge.words import said_at
from muster.domain.model.names import NameKind, canonical, names_nothing
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Act, Again, CardRecord, Change, Finding, Listing, NodeNames, NodeRecord, Sample, SourceRecord, Word

CHECKPOINT = 24
"""Words between two checkpoints of a part."""


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


def merge(roll: Roll, said: Listing | Act | Again, order: int, policy: Policy, now: float) -> Merged:
    """Takes one word into the roll. Pure: the same roll and word give the same answer."""
    names = _names(said, policy)
    found = _regions(roll, said, names)
    before = [roll.regions[i] for i in found]
    region = _unite(before) if before else Region(id=_free_id(roll, order, names), base=Site(), site=Site())
    entry = Entry(said.at, order, said)
    late = entry.at < region.site.clock
    old = region.site
    region, points = _insert(region, entry, policy, now, {}) if late else _append(region, entry, policy, now, {})
    moved = late or len(before) > 1 or len(region.site.gone) != len(old.gone) or set(region.site.cards) != set(old.cards)
    region, folded = _compact(region, policy, now)
    united = tuple(i for i in found if i != region.id)
    index = _reindex(roll.index, region, names, united)
    known = before[0].records if len(before) == 1 else None
    merged, records = _difference(old, region.site, policy, now, whole=bool(united), rewrite=moved, known=known)
    region = replace(region, records=records)
    regions = {**{i: r for i, r in roll.regions.items() if i not in united}, region.id: region}
    fresh = _samples(region.site, points, said)
    told = {(s.subject, s.node, s.source, s.key) for s in fresh if s.word.at == s.at}
    samples = (*(s for s in merged.samples if (s.subject, s.node, s.source, s.key) not in told), *fresh)
    return replace(
        merged,
        roll=Roll(regions=regions, index=index),
        touched=frozenset({region.id}),
        samples=samples,
        folded={region.id: folded} if folded or any(r.base.nodes for r in before[1:]) else {},
        dropped=united,
    )


def tick(roll: Roll, policy: Policy, now: float) -> Merged:
    """Lets time pass: promises run out, absences settle. Only parts in which something ran out change."""
    regions = dict(roll.regions)
    parts: list[Merged] = []
    open_now: list[Finding] = []
    for i, region in roll.regions.items():
        site = region.site.copy()
        if advance(site, now, now, policy):
            part, records = _difference(region.site, site, policy, now, whole=False, rewrite=False, known=region.records)
            regions[i] = replace(region, site=site, records=records)
            parts.append(part)
        open_now.extend(findings(site, now, policy))
    return Merged(
        roll=replace(roll, regions=regions),
        touched=frozenset(roll.regions),
        cards=tuple(c for m in parts for c in m.cards),
        sources=tuple(s for m in parts for s in m.sources),
        changes=tuple(c for m in parts for c in m.changes),
        findings=tuple(open_now),
        news=bool(parts),
    )


def restore(part: str, base: Site | None, said: Sequence[Entry], policy: Policy) -> Region:
    """A part of the site from the state before its journal and its journal, which is told again in the order of arrival."""
    start = base if base is not None else Site()
    region = Region(id=part, base=start, site=start.copy())
    told = sorted(said, key=lambda e: e.order)
    for entry, ahead in zip(told, ahead_of([e.said for e in told], {}), strict=True):
        now = entry.said.received_at
        late = entry.at < region.site.clock
        region, _ = _insert(region, entry, policy, now, ahead) if late else _append(region, entry, policy, now, ahead)
    return region


def _append(region: Region, entry: Entry, policy: Policy, now: float, ahead: Ahead) -> tuple[Region, list[Point]]:
    site = region.site.copy()
    go_on(site, ahead, entry.at, (entry.at, entry.order), policy)
    points = apply(site, entry.said, entry.order, policy)
    journal = (*region.journal, entry)
    checkpoints = region.checkpoints
    if len(journal) % CHECKPOINT == 0:
        checkpoints = (*checkpoints, (len(journal), site.copy()))
    _pass(site, now, ahead, policy)
    return replace(region, journal=journal, checkpoints=checkpoints, site=site), points


def _pass(site: Site, now: float, ahead: Ahead, policy: Policy) -> None:
    """Lets time pass up to ``now``, for those of whom nothing is known further on."""
    go_on(site, ahead, now, site.n, policy)
    advance(site, now, now, policy)


def _insert(region: Region, entry: Entry, policy: Policy, now: float, ahead: Ahead) -> tuple[Region, list[Point]]:
    at = bisect_right([(e.at, e.order) for e in region.journal], (entry.at, entry.order))
    journal = (*region.journal[:at], entry, *region.journal[at:])
    kept = tuple(c for c in region.checkpoints if c[0] <= at)
    site, points, checkpoints = _fold(kept[-1] if kept else (0, region.base), journal, entry, policy, ahead)
    _pass(site, now, ahead, policy)
    renamed = keep_ids(region.site, site)
    for _, each in checkpoints:
        for old, new in renamed.items():
            if old in each.cards:
                _rename(each, each.cards[old], new)
    return replace(region, journal=journal, checkpoints=(*kept, *checkpoints), site=site), points


def _fold(
    start: tuple[int, Site], journal: Sequence[Entry], wanted: Entry | None, policy: Policy, after: Ahead
) -> tuple[Site, list[Point], list[tuple[int, Site]]]:
    done, site = start[0], start[1].copy()
    points: list[Point] = []
    checkpoints: list[tuple[int, Site]] = []
    aheads = ahead_of([entry.said for entry in journal[done:]], after)
    for number, (entry, ahead) in enumerate(zip(journal[done:], aheads, strict=True), done + 1):
        go_on(site, ahead, entry.at, (entry.at, entry.order), policy)
        told = apply(site, entry.said, entry.order, policy)
        if entry is wanted:
            points = told
        if number % CHECKPOINT == 0:
            checkpoints.append((number, site.copy()))
    return site, points, checkpoints


def keep_ids(before: Site, after: Site) -> dict[str, str]:
    """Ids that users know stay: a record minted anew takes the id of the old one with which it shares its best name. Returns minted to kept."""
    renamed: dict[str, str] = {}
    fresh = [c for c in after.cards.values() if c.id not in before.cards]
    free = [c for c in before.cards.values() if c.id not in after.cards and c.id not in after.gone]
    for card in fresh:
        old = next((f for f in free if _shares(card, f)), None)
        if old is not None:
            free.remove(old)
            renamed[card.id] = old.id
            _rename(after, card, old.id)
    for left in free:
        heir = next((c for c in after.cards.values() if _shares(c, left)), None)
        if heir is not None:
            after.gone[left.id] = heir.id
    return renamed


def _shares(one: Card, two: Card) -> bool:
    for kind in (*STRONG, NameKind.PCI_ADDRESS, NameKind.CHASSIS_SLOT, NameKind.INDEX):
        mine, theirs = one.names.get(kind), two.names.get(kind)
        if mine and theirs:
            return bool(mine.keys() & theirs.keys()) and (kind in STRONG or one.node == two.node)
    return False


def _rename(site: Site, card: Card, new: str) -> None:
    old = card.id
    del site.cards[old]
    for piece in (*card.devices, *card.partitions):
        piece.id = piece.id.replace(old, new, 1)
        piece.under = piece.under.replace(old, new, 1)
    card.id = new
    card.history = [replace(c, id=digest(new, c.kind.value, f"{c.at:.3f}"), subject=new) for c in card.history]
    site.cards[new] = card
    site.gone = {k: new if v == old else v for k, v in site.gone.items() if k != new}
    site.gone[old] = new
    for cards in site.drift.values():
        if old in cards:
            cards[new] = cards.pop(old)


def _compact(region: Region, policy: Policy, now: float) -> tuple[Region, tuple[int, ...]]:
    """Folds what is older than the late window into the base, at a checkpoint, while enough words stay."""
    if len(region.journal) <= policy.late_listings:
        return region, ()
    good = [c for c in region.checkpoints if len(region.journal) - c[0] >= policy.late_listings // 2 and region.journal[c[0] - 1].at < now - policy.late_window]
    if not good:
        return region, ()
    count, base = good[-1]
    folded = tuple(e.order for e in region.journal[:count])
    checkpoints = tuple((n - count, s) for n, s in region.checkpoints if n > count)
    return replace(region, base=base, journal=region.journal[count:], checkpoints=checkpoints), folded


def _free_id(roll: Roll, order: int, names: Iterable[tuple[str, str]]) -> str:
    """An id for a new part that no part has: one that was united keeps the id of its first half."""
    told = sorted("=".join(n) for n in names)
    made = "r-" + digest(f"{order}", *told)
    while made in roll.regions:
        made = "r-" + digest(made, *told)
    return made


def _unite(regions: Sequence[Region]) -> Region:
    """One part of several: they shared no name until now, so that their states simply stand side by side."""
    first, *rest = sorted(regions, key=lambda r: r.id)
    if not rest:
        return first
    base, site = first.base.copy(), first.site.copy()
    journal = list(first.journal)
    for other in rest:
        _beside(base, other.base.copy())
        _beside(site, other.site.copy())
        journal.extend(other.journal)
    return replace(first, base=base, site=site, journal=tuple(sorted(journal, key=lambda e: (e.at, e.order))), checkpoints=())


def _beside(site: Site, other: Site) -> None:
    site.n = max(site.n, other.n)
    site.clock = max(site.clock, other.clock)
    site.nodes.update(other.nodes)
    site.speakers.update(other.speakers)
    site.cards.update(other.cards)
    site.gone.update(other.gone)
    for key, nodes in other.claimed.items():
        site.claimed.setdefault(key, {}).update(nodes)
    site.shared |= other.shared
    site.apart |= other.apart
    site.together.update(other.together)
    site.drift.update(other.drift)


def known_names(site: Site) -> set[tuple[str, str]]:
    """All names by which a word finds this part: of its nodes (also their ids and former names), and strong ids of its cards (also their ids)."""
    names: set[tuple[str, str]] = set()
    for node in site.nodes.values():
        told = (("node", node.id), ("system", node.system), ("machine_id", node.machine_id), ("name", canonical(NameKind.HOSTNAME, node.name)))
        names.update((kind, value) for kind, value in told if value)
        names.update(("name", former) for former in node.former)
    for card in site.cards.values():
        names.add(("card", card.id))
        for kind in STRONG:
            names.update((kind.value, value) for value in card.names.get(kind, {}))
    names.update(("card", old) for old in site.gone)
    return names


def names_of(said: Listing | Act | Again, policy: Policy) -> set[tuple[str, str]]:
    """Names in a word by which its part of the site is found; cards and nodes by our ids too."""
    names = _names(said, policy)
    if not isinstance(said, Act):
        return names
    by_id = {("card", value) for kind, value in names if kind == "id"}
    return {name for name in names if name[0] != "id"} | by_id | ({("node", said.node)} if said.node else set())


def _names(said: Listing | Act | Again, policy: Policy) -> set[tuple[str, str]]:
    """Node names and strong ids in a word, as the index has them."""
    if isinstance(said, Act):
        node = NodeNames(name=said.node) if said.node else None
        ids = [(k, v) for given in (said.card, said.other) for k, v in given.items()]
        strong = {(k, canonical(NameKind(k), str(v))) for k, v in ids if k in STRONG} | {("id", v) for k, v in ids if k == "id"}
        return strong | (_node_names(node, policy) if node else set())
    if isinstance(said, Again):
        return {name for each in said.same for name in _node_names(each.node, policy)}
    found = _node_names(said.node, policy)
    for observation in said.observations:
        for name in (*observation.subject.names, *observation.subject.parent):
            if name.kind in STRONG and not names_nothing(name.kind, name.value, policy.placeholders):
                found.add((name.kind.value, name.canonical))
    return found


def _node_names(names: NodeNames, policy: Policy) -> set[tuple[str, str]]:
    system, machine, name = keys(names, policy)
    return {(kind, value) for kind, value in (("system", system), ("machine_id", machine), ("name", name)) if value}


def _regions(roll: Roll, said: Listing | Act | Again, names: Iterable[tuple[str, str]]) -> list[str]:
    found = {roll.index[n] for n in names if n in roll.index}
    if isinstance(said, Act):
        weak = [(k, canonical(NameKind(k), str(v))) for given in (said.card, said.other) for k, v in given.items() if k != "id" and k not in STRONG]
        for i, region in roll.regions.items():
            ids = {v for given in (said.card, said.other) for k, v in given.items() if k == "id"}
            if (
                ids & (region.site.cards.keys() | region.site.gone.keys())
                or said.node in region.site.nodes
                or (not found and any(v in c.names.get(NameKind(k), {}) for k, v in weak for c in region.site.cards.values()))
            ):
                found.add(i)
    return sorted(found)


def _reindex(index: Mapping[tuple[str, str], str], region: Region, names: Iterable[tuple[str, str]], united: Sequence[str]) -> dict[tuple[str, str], str]:
    kept = {k: (region.id if v in united else v) for k, v in index.items()} if united else dict(index)
    kept.update({name: region.id for name in names if name[0] != "id"})
    return kept


def _difference(
    old: Site, new: Site, policy: Policy, now: float, *, whole: bool, rewrite: bool, known: Mapping[str, CardRecord] | None
) -> tuple[Merged, dict[str, CardRecord]]:
    """What changed, and the records of all cards. ``known`` are those of ``old`` where they are at hand."""
    was: Mapping[str, CardRecord] = {}
    if not whole:
        set_aside = aside(old, now) if known is None else frozenset()
        was = known if known is not None else {i: card_record(old, c, policy, now, set_aside) for i, c in old.cards.items()}
    views = aside(new, now)
    is_now = {i: card_record(new, c, policy, now, views) for i, c in new.cards.items()}
    cards = tuple(r for i, r in is_now.items() if was.get(i) != r)
    before = {c.id for card in old.cards.values() for c in card.history}
    changes = {c.id: c for card in new.cards.values() for c in card.history}
    superseded = tuple(sorted(before - changes.keys()))
    fresh = tuple(sorted((c for i, c in changes.items() if i not in before), key=lambda c: (c.at, c.subject)))
    vanished = tuple(sorted(i for i in old.cards if i not in new.cards and i not in new.gone))
    gone = {i: new.gone[i] for i in new.gone if old.gone.get(i) != new.gone[i]}
    rebound = tuple(r.id for r in cards) if rewrite else ()
    merged = Merged(
        roll=Roll(),
        cards=cards,
        gone=gone,
        nodes=tuple(
            r for i, n in new.nodes.items() if (r := node_record(n, new)) != (node_record(old.nodes[i], old) if i in old.nodes and not whole else None)
        ),
        sources=tuple(s for p in new.speakers if (s := source_record(new, p)) != (source_record(old, p) if p in old.speakers and not whole else None)),
        samples=tuple(each for i in rebound for each in _all_samples(new, new.cards[i])),
        rebound=rebound,
        nodes_gone=tuple(sorted(old.nodes.keys() - new.nodes.keys())),
        sources_gone=tuple(sorted(old.speakers.keys() - new.speakers.keys())),
        vanished=vanished,
        changes=fresh,
        superseded=superseded,
        findings=tuple(findings(new, now, policy)),
        news=bool(rewrite or fresh or superseded or vanished or gone) or any(c.id not in was or essence(was[c.id]) != essence(c) for c in cards),
    )
    return merged, is_now


def _samples(site: Site, points: Sequence[Point], said: Listing | Act | Again) -> tuple[Sample, ...]:
    """What one listing measured, bound to its subjects, late or not."""
    cards = {piece.id: card.id for card in site.cards.values() for piece in (*card.devices, *card.partitions)} | {i: i for i in site.cards}
    found: list[Sample] = []
    for point in points:
        card = cards.get(point.owner.id)
        if card is None:
            continue
        number = float(point.value) if isinstance(point.value, int | float) and not isinstance(point.value, bool) else None
        word = point.owner.voices.get(point.place, {}).get(point.key) or Word(value=point.value, at=said.at)
        node, source = point.place
        found.append(
            Sample(subject=point.owner.id, card=card, node=node, source=source, key=point.key, at=said.at, value=number, word=word, reading=point.reading)
        )
    return tuple(found)


def _all_samples(site: Site, card: Card) -> list[Sample]:
    """The current gauges and counters of a card, to be written anew; they are no new points of the roll-ups."""
    return [
        Sample(subject=subject, card=card.id, node=node, source=source, key=key, at=said_at(word), value=None, word=word, rollup=False)
        for (subject, node, source, key), word in measured_words(site, card).items()
    ]
