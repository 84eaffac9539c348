# SPDX-License-Identifier: Apache-2.0
"""Which card a person means by a short name: our id or its beginning, a UUID, a serial, an address, or "node/slot". Never a guess between two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muster.domain.model.errors import Ambiguous, InputError, NotFound
from muster.domain.model.names import NameKind, canonical, pci_address
from muster.domain.model.roll import CardRecord

SHORTEST = 4
"""Characters of the beginning of an id or UUID."""
_STRONG = (NameKind.VENDOR_UUID, NameKind.SERIAL)
_LOCAL = (NameKind.K8S_DEVICE, NameKind.INDEX)
_NAME_PARTS = " · "
HINT = "name a card by its id, UUID, serial, address, node/slot, node/address or node/index; `muster get cards` lists them"


class AmbiguousCard(Ambiguous):
    """A short name fits several cards; ``candidates`` are they."""

    def __init__(self, word: str, candidates: Sequence[CardRecord]) -> None:
        listed = ", ".join(f"{c.node_name or 'no node'}/{_where(c)} ({c.id})" for c in candidates[:10])
        more = f" and {len(candidates) - 10} more" if len(candidates) > 10 else ""
        super().__init__(f"{word!r} fits {len(candidates)} cards: {listed}{more}", hint="name one of them by its id or as node/slot, node/address, node/index")
        self.candidates = tuple(candidates)


def find(word: str, cards: Sequence[CardRecord]) -> CardRecord:
    """The one card that ``word`` names. Raises NotFound, AmbiguousCard, or InputError for an empty name.

    Stronger names go first: an exact id, then UUID and serial, then node/place, then what only holds on one node, then the beginning of an id.
    """
    text = word.strip()
    if not text:
        raise InputError("a card's name is empty", hint=HINT)
    for rule in (_by_id, _by_name, _at_place, _by_address, _by_local, _by_beginning):
        found = rule(text, cards)
        if len(found) == 1:
            return found[0]
        if found:
            raise AmbiguousCard(word, found)
    raise NotFound(f"no card {word!r}", hint=HINT)


def _by_id(text: str, cards: Sequence[CardRecord]) -> list[CardRecord]:
    return [card for card in cards if card.id == text]


def _by_name(text: str, cards: Sequence[CardRecord]) -> list[CardRecord]:
    asked = {kind: canonical(kind, text) for kind in _STRONG}
    return [card for card in cards if any(canonical(kind, value) == asked[kind] for kind in _STRONG for value in card.ids.get(kind, ()))]


def _at_place(text: str, cards: Sequence[CardRecord]) -> list[CardRecord]:
    if _NAME_PARTS in text:
        node, place = [part.strip() for part in text.split(_NAME_PARTS)][:2]
        return _in_node(node, place.removeprefix("index "), cards)
    node, slash, place = text.partition("/")
    return _in_node(node, place, cards) if slash else []


def _in_node(node: str, place: str, cards: Sequence[CardRecord]) -> list[CardRecord]:
    there = [card for card in cards if _same_node(node, card)]
    slot = canonical(NameKind.CHASSIS_SLOT, place)
    address = pci_address(place)
    rules: tuple[Callable[[CardRecord], bool], ...] = (
        lambda card: bool(card.slot) and canonical(NameKind.CHASSIS_SLOT, card.slot) == slot,
        lambda card: address is not None and _has_address(card, address),
        lambda card: bool(card.index) and card.index == place,
        lambda card: place in card.ids.get(NameKind.K8S_DEVICE, ()),
    )
    for rule in rules:
        found = [card for card in there if rule(card)]
        if found:
            return found
    return []


def _same_node(node: str, card: CardRecord) -> bool:
    return bool(card.node_name) and (card.node_name.lower() == node.lower() or card.node == node)


def _has_address(card: CardRecord, address: str) -> bool:
    return pci_address(card.address) == address if card.address else False


def _by_address(text: str, cards: Sequence[CardRecord]) -> list[CardRecord]:
    address = pci_address(text)
    return [card for card in cards if _has_address(card, address)] if address else []


def _by_local(text: str, cards: Sequence[CardRecord]) -> list[CardRecord]:
    return [card for card in cards if text.lower() in {value.lower() for value in _local(card) if value}]


def _local(card: CardRecord) -> tuple[str, ...]:
    return (card.slot, card.index, *(value for kind in _LOCAL for value in card.ids.get(kind, ())))


def _by_beginning(text: str, cards: Sequence[CardRecord]) -> list[CardRecord]:
    begins = canonical(NameKind.VENDOR_UUID, text)
    if len(text) < SHORTEST:
        return []
    return [card for card in cards if card.id.startswith(text) or (len(begins) >= SHORTEST and _uuid_begins(card, begins))]


def _uuid_begins(card: CardRecord, begins: str) -> bool:
    return any(canonical(NameKind.VENDOR_UUID, value).startswith(begins) for value in card.ids.get(NameKind.VENDOR_UUID, ()))


def _where(card: CardRecord) -> str:
    return card.slot or card.address or (f"index {card.index}" if card.index else "no place")
