# SPDX-License-Identifier: Apache-2.0
"""Which cards of the roll the cards of one listing are: UUID, serial, serial with slot, slot, address, index, and what forbids each.

All records that match without contradiction become one; the oldest stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.domain.decide.merge.groups import Group
from muster.domain.decide.merge.join import join
from muster.domain.decide.merge.state import Card, Piece, Place, Site, Turn, digest
from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.names import NameKind
from muster.domain.model.reading import Known, Reading
from muster.domain.model.roll import RUNGS, Rung, Word

MEASURED = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT)


@dataclass(slots=True)
class Point:
    """A reading of a gauge or counter (None: an absence), bound to the card, device or partition that it is of."""

    owner: Card | Piece
    place: Place
    key: str
    value: Any
    reading: Reading


@dataclass(slots=True)
class Moment:
    """When a listing is applied: its time, its turn, and when it arrived. ``points`` gathers what it measured."""

    at: float
    n: Turn
    learnt: float
    whole: bool = False
    """The listing is complete."""
    alone: frozenset[str] = frozenset()
    """Cards of which the listing has one row only."""
    points: list[Point] = field(default_factory=list)
    made: dict[Any, Word] = field(default_factory=dict)
    """Words of this listing by their value."""

    def measured(self, owner: Card | Piece, place: Place, readings: Mapping[str, Reading]) -> None:
        """Keeps the gauges and counters among the readings."""
        for key, reading in readings.items():
            if key in MEASURED:
                self.points.append(Point(owner, place, key, reading.value if isinstance(reading, Known) else None, reading))


@dataclass(slots=True)
class _Bound:
    """The cards that the groups of one listing are found to be."""

    of: dict[int, str] = field(default_factory=dict)
    """Group ordinal to card id."""

    def groups(self, card: str) -> list[int]:
        return [group for group, bound in self.of.items() if bound == card]


def match(site: Site, groups: list[Group], moment: Moment) -> list[tuple[Group, Card]]:
    """Each group with its card, made where there was none. Records that turn out to be one are joined."""
    bound = _Bound()
    passes: tuple[Callable[[Site, Group], Iterable[Card]], ...] = (_by_uuid, _by_serial, _by_serial_and_slot, _by_slot, _by_address, _by_index)
    for find in passes:
        strong = find in (_by_uuid, _by_serial, _by_serial_and_slot)
        for group in groups:
            for card in list(find(site, group)):
                _bind(site, group, card, groups, bound, moment, strong=strong)
    for group in groups:
        if group.ordinal not in bound.of:
            bound.of[group.ordinal] = _new(site, group, moment).id
    return [(group, site.cards[bound.of[group.ordinal]]) for group in groups]


def _bind(site: Site, group: Group, card: Card, groups: list[Group], bound: _Bound, moment: Moment, *, strong: bool) -> None:
    if card.id not in site.cards or _forbidden(site, group, card):
        return
    if not strong and contradicts(group, card):
        return
    mine = bound.of.get(group.ordinal)
    if mine == card.id:
        return
    others = [g for g in bound.groups(card.id) if g != group.ordinal]
    if others and not _other_device(card, group, [groups[g] for g in others]):
        return
    if mine is None:
        bound.of[group.ordinal] = card.id
        return
    if told_apart(site, site.cards[mine], card) or _alibi(site, site.cards[mine], card, group) or _differ(site.cards[mine], card, strong=strong):
        return
    kept, lost = join(site, site.cards[mine], card, moment.at, moment.learnt)
    for ordinal, each in list(bound.of.items()):
        if each == lost:
            bound.of[ordinal] = kept.id


def _other_device(card: Card, group: Group, others: list[Group]) -> bool:
    """True when the group stands at another device of the same card than the groups that are bound to it."""
    if len(card.devices) < 2:
        return False
    taken = {a for other in others for a in (*other.addresses, *other.uuids)}
    mine = {*group.addresses, *group.uuids}
    places = {a for d in card.devices for a in d.ids.get(NameKind.PCI_ADDRESS, ())}
    if group.addresses and not places & set(group.addresses):
        return False  # it stands apart from all devices of this card: two rows at one address were once taken for one board
    parts = places | {a for d in card.devices for a in d.ids.get(NameKind.VENDOR_UUID, ())}
    return bool(mine) and not (mine & taken) and bool(mine & parts)


def _by_uuid(site: Site, group: Group) -> Iterable[Card]:
    return _prefer(site, group, _having(site, NameKind.VENDOR_UUID, group.uuids))


def _by_serial(site: Site, group: Group) -> Iterable[Card]:
    found = [c for c in _having(site, NameKind.SERIAL, group.serials, board=False) if not model_differs(group, c) and not _other_uuid(site, group, c)]
    return _prefer(site, group, found)


def _by_serial_and_slot(site: Site, group: Group) -> Iterable[Card]:
    serials = group.ids.get(NameKind.SERIAL, [])
    if not group.slot:
        return []
    node = group.place[0]
    found = _having(site, NameKind.SERIAL, serials)
    return [c for c in found if any(p[0] == node and claim.slot == group.slot for p, claim in c.claims.items()) and not _other_uuid(site, group, c)]


def _by_slot(site: Site, group: Group) -> Iterable[Card]:
    return standing(site, group.place[0], slot=group.slot) if group.slot else []


def _by_address(site: Site, group: Group) -> Iterable[Card]:
    found: list[Card] = []
    for address in group.addresses:
        found.extend(c for c in standing(site, group.place[0], address=address) if c not in found)
    return found


def _by_index(site: Site, group: Group) -> Iterable[Card]:
    if not group.index:
        return []
    found = []
    for card in site.cards.values():
        claim = card.claims.get(group.place)
        if claim is None or claim.index != group.index or claim.void:
            continue
        if not (claim.addresses and group.addresses) and not (claim.slot and group.slot):
            found.append(card)
    return found[:1]


def _having(site: Site, kind: NameKind, values: Iterable[str], *, board: bool = True) -> list[Card]:
    wanted = list(values)
    found = []
    for card in site.cards.values() if wanted else ():
        told = card.names.get(kind)
        if told:
            for value in wanted:
                if value in told and (board or not told[value].board):
                    found.append(card)
                    break
    return found


def _prefer(site: Site, group: Group, found: list[Card]) -> list[Card]:
    """Of several cards with one id: those on this node (the newest where they are contested), else one that nobody sees elsewhere."""
    if len(found) < 2:
        return [c for c in found if not _apart_by_serial(group, c)]
    here = [c for c in found if any(p[0] == group.place[0] for p in c.claims)]
    if here:
        return sorted(here, key=lambda c: max(claim.n for p, claim in c.claims.items() if p[0] == group.place[0]))[-1:] if _contested(here) else here
    free = [c for c in found if not any(site.hardware(p) and claim.denied_at is None and not claim.expired for p, claim in c.claims.items())]
    return free[:1]


def _contested(cards: list[Card]) -> bool:
    return any(c.contested for c in cards)


def _apart_by_serial(group: Group, card: Card) -> bool:
    """One UUID, but a serial that the same kind of source tells otherwise on another node where the card still is: told apart at once."""
    mine = group.serials
    theirs = card.values(NameKind.SERIAL)
    if not mine or not theirs or set(mine) & set(theirs):
        return False
    return any(
        place[0] != group.place[0] and place[1] == group.place[1] and claim.denied_at is None and not claim.expired and not claim.void
        for place, claim in card.claims.items()
    )


def _other_uuid(site: Site, group: Group, card: Card) -> bool:
    """True when the UUIDs differ and this is no change of scheme on the same node."""
    known = card.values(NameKind.VENDOR_UUID)
    if not group.uuids or not known or set(group.uuids) & set(card.values(NameKind.VENDOR_UUID, former=True)):
        return False
    return not any(place[0] == group.place[0] and site.hardware(place) for place in card.claims)


def _forbidden(site: Site, group: Group, card: Card) -> bool:
    """An operator said that these are not the same."""
    if not site.apart:
        return False
    mine = {f"{kind}={value}" for kind, values in group.ids.items() for value in values}
    theirs = named(card)
    pairs = [*site.apart, *((b, a) for a, b in site.apart)]
    return any(a in mine and b in theirs and b not in mine for a, b in pairs)


def named(card: Card) -> set[str]:
    """Its names as operators' words on identity have them."""
    return {f"{kind}={value}" for kind, told in card.names.items() for value in told} | {f"id={card.id}"}


