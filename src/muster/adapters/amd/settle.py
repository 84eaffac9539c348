# SPDX-License-Identifier: Apache-2.0
"""What can be said only when all rows are in: slices of one card, two dies of one module, integrated parts, facts of the model."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from muster.adapters.amd.slices import join_slices, known
from muster.domain.model.attributes import ATTRIBUTES, Level
from muster.domain.model.gather import Gather, Thing, check_power
from muster.domain.model.names import NameKind
from muster.domain.model.observation import Role
from muster.domain.model.reading import Absent, Known, Why
from muster.spi.adapter import Models

_DIES = 2
_PASSIVE = re.compile(r"instinct|\bmi\d{2,3}[a-z]?\b", re.IGNORECASE)
"""Names of cards that have no fan of their own."""
_DISPLAY = frozenset({"164e", "13c0", "1506"})
"""Chips with two compute units beside a processor: they drive a display and compute nothing."""


def settle(gather: Gather, models: Models, *, cut: bool = False) -> list[Thing]:
    """The cards of the round, in order, with rows that are parts of one card put together. A cut round gets no published facts: the source may have its own."""
    for card in gather.cards:
        _model(card, models, cut=cut)
        _fan(card, models)
        card.readings = check_power(card.readings)
    return _modules(join_slices(gather.cards, short=cut), models, cut=cut)


def _model(card: Thing, models: Models, *, cut: bool) -> None:
    """Marks integrated parts, and adds published facts of which the source says nothing at all."""
    model = models.get(known(card, "pci.device_id") or "") or models.get((known(card, "product.name") or "").lower())
    facts: Mapping[str, object] = model.facts if model is not None else {}
    integrated = facts.get("memory.unified") is True
    for key, value in facts.items():
        if key not in card.readings and (not cut or key == "memory.unified"):
            card.value(key, value)
    if model is not None and not cut and "product.name" not in card.readings:
        card.value("product.name", model.name.partition(" (")[0])
    if model is not None:
        card.tell("model", {"name": model.name, "source": model.source, "confidence": model.confidence})
    if model is not None and model.key in _DISPLAY:
        card.role = Role.DISPLAY
    if card.vendor.get("umc_ecc") == "DISABLED" and not integrated and "ecc.enabled" not in card.readings and model is not None:
        card.value("ecc.enabled", False)


def _fan(card: Thing, models: Models) -> None:
    """Nought of a fan on a card that the host's fans cool is an absence."""
    model = models.get(known(card, "pci.device_id") or "")
    if _PASSIVE.search(known(card, "product.name") or "") or (model is not None and "instinct" in model.name.lower()):
        for key in ("fan.speed", "fan.rpm"):
            if card.readings.get(key) == Known(0):
                card.readings[key] = Absent(Why.NOT_PRESENT, "0")


def _modules(cards: list[Thing], models: Models, *, cut: bool) -> list[Thing]:
    """Two dies on one module: rows of a two-die model that share what names the module are its devices.

    Of a cut listing that shows one die only the module is told, and nothing where the cut took what names the module:
    which readings are the module's shows when both dies are there.
    """
    modules: dict[tuple[str, str], list[Thing]] = defaultdict(list)
    order: list[tuple[str, str] | Thing] = []
    for card in cards:
        key = _module(card, models)
        if key is None:
            if not (cut and two_dies(card, models)):
                order.append(card)
            continue
        if key not in modules:
            order.append(key)
        modules[key].append(card)
    told: list[Thing] = []
    for each in order:
        if isinstance(each, Thing):
            told.append(each)
        elif len(modules[each]) <= _DIES:
            told.append(_join(modules[each], alone=cut and len(modules[each]) < _DIES))
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


def _join(dies: list[Thing], *, alone: bool = False) -> Thing:
    """One card of two dies: what is the board's goes up, what is the die's stays down, or away where it is ``alone``."""
    first = dies[0]
    card = Thing(first.level, first.key)
    card.role = first.role
    board = first.vendor.get("board")
    if isinstance(board, Mapping):
        card.named(serial=str(board.get("product_serial")))
        card.tell("board", board)
    elif first.vendor.get("product_serial"):
        card.named(serial=str(first.vendor["product_serial"]))
    if not card.names:
        card.names = {n for n in first.names if n.kind in (NameKind.PCI_ADDRESS, NameKind.INDEX)}
    for key, reading in first.readings.items():
        entry = ATTRIBUTES.get(key)
        if entry is not None and entry.of is Level.CARD and all(die.readings.get(key) == reading for die in dies):
            card.put(key, reading)
    for place, die in enumerate(() if alone else dies):
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
