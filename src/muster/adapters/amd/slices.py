# SPDX-License-Identifier: Apache-2.0
"""Partition modes: the tools list each slice of a card as a GPU, and repeat on it what is the card's. Here the rows become one card with partitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from muster.adapters.amd.values import ordinal
from muster.domain.model.attributes import PARTITION_OWN, Level
from muster.domain.model.gather import Thing
from muster.domain.model.names import NameKind, canonical, name, pci_address, pci_device
from muster.domain.model.reading import Known, Reading, better

WHOLE = ("spx", "none", "disabled")
"""Modes in which a card is one piece."""
_REPEATED = ("memory.total", "memory.used", "memory.free", "memory.used.ratio")


def known(card: Thing, key: str) -> str | None:
    """The text of a known reading, or None."""
    reading = card.readings.get(key)
    return str(reading.value) if isinstance(reading, Known) else None


def name_of(card: Thing, kind: NameKind) -> str | None:
    """The card's name of a kind in the form in which names are compared, or None."""
    return next((canonical(kind, n.value) for n in card.names if n.kind is kind), None)


def cut(card: Thing) -> bool:
    """True when the card's mode parts it into slices."""
    return (known(card, "partition.mode") or "").lower() not in (*WHOLE, "")


def join_slices(cards: Sequence[Thing], *, short: bool = False) -> list[Thing]:
    """The cards, rows that are slices of one card joined: those at one PCI device, else those of one serial, else those that follow slice 0.

    ``short`` says that rows may be missing, so that nothing is summed over them.
    """
    groups: dict[object, list[Thing]] = {}
    last: object = None
    for place, card in enumerate(cards):
        key = _group(card, last, place)
        groups.setdefault(key, []).append(card)
        last = key
    return [card for rows in groups.values() for card in _joined(rows, short=short)]


def _group(card: Thing, last: object, place: int) -> object:
    address, serial, slice_ = name_of(card, NameKind.PCI_ADDRESS), name_of(card, NameKind.SERIAL), _slice(card)
    if address is not None and pci_address(address) is not None:
        return "device", pci_device(address)
    if serial is not None and slice_ is not None:
        return "serial", serial
    if slice_ is not None and slice_ > 0 and serial is None and isinstance(last, tuple) and last[0] == "after":
        return last
    return ("after", place) if slice_ == 0 and cut(card) else ("row", place)


def _slice(card: Thing) -> int | None:
    """The number of the partition that the row names, or None."""
    return ordinal(str(card.vendor.get("partition_id", "")).strip())


def _joined(rows: list[Thing], *, short: bool) -> list[Thing]:
    """One card of all rows where they are slices of it, else the rows as they are."""
    stated = next((row for row in rows if cut(row)), None)
    numbers = [_slice(row) for row in rows]
    numbered = len(rows) > 1 and None not in numbers and len(set(numbers)) == len(rows)
    if stated is None and not (numbered and not any(known(row, "partition.mode") in WHOLE for row in rows)):
        return rows
    if stated is not None and len(rows) == 1 and numbers[0] is None:
        return rows
    card = _card(rows, stated or rows[0], short=short)
    units = [part.readings.get("compute.units") for part in card.parts(Level.PARTITION)]
    if len(rows) > 1 and not short and all(isinstance(each, Known) for each in units):
        card.value("compute.units", sum(each.value for each in units if isinstance(each, Known)))
    return [card]


def _card(rows: list[Thing], stated: Thing, *, short: bool) -> Thing:
    rows = sorted(rows, key=lambda row: (_slice(row) or 0, name_of(row, NameKind.PCI_ADDRESS) or ""))
    first = rows[0]
    card = Thing(first.level, first.key)
    card.role, card.vendor = first.role, dict(first.vendor)
    card.names = {n for n in first.names if n.kind not in (NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS)}
    address = name_of(first, NameKind.PCI_ADDRESS)
    if address is not None:
        card.names.add(name(NameKind.PCI_ADDRESS, f"{pci_device(address)}.0"))
    own = _own(card, rows, short=short)
    mode, memory = known(stated, "partition.mode"), known(stated, "partition.memory_mode")
    for place, row in enumerate(rows):
        part = card.partition(place)
        part.names = {n for n in row.names if n.kind in (NameKind.INDEX, NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS)}
        part.named(index=_slice(row) if _slice(row) is not None else place)
        if mode is not None and cut(stated):
            part.value("partition.profile", f"{mode}_{memory}" if memory else mode)
        part.readings.update({key: reading for key, reading in row.readings.items() if key in own})
        part.tell("row", {key: row.vendor[key] for key in ("kfd_id", "node_id", "partition_id") if key in row.vendor})
    return card


def _own(card: Thing, rows: list[Thing], *, short: bool) -> set[str]:
    """Puts what the rows say of the card on it, and gives the keys of which each row speaks for its slice; all of them where rows may be missing."""
    told: dict[str, list[Reading]] = defaultdict(list)
    for row in rows:
        for key, reading in row.readings.items():
            told[key].append(reading)
    own: set[str] = set()
    for key, readings in told.items():
        values = [reading.value for reading in readings if isinstance(reading, Known)]
        alike = len(rows) > 1 and key in _REPEATED and len(values) == len(rows) and all(value == values[0] for value in values)
        alone = len(rows) > 1 and len(values) == 1 and key in rows[0].readings and isinstance(rows[0].readings[key], Known) and key != "processes"
        if key not in PARTITION_OWN or ((alike or alone) and not short):
            for reading in readings:
                card.readings[key] = better(card.readings.get(key), reading)
            continue
        own.add(key)
    return own - {"partition.profile"}
