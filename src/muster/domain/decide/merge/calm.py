# SPDX-License-Identifier: Apache-2.0
"""A part of the site that is calm: one node, every card seen in its place under names of its own, and nothing pending.

There a listing of the same cards in the same places can only change what is said of them. What the rules of identity, place and presence would find
is known beforehand (`survey`), and rows that say what they said before need no second look (`Row`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any

from muster.domain.decide.fold import HELD, WHOLE, FoldedCard, checked
from muster.domain.decide.merge.groups import Group, groups
from muster.domain.decide.merge.match import MEASURED, contradicts, model_differs, standing
from muster.domain.decide.merge.record import STRUCTURE, channels_of, may_be_view, role, rung
from muster.domain.decide.merge.sight import crowded
from muster.domain.decide.merge.state import STRONG, Card, Place, Site, Speaker, rank
from muster.domain.decide.merge.values import COUNTERS, WATCHED, at_odds, operator_voice, two_serials, voices
from muster.domain.model.names import NameKind
from muster.domain.model.observation import Observation, Role, Subject
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Absent, Known, Reading
from muster.domain.model.roll import Presence, Voice, Word
from muster.domain.model.source import Channel, WitnessClass

_VALUE = attrgetter("value")
_PLAIN = (str, int, bool)
_IDENTITY = frozenset({"product.name", "pci.vendor_id", "pci.device_id", "pci.class"})
"""Attributes by which cards are told apart; those of partitions shape the card."""


@dataclass(frozen=True, slots=True)
class Still:
    """What is known of a card's words while nobody says anything new of it."""

    odds: list[str]
    """Attributes on which its sources may be at odds."""
    serials: bool
    """Two serials are told of it."""
    restless: bool
    """Time alone may change who dissents."""
    watched: bool
    """Its sources differ on what is watched for changes."""
    meters: bool
    """It has counters that several sources tell."""
    alike: bool
    """Two of its claims are of one class of source."""
    bus: bool
    """The bus alone tells of it."""


class Row:
    """One card's row in the listing that a source told last. Plain facts are compared all at once, the rest one by one.

    ``names`` are strong names by which its node claims it; ``counts``: a counter is among its numbers; ``absent``: something is asked for in vain.
    """

    __slots__ = (
        "absent", "card", "counts", "fixed", "group", "keys", "kinds", "loose", "measured", "names", "pick", "readings", "role", "subject", "values"
    )  # fmt: skip

    def __init__(self, subject: Subject, role: Role | None, card: str, group: Group, names: tuple[tuple[str, str], ...]) -> None:
        self.subject, self.role, self.card, self.group, self.names = subject, role, card, group, names
        self.readings: Mapping[str, Reading] = {}
        self.keys: list[str] = []
        self.fixed: tuple[str, ...] = ()
        self.loose: tuple[str, ...] = ()
        self.measured: tuple[str, ...] = ()
        self.counts = self.absent = False
        self.pick: Callable[[Mapping[str, Any]], tuple[Any, ...]] = lambda _: ()
        self.values: list[Any] = []
        self.kinds: list[type] = []

    def heard(self, readings: Mapping[str, Reading], words: Mapping[str, Word]) -> None:
        """Sorts the readings into those that are plain facts which the words have just so, and all others."""
        fixed = tuple(key for key, reading in readings.items() if _fits(key, reading, words.get(key)))
        loose = tuple(key for key in readings if key not in fixed)
        self.readings, self.keys = readings, list(readings)
        self.fixed, self.loose = fixed, loose
        self.measured = tuple(key for key in readings if key in MEASURED)
        self.counts = any(key in COUNTERS for key in self.measured)
        self.absent = any(reading.__class__ is Absent for reading in readings.values())
        self.pick = itemgetter(*fixed) if len(fixed) > 1 else lambda told: tuple(told[key] for key in fixed)
        self.values = list(map(_VALUE, self.pick(readings)))
        self.kinds = list(map(type, self.values))

    def after(self, readings: Mapping[str, Reading], words: Mapping[str, Word], changed: Sequence[str] | None) -> Row:
        """The row after it said these readings, which the words have by now. ``changed`` are the attributes in which it said something else, where known."""
        plain = changed is not None and all(key not in self.loose and _fits(key, readings[key], words.get(key)) for key in changed)
        made = Row(self.subject, self.role, self.card, self.group, self.names)
        if not plain:
            made.heard(readings, words)
            return made
        made.readings, made.keys = readings, self.keys
        made.fixed, made.loose, made.measured, made.counts, made.absent, made.pick = self.fixed, self.loose, self.measured, self.counts, self.absent, self.pick
        made.values = list(map(_VALUE, self.pick(readings)))
        made.kinds = list(map(type, made.values))
        return made

    def changed(self, readings: Mapping[str, Reading], policy: Policy) -> list[str] | None:
        """Attributes in which the readings are not those of before, numbers that only move aside; None when they are of other attributes."""
        if readings is self.readings:
            return []
        if list(readings) != self.keys:
            return None
        loose = [key for key in self.loose if not _passes(key, self.readings[key], readings[key], policy)]
        try:
            values = list(map(_VALUE, self.pick(readings)))
        except AttributeError:
            return [key for key in self.fixed if not _equal(self.readings[key], readings[key])] + loose
        kinds = list(map(type, values))
        if values == self.values and kinds == self.kinds:
            return loose
        both = zip(self.fixed, self.values, values, self.kinds, kinds, strict=True)
        return [key for key, one, two, kind, other in both if kind is not other or one != two] + loose

    def repeats(self, words: Mapping[str, Word], policy: Policy) -> bool:
        """True when the readings are what the words have already, numbers that only move aside."""
        return all(
            (word := words.get(key)) is not None and (old := _reading(word)) is not None and _passes(key, old, self.readings[key], policy) for key in self.loose
        )


