# SPDX-License-Identifier: Apache-2.0
"""How much the site knows of one node, over all its reports: a reporter that makes up new cards, parts, names or sources each time comes to an end.

What one report may say has bounds of its own. Work for a word grows with what is known of its node, so that must have bounds, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.domain.decide.merge.nodes import find, keys
from muster.domain.decide.merge.state import Card, Site
from muster.domain.model.errors import InputError
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Happening, NodeNames, Presence
from muster.wire import bounds

_AWAY = frozenset({Presence.STORED, Presence.RETIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What there is of one node. Cards that an operator put away are not counted, nor what is of them, nor sources that were removed."""

    here: int = 0
    ever: int = 0
    pieces: int = 0
    names: int = 0
    sources: int = 0


MOST = Size(here=bounds.HERE, ever=bounds.EVER, pieces=bounds.PIECES, names=bounds.CALLED, sources=bounds.SOURCES)
_RETIRE = "retire those that are gone for good (`muster retire CARD`; `muster get cards --filter 'node == \"NODE\"'` lists them)"
_WORDS = {
    "here": ("cards", _RETIRE),
    "ever": ("cards, with those that were removed,", _RETIRE),
    "pieces": ("devices and partitions", "no machine has so many: mend the tool that reads them; cards that are gone for good: `muster retire CARD`"),
    "names": ("names of cards", "a card keeps its names: mend the tool that reads them; cards that are gone for good: `muster retire CARD`"),
    "sources": ("sources", "`muster source remove NODE/SOURCE` ends one that is gone; `muster get sources` lists them"),
}


def size(sites: Iterable[Site], node: NodeNames, policy: Policy) -> Size:
    """What is known of the node in these parts of the site."""
    here = ever = pieces = names = sources = 0
    for site in sites:
        found = find(site, *keys(node, policy))
        if found is None:
            continue
        sources += sum(place[0] == found.id and not speaker.removed for place, speaker in site.speakers.items())
        for card in site.cards.values():
            if card.presence in _AWAY or not _of(card, found.id):
                continue
            ever += 1
            here += card.presence is not Presence.REMOVED
            pieces += len(card.devices) + len(card.partitions)
            names += sum(map(len, card.names.values()))
    return Size(here=here, ever=ever, pieces=pieces, names=names, sources=sources)


def _of(card: Card, node: str) -> bool:
    """True for a card that is on the node, is told of there, or was removed from it and is nowhere since."""
    if card.node is not None:
        return card.node == node
    if card.claims:
        return any(place[0] == node for place in card.claims)
    gone = next((each for each in reversed(card.history) if each.kind is Happening.REMOVED), None)
    return gone is not None and gone.detail.get("node") == node


def close(known: Size, rows: int) -> bool:
    """True when a word of so many rows may be more than there is room for: only then it must be found out what would come of it."""
    return (
        known.here + rows > MOST.here
        or known.ever + rows > MOST.ever
        or known.pieces + rows > MOST.pieces
        or known.names + rows * bounds.NAMES > MOST.names
        or known.sources + 1 > MOST.sources
    )


def fits(node: str, before: Size, after: Size) -> None:
    """Raises InputError for a word that brings more than there is room for. What a full node says of what is known of it is taken."""
    for what, (words, hint) in _WORDS.items():
        was, will, bound = getattr(before, what), getattr(after, what), getattr(MOST, what)
        if will > bound and will > was:
            raise InputError(f"{node} would have {will} {words} on the roll; {bound} are taken of one node, and nothing of this report is", hint=hint)
