# SPDX-License-Identifier: Apache-2.0
"""Sightings: who sees a card where, who denies it, and what follows for its presence and place."""

from __future__ import annotations

from muster.domain.decide.merge.groups import Group
from muster.domain.decide.merge.join import split
from muster.domain.decide.merge.match import Moment, named
from muster.domain.decide.merge.state import NEVER, Card, Place, Sighting, Site, Told, Turn
from muster.domain.model.names import NameKind
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Happening, Presence

_CHANGING = (NameKind.VENDOR_UUID, NameKind.SERIAL)
JUST_AFTER = 0.001
"""Seconds after a promise ran out at which it is looked at: at the moment itself it still holds."""


def contest(site: Site, card: Card, place: Place, moment: Moment) -> None:
    """Splits the card when this node claims it again after another node began to, and that one still does: the id is contested."""
    node = place[0]
    if not site.hardware(place):
        return
    if all(p[0] == node for p in card.claims):
        return
    mine = [claim for p, claim in card.claims.items() if p[0] == node and site.hardware(p) and claim.denied_at is None]
    if not mine:
        return
    last = max(claim.n for claim in mine)
    others = {p[0] for p, claim in card.claims.items() if p[0] != node and site.sees(p, claim, moment.at) and last < claim.first_n <= moment.n}
    for other in sorted(others):
        split(site, card, other, moment.at, moment.learnt)
        card.node = node


def sight(site: Site, card: Card, group: Group, moment: Moment) -> None:
    """Takes the group as this source's word on where the card is and what it is called."""
    place = group.place
    claim = card.claims.get(place)
    fresh = claim is None or claim.denied_at is not None
    if moment.at < card.created_at and site.hardware(place):
        _earlier(card, place, moment)
    ids = {kind.value: tuple(group.printed[kind, form] for form in forms) for kind, forms in group.ids.items()}
    if claim is None:
        claim = Sighting(ids=ids, first_at=moment.at, first_n=moment.n, at=moment.at, n=moment.n)
        claim.slot, claim.addresses, claim.index, claim.placed_n = group.slot, group.addresses, group.index, moment.n
        card.claims[place] = claim
    elif claim.n == moment.n:
        claim.addresses = tuple(sorted({*claim.addresses, *group.addresses}))
    else:
        _replace(card, claim, group, moment)
        claim.ids = ids
    _names(site, card, group, moment)
    if fresh:
        claim.placed_n = moment.n
    claim.at, claim.n = moment.at, moment.n
    claim.denied_at = claim.confirmed_at = None
    claim.void = claim.expired = False
    card.roles[place] = group.role
    if place in card.lost_at:
        _back(card, place, moment)


def _earlier(card: Card, place: Place, moment: Moment) -> None:
    """Dates a record back to a word that is older than all that was known of it."""
    card.created_at, card.created_n = moment.at, moment.n
    if card.installed:
        card.history = [entry for entry in card.history if entry.kind is not Happening.INSTALLED]
        card.note(Happening.INSTALLED, moment.at, moment.learnt, node=place[0])
        card.history.sort(key=lambda entry: entry.at)


def _back(card: Card, place: Place, moment: Moment) -> None:
    """The source is heard again; of one that is found to have spoken on nothing was lost."""
    lost = card.lost_at.pop(place)
    if lost <= moment.at:
        card.note(Happening.SOURCE_BACK, moment.at, moment.learnt, source=place[1])
    elif lost not in card.lost_at.values():
        card.history = [entry for entry in card.history if entry.kind is not Happening.SOURCE_LOST or entry.at != lost]


def _replace(card: Card, claim: Sighting, group: Group, moment: Moment) -> None:
    """A changed slot is a move, a changed address alone is not; a change that another source told already is no news."""
    news = claim.n > card.moved_n
    slot_changed = bool(claim.slot and group.slot and claim.slot != group.slot)
    address_changed = bool(claim.addresses and group.addresses and not set(claim.addresses) & set(group.addresses))
    if news and slot_changed:
        card.note(Happening.MOVED, moment.at, moment.learnt, slot=group.slot, was=claim.slot)
    elif news and address_changed:
        card.note(Happening.READDRESSED, moment.at, moment.learnt, address=group.addresses[0], was=claim.addresses[0])
    if slot_changed or address_changed:
        claim.placed_n = moment.n
        if news:
            card.moved_n = moment.n
    claim.slot = group.slot or claim.slot
    claim.addresses = group.addresses or claim.addresses
    claim.index = group.index


