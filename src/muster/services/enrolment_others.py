# SPDX-License-Identifier: Apache-2.0
"""Nodes of which reporters tell that did not join for one node: collectors with a list, controllers, and agents of the server's own machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.services.enrolment_scope import WORDS, Keys


@dataclass(frozen=True, slots=True)
class Telling:
    """What one reporter calls one node."""

    reporter: str
    name: str
    keys: Keys
    agent: bool
    """An agent tells it of its own node, and has not joined."""

    def shares(self, keys: Keys) -> bool:
        """True when one name of both is the same."""
        return any(mine and mine == theirs for mine, theirs in zip(self.keys, keys, strict=True))


class Others:
    """What they called their nodes last. One reporter has one word on a name."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Telling] = {}
        self._by: dict[tuple[str, str], dict[tuple[str, str], Telling]] = {}

    def hear(self, telling: Telling) -> bool:
        """Takes note. True when it is new."""
        place = telling.reporter, telling.keys.name
        old = self._last.get(place)
        if old == telling:
            return False
        if old is not None:
            self._drop(place, old)
        self._last[place] = telling
        for key in telling.keys.told():
            self._by.setdefault(key, {})[place] = telling
        return True

    def forget(self, reporter: str) -> None:
        """One that tells for itself from now on."""
        for place in [place for place in tuple(self._last) if place[0] == reporter]:
            self._drop(place, self._last.pop(place))

    def _drop(self, place: tuple[str, str], telling: Telling) -> None:
        for key in telling.keys.told():
            held = self._by.get(key, {})
            held.pop(place, None)
            if not held:
                self._by.pop(key, None)

    def clear(self) -> None:
        """Forgets all."""
        self._last, self._by = {}, {}

    def of(self, keys: Keys, but: str = "") -> list[Telling]:
        """What is told under any of these names, by others than ``but``."""
        found = {place: each for key in keys.told() for place, each in tuple(self._by.get(key, {}).items()) if each.reporter != but}
        return [found[place] for place in sorted(found)]

    def holder(self, kind: str, key: str, own: Keys, but: str) -> str:
        """Who else is told of under this name; empty for nobody, and where that is known to be the node ``own`` itself."""
        for each in tuple(self._by.get((kind, key), {}).values()):
            itself = bool(each.keys.machine) and each.keys.machine == own.machine if each.agent else each.shares(own)
            if each.reporter != but and not itself:
                return f"{each.name}, of which {each.reporter} tells"
        return ""

    def unlike(self, keys: Keys) -> str:
        """Why a node of these names is not the one of which an agent tells that did not join; empty when it is, or when there is none."""
        told = [each for each in self.of(keys) if each.agent]
        same = {each.keys.machine or each.keys.system for each in told if each.keys.name == keys.name and not each.keys.apart(keys)}
        for each in told:
            if (each.keys.machine or each.keys.system) not in same or (each.keys.machine and each.keys.machine != keys.machine):
                kind = next(kind for (kind, key), mine in zip(each.keys.told(), _there(each.keys, keys), strict=True) if key == mine)
                return f"its {WORDS[kind]} is that of {each.name}, of which {each.reporter} tells"
        return ""


def _there(first: Keys, second: Keys) -> Iterable[str]:
    """The second's names where the first has one."""
    return (theirs for mine, theirs in zip(first, second, strict=True) if mine)
