# SPDX-License-Identifier: Apache-2.0
"""Findings that stand open: what merge finds of a part of the site against what was open of it before, and the service's own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from muster.domain.decide.merge import Merged
from muster.domain.decide.merge.findings import make
from muster.domain.decide.merge.state import Site
from muster.domain.model.roll import Finding, FindingKind
from muster.services.gathered import Gathered

OWN = frozenset({FindingKind.CLOCK_WRONG, FindingKind.SEQUENCE_CONFLICT})
"""Findings about reporters, which merge does not know."""


class Standing:
    """Open findings by id, and by part of the site."""

    def __init__(self, loaded: Iterable[Finding]) -> None:
        self._open = {each.id: each for each in loaded}
        self._stored = set(self._open)
        self._own = {(each.kind, each.subject): each.id for each in self._open.values() if each.kind in OWN}
        """Ids of those about reporters."""
        self._of: dict[str, set[str]] = {}
        self._silent: dict[str, Finding] = {}
        """Findings of silence as merge told them."""
        self._ended: dict[str, str] = {}
        self._about: dict[str, set[str]] = defaultdict(set)
        for each in self._open.values():
            for one in (each.node, each.subject, *each.cards) if each.kind not in OWN else ():
                self._about[one].add(each.id)

    def take(self, merged: Merged, gathered: Gathered) -> None:
        """What a step found in the parts that it touched, and what holds no more."""
        now_open = {each.id: self._explained(each) for each in merged.findings}
        mine: set[str] = set()
        for part in (*merged.touched, *merged.dropped):
            known = self._of.pop(part, None)
            mine |= known if known is not None else {i for touched in merged.touched for i in self._first(merged.roll.regions[touched].site)}
        for each in now_open.values():
            before = self._open.get(each.id)
            if before is None or replace(each, opened_at=before.opened_at) != before:
                self._raise(each, gathered)
        for gone in mine - now_open.keys():
            self._lower(gone, gathered)
        for part in merged.touched:
            self._of[part] = set(now_open)

    def raise_own(self, kind: FindingKind, reporter: str, about: str, now: float, gathered: Gathered, **evidence: object) -> None:
        """Opens a finding about a reporter, unless it is open."""
        if (kind, reporter) not in self._own:
            made = make(kind, reporter, about, now, evidence=evidence)
            self._own[kind, reporter] = made.id
            self._raise(made, gathered)

    def lower_own(self, kind: FindingKind, reporter: str, gathered: Gathered) -> None:
        """Closes a finding about a reporter."""
        id_ = self._own.get((kind, reporter))
        if id_ is not None:
            self._lower(id_, gathered)

    def keep(self, kind: FindingKind, subjects: str, found: Mapping[str, Finding], gathered: Gathered, *, ends: bool = True) -> None:
        """Of the findings of this kind whose subjects begin so, those by subject stand open from now on, and where it ``ends`` no others."""
        open_ = {each.subject: each for each in self._open.values() if each.kind is kind and each.subject.startswith(subjects)}
        for subject, each in found.items():
            before = open_.get(subject)
            made = replace(each, opened_at=before.opened_at) if before is not None else each
            if made != before:
                self._raise(made, gathered)
        for subject in open_.keys() - found.keys() if ends else ():
            self._lower(open_[subject].id, gathered)

    def explain(self, ended: Mapping[str, str], gathered: Gathered) -> None:
        """Says why sources (``node/source``) are silent whose reporter has ended, and what to do about that; of others merge's own word stands."""
        changed = [subject for subject in self._ended.keys() | ended.keys() if self._ended.get(subject) != ended.get(subject)]
        self._ended = dict(ended)
        for subject in changed:
            before = self._open.get(make(FindingKind.SOURCE_SILENT, subject, "", 0.0).id)
            if before is not None and (told := self._explained(replace(self._silent.get(before.id, before), opened_at=before.opened_at))) != before:
                self._raise(told, gathered)

    def _explained(self, finding: Finding) -> Finding:
        if finding.kind is not FindingKind.SOURCE_SILENT:
            return finding
        self._silent[finding.id] = finding
        why, name = self._ended.get(finding.subject), finding.about.partition(": silent")[0]
        return replace(finding, about=f"{name}: silent: {why}, or `muster source remove {name}`") if why else finding

    def committed(self, gathered: Gathered) -> None:
        """The batch is in the store."""
        self._stored |= gathered.findings.keys()
        self._stored -= gathered.closed

    def _first(self, site: Site) -> set[str]:
        """Findings of a part that nobody spoke of since the start."""
        about = (*site.nodes, *site.cards, *(f"{node}/{source}" for node, source in site.speakers), *self._names(site))
        return {each for one in about for each in self._about.get(one, ())}

    @staticmethod
    def _names(site: Site) -> list[str]:
        machines = [node.machine_id for node in site.nodes.values() if node.machine_id]
        return machines + [f"{kind}={value}" for kind, value in (*site.claimed, *site.shared)]

    def _raise(self, finding: Finding, gathered: Gathered) -> None:
        self._open[finding.id] = finding
        gathered.findings[finding.id] = finding
        gathered.closed.discard(finding.id)

    def _lower(self, id_: str, gathered: Gathered) -> None:
        self._silent.pop(id_, None)
        gone = self._open.pop(id_, None)
        if gone is None:
            return
        self._own.pop((gone.kind, gone.subject), None)
        gathered.findings.pop(id_, None)
        if id_ in self._stored:
            gathered.closed.add(id_)
