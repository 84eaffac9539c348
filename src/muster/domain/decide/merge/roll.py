# SPDX-License-Identifier: Apache-2.0
"""The roll: parts of the site that share no name, each a fold over its journal in the order of the corrected times.

A word that comes late is put in its place and what followed is folded again from a checkpoint, so that the roll always equals ordered delivery.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from muster.domain.decide.merge.again import NOBODY, Ahead, ahead_of, go_on
from muster.domain.decide.merge.apply import advance, apply
from muster.domain.decide.merge.calm import Calm
from muster.domain.decide.merge.difference import difference, samples
from muster.domain.decide.merge.findings import findings
from muster.domain.decide.merge.keep import keep_ids, rename
from muster.domain.decide.merge.match import Point
from muster.domain.decide.merge.moves import moves
from muster.domain.decide.merge.naming import found_by, reindex, told_names
from muster.domain.decide.merge.quick import Step, quick
from muster.domain.decide.merge.region import Entry, Merged, Region, Roll
from muster.domain.decide.merge.running import run_on
from muster.domain.decide.merge.state import Card, Piece, Site, digest
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Act, Again, CardRecord, Finding, Listing

CHECKPOINT = 24
"""Words between two checkpoints of a part."""
MOST = 4
"""So many times the words that are kept for late ones may wait for those that a reporter still has to deliver."""


def merge(roll: Roll, said: Listing | Act | Again, order: int, policy: Policy, now: float, ahead: Ahead = NOBODY) -> Merged:
    """Takes one word into the roll. Pure: the same roll and word give the same answer. ``ahead`` is what sources went on saying behind this word."""
    names = told_names(said, policy)
    found = found_by(roll, said, names)
    before = [roll.regions[i] for i in found]
    region = _unite(before) if before else Region(id=_free_id(roll, order, names), base=Site(), site=Site())
    entry = Entry(said.at, order, said)
    late = entry.at < region.site.clock
    old = region.site
    step = None
    if late:
        region, points = _insert(region, entry, policy, now, ahead)
    else:
        region, points, step = _append(region, entry, policy, now, ahead)
    moved = len(before) > 1 or (step is None and (late or len(region.site.gone) != len(old.gone) or region.site.cards.keys() != old.cards.keys()))
    region, folded = _compact(region, policy, now, entry.at if now - entry.at > policy.timely else now)
    united = tuple(i for i in found if i != region.id)
    index = reindex(roll.index, region, names, united)
    known = before[0].records if len(before) == 1 else None
    regions = {i: r for i, r in roll.regions.items() if i not in united}
    fresh = samples(region.site, points, said) if points else ()
    if step is not None and known is not None and len(before) == 1:
        made = moves(old, step, known, policy, now)
        regions[region.id] = _with(region, made.records)
        return Merged(
            roll=Roll(regions=regions, index=index),
            touched=frozenset({region.id}),
            cards=made.cards,
            nodes=made.nodes,
            sources=made.sources,
            samples=fresh,
            changes=made.changes,
            findings=made.findings,
            folded={region.id: folded} if folded else {},
            news=made.news,
        )
    merged, records = difference(old, region.site, policy, now, whole=bool(united), rewrite=moved, known=known)
    regions[region.id] = _with(region, records)
    told = {(s.subject, s.node, s.source, s.key) for s in fresh if s.word.at == s.at}
    every = (*(s for s in merged.samples if (s.subject, s.node, s.source, s.key) not in told), *fresh)
    return replace(
        merged,
        roll=Roll(regions=regions, index=index),
        touched=frozenset({region.id}),
        samples=every,
        folded={region.id: folded} if folded or any(r.base.nodes for r in before[1:]) else {},
        dropped=united,
    )


def _with(region: Region, records: Mapping[str, CardRecord]) -> Region:
    return Region(id=region.id, base=region.base, journal=region.journal, checkpoints=region.checkpoints, site=region.site, records=records, calm=region.calm)


def tick(roll: Roll, policy: Policy, now: float) -> Merged:
    """Lets time pass: promises run out, absences settle. Only parts in which something ran out change."""
    regions = dict(roll.regions)
    parts: list[Merged] = []
    open_now: list[Finding] = []
    for i, region in roll.regions.items():
        site = region.site.copy()
        if advance(site, now, now, policy):
            part, records = difference(region.site, site, policy, now, whole=False, rewrite=False, known=region.records)
            regions[i] = replace(region, site=site, records=records, calm=None)
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
        region = _insert(region, entry, policy, now, ahead)[0] if late else _append(region, entry, policy, now, ahead)[0]
    return region


def _append(region: Region, entry: Entry, policy: Policy, now: float, ahead: Ahead) -> tuple[Region, list[Point], Step | None]:
    step = _short(region.site, region.calm, entry, policy, now, ahead)
    if step is not None:
        return _put(region, entry, step.site, step.site, step.after), step.points, step
    site = region.site.copy()
    go_on(site, ahead, entry.at, (entry.at, entry.order), policy)
    points = apply(site, entry.said, entry.order, policy)
    then = site.copy() if (len(region.journal) + 1) % CHECKPOINT == 0 else None
    _pass(site, entry, now, ahead, policy)
    return _put(region, entry, then, site, None), points, None


def _short(site: Site, calm: Calm | None, entry: Entry, policy: Policy, now: float, ahead: Ahead) -> Step | None:
    """The step by the short way, where it can be gone: nobody is known to go on meanwhile."""
    if any(same.since < max(entry.at, now) for same in ahead.values()):
        return None
    if isinstance(entry.said, Listing):
        return quick(site, calm, entry.said, entry.order, policy, now)
    if isinstance(entry.said, Again) and calm is not None:
        return run_on(site, calm, entry.said, entry.order, policy, now)
    return None


def _put(region: Region, entry: Entry, then: Site | None, site: Site, calm: Calm | None) -> Region:
    """The part with one more word: the state right ``then``, and the state now."""
    journal = (*region.journal, entry)
    checkpoints = region.checkpoints
    if len(journal) % CHECKPOINT == 0 and then is not None:
        checkpoints = (*checkpoints, (len(journal), then))
    return Region(id=region.id, base=region.base, journal=journal, checkpoints=checkpoints, site=site, records=region.records, calm=calm)


def _pass(site: Site, entry: Entry, now: float, ahead: Ahead, policy: Policy) -> None:
    """Lets time pass up to ``now``, for those of whom nothing is known further on. After an old word it does not: those that follow it are on their way."""
    if now - entry.at > policy.timely:
        return
    go_on(site, ahead, now, site.n, policy)
    advance(site, now, now, policy)


def _insert(region: Region, entry: Entry, policy: Policy, now: float, ahead: Ahead) -> tuple[Region, list[Point]]:
    at = bisect_right([(e.at, e.order) for e in region.journal], (entry.at, entry.order))
    journal = (*region.journal[:at], entry, *region.journal[at:])
    kept = tuple(c for c in region.checkpoints if c[0] <= at)
    site, points, checkpoints = _fold(kept[-1] if kept else (0, region.base), journal, entry, policy, ahead)
    _pass(site, entry, now, ahead, policy)
    renamed = keep_ids(region.site, site)
    for _, each in checkpoints:
        for old, new in renamed.items():
            if old in each.cards:
                rename(each, each.cards[old], new)
    return replace(region, journal=journal, checkpoints=(*kept, *checkpoints), site=site, calm=None), points


def _fold(
    start: tuple[int, Site], journal: Sequence[Entry], wanted: Entry | None, policy: Policy, after: Ahead
) -> tuple[Site, list[Point], list[tuple[int, Site]]]:
    done, site = start[0], start[1].copy()
    points: list[Point] = []
    checkpoints: list[tuple[int, Site]] = []
    aheads = ahead_of([entry.said for entry in journal[done:]], after)
    calm: Calm | None = None
    own = True
    for number, (entry, ahead) in enumerate(zip(journal[done:], aheads, strict=True), done + 1):
        step = _short(site, calm, entry, policy, entry.at, ahead)
        if step is not None:
            site, calm, own, told = step.site, step.after, False, step.points
        else:
            site, calm, own = site if own else site.copy(), None, True
            go_on(site, ahead, entry.at, (entry.at, entry.order), policy)
            told = apply(site, entry.said, entry.order, policy)
        if entry is wanted:
            points = told
        if number % CHECKPOINT == 0:
            checkpoints.append((number, site.copy()))
    site = site if own else site.copy()
    site.n = max(site.n, start[1].n)
    _rebind(site, points)
    return site, points, checkpoints


def _rebind(site: Site, points: Sequence[Point]) -> None:
    """Has each point stand by what became of its card or part."""
    if not points:
        return
    parts: dict[str, Card | Piece] = {piece.id: piece for card in site.cards.values() for piece in (*card.devices, *card.partitions)}
    for point in points:
        point.owner = site.cards.get(point.owner.id) or parts.get(point.owner.id) or point.owner


def _compact(region: Region, policy: Policy, now: float, told: float) -> tuple[Region, tuple[int, ...]]:
    """Folds what is older than the late window, and than what is being ``told``, into the base, at a checkpoint, while enough words stay."""
    if len(region.journal) <= policy.late_listings:
        return region, ()
    until = now - policy.late_window
    if len(region.journal) <= MOST * policy.late_listings:
        until = min(until, told)
    good = [c for c in region.checkpoints if len(region.journal) - c[0] >= policy.late_listings // 2 and region.journal[c[0] - 1].at < until]
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
    return replace(first, base=base, site=site, journal=tuple(sorted(journal, key=lambda e: (e.at, e.order))), checkpoints=(), calm=None)


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