def told_apart(site: Site, one: Card, two: Card) -> bool:
    """An operator said that these two records are not one card."""
    mine, theirs = named(one), named(two)
    return any((a in mine and b in theirs) or (b in mine and a in theirs) for a, b in site.apart)


def contradicts(group: Group, card: Card) -> bool:
    """True when a position match is impossible: another UUID, another serial, another PCI id."""
    for kind, mine in ((NameKind.VENDOR_UUID, group.uuids), (NameKind.SERIAL, group.serials)):
        theirs = [v for v, told in card.names.get(kind, {}).items() if told.by and not told.board]
        if mine and theirs and not set(mine) & set(card.values(kind, former=True)):
            return True
    return _pci_differs(group, card)


def model_differs(group: Group, card: Card) -> bool:
    """True when the models cannot be the same: other PCI ids, or product names without a word in common."""
    if _pci_differs(group, card):
        return True
    mine, theirs = group.says("product.name"), _known(card, "product.name")
    if not isinstance(mine, str) or not isinstance(theirs, str):
        return False
    if mine == theirs and any(c.isalnum() for c in mine):
        return False
    return not (_words(mine) & _words(theirs))


def _words(text: str) -> set[str]:
    return {w for w in "".join(c.lower() if c.isalnum() else " " for c in text).split() if w}


