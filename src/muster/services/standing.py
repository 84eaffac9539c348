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
        self._of: dict[str, set[str]] = {}
        self._about: dict[str, set[str]] = defaultdict(set)
        for each in self._open.values():
            for one in (each.node, each.subject, *each.cards) if each.kind not in OWN else ():
                self._about[one].add(each.id)

    def take(self, merged: Merged, gathered: Gathered) -> None:
        """What a step found in the parts that it touched, and what holds no more."""
        now_open = {each.id: each for each in merged.findings}
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
        made = make(kind, reporter, about, now, evidence=evidence)
        if made.id not in self._open:
            self._raise(made, gathered)

    def lower_own(self, kind: FindingKind, reporter: str, gathered: Gathered) -> None:
        """Closes a finding about a reporter."""
        id_ = make(kind, reporter, "", 0.0).id
        if id_ in self._open:
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
        if self._open.pop(id_, None) is None:
            return
        gathered.findings.pop(id_, None)
        if id_ in self._stored:
            gathered.closed.add(id_)
