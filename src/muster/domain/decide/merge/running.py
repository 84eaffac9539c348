# SPDX-License-Identifier: Apache-2.0
"""The short way for sources of a calm part that went on saying the same: times move, and nothing else is looked at. Same result as `again`."""

from __future__ import annotations

from collections.abc import Mapping

from muster.domain.decide.merge.again import moved, moves_on
from muster.domain.decide.merge.calm import Calm, due_at
from muster.domain.decide.merge.match import Moment
from muster.domain.decide.merge.nodes import find, keys
from muster.domain.decide.merge.quick import Step, thin
from muster.domain.decide.merge.state import Place, Sighting, Site, Turn
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Again, Same, Word


def run_on(site: Site, calm: Calm, said: Again, order: int, policy: Policy, now: float) -> Step | None:
    """The step that sources which went on are to a calm part; None when a promise runs out all the same."""
    made = Site(
        clock=max(site.clock, said.at),
        n=(said.at, order),
        nodes={i: node.copy() for i, node in site.nodes.items()},
        speakers=dict(site.speakers),
        cards=dict(site.cards),
        gone=site.gone,
        claimed=dict(site.claimed),
        shared=site.shared,
        apart=site.apart,
        together=site.together,
        drift=site.drift,
    )
    step = Step(made, calm, (calm.node, ""), Moment(at=said.at, n=made.n, learnt=said.received_at))
    for each in sorted(said.same, key=lambda s: (s.at, s.source, s.node.name)):
        node = find(made, *keys(each.node, policy))
        if node is not None and (node.id, each.source) in made.speakers:
            if made.speakers[node.id, each.source].word_at > each.since:
                return None
            _hold(step, (node.id, each.source), each, made.n)
    due = calm.due if now <= calm.due else due_at(made)
    if now > due:
        return None
    step.after = Calm(calm.node, due, calm.standing, calm.accelerators, calm.named, calm.cards, calm.rows)
    return step


def _hold(step: Step, place: Place, said: Same, n: Turn) -> None:
    site = step.site
    speaker, node = site.speakers[place], site.nodes[place[0]]
    told = speaker.last_at
    if speaker.removed or said.at <= told:
        return
    speaker = site.speakers[place] = speaker.copy()
    speaker.last_at = said.at
    node.last_at = max(node.last_at, said.at)
    shared: dict[int, dict[str, Word]] = {}
    fresh: dict[int, Word] = {}
    if place[1] in node.voices:
        node.voices[place[1]] = _move(node.voices[place[1]], told, said.at, fresh)
    if speaker.listed_at != told:
        return
    speaker.listed_at = said.at
    for i in list(site.cards):
        _hold_card(step, i, place, told, (said.at, n[1]), shared, fresh)
    for name, nodes in site.claimed.items():
        known = nodes.get(place[0])
        if known is not None and known[0] == told:
            site.claimed[name] = {**nodes, place[0]: (said.at, known[1])}


def _hold_card(step: Step, i: str, place: Place, told: float, turn: Turn, shared: dict[int, dict[str, Word]], fresh: dict[int, Word]) -> None:
    card = step.site.cards[i]
    claim, words = card.claims.get(place), card.voices.get(place)
    if claim is None and words is None:
        return
    made = step.site.cards[i] = thin(card)
    if claim is not None and claim.at == told and claim.denied_at is None:
        made.claims = {**card.claims, place: _held(claim, turn)}
    if words is not None:
        later = shared.get(id(words))
        if later is None:
            later = shared[id(words)] = _move(words, told, turn[0], fresh)
        made.voices = {**card.voices, place: later}


def _held(claim: Sighting, turn: Turn) -> Sighting:
    made = claim.copy()
    made.at, made.n = turn[0], turn
    return made


def _move(words: Mapping[str, Word], told: float, at: float, fresh: dict[int, Word]) -> dict[str, Word]:
    """The words with the times of what was told then moved. ``fresh`` are those that were moved already."""
    found: dict[str, Word] = {}
    for key, word in words.items():
        if not moves_on(key, word, told):
            found[key] = word
            continue
        made = fresh.get(id(word))
        if made is None:
            made = fresh[id(word)] = moved(word, told, at)
        found[key] = made
    return found