def _pci_differs(group: Group, card: Card) -> bool:
    for key in ("pci.vendor_id", "pci.device_id"):
        mine, theirs = group.says(key), _known(card, key)
        if mine is not None and theirs is not None and mine != theirs and str(mine).lower() != str(theirs).lower():
            return True
    return False


def _known(card: Card, key: str) -> object:
    for said in (card.voices, *(d.voices for d in card.devices)):
        for words in said.values():
            word = words.get(key)
            if word is not None and word.at is not None:
                return word.value
    return None


def standing(site: Site, node: str, *, slot: str = "", address: str = "") -> list[Card]:
    """The card that stands at a place of a node: the newest arrival there whose sighting counts; at most one."""
    best: tuple[Turn, Card] | None = None
    for card in site.cards.values():
        for place, claim in card.claims.items():
            if place[0] != node or claim.void or claim.placed_n > site.n:
                continue
            if ((slot and claim.slot == slot) or (address and address in claim.addresses)) and site.hardware(place) and not _left(site, card, node):
                arrived = _arrival(card, node, slot, address)
                if best is None or arrived > best[0]:
                    best = (arrived, card)
    return [best[1]] if best else []


def _left(site: Site, card: Card, node: str) -> bool:
    """True when another node began to see the card after this one last did: what stands here without a name is not it."""
    here = [c.n for p, c in card.claims.items() if p[0] == node]
    return bool(here) and any(
        p[0] != node and c.denied_at is None and not c.void and site.hardware(p) and max(here) < c.first_n <= site.n for p, c in card.claims.items()
    )


def _arrival(card: Card, node: str, slot: str, address: str) -> Turn:
    here = [c for p, c in card.claims.items() if p[0] == node and not c.void and ((slot and c.slot == slot) or (address and address in c.addresses))]
    return min(c.placed_n for c in here)


def _alibi(site: Site, mine: Card, other: Card, group: Group) -> bool:
    """True when the two records were seen at the same time in places that cannot be one card's."""
    node, places = group.place[0], {group.slot, *group.addresses} - {""}

    def spans(card: Card) -> list[tuple[str, set[str], float, float]]:
        return [
            (p[0], set(c.addresses), c.first_at, c.at) for p, c in card.claims.items() if site.hardware(p) and not (p[0] == node and set(c.addresses) & places)
        ]

    def all_spans(card: Card) -> list[tuple[str, set[str], float, float]]:
        return [(p[0], set(c.addresses), c.first_at, c.at) for p, c in card.claims.items() if site.hardware(p)]

    for one, two in ((mine, other), (other, mine)):
        for where, addresses, first, last in spans(one):
            for there, others, begin, end in all_spans(two):
                elsewhere = where != there or (bool(addresses) and bool(others) and not addresses & others)
                if elsewhere and first <= end and begin <= last:
                    return True
    return False


def _differ(mine: Card, other: Card, *, strong: bool) -> bool:
    """True when two records hold different names of a kind that one card has once (a strong match forgives: one UUID, two serials)."""
    if strong:
        return False
    for kind in (NameKind.VENDOR_UUID, NameKind.SERIAL):
        one = {v for v, told in mine.names.get(kind, {}).items() if not told.board}
        two = {v for v, told in other.names.get(kind, {}).items() if not told.board}
        if one and two and not one & two:
            return True
    return False


def _new(site: Site, group: Group, moment: Moment) -> Card:
    """A new record. Its id follows from what first showed it, so that the same evidence mints the same id."""
    named = [f"{kind}={v}" for kind in (NameKind.VENDOR_UUID, NameKind.SERIAL, NameKind.PCI_ADDRESS, NameKind.CHASSIS_SLOT) for v in group.ids.get(kind, [])]
    seed = named or [f"index={group.index}"]
    made = Card(
        id="c-" + digest("card", group.place[0], group.place[1], f"{moment.at:.3f}", *seed),
        created_at=moment.at,
        created_n=moment.n,
        presence_at=moment.at,
        best=RUNGS[-1],
    )
    made.best = _first_rung(group)
    site.cards[made.id] = made
    return made


def _first_rung(group: Group) -> Rung:
    if group.uuids:
        return Rung.UUID
    if group.serials:
        return Rung.SERIAL_MODEL
    if group.ids.get(NameKind.SERIAL) and group.slot:
        return Rung.SERIAL_SLOT
    if group.slot:
        return Rung.NODE_SLOT
    return Rung.NODE_ADDRESS if group.addresses else Rung.NODE_INDEX
