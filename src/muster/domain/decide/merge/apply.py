# SPDX-License-Identifier: Apache-2.0
"""One step of the roll: a listing or an act applied to its part of the site, with the timers that ran out before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from muster.domain.decide.merge.acts import act
from muster.domain.decide.merge.again import again
from muster.domain.decide.merge.groups import Group, groups, node_readings
from muster.domain.decide.merge.join import split
from muster.domain.decide.merge.match import Moment, Point, match
from muster.domain.decide.merge.nodes import resolve
from muster.domain.decide.merge.parts import hear, partitions
from muster.domain.decide.merge.record import aside, counted, rung
from muster.domain.decide.merge.sight import JUST_AFTER, conflicts, contest, deny, displace, settle, sight
from muster.domain.decide.merge.state import STRONG, Card, Node, Place, Site, Speaker, rank
from muster.domain.decide.merge.values import dissent, take
from muster.domain.model.names import NameKind
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Act, Again, Happening, Listing, Rung
from muster.domain.model.source import Channel, Outcome

_WORSE = frozenset(
    {Outcome.DRIVER_UNUSABLE, Outcome.NOT_PERMITTED, Outcome.TIMED_OUT, Outcome.UNREACHABLE, Outcome.UNREADABLE, Outcome.PARTIAL, Outcome.TOOL_MISSING}
)


def apply(site: Site, said: Listing | Act | Again, order: int, policy: Policy) -> list[Point]:
    """Applies one word in its turn; returns what it measured, bound to its subjects."""
    at = said.at
    if isinstance(said, Again):
        again(site, said, (at, order), policy)
        site.n, site.clock = (at, order), max(site.clock, at)
        return []
    advance(site, at, said.received_at, policy)
    site.n = (at, order)
    site.clock = max(site.clock, at)
    moment = Moment(at=at, n=site.n, learnt=said.received_at, whole=isinstance(said, Listing) and said.complete)
    if isinstance(said, Act):
        act(site, said, moment, policy)
        _settle_all(site, at, said.received_at, policy, site.nodes)
    else:
        node = resolve(site, said.node, at, policy)
        _listing(site, said, node, moment, policy)
        _settle_all(site, at, said.received_at, policy, {node.id})
    return moment.points


def _listing(site: Site, said: Listing, node: Node, moment: Moment, policy: Policy) -> None:
    place = (node.id, said.witness.source)
    speaker = _speaker(site, place, said, policy)
    if speaker.removed:
        return
    if speaker.word_at > moment.at:  # what it said since is folded away: what it measured then is kept, and no more
        then = site.copy()
        _bind(then, said, groups(said.observations, place, then, speaker, policy), moment, policy)
        return
    hear_out(speaker, said, moment, policy)
    if said.standing_by:
        return
    for observation in node_readings(said.observations):
        hear(node.voices.setdefault(said.witness.source, {}), observation.readings, moment, said.capture)
    if said.outcome in _WORSE and not said.observations:
        return
    speaker.listed_at = moment.at
    found = groups(said.observations, place, site, speaker, policy)
    if _claim(site, found, place, moment, policy):
        found = groups(said.observations, place, site, speaker, policy)
    speaker.cards = len(found)
    bound = _bind(site, said, found, moment, policy)
    if said.complete:
        for card in list(site.cards.values()):
            if place in card.claims and card.id not in bound:
                deny(site, card, place, moment, policy)
    displace(site, node.id)


def _bind(site: Site, said: Listing, found: list[Group], moment: Moment, policy: Policy) -> set[str]:
    """Takes each card of the listing as a word on its record; returns the records."""
    bound: set[str] = set()
    matched = match(site, found, moment)
    rows = Counter(card.id for _, card in matched)
    moment.alone = frozenset(card for card, count in rows.items() if count == 1)
    for group, card in matched:
        contest(site, card, group.place, moment)
        sight(site, card, group, moment)
        told = card.copy() if _known_later(site, card, group.place, moment.at) else card
        partitions(site, told, group, moment, said.capture, policy, complete=said.complete)
        take(site, told, group, moment, said.capture, policy)
        card.voices[group.place] = told.voices[group.place]
        bound.add(card.id)
    return bound


def _known_later(site: Site, card: Card, place: Place, at: float) -> bool:
    """True when it is known what became of the card after ``at``, of a word that is older than all that is kept: what it is like now stands."""
    return card.presence_at > at + JUST_AFTER or any(other[0] != place[0] and claim.at > at and site.hardware(other) for other, claim in card.claims.items())


def _speaker(site: Site, place: Place, said: Listing, policy: Policy) -> Speaker:
    witness = said.witness
    speaker = site.speakers.get(place)
    if speaker is None:
        speaker = Speaker(
            channel=witness.channel,
            witness=witness.witness,
            cadence=witness.cadence,
            promise=policy.promise(witness.cadence),
            reporter=said.reporter,
            first_at=said.at,
            last_at=said.at,
            outcome=said.outcome,
        )
        site.speakers[place] = speaker
    return speaker


def hear_out(speaker: Speaker, said: Listing, moment: Moment, policy: Policy) -> None:
    """What the report says of the source itself."""
    if (said.outcome in _WORSE and speaker.outcome is not said.outcome) or speaker.failed_at is None:
        speaker.failed_at = moment.at
    if said.stuck and not speaker.stuck:
        speaker.stuck_at = moment.at
    if said.unknown_shape and not speaker.unknown_shape:
        speaker.shape_at = moment.at
    speaker.cadence, speaker.reporter, speaker.last_at, speaker.word_at = said.witness.cadence, said.reporter, moment.at, moment.at
    speaker.promise = policy.promise(said.witness.cadence)
    speaker.outcome, speaker.detail, speaker.stuck, speaker.standing_by = said.outcome, said.detail, said.stuck, said.standing_by
    speaker.unknown_shape, speaker.counts, speaker.silent = said.unknown_shape, dict(said.counts), False


def _claim(site: Site, found: list[Group], place: Place, moment: Moment, policy: Policy) -> bool:
    """Keeps which nodes tell which strong ids; a value told by too many at once names nothing from now on. True when one was found out."""
    if not site.hardware(place):
        return False
    new = False
    for group in found:
        for name in group.nothing:
            site.claimed.setdefault(name, {})[place[0]] = (moment.at, site.promise(place))
        for kind in STRONG:
            for value in group.ids.get(kind, []):
                if value in group.board:
                    continue
                nodes = site.claimed.setdefault((kind.value, value), {})
                if place[0] not in nodes or nodes[place[0]][0] <= moment.at:
                    nodes[place[0]] = (moment.at, site.promise(place))
                live = [n for n, (at, promise) in nodes.items() if at <= moment.at <= at + promise]
                if len(live) >= policy.placeholder_nodes:
                    site.shared.add((kind, value))
                    _break(site, kind, value, moment)
                    new = True
    return new


def _break(site: Site, kind: NameKind, value: str, moment: Moment) -> None:
    """A value that names nothing holds no record together: each node's part becomes a record of its own."""
    for card in [c for c in site.cards.values() if value in c.names.get(kind, {})]:
        del card.names[kind][value]
        nodes = sorted({p[0] for p, c in card.claims.items() if site.hardware(p)}, key=lambda n: min(c.first_n for p, c in card.claims.items() if p[0] == n))
        for node in nodes[1:]:
            made = split(site, card, node, moment.at, moment.learnt)
            made.best = Rung.NODE_INDEX
        card.node = nodes[0] if nodes else card.node
        card.best = Rung.NODE_INDEX
        for each in site.cards.values():
            each.best = min(each.best, rung(each), key=rank)