def moved_apart(row: Row, words: Mapping[str, Word]) -> bool:
    """True when the row says something else than its words of what cards are told apart by."""
    return any((_reading(words[key]) if key in words else None) != row.readings.get(key) for key in _IDENTITY)


def shifts(changed: Sequence[str]) -> bool:
    """True when cards are told apart by one of these attributes, or shaped by it."""
    return any(key in _IDENTITY or key.startswith("partition.") for key in changed)


def _equal(one: Reading, two: Reading) -> bool:
    if isinstance(one, Absent) or isinstance(two, Absent):
        return one == two
    return one.value.__class__ is two.value.__class__ and bool(one.value == two.value)


def _fits(key: str, reading: Reading, word: Word | None) -> bool:
    """True for a plain fact that the word has just so."""
    if isinstance(reading, Absent) or word is None or word.at is None or word.why is not None or key in MEASURED:
        return False
    value = reading.value
    return value.__class__ in _PLAIN and word.value.__class__ is value.__class__ and bool(word.value == value)


def _reading(word: Word) -> Reading | None:
    """The reading that alone makes this word; None where it holds a value and an absence after it."""
    if word.why is None:
        return Known(word.value) if word.at is not None else None
    return Absent(word.why, word.detail) if word.at is None else None


def _passes(key: str, old: Reading, new: Reading, policy: Policy) -> bool:
    """True when the new reading in the place of the old one is no news to anybody."""
    if isinstance(new, Absent) or isinstance(old, Absent):
        return old == new
    one, two = old.value, new.value
    compare = policy.compare.get(key)
    number = key in MEASURED and key not in STRUCTURE and one.__class__ in (int, float) and two.__class__ in (int, float)
    if number and (compare is None or compare.how == "near"):
        return True
    return one.__class__ is two.__class__ and bool(one == two)


@dataclass(frozen=True, slots=True)
class Calm:
    """A calm part, and what its sources told last. Never changed in place: a step makes another."""

    node: str
    due: float
    """No promise runs out before."""
    standing: frozenset[str]
    """Cards in their places; the others rest, seen by nobody."""
    accelerators: int
    named: dict[tuple[NameKind, str], str]
    """Strong names to cards."""
    cards: Mapping[str, Still] = field(default_factory=dict)
    rows: dict[Place, list[Row]] = field(default_factory=dict)


