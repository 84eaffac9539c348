# SPDX-License-Identifier: Apache-2.0
"""Which node a report speaks of: compared at the highest kind of name that both sides have; a former host name is understood."""

from __future__ import annotations

from muster.domain.decide.fold import form, nothing
from muster.domain.decide.merge.state import Node, Site, digest
from muster.domain.model.names import NameKind
from muster.domain.model.policy import Policy
from muster.domain.model.roll import NodeNames


def keys(names: NodeNames, policy: Policy) -> tuple[str, str, str]:
    """System id, machine id and name in the form in which they are compared; empty where there is none or it names nothing."""

    def told(kind: NameKind, value: str) -> str:
        return "" if nothing(kind, value, policy.placeholders) else form(kind, value)

    return told(NameKind.SYSTEM, names.system), told(NameKind.MACHINE, names.machine_id), told(NameKind.HOSTNAME, names.name)


def resolve(site: Site, names: NodeNames, at: float, policy: Policy) -> Node:
    """The node of these names, made when there is none; it takes on names it lacked. What it was called before its last word it is called no more."""
    system, machine, name = keys(names, policy)
    found = find(site, system, machine, name)
    if found is None:
        found = Node(id=_free_id(site, name or machine or system, machine, system), created_at=at, name=names.name)
        site.nodes[found.id] = found
    if system and not found.system:
        found.system, found.shown_system = system, names.system
    late = at < found.last_at
    if machine and not (late and found.machine_id):
        found.machine_id = machine
    if name and (system or machine or not (found.system or found.machine_id)) and form(NameKind.HOSTNAME, found.name) != name:
        _call(found, names.name, name, late=late)
    found.last_at = max(found.last_at, at)
    return found


def _call(node: Node, shown: str, name: str, *, late: bool) -> None:
    """Has the node a name, or had it."""
    if late:
        node.former.add(name)
        return
    node.former.add(form(NameKind.HOSTNAME, node.name))
    node.name = shown
    node.former.discard(name)


def _free_id(site: Site, *names: str) -> str:
    """An id that follows from the first name alone, so that it is the same whichever word came first; cloned nodes take the further names too."""
    made = "n-" + digest("node", names[0])
    for count in range(1, len(names) + 1):
        if made not in site.nodes:
            break
        made = "n-" + digest("node", *names[: count + 1], made)
    return made


def find(site: Site, system: str, machine: str, name: str) -> Node | None:
    """The node that has these names, or None. Among several the one that agrees at the highest kind, by its present name before a former one."""
    best: tuple[tuple[int, int, float], Node] | None = None
    for node in site.nodes.values():
        level = _agrees(node, system, machine, name)
        if level is not None:
            present = 0 if form(NameKind.HOSTNAME, node.name) == name else 1
            key = (level, present, -node.last_at)
            if best is None or key < best[0]:
                best = (key, node)
    return best[1] if best else None


def _agrees(node: Node, system: str, machine: str, name: str) -> int | None:
    """0, 1, 2 for the highest kind that both have when it is the same; None when it differs."""
    if system and node.system:
        return 0 if system == node.system else None
    if machine and node.machine_id:
        return 1 if machine == node.machine_id else None
    known = {form(NameKind.HOSTNAME, node.name), *node.former}
    return 2 if name and name in known else None
