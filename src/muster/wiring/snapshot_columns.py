# SPDX-License-Identifier: Apache-2.0
"""Columns that are made of others or of what stands beside the records: owners of devices, kinds of open findings, words kept apart."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from muster.domain.decide.pick_table import Table
from muster.domain.decide.view import Apart
from muster.domain.model.roll import Finding
from muster.domain.model.snapshot import Coded, Column, Ints, Mask, Numbers, Words
from muster.spi.store import CurrentValue

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Showing:
    """What a look has made of the roll."""

    version: int
    at: float
    stamp: int
    tables: Mapping[str, tuple[Mask, Mapping[str, Column]]]
    owners: Ints
    """Row of the card of each device."""
    findings: Mapping[str, Sequence[Finding]]


def moves(value: CurrentValue) -> bool:
    """True for a number that was told and not taken back."""
    told = value.word.value
    return value.word.why is None and isinstance(told, int | float) and not isinstance(told, bool)


def apart_of(values: Iterable[CurrentValue], keys: Collection[str] | None = None) -> Apart:
    """Gauges and counters by subject, source and attribute; only ``keys`` where they are given."""
    apart: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for each in values:
        if keys is None or each.key in keys:
            apart.setdefault(each.subject, {}).setdefault((each.node, each.source), {})[each.key] = each.word
    return apart


def by_card(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings by each card that they are about."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        for card in dict.fromkeys((*finding.cards, finding.subject)):
            found.setdefault(card, []).append(finding)
    return found


def kinds(cards: Table, findings: Mapping[str, Sequence[Finding]]) -> Coded:
    """The kinds of open findings of each card."""
    words = Words()
    codes = np.full(cards.rows, words.code([]), np.int32)
    for card, told in findings.items():
        place = cards.places.get(card)
        if place is not None:
            codes[place] = words.code([each.kind.value for each in told])
    return Coded(codes=codes, words=words)


def owners_of(cards: Column | None, places: Mapping[str, int]) -> Ints:
    """Row of the card of each device, by the column that names it; -1 where it has none."""
    if not isinstance(cards, Coded):
        return np.empty(0, np.int32)
    rows = np.array([*(places.get(value, -1) for value in list(cards.words.values)), -1], np.int32)
    owners: Ints = rows[cards.codes]
    return owners


def padded(owners: Ints, devices: Column | None) -> Ints:
    """As many owners as the column of devices has rows: one of another moment may have more."""
    size = len(devices.values) if isinstance(devices, Numbers) else len(owners)
    return owners if len(owners) == size else np.concatenate([owners, np.full(max(size - len(owners), 0), -1, np.int32)])[:size]


def numbers_of(column: Column | None) -> Numbers | None:
    """The column where it is one of numbers."""
    return column if isinstance(column, Numbers) else None


CHUNK = 500
"""Cards that are read and decoded at once."""


def chunks(things: Iterable[T]) -> Iterator[list[T]]:
    """The things, some at a time."""
    rest = iter(things)
    while some := list(islice(rest, CHUNK)):
        yield some


@contextmanager
def unswept(*, first: bool) -> Iterator[None]:
    """The first look without the collector: what it makes stays for as long as the process, and is not looked through again and again, then or later."""
    if not (first and gc.isenabled()):
        yield
        return
    gc.collect()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