def survey(site: Site, policy: Policy) -> Calm | None:
    """The part as a calm one; None when it is not."""
    if len(site.nodes) != 1 or site.shared or site.apart or site.together or site.drift:
        return None
    node = next(iter(site.nodes))
    if any(speaker.unjoined_at is not None for speaker in site.speakers.values()):
        return None
    standing = []
    named: dict[tuple[NameKind, str], str] = {}
    for card in site.cards.values():
        if _stands(site, card, node):
            standing.append(card)
        elif not _rests(card, node):
            return None
        for kind in STRONG:
            for value in card.names.get(kind, ()):
                if named.setdefault((kind, value), card.id) != card.id:
                    return None
    here = [card for card in standing if role(site, card) is Role.ACCELERATOR]
    if crowded(site, node) or _has_views(site, here):
        return None
    stills = {card.id: still(site, card, policy) for card in standing}
    return Calm(node, due_at(site), frozenset(stills), len(here), named, stills)


def _stands(site: Site, card: Card, node: str) -> bool:
    """True for a card that is seen in its place, with nothing pending."""
    if card.presence is not Presence.PRESENT or not card.installed or card.node != node or card.shelf is not None or card.contested:
        return False
    if card.devices or card.partitions or card.lost_at or card.cut_lost_at is not None or card.cut_mode not in WHOLE:
        return False
    if any(place[0] != node or claim.void or claim.denied_at is not None for place, claim in card.claims.items()):
        return False
    return any(site.hardware(place) for place in card.claims) and rank(rung(card)) >= rank(card.best)


def _rests(card: Card, node: str) -> bool:
    """True for a card that is nowhere and stays so until somebody names it."""
    if card.claims or card.contested or card.node == node or card.dissent or card.cut_lost_at is not None or rank(rung(card)) < rank(card.best):
        return False
    if card.shelf is not None:
        return card.shelf.left and card.presence is card.shelf.presence
    return card.presence is Presence.REMOVED and card.node is None


def _has_views(site: Site, here: Sequence[Card]) -> bool:
    """True where a card may be a view of another, now or once somebody falls silent."""
    told = {card.id: channels_of(site, card) for card in here} if len(here) > 1 else {}
    may = [each for card in here if may_be_view(each := told.get(card.id, set()), card)]
    return any(not other <= each for each in may for other in told.values())


def due_at(site: Site) -> float:
    """When a promise runs out next."""
    times = [s.last_at + s.promise for s in site.speakers.values() if not (s.silent or s.removed or s.standing_by)]
    promises = {place: speaker.promise for place, speaker in site.speakers.items()}
    for card in site.cards.values():
        times += [claim.at + promises.get(place, 0.0) for place, claim in card.claims.items() if not claim.expired]
    return min(times, default=float("inf"))


def still(site: Site, card: Card, policy: Policy) -> Still:
    """What is so of a standing card until somebody says something new of it."""
    told = voices(site, card.voices)
    odds = at_odds(speaking(site, card, told), policy)
    classes = [site.speakers[place].witness for place in card.claims if place in site.speakers]
    serials = two_serials(site, card)
    alike = len(set(classes)) < len(card.claims)
    return Still(
        odds, serials, bool(odds or card.near or card.dissent) or serials, _watched(card), _meters(card, told), alike, set(classes) <= {WitnessClass.PCI}
    )


def stirred(card: Card, told: list[Voice], every: list[Voice], before: Still, changed: Sequence[str], policy: Policy) -> Still:
    """As `still`, where all but what was ``changed`` is as it was ``before``."""
    odds = [key for key in before.odds if key not in changed] + at_odds(every, policy, changed)
    watched = _watched(card) if any(key in WATCHED for key in changed) else before.watched
    restless = bool(odds or card.near or card.dissent) or before.serials
    return Still(odds, before.serials, restless, watched, _meters(card, told), before.alike, before.bus)


def speaking(site: Site, card: Card, told: list[Voice]) -> list[Voice]:
    """All who speak of a card: sources, and operators of it and of its node."""
    node = site.nodes.get(card.node or "")
    return [*told, *operator_voice(card.operator), *operator_voice(node.operator if node else {}, card.node or "")]


