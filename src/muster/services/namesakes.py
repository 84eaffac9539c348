# SPDX-License-Identifier: Apache-2.0
"""Machines that call themselves the same: a host name that so many tell at once names none of them, and the site is told, once a name, while it lasts."""

from __future__ import annotations

from collections import defaultdict

from muster.domain.decide.merge.findings import make
from muster.domain.decide.merge.nodes import keys
from muster.domain.model.names import NameKind
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Finding, FindingKind, NodeNames
from muster.services.gathered import Gathered
from muster.services.sources import Sources
from muster.services.standing import Standing

EVERY = 30.0
"""Seconds between two looks: all sources are gone through."""
OF_NAMES = f"{NameKind.HOSTNAME}="
"""So the subject of such a finding begins."""


class Namesakes:
    """Looks, now and then, for host names that too many machines tell. Merge cannot: by their machine ids they are in different parts of the site."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._next = float("-inf")

    def look(self, sources: Sources, standing: Standing, gathered: Gathered, now: float, *, ends: bool = True) -> None:
        """Opens and closes the findings, where it is time. None ends while nobody could be heard (not ``ends``)."""
        if now < self._next:
            return
        self._next = now + EVERY
        found = {f"{OF_NAMES}{name}": self._finding(name, machines, now) for name, machines in self._shared(sources, now).items()}
        standing.keep(FindingKind.PLACEHOLDER_ID, OF_NAMES, found, gathered, ends=ends)

    def _shared(self, sources: Sources, now: float) -> dict[str, int]:
        """Names to how many machines tell them at once."""
        told: dict[str, set[NodeNames]] = defaultdict(set)
        for source in sources:
            if now - source.last <= source.promise:
                told[source.names.name.lower()].add(source.names)
        machines: dict[str, set[str]] = defaultdict(set)
        systems: dict[str, set[str]] = defaultdict(set)
        for names in told.values():
            if len(names) < self._policy.placeholder_nodes:
                continue
            for each in names:
                system, machine, name = keys(each, self._policy)
                if name:
                    machines[name] |= {machine} - {""}
                    systems[name] |= {system} - {""}
        counts = {name: max(len(machines[name]), len(systems[name])) for name in machines}
        return {name: count for name, count in counts.items() if count >= self._policy.placeholder_nodes}

    @staticmethod
    def _finding(name: str, machines: int, now: float) -> Finding:
        about = f"host name {name!r} is told by {machines} machines: it names none of them; give each its own"
        return make(FindingKind.PLACEHOLDER_ID, f"{OF_NAMES}{name}", about, now, evidence={"machines": machines})
