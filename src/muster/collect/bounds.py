# SPDX-License-Identifier: Apache-2.0
"""How much one round may say, and how a round that no server takes whole is told in parts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from muster.domain.model.attributes import Level
from muster.domain.model.names import Name
from muster.domain.model.observation import Interpretation, Observation
from muster.wire.report import ListingDoc, ObservationDoc

PARTITIONS = 64
"""Partitions told of one card."""

DEVICES = 128
"""Cards told of one node, and devices."""


def bounded(told: Interpretation) -> Interpretation:
    """The interpretation with at most `PARTITIONS` of each parent and `DEVICES` of a kind; where more were listed it is no complete one, and says so."""
    if len(told.observations) <= PARTITIONS:
        return told
    counts: dict[tuple[Level, frozenset[Name]], int] = {}
    kept = tuple(each for each in told.observations if _fits(each, counts))
    left = len(told.observations) - len(kept)
    if not left:
        return told
    detail = f"{left} rows more than are told of one node are left out"
    return replace(told, observations=kept, complete=False, detail=f"{told.detail}; {detail}" if told.detail else detail)


def _fits(row: Observation, counts: dict[tuple[Level, frozenset[Name]], int]) -> bool:
    subject = row.subject
    parent = subject.parent if subject.level is Level.PARTITION else frozenset[Name]()
    count = counts[subject.level, parent] = counts.get((subject.level, parent), 0) + 1
    return count <= (PARTITIONS if subject.level is Level.PARTITION else DEVICES)


def halves(doc: ListingDoc) -> list[ListingDoc]:
    """The listing in two, by cards: each says of itself that it is not complete, so that nobody misses the cards of the other. Empty where it has one card."""
    families = _families(doc.observations)
    if len(families) < 2:
        return []
    middle = len(families) // 2
    found = []
    for place, part in enumerate((families[:middle], families[middle:]), 1):
        detail = f"{doc.detail + '; ' if doc.detail else ''}part {place} of 2: the server takes no report as large as the whole"
        rows = [row for family in part for row in family]
        found.append(msgspec.structs.replace(doc, observations=rows, complete=False, counts={}, detail=detail))
    return found


def _families(rows: Sequence[ObservationDoc]) -> list[list[ObservationDoc]]:
    """Cards with the devices and partitions that stand behind them; rows before the first card are the first family's."""
    found: list[list[ObservationDoc]] = []
    for row in rows:
        if found and (row.parent or all(each.level in (Level.NODE, Level.SERVER) for each in found[-1])):
            found[-1].append(row)
        else:
            found.append([row])
    return found
