# SPDX-License-Identifier: Apache-2.0
"""Names by which the part of the site is found that a word belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from muster.domain.decide.fold import KEPT, form, nothing
from muster.domain.decide.merge.nodes import keys
from muster.domain.decide.merge.region import Region, Roll
from muster.domain.decide.merge.state import STRONG, Site
from muster.domain.model.names import Name, NameKind
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Act, Again, Listing, NodeNames

_STRONG = tuple((kind, kind.value) for kind in STRONG)


def known_names(site: Site) -> set[tuple[str, str]]:
    """All names by which a word finds this part: of its nodes (also their ids and former names), and strong ids of its cards (also their ids)."""
    names: set[tuple[str, str]] = set()
    for node in site.nodes.values():
        told = (("node", node.id), ("system", node.system), ("machine_id", node.machine_id), ("name", form(NameKind.HOSTNAME, node.name)))
        names.update((kind, value) for kind, value in told if value)
        names.update(("name", former) for former in node.former)
    for card in site.cards.values():
        names.add(("card", card.id))
        for kind, text in _STRONG:
            for value in card.names.get(kind, ()):
                names.add((text, value))
    names.update(("card", old) for old in site.gone)
    return names


def names_of(said: Listing | Act | Again, policy: Policy) -> set[tuple[str, str]]:
    """Names in a word by which its part of the site is found; cards and nodes by our ids too."""
    names = told_names(said, policy)
    if not isinstance(said, Act):
        return names
    by_id = {("card", value) for kind, value in names if kind == "id"}
    return {name for name in names if name[0] != "id"} | by_id | ({("node", said.node)} if said.node else set())


def told_names(said: Listing | Act | Again, policy: Policy) -> set[tuple[str, str]]:
    """Node names and strong ids in a word, as the index has them."""
    if isinstance(said, Act):
        node = NodeNames(name=said.node) if said.node else None
        ids = [(k, v) for given in (said.card, said.other) for k, v in given.items()]
        strong = {(k, form(NameKind(k), str(v))) for k, v in ids if k in STRONG} | {("id", v) for k, v in ids if k == "id"}
        return strong | (_node_names(node, policy) if node else set())
    if isinstance(said, Again):
        return {name for each in said.same for name in _node_names(each.node, policy)}
    found = _node_names(said.node, policy)
    for observation in said.observations:
        found.update(_strong(observation.subject.names, policy.placeholders))
        if observation.subject.parent:
            found.update(_strong(observation.subject.parent, policy.placeholders))
    return found


@lru_cache(maxsize=KEPT)
def _strong(names: frozenset[Name], placeholders: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Strong names among these as the index has them, remembered."""
    return tuple((n.kind.value, form(n.kind, n.value)) for n in names if n.kind in STRONG and not nothing(n.kind, n.value, placeholders))


def _node_names(names: NodeNames, policy: Policy) -> set[tuple[str, str]]:
    system, machine, name = keys(names, policy)
    return {(kind, value) for kind, value in (("system", system), ("machine_id", machine), ("name", name)) if value}


def found_by(roll: Roll, said: Listing | Act | Again, names: Iterable[tuple[str, str]]) -> list[str]:
    """Parts that a word with these names belongs to, by id."""
    found = {roll.index[n] for n in names if n in roll.index}
    if isinstance(said, Act):
        weak = [(k, form(NameKind(k), str(v))) for given in (said.card, said.other) for k, v in given.items() if k != "id" and k not in STRONG]
        for i, region in roll.regions.items():
            ids = {v for given in (said.card, said.other) for k, v in given.items() if k == "id"}
            if (
                ids & (region.site.cards.keys() | region.site.gone.keys())
                or said.node in region.site.nodes
                or (not found and any(v in c.names.get(NameKind(k), {}) for k, v in weak for c in region.site.cards.values()))
            ):
                found.add(i)
    return sorted(found)


def reindex(index: Mapping[tuple[str, str], str], region: Region, names: Iterable[tuple[str, str]], united: Sequence[str]) -> dict[tuple[str, str], str]:
    """The index after a step on a part that took in those of ``united``."""
    kept = {k: (region.id if v in united else v) for k, v in index.items()} if united else dict(index)
    kept.update({name: region.id for name in names if name[0] != "id"})
    return kept
