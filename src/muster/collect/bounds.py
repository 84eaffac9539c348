# SPDX-License-Identifier: Apache-2.0
"""How much one report says of a node and of a card, and how a round that says more is told in several reports. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from muster.domain.model.attributes import Level
from muster.domain.model.names import Name
from muster.domain.model.observation import Interpretation, Observation
from muster.wire.bounds import DEVICES, PARTITIONS
from muster.wire.report import ListingDoc, ObservationDoc

__all__ = ["DEVICES", "PARTITIONS", "REPORTS", "bounded", "halves", "within"]

REPORTS = 16
"""So many reports one round may take at most."""

_TELLING = ("vendor_uuid", "gpu_instance_id", "pci_address")
"""Names by which the server knows a partition again that it hears of without those before it."""


def bounded(told: Interpretation) -> Interpretation:
    """The interpretation with at most what `REPORTS` reports hold; where more was listed it is no complete one, and says so."""
    if len(told.observations) <= PARTITIONS:
        return told
    counts: dict[tuple[Level, frozenset[Name]], int] = {}
    kept = tuple(each for each in told.observations if _fits(each, counts))
    left = len(told.observations) - len(kept)
    if not left:
        return told
    detail = f"{left} rows more than {REPORTS} reports tell of one node are left out"
    return replace(told, observations=kept, complete=False, detail=f"{told.detail}; {detail}" if told.detail else detail)


def _fits(row: Observation, counts: dict[tuple[Level, frozenset[Name]], int]) -> bool:
    subject = row.subject
    parent = subject.parent if subject.level is Level.PARTITION else frozenset[Name]()
    count = counts[subject.level, parent] = counts.get((subject.level, parent), 0) + 1
    return count <= REPORTS * (PARTITIONS if subject.level is Level.PARTITION else DEVICES)


def within(doc: ListingDoc) -> list[ListingDoc]:
    """The listing in as many as it takes to stay within `PARTITIONS` of a card and `DEVICES` of a node in each; itself where it does.

    Each part says that it is not complete, so that nobody misses what another one tells. A card stands again before its further partitions, by its names
    and mode alone. Left out, and counted, are devices of one card beyond `DEVICES` and further partitions without a name of their own.
    """
    if len(doc.observations) <= PARTITIONS:
        return [doc]
    told: list[list[ObservationDoc]] = [[]]
    more: list[list[ObservationDoc]] = []
    used: dict[str, int] = {}
    left = 0
    for family in _families(doc.observations):
        first, rest, over = _parted(family)
        left += over
        need = _levels(first)
        if any(used.get(level, 0) + count > DEVICES for level, count in need.items()) and told[-1]:
            told.append([])
            used = {}
        told[-1].extend(first)
        used = {level: used.get(level, 0) + need.get(level, 0) for level in {*used, *need}}
        more.extend(rest)
    parts = [*told, *more]
    if len(parts) == 1 and not left:
        return [doc]
    return [_told(doc, rows, place, len(parts), left) for place, rows in enumerate(parts, 1)]


def _parted(family: list[ObservationDoc]) -> tuple[list[ObservationDoc], list[list[ObservationDoc]], int]:
    """A card with its parts as one report may tell it, what further ones tell of it, and how many rows are left out."""
    whole: list[ObservationDoc] = []
    further: dict[int, list[ObservationDoc]] = {}
    count: dict[tuple[str, str], int] = {}
    left = 0
    for row in family:
        key = (row.level, repr(row.parent) if row.level == Level.PARTITION else "")
        place = count[key] = count.get(key, -1) + 1
        if row.level == Level.PARTITION and place >= PARTITIONS:
            if any(kind in _TELLING for kind, _ in row.ids):
                further.setdefault(place // PARTITIONS, []).append(row)
            else:
                left += 1
        elif place < DEVICES:
            whole.append(row)
        else:
            left += 1
    again = [_bare(row) for row in whole if row.level in (Level.CARD, Level.DEVICE)]
    return whole, [[*again, *rows] for rows in further.values()], left


def _bare(row: ObservationDoc) -> ObservationDoc:
    mode = {key: reading for key, reading in row.readings.items() if key == "partition.mode"}
    return msgspec.structs.replace(row, readings=mode, vendor={})


def _levels(rows: Sequence[ObservationDoc]) -> dict[str, int]:
    count: dict[str, int] = {}
    for row in rows:
        if row.level != Level.PARTITION:
            count[row.level] = count.get(row.level, 0) + 1
    return count


def _told(doc: ListingDoc, rows: list[ObservationDoc], place: int, parts: int, left: int) -> ListingDoc:
    said = [doc.detail] if doc.detail else []
    if parts > 1:
        said.append(f"part {place} of {parts}: more than one report tells of one node")
    if left:
        said.append(f"{left} rows more than are told of one card are left out")
    return msgspec.structs.replace(doc, observations=rows, complete=False, counts={}, detail="; ".join(said))


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