def _settle_all(site: Site, at: float, learnt: float, policy: Policy, spoke: Container[str]) -> None:
    """Presence, place, conflicts, rungs, dissent and what is counted since when, after something happened at ``at`` on the nodes that ``spoke``."""
    for card in list(site.cards.values()):
        settle(site, card, at, learnt)
    conflicts(site, at, learnt)
    for card in site.cards.values():
        _identified(card, at, learnt)
        if card.node in spoke or any(place[0] in spoke for place in card.claims):
            dissent(site, card, at, policy)
    _counts(site, at)
    set_aside = aside(site, at)
    for place, speaker in site.speakers.items():
        mine = bool(set_aside) and any(card in set_aside for card in site.cards if place in site.cards[card].claims)
        speaker.unjoined_at = (speaker.unjoined_at or at) if mine else None


def _identified(card: Card, at: float, learnt: float) -> None:
    now = rung(card)
    if rank(now) < rank(card.best):
        card.best = now
        card.note(Happening.IDENTIFIED, at, learnt, rung=now.value)


def _counts(site: Site, at: float) -> None:
    """Since when the cluster counts more whole cards on a node than there are."""
    for node in site.nodes.values():
        told = [
            s.counts["cards"] for p, s in site.speakers.items() if p[0] == node.id and s.channel is Channel.CLUSTER and not s.removed and "cards" in s.counts
        ]
        more = bool(told) and max(told) > counted(site, node.id, at)
        node.more_since = (node.more_since if node.more_since is not None else at) if more else None


def advance(site: Site, until: float, learnt: float, policy: Policy) -> bool:
    """Lets promises run out, in order, up to but not at ``until``. True when something changed."""
    changed = False
    while (due := _due(site, until)) is not None:
        changed = True
        site.clock = max(site.clock, due + JUST_AFTER)
        for place, speaker in site.speakers.items():
            if _silent_at(speaker) == due:
                speaker.silent = True
                for card in site.cards.values():
                    claim = card.claims.get(place)
                    if claim is not None and claim.denied_at is None and place not in card.lost_at and site.hardware(place):
                        card.lost_at[place] = due
                        card.note(Happening.SOURCE_LOST, due, learnt, source=place[1])
        for card in site.cards.values():
            for place, claim in card.claims.items():
                if not claim.expired and claim.at + site.promise(place) == due:
                    claim.expired = True
        _settle_at(site, due, learnt, policy)
    return changed


def _settle_at(site: Site, due: float, learnt: float, policy: Policy) -> None:
    """As `_settle_all`, a moment after ``due``, with its entries dated at ``due``."""
    before = {card.id: len(card.history) for card in site.cards.values()}
    _settle_all(site, due + JUST_AFTER, learnt, policy, site.nodes)
    for card in site.cards.values():
        fresh = card.history[before.get(card.id, 0) :]
        del card.history[before.get(card.id, 0) :]
        for entry in fresh:
            card.note(entry.kind, due, entry.learnt_at, **entry.detail)


def _silent_at(speaker: Speaker) -> float | None:
    if speaker.silent or speaker.removed or speaker.standing_by:
        return None
    return speaker.last_at + speaker.promise


def _due(site: Site, until: float) -> float | None:
    times = [t for s in site.speakers.values() if (t := _silent_at(s)) is not None and t < until]
    promises = {place: speaker.promise for place, speaker in site.speakers.items()}
    for card in site.cards.values():
        for place, claim in card.claims.items():
            if not claim.expired and (ends := claim.at + promises.get(place, 0.0)) < until:
                times.append(ends)
    return min(times, default=None)