def _names(site: Site, card: Card, group: Group, moment: Moment) -> None:
    others = {a if b in named(card) else b for a, b in site.apart if {a, b} & named(card)} if site.apart else set()
    for kind, every in group.ids.items():
        forms = [form for form in every if f"{kind}={form}" not in others] if others else every
        if not forms:
            continue
        told = card.names.setdefault(kind, {})
        mine = {value for value, each in told.items() if group.place in each.by}
        if kind in _CHANGING and mine and not mine & set(forms) and not any(d.ids.get(kind) for d in card.devices):
            card.note(Happening.ID_CHANGED, moment.at, moment.learnt, kind=kind.value, was=sorted(mine)[0], now=forms[0])
        first = card.claims[group.place].n != moment.n or len(forms) > 1 or kind in _CHANGING
        for value in mine - set(forms) if first else ():
            told[value].by.discard(group.place)
        for value in forms:
            each = told.setdefault(value, Told(group.printed[kind, value], set(), value in group.board))
            each.by.add(group.place)
            each.board = value in group.board if kind is NameKind.SERIAL and not each.board else each.board


def deny(site: Site, card: Card, place: Place, moment: Moment, policy: Policy) -> None:
    """A complete listing without the card; the second one, settle time later, confirms it."""
    claim = card.claims[place]
    if not site.hardware(place):
        del card.claims[place]
        return
    if claim.denied_at is None:
        claim.denied_at = moment.at
    elif claim.confirmed_at is None and moment.at - claim.denied_at >= policy.settle:
        claim.confirmed_at = moment.at


def displace(site: Site, node: str) -> None:
    """Sightings in a place that are older than the arrival of another card there count no more."""
    if not crowded(site, node):
        return
    at: dict[str, list[tuple[Card, Sighting]]] = {}
    for card in site.cards.values():
        for place, claim in card.claims.items():
            if place[0] == node and site.hardware(place) and not claim.void:
                for spot in (*claim.addresses, *([f"slot {claim.slot}"] if claim.slot else [])):
                    at.setdefault(spot, []).append((card, claim))
    for those in at.values():
        if len({card.id for card, _ in those}) < 2:
            continue
        for card, claim in those:
            arrivals = [other.placed_n for each, other in those if each is not card and other.denied_at is None]
            if any(claim.n < n <= site.n for n in arrivals):
                claim.void = True


def crowded(site: Site, node: str) -> bool:
    """True when two cards are told in one place of a node, by sightings that count."""
    slots: dict[str, Card] = {}
    addresses: dict[str, Card] = {}
    for card in site.cards.values():
        for place, claim in card.claims.items():
            if place[0] != node or claim.void:
                continue
            if claim.slot and slots.setdefault(claim.slot, card) is not card:
                return True
            for address in claim.addresses:
                if addresses.setdefault(address, card) is not card:
                    return True
    return False


def taken(site: Site, card: Card, now: float) -> bool:
    """True when another card stands in this card's place now."""
    spots = {(p[0], s) for p, c in card.claims.items() if p[0] == card.node for s in (*c.addresses, *([f"slot {c.slot}"] if c.slot else []))}
    for other in site.cards.values():
        if other is card:
            continue
        for place, claim in other.claims.items():
            if not site.sees(place, claim, now):
                continue
            if any((place[0], s) in spots for s in (*claim.addresses, *([f"slot {claim.slot}"] if claim.slot else []))):
                return True
    return False


def settle(site: Site, card: Card, at: float, learnt: float) -> None:
    """Place and presence of one card at ``at``, with the history entries that follow. What it is known to have become later stands."""
    _place(site, card, at, learnt)
    if card.presence_at > at + JUST_AFTER:
        return
    seen = site.seen(card, at)
    if card.shelf is not None:
        _shelved(site, card, at, learnt, seen=seen)
        if card.shelf is not None:
            return
    if seen:
        _seen(card, at, learnt)
        return
    confirmed = any(c.confirmed_at is not None for p, c in card.claims.items() if p[0] == card.node and site.hardware(p))
    if card.presence is Presence.REMOVED:
        _forget(site, card)
    if card.presence is Presence.REMOVED or (card.presence is Presence.MISSING and not taken(site, card, at)):
        return
    if confirmed and card.installed:
        gone = taken(site, card, at)
        card.became(Presence.REMOVED if gone else Presence.MISSING, at)
        card.note(Happening.REMOVED if gone else Happening.MISSING, at, learnt, node=card.node)
        if gone:
            card.node = None
            card.claims.clear()
        return
    card.became(Presence.UNKNOWN, at)


