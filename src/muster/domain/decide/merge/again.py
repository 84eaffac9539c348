# SPDX-License-Identifier: Apache-2.0
"""What a source said last holds on: it said the same again. Nothing changes but times, so that thousands of equal words are folded as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from muster.domain.decide.essence import moving
from muster.domain.decide.merge.nodes import find, keys
from muster.domain.decide.merge.state import Place, Site, Turn
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Act, Again, Listing, NodeNames, Same, Word

Ahead: TypeAlias = Mapping[tuple[NodeNames, str], Same]
"""What sources are known to have gone on saying, by node and source: told by words that stand further on in the journal."""
NOBODY: Ahead = MappingProxyType({})
"""Nobody is known to have gone on."""


def ahead_of(said: Sequence[Listing | Act | Again], after: Ahead) -> list[Ahead]:
    """For each word what the words behind it say of runs; ``after`` is what is known behind the last."""
    found: list[Ahead] = []
    known = after
    for word in reversed(said):
        found.append(known)
        if isinstance(word, Again):
            known = {**known, **{(same.node, same.source): same for same in word.same}}
    found.reverse()
    return found


def go_on(site: Site, ahead: Ahead, at: float, n: Turn, policy: Policy) -> None:
    """Moves on up to ``at`` what was being said again then: whoever is heard of later was not silent now. A run whose first word is not told yet is none."""
    if ahead:
        _all(site, [replace(same, at=min(same.at, at)) for same in ahead.values()], n, policy, begun=True)


def again(site: Site, said: Again, n: Turn, policy: Policy) -> None:
    """Moves the times of what these sources told last. A source or node that is not known is passed over."""
    _all(site, said.same, n, policy, begun=False)


def _all(site: Site, said: Iterable[Same], n: Turn, policy: Policy, *, begun: bool) -> None:
    for each in sorted(said, key=lambda s: (s.at, s.source, s.node.name)):
        node = find(site, *keys(each.node, policy))
        speaker = site.speakers.get((node.id, each.source)) if node is not None else None
        if node is not None and speaker is not None and not (begun and speaker.last_at < each.since):
            _hold(site, (node.id, each.source), each, n)


def _hold(site: Site, place: Place, said: Same, n: Turn) -> None:
    speaker, node = site.speakers[place], site.nodes[place[0]]
    told = speaker.last_at
    if speaker.removed or said.at <= told:
        return
    speaker.last_at = said.at
    node.last_at = max(node.last_at, said.at)
    if speaker.word_at > said.since:
        return  # a late word fell into the run, which repeats what was said before that: it was not silent, and that is all that is known
    _move(node.voices.get(place[1], {}), told, said.at)
    if speaker.listed_at != told:
        return
    speaker.listed_at = said.at
    for card in site.cards.values():
        claim = card.claims.get(place)
        if claim is not None and claim.at == told and claim.denied_at is None:
            claim.at, claim.n = said.at, (said.at, n[1])
        for voices in (card.voices, *(piece.voices for piece in (*card.devices, *card.partitions))):
            if place in voices:
                _move(voices[place], told, said.at)
    for nodes in site.claimed.values():
        known = nodes.get(place[0])
        if known is not None and known[0] == told:
            nodes[place[0]] = (said.at, known[1])


def _move(words: dict[str, Word], told: float, at: float) -> None:
    for key, word in words.items():
        if moves_on(key, word, told):
            words[key] = moved(word, told, at)


def moves_on(key: str, word: Word, told: float) -> bool:
    """True for what was told then. A number that moves is not what was said again: it keeps its time, and is read where numbers are kept."""
    return (word.at == told or word.why_at == told) and not moving(key, word)


def moved(word: Word, told: float, at: float) -> Word:
    """The word with the times of what was told then moved to ``at``."""
    return Word(
        value=word.value,
        at=at if word.at == told else word.at,
        why=word.why,
        why_at=at if word.why_at == told else word.why_at,
        detail=word.detail,
        capture=word.capture,
    )
