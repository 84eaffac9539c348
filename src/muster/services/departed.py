# SPDX-License-Identifier: Apache-2.0
"""Sources whose reporter was revoked or has left: that they are silent is no riddle, and their findings say who ended it, when, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from muster.services.gathered import Gathered
from muster.services.sources import Sources
from muster.services.standing import Standing

EVERY = 10.0
"""Seconds between two looks: all sources are gone through while some reporter has ended."""
Ended = Callable[[float], Mapping[str, str]]
"""Reporters that have ended, and what is to be said of each."""


def nobody(_: float) -> Mapping[str, str]:
    """Where nobody joins, nobody ends."""
    return {}


class Departed:
    """Looks, now and then, who has ended. Merge cannot know: it is no word about cards."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self._next = float("-inf")

    def look(self, sources: Sources, standing: Standing, gathered: Gathered, now: float) -> None:
        """Has the findings of silence say so, where it is time. To be called before time passes, so that none opens without."""
        if now < self._next:
            return
        self._next = now + EVERY
        ended = self._ended(now)
        places = {source.place for source in sources if source.key[0] in ended} if ended else set()
        last: dict[tuple[str, str], tuple[float, str]] = {}
        for source in sources if places else ():
            if source.place in places:  # who told of it last is who is silent
                last[source.place] = max(last.get(source.place, (float("-inf"), "")), (source.last, source.key[0]))
        standing.explain({f"{node}/{name}": ended[who] for (node, name), (_, who) in last.items() if who in ended}, gathered)