def _watched(card: Card) -> bool:
    for key in WATCHED:
        first: str | None = None
        for words in card.voices.values():
            word = words.get(key)
            if word is None or word.at is None:
                continue
            if word.value.__class__ is not str or (first is not None and word.value != first):
                return True
            first = word.value
    return False


def _meters(card: Card, told: list[Voice]) -> bool:
    return bool(card.uses) and any(sum(key in voice.words for voice in told) != 1 for key in {key for _, key in card.uses})


def rows(told: Sequence[Observation], place: Place, site: Site, speaker: Speaker, calm: Calm, policy: Policy) -> list[Row] | None:
    """The rows of a listing, each of a standing card that its source tells already, by the same names and in the same place; None when it is not so."""
    found = groups(told, place, site, speaker, policy)
    if len(found) != len(told):
        return None
    made: list[Row] = []
    for each, group in zip(told, found, strict=True):
        card = _card_of(site, calm, group)
        if card is None or not _as_before(card, group):
            return None
        names = tuple((kind.value, value) for kind in STRONG for value in group.ids.get(kind, ()))
        row = Row(each.subject, each.role, card.id, group, names)
        row.heard(group.folded.readings, card.voices[place])
        made.append(row)
    seen = {row.card for row in made}
    if len(seen) != len(made) or any(place in card.claims and card.id not in seen for card in site.cards.values()):
        return None
    return made


def _card_of(site: Site, calm: Calm, group: Group) -> Card | None:
    """The one card that every name of the group is of: by strong names, or else by its place."""
    if group.board or group.nothing or group.folded.devices or group.folded.partitions or group.folded.mode not in (None, *WHOLE):
        return None
    cards = {calm.named.get((kind, value), "") for kind in STRONG for value in group.ids.get(kind, ())}
    weak = not cards
    if weak:
        places = [{"address": each} for each in group.addresses] + ([{"slot": group.slot}] if group.slot else [])
        cards = {card.id for each in places for card in standing(site, calm.node, **each)}
    if len(cards) != 1 or not cards <= calm.standing:
        return None
    card = site.cards[next(iter(cards))]
    if weak:
        return None if contradicts(group, card) else card
    own = any(not card.names[NameKind.SERIAL][value].board for value in group.serials)
    return card if group.uuids or (own and not model_differs(group, card)) else None


def _as_before(card: Card, group: Group) -> bool:
    """True when the source told the card already, by these names and in this place."""
    place, claim = group.place, card.claims.get(group.place)
    if claim is None or place not in card.voices or card.roles.get(place) is not group.role:
        return False
    if (group.slot and group.slot != claim.slot) or (group.addresses and group.addresses != claim.addresses) or group.index != claim.index:
        return False
    if claim.ids != {kind.value: tuple(group.printed[kind, form] for form in forms) for kind, forms in group.ids.items()}:
        return False
    told = ((kind, {value for value, each in card.names.get(kind, {}).items() if place in each.by}) for kind in group.ids)
    return all(mine == set(group.ids[kind]) for kind, mine in told)


def regrouped(row: Row, told: Observation, readings: Mapping[str, Reading]) -> Group:
    """The row's group with what is said now."""
    group, card = row.group, row.group.folded
    folded = FoldedCard(names=card.names, readings=readings, vendor=told.vendor, role=card.role)
    return Group(folded, group.place, group.ordinal, group.role, group.ids, group.printed)


def readings_of(told: Observation) -> Mapping[str, Reading]:
    """The readings of a row, without those that another of them contradicts."""
    return told.readings if told.readings.keys().isdisjoint(HELD) else checked(told.readings)


def counts_more(site: Site, calm: Calm) -> bool:
    """True when the cluster counts more cards than there are."""
    told = [s.counts["cards"] for p, s in site.speakers.items() if s.channel is Channel.CLUSTER and not s.removed and "cards" in s.counts and p[0] == calm.node]
    return bool(told) and max(told) > calm.accelerators
