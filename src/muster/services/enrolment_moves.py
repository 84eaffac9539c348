# SPDX-License-Identifier: Apache-2.0
"""A node that is renamed, gets another mainboard, or tells an id that it did not have: one node all the same, and not too often."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from muster.services.enrolment_scope import Keys, own_scope
from muster.spi.enrolment import Member
from muster.wire.report import NodeDoc

DAY = 86_400.0
RENAMES, CHASSIS = 4, 1
"""How often a node may be renamed within a day, and get another chassis within `APART`, by its own word."""
APART = 8 * DAY
"""Longer than any promise: no two chassis that a node left are spoken of at once."""
NAMES, SYSTEMS = 3, 1
"""Former names and chassis by which reports of before are still taken."""


def known(member: Member) -> Keys:
    """The names by which a member is known."""
    return Keys(member.name_key, member.machine_key, member.system_key)


def moved(member: Member, node: NodeDoc, new: Keys) -> Member:
    """The member by what is ``new`` of the keys of its node; what is empty there stays as it was."""
    former = list(member.scope.former)
    found = member
    if new.name:
        former = [*(each for each in former if each != ("name", new.name)), ("name", member.name_key)]
        found = replace(found, name=node.name, name_key=new.name)
    if new.machine:
        found = replace(found, machine_id=node.machine_id, machine_key=new.machine)
    if new.system:
        former = [*(each for each in former if each != ("system", new.system)), *([("system", member.system_key)] if member.system_key else [])]
        found = replace(found, system=node.system, system_key=new.system)
    if not found.machine_key:
        return found
    scope = own_scope(Keys(found.name_key, found.machine_key, ""), found.scope.cluster)
    return replace(found, scope=replace(scope, former=_few(former)))


def kept(member: Member, before: Member | None) -> Member:
    """The member that takes the place of one before it: of the same machine, reports of before may still be on their way."""
    if before is None or not member.machine_key or before.machine_key != member.machine_key:
        return member
    was = [("name", before.name_key)] if before.name_key != member.name_key else []
    was += [("system", before.system_key)] if before.system_key not in ("", member.system_key) else []
    now = {("name", member.name_key), ("system", member.system_key)}
    former = [*(each for each in before.scope.former if each not in now), *was]
    return replace(member, scope=replace(member.scope, former=_few(former)))


def _few(former: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    names = [each for each in former if each[0] == "name"][-NAMES:]
    systems = [each for each in former if each[0] == "system"][-SYSTEMS:]
    return (*names, *systems)


@dataclass(slots=True)
class Moves:
    """When nodes moved by their own word. A restart forgets it."""

    _renamed: dict[str, list[float]] = field(default_factory=dict)
    _rehoused: dict[str, list[float]] = field(default_factory=dict)

    def wait(self, member: Member, new: Keys, now: float) -> str:
        """Why a node may not move so now; empty when it may. A first name or id is no move."""
        if new.name and member.name_key and _full(self._renamed, member.reporter, now, DAY, RENAMES):
            return f"it was renamed {RENAMES} times within a day"
        if new.system and member.system_key and _full(self._rehoused, member.reporter, now, APART, CHASSIS):
            return f"its chassis changed within the last {APART / DAY:.0f} days already"
        return ""

    def note(self, member: Member, new: Keys, now: float) -> None:
        """It moved."""
        if new.name and member.name_key:
            self._renamed.setdefault(member.reporter, []).append(now)
        if new.system and member.system_key:
            self._rehoused.setdefault(member.reporter, []).append(now)


def _full(moves: dict[str, list[float]], reporter: str, now: float, within: float, most: int) -> bool:
    told = [at for at in moves.get(reporter, ()) if abs(now - at) < within]
    if told:
        moves[reporter] = told
    else:
        moves.pop(reporter, None)
    return len(told) >= most
