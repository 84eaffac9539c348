# SPDX-License-Identifier: Apache-2.0
"""The short way for a listing of a calm part: only what is said otherwise goes by the rules, the rest moves in time. Same result as the long way.

States share what did not change between them: nothing in a state is changed in place once a step has given it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from muster.domain.decide.fold import form
from muster.domain.decide.merge.apply import hear_out
from muster.domain.decide.merge.calm import (
    Calm,
    Row,
    Still,
    counts_more,
    due_at,
    moved_apart,
    readings_of,
    regrouped,
    rows,
    shifts,
    speaking,
    still,
    stirred,
    survey,
)
from muster.domain.decide.merge.groups import node_readings
from muster.domain.decide.merge.match import Moment, Point
from muster.domain.decide.merge.nodes import keys
from muster.domain.decide.merge.parts import hear, partitions
from muster.domain.decide.merge.state import Card, Node, Place, Sighting, Site, Speaker, Use
from muster.domain.decide.merge.values import WATCHED, Ready, count, dissent, drift, take, voices
from muster.domain.model.attributes import Level
from muster.domain.model.names import NameKind
from muster.domain.model.observation import Observation
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Absent, Reading
from muster.domain.model.roll import Listing, NodeNames, Voice, Word


class Step:
    """What a listing made of a calm part. ``calm`` is the part before; ``after`` the part after it, where it is still calm.

    ``said``: what was said of each card that was listed. ``anew``: cards of which something else was said than before, and in which attributes; None where that
    is not known. ``fresh``: words with their times moved, by the identity of the old one; ``shared``: the same of whole mappings; ``last``: the words, their
    attributes in order, and the mapping that was made of them last; ``voices``: those of records, by the identity of their words.
    """

    __slots__ = ("after", "anew", "calm", "fresh", "last", "moment", "place", "said", "shared", "site", "stills", "voices")

    def __init__(self, site: Site, calm: Calm, place: Place, moment: Moment) -> None:
        self.site, self.calm, self.place, self.moment = site, calm, place, moment
        self.said: dict[str, Row] = {}
        self.anew: dict[str, list[str] | None] = {}
        self.fresh: dict[int, Word] = {}
        self.shared: dict[int, dict[str, Word]] = {}
        self.last: tuple[list[int], list[str], dict[str, Word]] | None = None
        self.voices: dict[int, Voice] = {}
        self.stills: Mapping[str, Still] = calm.cards
        self.after: Calm | None = None

    @property
    def points(self) -> list[Point]:
        """What was measured."""
        return self.moment.points


def quick(site: Site, known: Calm | None, said: Listing, order: int, policy: Policy, now: float) -> Step | None:
    """The step that a listing is to a calm part whose cards it lists as before; None when the long way must be gone."""
    if len(site.nodes) != 1 or not said.observations or said.standing_by:
        return None
    node = next(iter(site.nodes.values()))
    place = (node.id, said.witness.source)
    speaker = site.speakers.get(place)
    if speaker is None or not _goes_on(speaker, said, policy) or not _is(node, said.node, policy):
        return None
    told = [each for each in said.observations if each.subject.level not in (Level.NODE, Level.SERVER)]
    if not told or any(each.subject.level is not Level.CARD for each in told):
        return None
    calm = _calm(site, known, speaker, said, policy, now)
    found = _work(site, calm, place, speaker, told, policy) if calm is not None else None
    if found is None:
        return None
    calm, work = found
    n = (said.at, order)
    step = Step(site, calm, place, Moment(at=said.at, n=n, learnt=said.received_at, whole=said.complete))
    step.site = _beside(site, node, place, speaker, said, step.moment, policy)
    step.site.speakers[place].cards = len(work)
    if site.hardware(place) and not _claim(step.site, place, [row for row, _, _, _ in work], said.at, policy):
        return None
    made = [_heard(step, *each, said.capture, policy) for each in work]
    if None in made or not _settle(step, calm, policy):
        return None
    step.after = _after(step, calm, [row for row in made if row is not None], speaker)
    return step


def _goes_on(speaker: Speaker, said: Listing, policy: Policy) -> bool:
    """True when the source speaks in its turn, with the promise it gave."""
    return not speaker.removed and not speaker.standing_by and speaker.last_at <= said.at and policy.promise(said.witness.cadence) == speaker.promise


def _is(node: Node, names: NodeNames, policy: Policy) -> bool:
    """True when these names are the node's as it has them."""
    system, machine, name = keys(names, policy)
    if (system and system != node.system) or (machine and machine != node.machine_id):
        return False
    return bool(name) and form(NameKind.HOSTNAME, node.name) == name


def _calm(site: Site, known: Calm | None, speaker: Speaker, said: Listing, policy: Policy, now: float) -> Calm | None:
    """The part as a calm one for which nothing runs out up to ``now``."""
    calm = known if known is not None else survey(site, policy)
    if calm is None:
        return None
    until = max(said.at, now)
    if until > said.at + speaker.promise:
        return None
    if until > calm.due:
        calm = replace(calm, due=due_at(site))
    return calm if until <= calm.due else None


