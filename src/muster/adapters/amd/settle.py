# SPDX-License-Identifier: Apache-2.0
"""What can be said only when all rows are in: slices of one card, two dies of one module, integrated parts, facts of the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from muster.domain.model.attributes import PARTITION_OWN, Level
from muster.domain.model.gather import Gather, Thing, check_power
from muster.domain.model.names import NameKind, canonical, pci_address, pci_device
from muster.domain.model.observation import Role
from muster.domain.model.reading import Known
from muster.spi.adapter import Models

WHOLE = ("spx", "none", "disabled")
_DIES = 2


def settle(gather: Gather, models: Models, *, cut: bool = False) -> list[Thing]:
    """The cards of the round, in order, with rows that are parts of one card put together. A cut round gets no published facts: the source may have its own."""
    for card in gather.cards:
        _model(card, models, cut=cut)
        card.readings = check_power(card.readings)
    cards = _slices(gather.cards)
    for card in cards:
        _profile(card)
    return _modules(cards, models)


def known(card: Thing, key: str) -> str | None:
    """The text of a known reading, or None."""
    reading = card.readings.get(key)
    return str(reading.value) if isinstance(reading, Known) else None


def name_of(card: Thing, kind: NameKind) -> str | None:
    """The card's name of a kind in the form in which names are compared, or None."""
    return next((canonical(kind, n.value) for n in card.names if n.kind is kind), None)


def _model(card: Thing, models: Models, *, cut: bool) -> None:
    """Marks integrated parts, and adds published facts of which the source says nothing at all."""
    model = models.get(known(card, "pci.device_id") or "") or models.get((known(card, "product.name") or "").lower())
    facts: Mapping[str, object] = model.facts if model is not None else {}
    integrated = facts.get("memory.unified") is True
    for key, value in facts.items():
        if key not in card.readings and key != "role" and (not cut or key == "memory.unified"):
            card.value(key, value)
    if model is not None:
        card.tell("model", {"name": model.name, "source": model.source, "confidence": model.confidence})
    if facts.get("role") == "display":
        card.role = Role.DISPLAY
    if card.vendor.get("umc_ecc") == "DISABLED" and not integrated and "ecc.enabled" not in card.readings and model is not None:
        card.value("ecc.enabled", False)


def mode(card: Thing) -> str:
    """The partition mode, "" when none is known."""
    return (known(card, "partition.mode") or "").lower()


def cut(card: Thing) -> bool:
    """True when the card's mode parts it into slices."""
    return mode(card) not in (*WHOLE, "")


def _slice(card: Thing) -> int | None:
    text = str(card.vendor.get("partition_id", "")).strip()
    return int(text) if text.isdigit() and len(text) < 4 else None


def _slices(cards: list[Thing]) -> list[Thing]:
    """Rows that are slices of one card: rows at one PCI device take the mode of that one which states it; rows without an address follow slice 0."""
    by_device: dict[str, list[Thing]] = defaultdict(list)
    for card in cards:
        address = name_of(card, NameKind.PCI_ADDRESS)
        if address is not None and pci_address(address) is not None:
            by_device[pci_device(address)].append(card)
    gone: set[int] = set()
    for rows in by_device.values():
        if len(rows) > 1:
            gone |= _one_device(rows)
    kept = [card for card in cards if id(card) not in gone]
    return _without_address(kept)


def _one_device(rows: list[Thing]) -> set[int]:
    stated = next((row for row in rows if cut(row)), None)
    if stated is not None:
        for row in rows:
            for key in ("partition.mode", "partition.memory_mode"):
                if key in stated.readings:
                    row.put(key, stated.readings[key])
        return set()
    slices = [_slice(row) for row in rows]
    if len(set(slices)) != len(rows) or None in slices or mode(rows[0]) in WHOLE:
        return set()
    first = min(rows, key=lambda row: _slice(row) or 0)
    for row in sorted(rows, key=lambda row: _slice(row) or 0):
        _hang(first, row)
    first.names = {n for n in first.names if n.kind is not NameKind.VENDOR_UUID}
    return {id(row) for row in rows if row is not first}


