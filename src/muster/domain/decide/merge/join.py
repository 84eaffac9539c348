# SPDX-License-Identifier: Apache-2.0
"""Two records that are one card become one, and one record that was two becomes two."""

from __future__ import annotations

from muster.domain.decide.merge.state import Card, Place, Sighting, Site, Told, digest
from muster.domain.decide.merge.words import newest
from muster.domain.model.roll import Happening, Presence

_FIRST = frozenset({Happening.INSTALLED, Happening.IDENTIFIED})


def join(site: Site, one: Card, two: Card, at: float, now: float) -> tuple[Card, str]:
    """The oldest of both with all that the other had, and the id that is gone."""
    kept, lost = sorted((one, two), key=lambda c: (c.created_at, c.created_n))
    moved = _moved_slot(kept, lost)
    for kind, told in lost.names.items():
        mine = kept.names.setdefault(kind, {})
        for value, each in told.items():
            have = mine.setdefault(value, Told(each.printed, set(), each.board))
            have.by |= each.by
            have.board = have.board and each.board
    for place, claim in lost.claims.items():
        kept.claims[place] = _one(kept.claims.get(place), claim)
    kept.roles = {**lost.roles, **kept.roles}
    kept.details = {**lost.details, **kept.details}
    for place, words in lost.voices.items():
        kept.voices[place] = newest(kept.voices.get(place, {}), words)
    kept.operator = newest(lost.operator, kept.operator)
    kept.devices = kept.devices or lost.devices
    if not kept.partitions and lost.partitions:
        kept.partitions, kept.cut_by, kept.cut_stated, kept.cut_mode = lost.partitions, lost.cut_by, lost.cut_stated, lost.cut_mode
    kept.uses = {**lost.uses, **kept.uses}
    _history(kept, lost)
    kept.note(Happening.JOINED, at, now, other=lost.id)
    if moved and moved[0] != moved[1]:
        kept.note(Happening.MOVED, at, now, slot=moved[1], was=moved[0])
        kept.moved_n = site.n
    if kept.node is None or (lost.installed and not kept.installed):
        kept.node = lost.node
    kept.installed = kept.installed or lost.installed
    if kept.shelf is None:
        kept.shelf = lost.shelf
    if lost.presence is Presence.PRESENT and kept.presence is not Presence.PRESENT and kept.shelf is None:
        kept.became(Presence.PRESENT, at)
    del site.cards[lost.id]
    site.gone[lost.id] = kept.id
    for cards in site.drift.values():
        if lost.id in cards:
            cards[kept.id] = cards.pop(lost.id)
    return kept, lost.id


def _history(kept: Card, lost: Card) -> None:
    have = {c.kind for c in kept.history}
    for entry in lost.history:
        if entry.kind in _FIRST and (entry.kind in have or entry.kind is Happening.IDENTIFIED):
            continue
        kept.note(entry.kind, entry.at, entry.learnt_at, **entry.detail)
    kept.history.sort(key=lambda c: c.at)


def _one(mine: Sighting | None, other: Sighting) -> Sighting:
    if mine is None:
        return other
    new, old = (mine, other) if mine.n >= other.n else (other, mine)
    new.first_at, new.first_n = min(new.first_at, old.first_at), min(new.first_n, old.first_n)
    new.slot = new.slot or old.slot
    new.addresses = new.addresses or old.addresses
    return new


def _moved_slot(kept: Card, lost: Card) -> tuple[str, str] | None:
    """Old and new slot when one source tells both records in different slots."""
    for place, claim in lost.claims.items():
        mine = kept.claims.get(place)
        if mine is not None and mine.slot and claim.slot and mine.slot != claim.slot:
            old, new = (mine, claim) if mine.n < claim.n else (claim, mine)
            return old.slot, new.slot
    return None


def split(site: Site, card: Card, node: str, at: float, now: float) -> Card:
    """A new record for what ``node`` says of ``card``: its claims, names and words go with it, both keep the names that both told."""
    claims = {place: claim for place, claim in card.claims.items() if place[0] == node}
    first = min(claims.values(), key=lambda c: c.first_n)
    made = Card(
        id="c-" + digest("split", card.id, node, f"{first.first_at:.3f}"),
        created_at=first.first_at,
        created_n=first.first_n,
        presence_at=at,
        presence=card.presence,
        node=node,
        best=card.best,
        installed=True,
        claims=claims,
    )
    take(card, made, set(claims))
    made.note(Happening.INSTALLED, first.first_at, now)
    site.cards[made.id] = made
    return made


def take(card: Card, made: Card, places: set[Place]) -> None:
    """Moves what these sources said from one record to the other."""
    made.claims.update({p: card.claims[p] for p in places if p in card.claims})
    made.voices.update({p: card.voices[p] for p in places if p in card.voices})
    made.roles.update({p: card.roles[p] for p in places if p in card.roles})
    made.details.update({p: card.details.pop(p) for p in places if p in card.details})
    for kind, told in card.names.items():
        for value, each in list(told.items()):
            mine = each.by & places
            if mine:
                made.names.setdefault(kind, {})[value] = Told(each.printed, mine, each.board)
                each.by -= mine
                if not each.by:
                    del told[value]
    for place in places:
        card.claims.pop(place, None)
        card.voices.pop(place, None)
        card.roles.pop(place, None)
    if card.cut_by in places:
        made.partitions, made.cut_by, made.cut_stated, made.cut_mode = card.partitions, card.cut_by, card.cut_stated, card.cut_mode
        card.partitions, card.cut_by, card.cut_stated, card.cut_mode = [], None, False, ""
    if not card.claims and card.devices:
        made.devices, card.devices = card.devices, []