_Work = tuple[Row, Observation, Mapping[str, Reading], list[str] | None]
"""A row, what it says now, and the attributes in which that is something else than before (None: not known)."""


def _work(site: Site, calm: Calm, place: Place, speaker: Speaker, told: list[Observation], policy: Policy) -> tuple[Calm, list[_Work]] | None:
    """Each row of the listing with what it says now, and whether that is what it said before; None when it lists other cards or places."""
    before = calm.rows.get(place)
    if before is not None and len(before) == len(told):
        work: list[_Work] = []
        for row, each in zip(before, told, strict=True):
            if each.subject != row.subject or each.role is not row.role:
                break
            readings = readings_of(each)
            changed = row.changed(readings, policy)
            if changed is None or (changed and shifts(changed)):
                break
            work.append((row, each, readings, changed))
        else:
            return calm, work
    made = rows(told, place, site, speaker, calm, policy)
    if made is None:
        return None
    if any(moved_apart(row, site.cards[row.card].voices[place]) for row in made):
        calm = replace(calm, rows={})  # what others told was found to be of these cards by what is said otherwise now
    first = (row.repeats(site.cards[row.card].voices[place], policy) for row in made)
    return calm, [(row, each, row.readings, [] if same else None) for row, each, same in zip(made, told, first, strict=True)]


def _beside(site: Site, node: Node, place: Place, speaker: Speaker, said: Listing, moment: Moment, policy: Policy) -> Site:
    """The state with the node, the source and their times moved on; cards are taken in afterwards."""
    speaker, node = speaker.copy(), node.copy()
    hear_out(speaker, said, moment, policy)
    speaker.listed_at = moment.at
    node.last_at = max(node.last_at, moment.at)
    for each in node_readings(said.observations):
        hear(node.voices.setdefault(place[1], {}), each.readings, moment, said.capture)
    return Site(
        clock=max(site.clock, moment.at),
        n=moment.n,
        nodes={node.id: node},
        speakers={**site.speakers, place: speaker},
        cards=dict(site.cards),
        gone=site.gone,
        claimed=site.claimed,
        shared=site.shared,
        apart=site.apart,
        together=site.together,
        drift={},
    )


def _claim(site: Site, place: Place, told: list[Row], at: float, policy: Policy) -> bool:
    """Notes that the node tells these strong names; False where others tell one of them too."""
    mine = {place[0]: (at, site.speakers[place].promise)}
    site.claimed = dict(site.claimed)
    for row in told:
        for name in row.names:
            nodes = site.claimed.get(name)
            if nodes is None or (len(nodes) == 1 and place[0] in nodes):
                site.claimed[name] = mine
            else:
                site.claimed[name] = {**nodes, **mine}
            if len(site.claimed[name]) >= policy.placeholder_nodes:
                return False
    return True


def _heard(step: Step, row: Row, told: Observation, readings: Mapping[str, Reading], changed: list[str] | None, capture: str, policy: Policy) -> Row | None:
    """Takes one row in; None when its card was seen later than this."""
    card = step.site.cards[row.card]
    if card.claims[step.place].at > step.moment.at:
        return None
    words = _moved(step, row, card.voices[step.place], capture) if changed is not None else None
    if changed == [] and words is not None and not _may_show_another(step, card):
        _again(step, card, row, told, readings, words, capture, policy)
        return row
    return _anew(step, card, row, told, readings, words, changed, capture, policy)


def _may_show_another(step: Step, card: Card) -> bool:
    """True when the same said again may change which source is shown of what is watched: it was stale, or stands against one of its class."""
    about = step.calm.cards[card.id]
    if not about.watched:
        return False
    speaker = step.site.speakers[step.place]
    words = (card.voices[step.place].get(key) for key in WATCHED)
    return about.alike or any(word is not None and word.at is not None and step.moment.at - word.at > speaker.promise for word in words)


def _moved(step: Step, row: Row, words: Mapping[str, Word], capture: str) -> dict[str, Word] | None:
    """The words with the times of what is said again moved; None where one is not to be moved so. Cards of equal words share one mapping."""
    fresh, every = step.fresh, len(row.fixed) == len(words)
    shared = step.shared.get(id(words)) if every else None
    if shared is not None:
        return shared
    told = list(words.values() if every else row.pick(words))
    old = list(map(id, told))
    last = step.last
    if every and last is not None and last[0] == old and last[1] == row.keys:
        return last[2]
    try:
        new = list(map(fresh.__getitem__, old))
    except KeyError:
        for word in told:
            if id(word) not in fresh:
                if word.at is None or word.at > step.moment.at or word.why is not None:
                    return None
                fresh[id(word)] = Word(value=word.value, at=step.moment.at, capture=capture)
        new = list(map(fresh.__getitem__, old))
    if not every:
        return {**words, **dict(zip(row.fixed, new, strict=True))}
    made = step.shared[id(words)] = dict(zip(words, new, strict=True))
    step.last = (old, row.keys, made) if list(words) == row.keys else None
    return made


