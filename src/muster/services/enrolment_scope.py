# SPDX-License-Identifier: Apache-2.0
"""For whom a reporter may speak: a pure function of its scope, the node it names, and who else has that node's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.domain.model.access import Reach, Scope
from muster.domain.model.errors import InputError
from muster.domain.model.names import PLACEHOLDERS, NameKind, canonical, names_nothing
from muster.wire.report import NodeDoc

_KINDS = (NameKind.HOSTNAME, NameKind.MACHINE, NameKind.SYSTEM)
LONGEST = 256
"""Characters of a name that are still believed to be one."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of a node as they are compared; empty where it has none, or one that names nothing."""

    name: str
    machine: str
    system: str

    def __iter__(self) -> Any:
        """Name, machine, system."""
        return iter((self.name, self.machine, self.system))

    def told(self) -> list[tuple[str, str]]:
        """Those that there are, each with its kind."""
        return [(kind, key) for kind, key in zip(WORDS, self, strict=True) if key]

    def apart(self, other: Keys) -> bool:
        """True when the strongest id that both have says that they are two machines."""
        if self.system and other.system:
            return self.system != other.system
        return bool(self.machine and other.machine) and self.machine != other.machine


def keys_of(node: NodeDoc, placeholders: Iterable[str] = PLACEHOLDERS) -> Keys:
    """The keys of a node's own words; ``placeholders`` name nothing."""
    words = zip(_KINDS, (node.name, node.machine_id, node.system), strict=True)
    return Keys(*("" if names_nothing(kind, value, placeholders) else canonical(kind, value) for kind, value in words))


def listed(words: Iterable[str]) -> frozenset[str]:
    """Names as an operator wrote them (host names or machine ids), in the forms that are compared. Raises InputError for one that names nothing."""
    found = set()
    for word in words:
        if names_nothing(NameKind.HOSTNAME, word) or len(word) > LONGEST:
            raise InputError(f"{word[:80]!r} names no node", hint="give host names or machine ids")
        found |= {canonical(NameKind.HOSTNAME, word), canonical(NameKind.MACHINE, word)}
    return frozenset(found)


def own_scope(keys: Keys, cluster: str = "") -> Scope:
    """The scope of a node that speaks for itself."""
    return Scope(reach=Reach.NODE, nodes=frozenset(each for each in (keys.name, keys.machine) if each), cluster=cluster)


def scope_doc(scope: Scope) -> dict[str, Any]:
    """A scope as documents and rows have it."""
    return {"reach": scope.reach.value, "nodes": sorted(scope.nodes), "cluster": scope.cluster}


def scope_from(told: Mapping[str, Any]) -> Scope:
    """The scope of such a document."""
    return Scope(reach=Reach(told["reach"]), nodes=frozenset(told["nodes"]), cluster=str(told["cluster"]))


def beyond(scope: Scope, node: Keys, own: Keys, holder: Callable[[str, str], str], cluster: str = "") -> str:
    """Why a reporter of this scope may not speak of ``node``; empty when it may.

    ``own`` are the names by which it is known. ``holder(kind, key)`` gives the node of another reporter that has this name, empty for none:
    a node is found by each of its names, so all of them must be free or its own. Who speaks for itself is one node, whatever it says: another name is
    a rename only of the machine that is known, another chassis is none of its, and an id that it did not have is told once.
    """
    if scope.reach is Reach.CLUSTER:
        return "" if scope.cluster and cluster == scope.cluster else f"it speaks for cluster {scope.cluster}, not for {cluster or 'one that is not named'}"
    if node.name not in scope.nodes and node.machine not in scope.nodes:
        return "it is not among the nodes that it speaks for"
    if scope.reach is Reach.LIST:
        return _listed(scope, node, holder)
    if own.machine and node.machine and node.machine != own.machine:
        return "it is another machine than the one that joined"
    for (kind, key), mine in zip(node.told(), (mine for mine, there in zip(own, node, strict=True) if there), strict=True):
        if key != mine and (other := holder(kind, key)):
            return f"its {WORDS[kind]} is that of {other}"
    systems = {own.system, *(key for kind, key in scope.former if kind == "system")}
    if own.system and node.system and node.system not in systems:
        return "its chassis id is another than the one by which it is known"
    if (own.machine or own.system) and not (node.machine and own.machine) and not (node.system and own.system):
        return "it tells neither the machine id nor the chassis id by which it is known"
    return ""


def _listed(scope: Scope, node: Keys, holder: Callable[[str, str], str]) -> str:
    """A machine that joined for itself is spoken of by who has it on the list. (A chassis is found by both: its controller may go by another name.)"""
    if node.machine and node.machine not in scope.nodes and (other := holder("machine", node.machine)) and canonical(NameKind.HOSTNAME, other) != node.name:
        return f"its machine id is that of {other}"
    return ""


WORDS = {"name": "name", "machine": "machine id", "system": "chassis id"}
