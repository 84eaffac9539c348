# SPDX-License-Identifier: Apache-2.0
"""The roll: parts of the site that share no name, each a fold over its journal in the order of the corrected times.

A word that comes late is put in its place and what followed is folded again from a checkpoint, so that the roll always equals ordered delivery.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from muster.domain.decide.merge.again import NOBODY, Ahead, ahead_of, go_on
from muster.domain.decide.merge.apply import advance, apply
from muster.domain.decide.merge.difference import difference, samples
from muster.domain.decide.merge.findings import findings
from muster.domain.decide.merge.keep import keep_ids, rename
from muster.domain.decide.merge.match import Point
from muster.domain.decide.merge.naming import found_by, reindex, told_names
from muster.domain.decide.merge.region import Entry, Merged, Region, Roll
from muster.domain.decide.merge.state import Site, digest
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Act, Again, Finding, Listing

CHECKPOINT = 24
"""Words between two checkpoints of a part."""


def merge(roll: Roll, said: Listing | Act | Again, order: int, policy: Policy, now: float, ahead: Ahead = NOBODY) -> Merged:
    """Takes one word into the roll. Pure: the same roll and word give the same answer. ``ahead`` is what sources went on saying behind this word."""
    names = told_names(said, policy)
    found = found_by(roll, said, names)
    before = [roll.regions[i] for i in found]
    region = _unite(before) if before else Region(id=_free_id(roll, order, names), base=Site(), site=Site())
    entry = Entry(said.at, order, said)
    late = entry.at < region.site.clock
    old = region.site
    region, points = _insert(region, entry, policy, now, ahead) if late else _append(region, entry, policy, now, ahead)
    moved = late or len(before) > 1 or len(region.site.gone) != len(old.gone) or set(region.site.cards) != set(old.cards)
    region, folded = _compact(region, policy, now)
    united = tuple(i for i in found if i != region.id)
    index = reindex(roll.index, region, names, united)
    known = before[0].records if len(before) == 1 else None
    merged, records = difference(old, region.site, policy, now, whole=bool(united), rewrite=moved, known=known)
    region = replace(region, records=records)
    regions = {**{i: r for i, r in roll.regions.items() if i not in united}, region.id: region}
    fresh = samples(region.site, points, said)
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


def tick(roll: Roll, policy: Policy, now: float) -> Merged:
    """Lets time pass: promises run out, absences settle. Only parts in which something ran out change."""
    regions = dict(roll.regions)
    parts: list[Merged] = []
    open_now: list[Finding] = []
    for i, region in roll.regions.items():
        site = region.site.copy()
        if advance(site, now, now, policy):
            part, records = difference(region.site, site, policy, now, whole=False, rewrite=False, known=region.records)
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
                rename(each, each.cards[old], new)
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