def _again(step: Step, card: Card, row: Row, told: Observation, readings: Mapping[str, Reading], words: dict[str, Word], capture: str, policy: Policy) -> None:
    """Moves the times of a card of which the same is said."""
    place, moment = step.place, step.moment
    claim = card.claims[place]
    made = thin(card)
    made.claims = {**card.claims, place: _seen(claim, moment)}
    if row.loose:
        words = dict(words)
    made.voices = {**card.voices, place: words}
    if told.vendor:
        made.details = {**card.details, place: dict(told.vendor)}
    step.site.cards[card.id] = made
    if row.group.folded.mode is not None:
        partitions(step.site, made, row.group, moment, capture, policy, complete=moment.whole)
    if row.loose:
        if row.absent:
            drift(step.site, made, place, card.voices[place], readings, moment)
        if row.measured:
            moment.measured(made, place, {key: readings[key] for key in row.measured})
        hear(words, {key: readings[key] for key in row.loose}, moment, capture)
        if row.counts:
            made.uses = {key: Use(use.total, use.last) for key, use in card.uses.items()}
            made.history = list(card.history)
            count(step.site, made, place, readings, moment, policy)
    step.said[card.id] = row


def _seen(claim: Sighting, moment: Moment) -> Sighting:
    return Sighting(claim.ids, claim.first_at, claim.first_n, moment.at, moment.n, claim.slot, claim.addresses, claim.index, claim.placed_n)


def _anew(
    step: Step,
    card: Card,
    row: Row,
    told: Observation,
    readings: Mapping[str, Reading],
    words: dict[str, Word] | None,
    changed: list[str] | None,
    capture: str,
    policy: Policy,
) -> Row:
    """Takes in by the rules what a row says otherwise: whose it is and where that stands is known. ``words`` have the times of all else moved."""
    place, moment = step.place, step.moment
    made = thin(card)
    made.claims = {**card.claims, place: _seen(card.claims[place], moment)}
    made.history = list(card.history)
    if told.vendor:
        made.details = dict(card.details)
    if row.counts:
        made.uses = {key: Use(use.total, use.last) for key, use in card.uses.items()}
    step.site.cards[card.id] = made
    group = regrouped(row, told, readings)
    if group.folded.mode is not None:
        partitions(step.site, made, group, moment, capture, policy, complete=moment.whole)
    ready = None
    if words is None or changed is None:
        made.voices = {**card.voices, place: dict(card.voices[place])}
        made.uses = {key: Use(use.total, use.last) for key, use in card.uses.items()}
    else:
        made.voices = dict(card.voices)
        words = {**words, **{key: card.voices[place][key] for key in changed if key in words}}
        rest = [key for key in readings if key in changed or key in row.loose] if row.loose else changed
        ready = Ready(words, rest, bool(row.loose) or any(readings[key].__class__ is Absent for key in changed))
    take(step.site, made, group, moment, capture, policy, ready)
    after = row.after(readings, made.voices[place], changed)
    step.said[card.id] = after
    step.anew[card.id] = changed
    return after


def thin(card: Card) -> Card:
    """A card that shares all with this one: what is to be changed of it is replaced."""
    return Card(
        card.id,
        card.created_at,
        card.created_n,
        card.presence,
        card.presence_at,
        card.node,
        card.best,
        card.installed,
        card.moved_n,
        card.names,
        card.claims,
        card.roles,
        card.voices,
        card.operator,
        card.devices,
        card.partitions,
        card.cut_by,
        card.cut_stated,
        card.cut_mode,
        card.cut_lost_at,
        card.history,
        card.shelf,
        card.contested,
        card.uses,
        card.dissent,
        card.near,
        card.lost_at,
        card.details,
    )


def _settle(step: Step, calm: Calm, policy: Policy) -> bool:
    """Dissent and the cluster's count after the listing; False when a card is not seen any more."""
    site, at = step.site, step.moment.at
    hardware = site.hardware(step.place)
    stills = dict(calm.cards)
    for i, known in calm.cards.items():
        card, about = site.cards[i], known
        if not (hardware and i in step.said) and not site.seen(card, at):
            return False
        told: list[Voice] | None = None
        if i in step.anew:
            spoken = voices(site, card.voices)
            told = speaking(site, card, spoken)
            changed = step.anew[i]
            about = stills[i] = still(site, card, policy) if changed is None else stirred(card, spoken, told, known, changed, policy)
        if about.restless:
            if i not in step.said:
                card = site.cards[i] = thin(card)
            card.near, card.dissent = dict(card.near), dict(card.dissent)
            dissent(site, card, at, policy, about.odds, told)
    step.stills = stills
    node = site.nodes[calm.node]
    more = counts_more(site, calm)
    node.more_since = (node.more_since if node.more_since is not None else at) if more else None
    return True


def _after(step: Step, calm: Calm, told: list[Row], speaker: Speaker) -> Calm | None:
    """The part as a calm one after the step; None when it is calm no more."""
    if step.site.drift:
        return None
    due = min(calm.due, step.moment.at + speaker.promise)
    return Calm(calm.node, due, calm.standing, calm.accelerators, calm.named, step.stills, {**calm.rows, step.place: told})
