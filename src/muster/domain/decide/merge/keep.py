# SPDX-License-Identifier: Apache-2.0
"""Ids outlive a fold that is done again: what took the place of an old record keeps its id."""

from __future__ import annotations

from dataclasses import replace

from muster.domain.decide.merge.state import STRONG, Card, Site, digest
from muster.domain.model.names import NameKind


def keep_ids(before: Site, after: Site) -> dict[str, str]:
    """Ids that users know stay: a record minted anew takes the id of the old one with which it shares its best name. Returns minted to kept."""
    renamed: dict[str, str] = {}
    fresh = [c for c in after.cards.values() if c.id not in before.cards]
    free = [c for c in before.cards.values() if c.id not in after.cards and c.id not in after.gone]
    for card in fresh:
        old = next((f for f in free if _shares(card, f)), None)
        if old is not None:
            free.remove(old)
            renamed[card.id] = old.id
            rename(after, card, old.id)
    for left in free:
        heir = next((c for c in after.cards.values() if _shares(c, left)), None)
        if heir is not None:
            after.gone[left.id] = heir.id
    return renamed


def _shares(one: Card, two: Card) -> bool:
    for kind in (*STRONG, NameKind.PCI_ADDRESS, NameKind.CHASSIS_SLOT, NameKind.INDEX):
        mine, theirs = one.names.get(kind), two.names.get(kind)
        if mine and theirs:
            return bool(mine.keys() & theirs.keys()) and (kind in STRONG or one.node == two.node)
    return False


def rename(site: Site, card: Card, new: str) -> None:
    """Gives a record another id, wherever it is named."""
    old = card.id
    del site.cards[old]
    for piece in (*card.devices, *card.partitions):
        piece.id = piece.id.replace(old, new, 1)
        piece.under = piece.under.replace(old, new, 1)
    card.id = new
    card.history = [replace(c, id=digest(new, c.kind.value, f"{c.at:.3f}"), subject=new) for c in card.history]
    site.cards[new] = card
    site.gone = {k: new if v == old else v for k, v in site.gone.items() if k != new}
    site.gone[old] = new
    for cards in site.drift.values():
        if old in cards:
            cards[new] = cards.pop(old)