def _forget(site: Site, card: Card) -> None:
    """Lets go of what was told of a removed card out of its turn: it is nowhere."""
    told = [place for place in card.claims if site.hardware(place)]
    for place in told:
        del card.claims[place]
    if told:
        card.node = None


def _seen(card: Card, at: float, learnt: float) -> None:
    if not card.installed:
        card.installed = True
        card.note(Happening.INSTALLED, min((c.first_at for c in card.claims.values()), default=at), learnt, node=card.node)
    elif card.presence is Presence.MISSING and not any(c.kind is Happening.MOVED and c.at == at for c in card.history):
        card.note(Happening.FOUND, at, learnt, node=card.node)
    elif card.presence is Presence.REMOVED:
        card.note(Happening.RETURNED, at, learnt, node=card.node)
    card.became(Presence.PRESENT, at)


def _shelved(site: Site, card: Card, at: float, learnt: float, *, seen: bool) -> None:
    shelf = card.shelf
    if shelf is None:
        return
    nodes = {p[0] for p, c in card.claims.items() if site.sees(p, c, at)}
    if not seen or nodes - set(shelf.nodes):
        shelf.left = True
    if seen and shelf.left:
        card.shelf = None
        if card.installed:
            card.note(Happening.RETURNED, at, learnt, node=card.node)
        else:
            card.installed = True
            card.note(Happening.INSTALLED, at, learnt, node=card.node)
        card.became(Presence.PRESENT, at)
        return
    card.became(shelf.presence, shelf.at)


def _place(site: Site, card: Card, at: float, learnt: float) -> None:
    """Where the card is: the newest word; *moved* when all that saw it at the old node let go."""
    if len({p[0] for p in card.claims}) == 1 and any(not claim.void and site.hardware(p) for p, claim in card.claims.items()):
        card.node = next(iter(card.claims))[0]
        return
    begun = {p for p, claim in card.claims.items() if claim.first_n <= site.n}
    told = [(claim.n, p[0]) for p, claim in card.claims.items() if site.hardware(p) and not claim.void and p in begun]
    if not told:
        if card.node is None:
            card.node = next((p[0] for p, _ in sorted(card.claims.items(), key=lambda pc: pc[1].n, reverse=True)), None) if not card.installed else None
        return
    newest = max(told)[1]
    olds = {p[0] for p in begun if p[0] != newest and site.hardware(p)}
    for old in sorted(olds):
        claims = {p: c for p, c in card.claims.items() if p[0] == old and site.hardware(p)}
        if any(site.fresh(p, c, at) for p, c in claims.items()):
            continue
        for place in claims:
            del card.claims[place]
        if card.installed and card.shelf is None and card.presence is not Presence.REMOVED and _began(card, newest) > max(c.first_n for c in claims.values()):
            card.note(Happening.MOVED, at, learnt, node=newest, was=old)
            card.moved_n = site.n
    card.node = newest


def _began(card: Card, node: str) -> Turn:
    return max((c.first_n for p, c in card.claims.items() if p[0] == node), default=NEVER)


def conflicts(site: Site, at: float, learnt: float) -> None:
    """Ids that cards on two nodes tell at the same time are contested; when one of them goes, the conflict ends."""
    held: dict[tuple[NameKind, str], list[Card]] = {}
    for card in site.cards.values():
        for kind in _CHANGING:
            for value, told in card.names.get(kind, {}).items():
                if not told.board:
                    held.setdefault((kind, value), []).append(card)
    by: dict[tuple[NameKind, str], set[tuple[str, str]]] = {}
    for (kind, value), cards in held.items():
        for card in cards if len(cards) > 1 else ():
            live = {p[0] for p, c in card.claims.items() if site.sees(p, c, at)}
            by.setdefault((kind, value), set()).update((card.id, node) for node in live & {p[0] for p in card.names[kind][value].by})
    contested: dict[str, set[str]] = {}
    for (kind, _), told_by in by.items():
        if len({c for c, _ in told_by}) > 1 and len({n for _, n in told_by}) > 1:
            for each, _node in told_by:
                contested.setdefault(each, set()).add(kind.value)
    for card in site.cards.values():
        now = contested.get(card.id, set())
        if now and not card.contested:
            card.note(Happening.IDENTITY_CONFLICT, at, learnt, kinds=sorted(now))
        elif card.contested and not now:
            card.note(Happening.CONFLICT_ENDED, at, learnt, kinds=sorted(card.contested))
        card.contested = now
