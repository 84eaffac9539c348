# SPDX-License-Identifier: Apache-2.0
"""Names to cards for a fleet that is too large to be looked through: which cards a short name may mean. `muster.domain.decide.find` says which it does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np

from muster.domain.decide.find import SHORTEST
from muster.domain.model.names import NameKind, canonical, pci_address
from muster.domain.model.roll import CardRecord
from muster.domain.model.snapshot import Coded, Snapshot, Words

_STRONG = (NameKind.VENDOR_UUID, NameKind.SERIAL)
_LOCAL = (NameKind.K8S_DEVICE, NameKind.INDEX)
_PARTS = " · "


class Index:
    """Names that a card has beside its place: UUIDs, serials, names that hold on its node. It may know names that a card had before."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, str | tuple[str, ...]]] = {kind: {} for kind in (*(kind.value for kind in _STRONG), "local")}
        """By kind and name; a name that only one card has, as most have, without a tuple around it."""
        self._sorted: tuple[int, list[str]] = (-1, [])

    def put(self, card: CardRecord) -> None:
        """Takes the names of a card in."""
        for kind in _STRONG:
            for value in card.ids.get(kind, ()):
                self._add(kind.value, canonical(kind, value), card.id)
        for kind in _LOCAL:
            for value in card.ids.get(kind, ()):
                if value and value != card.index:
                    self._add("local", value.lower(), card.id)

    def _add(self, kind: str, name: str, id_: str) -> None:
        known = self._of(kind, name)
        if id_ not in known:
            self._ids[kind][name] = (*known, id_) if known else id_

    def _of(self, kind: str, name: str) -> tuple[str, ...]:
        found = self._ids[kind].get(name, ())
        return (found,) if isinstance(found, str) else found

    def strong(self, word: str) -> list[str]:
        """Ids of the cards with this UUID or serial."""
        return [id_ for kind in _STRONG for id_ in self._of(kind.value, canonical(kind, word))]

    def local(self, word: str) -> tuple[str, ...]:
        """Ids of the cards that are called so on their node."""
        return self._of("local", word.lower())

    def beginning(self, word: str) -> list[str]:
        """Ids of the cards with a UUID that begins so."""
        begins = canonical(NameKind.VENDOR_UUID, word)
        if len(begins) < SHORTEST:
            return []
        known = self._ids[NameKind.VENDOR_UUID.value]
        if self._sorted[0] != len(known):
            self._sorted = (len(known), sorted(known))
        names = self._sorted[1]
        found: list[str] = []
        for name in names[bisect_left(names, begins) :]:
            if not name.startswith(begins):
                break
            found += self._of(NameKind.VENDOR_UUID.value, name)
        return found


def candidates(word: str, cards: Snapshot, index: Index) -> Iterator[list[str]]:
    """Ids of the cards that ``word`` may name, those of the stronger names first; what comes later counts only where nothing before fits."""
    return (list(dict.fromkeys(ids)) for ids in _asked(word.strip(), cards, index) if ids)


def _asked(text: str, cards: Snapshot, index: Index) -> Iterator[list[str]]:
    yield _ids(cards, _codes(cards, "id", [text]))
    yield index.strong(text)
    node, _, _ = text.partition(_PARTS if _PARTS in text else "/")
    if node != text:
        yield _on_node(cards, node.strip())
    address = pci_address(text)
    if address is not None:
        yield _ids(cards, _folded(cards, "address", address))
    yield [*_ids(cards, _folded(cards, "slot", text.lower()) | _folded(cards, "index", text.lower())), *index.local(text)]
    if len(text) >= SHORTEST:
        yield [*_beginning(cards, text), *index.beginning(text)]


def _on_node(cards: Snapshot, node: str) -> list[str]:
    return _ids(cards, _folded(cards, "node", node.lower()) | _codes(cards, "node_id", [node]))


def _beginning(cards: Snapshot, text: str) -> list[str]:
    column = cards.columns.get("id")
    return _ids(cards, np.isin(column.codes, column.words.beginning(text))) if isinstance(column, Coded) else []


def _codes(cards: Snapshot, path: str, values: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    column = cards.columns.get(path)
    if not isinstance(column, Coded):
        return np.zeros(cards.rows, np.bool_)
    return np.isin(column.codes, [code for value in values if (code := column.words.find(value)) >= 0])


def _folded(cards: Snapshot, path: str, text: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows whose text at ``path`` is ``text`` in another spelling: in any case, or an address."""
    column = cards.columns.get(path)
    if not isinstance(column, Coded):
        return np.zeros(cards.rows, np.bool_)
    spelt: dict[str, list[str]] = column.words.kept("spelt", lambda: _spelt(column.words))
    return _codes(cards, path, spelt.get(text, ()))


def _spelt(words: Words) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in list(words.values):
        if isinstance(value, str):
            for form in {value.lower(), " ".join(value.split()).lower(), pci_address(value) or value.lower()}:
                found.setdefault(form, []).append(value)
    return found


def _ids(cards: Snapshot, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[str]:
    return cards.texts("id", np.flatnonzero(rows & cards.live).tolist())