def _without_address(cards: list[Thing]) -> list[Thing]:
    """In a partition table that prints no addresses, the rows behind slice 0 of a parted card are its other slices."""
    kept: list[Thing] = []
    owner: Thing | None = None
    for card in cards:
        slice_ = _slice(card)
        if slice_ is None or name_of(card, NameKind.PCI_ADDRESS) is not None or (owner is None and not cut(card)):
            owner = None
            kept.append(card)
        elif slice_ == 0 or owner is None:
            owner = card if cut(card) else None
            kept.append(card)
            if owner is not None:
                _hang(owner, card)
        else:
            _hang(owner, card)
    return kept


def _hang(card: Thing, row: Thing) -> None:
    """Puts what ``row`` says of its slice under ``card``, named by the slice's own names."""
    part = card.partition(_slice(row))
    address, uuid = name_of(row, NameKind.PCI_ADDRESS), next((n.value for n in row.names if n.kind is NameKind.VENDOR_UUID), None)
    part.named(index=_slice(row), pci_address=address, vendor_uuid=uuid)
    memory_mode = known(card, "partition.memory_mode")
    if cut(card):
        part.value("partition.profile", f"{mode(card)}_{memory_mode}" if memory_mode else mode(card))
    for key, reading in row.readings.items():
        if key in PARTITION_OWN and not key.startswith("memory."):
            part.put(key, reading)


def _profile(card: Thing) -> None:
    """A row in a partition mode is said with its profile, so that the fold knows it for a slice."""
    if cut(card) and name_of(card, NameKind.PCI_ADDRESS) is not None:
        memory_mode = known(card, "partition.memory_mode")
        card.value("partition.profile", f"{mode(card)}_{memory_mode}" if memory_mode else mode(card))


def _modules(cards: list[Thing], models: Models) -> list[Thing]:
    """Two dies on one module: rows of a two-die model that share what names the module are its devices."""
    modules: dict[tuple[str, str], list[Thing]] = defaultdict(list)
    order: list[tuple[str, str] | Thing] = []
    for card in cards:
        key = _module(card, models)
        if key is None:
            order.append(card)
            continue
        if key not in modules:
            order.append(key)
        modules[key].append(card)
    told: list[Thing] = []
    for each in order:
        if isinstance(each, Thing):
            told.append(each)
        elif len(modules[each]) == _DIES:
            told.append(_join(modules[each]))
        else:
            told.extend(modules[each])
    return told


def two_dies(card: Thing, models: Models) -> bool:
    """True when the model has two processors on one module."""
    model = models.get(known(card, "pci.device_id") or "")
    return (model is not None and model.key in ("7408", "740c")) or "mi250" in (known(card, "product.name") or "").lower()


def _module(card: Thing, models: Models) -> tuple[str, str] | None:
    if not two_dies(card, models):
        return None
    board = card.vendor.get("board")
    serial = board.get("product_serial") if isinstance(board, Mapping) else card.vendor.get("product_serial")
    text = str(serial or "").strip().lower()
    if text and set(text) - set("0 n/a-"):
        return "board", text
    pair = card.vendor.get("module")
    return ("module", str(pair)) if pair is not None else None


def _join(dies: list[Thing]) -> Thing:
    """One card of two dies: what is the board's goes up, what is the die's stays down."""
    first = dies[0]
    card = Thing(first.level, first.key)
    card.role = first.role
    board = first.vendor.get("board")
    if isinstance(board, Mapping):
        card.named(serial=str(board.get("product_serial")))
        card.tell("board", board)
    elif first.vendor.get("product_serial"):
        card.named(serial=str(first.vendor["product_serial"]))
    for key, reading in first.readings.items():
        if key.startswith(("product.", "platform.")) and all(die.readings.get(key) == reading for die in dies):
            card.put(key, reading)
    for place, die in enumerate(dies):
        device = card.device(place)
        device.names = {n for n in die.names if n not in card.names}
        device.readings = {key: reading for key, reading in die.readings.items() if key not in card.readings}
        device.vendor = die.vendor
    _power(card)
    return card


def _power(card: Thing) -> None:
    """Power of the module: this maker's die 0 measures the whole module and the other die none, so it is the card's once."""
    devices = list(card.parts(Level.DEVICE))
    for key in ("power.draw", "power.draw.average", "power.limit", "power.limit.max", "power.limit.default", "power.limit.min", "energy.total"):
        values = [d.readings.get(key) for d in devices]
        best = [r for r in values if isinstance(r, Known) and r.value > 0]
        if best:
            card.put(key, max(best, key=lambda r: r.value))
            for device in devices:
                device.readings.pop(key, None)
