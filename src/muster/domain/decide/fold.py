# SPDX-License-Identifier: Apache-2.0
"""Rows of one listing become cards with their devices and partitions.

Used by `merge` for what a report says and by the offline `interpret`, so that both count alike. Nothing here knows earlier listings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from muster.domain.model.attributes import ATTRIBUTES, PARTITION_OWN, Kind, Level
from muster.domain.model.gather import check_memory, check_power
from muster.domain.model.names import PLACEHOLDERS, Name, NameKind, canonical, names_nothing, pci_device
from muster.domain.model.observation import Observation, Role, Subject
from muster.domain.model.reading import Known, Reading, better

HELD = frozenset({"power.draw", "power.draw.average", "memory.used"})
"""Readings that are held against another."""
KEPT = 1 << 16
"""Names of which the form is remembered."""
_STRONG = frozenset({NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS, NameKind.SERIAL})
WHOLE = frozenset({"none", "spx", "disabled", ""})
"""Words of `partition.mode` under which a card is one piece."""


@lru_cache(maxsize=KEPT)
def form(kind: NameKind, value: str) -> str:
    """`canonical`, remembered: the same names come in every word."""
    return canonical(kind, value)


@lru_cache(maxsize=KEPT)
def nothing(kind: NameKind, value: str, placeholders: frozenset[str] = PLACEHOLDERS) -> bool:
    """`names_nothing`, remembered."""
    return names_nothing(kind, value, placeholders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A device or partition of a folded card. ``under`` is the ordinal of the device that a partition stands on, None for the card itself."""

    level: Level
    names: frozenset[Name]
    readings: Mapping[str, Reading]
    vendor: Mapping[str, Any] = field(default_factory=dict)
    ordinal: int = 0
    under: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedCard:
    """One card of one listing. ``devices`` is empty when the card is its only device."""

    names: frozenset[Name]
    readings: Mapping[str, Reading]
    vendor: Mapping[str, Any] = field(default_factory=dict)
    role: Role | None = None
    devices: tuple[Part, ...] = ()
    partitions: tuple[Part, ...] = ()
    board_serials: frozenset[str] = frozenset()
    """Canonical serials that stand on several cards of this listing: the board's, they name a card only with its slot."""

    @property
    def mode(self) -> str | None:
        """The partition mode that this listing states, on the card or on its devices."""
        for readings in (self.readings, *(d.readings for d in self.devices)):
            found = readings.get("partition.mode")
            if isinstance(found, Known):
                return str(found.value).lower()
        return None


class _Row:
    """A card-level row while the listing is folded."""

    __slots__ = ("devices", "names", "partitions", "readings", "role", "vendor")

    def __init__(self, told: Observation) -> None:
        self.names = set(told.subject.names)
        self.readings = dict(told.readings)
        self.vendor = dict(told.vendor)
        self.role = told.role
        self.devices: list[_Row] = []
        self.partitions: list[tuple[_Row, _Row | None]] = []

    def id(self, kind: NameKind) -> str | None:
        for each in self.names:
            if each.kind is kind and not nothing(kind, each.value):
                return form(kind, each.value)
        return None

    def ids(self) -> set[tuple[NameKind, str]]:
        return {(n.kind, form(n.kind, n.value)) for n in self.names}

    def absorb(self, other: _Row) -> None:
        kinds = {n.kind for n in self.names}
        self.names |= {n for n in other.names if n.kind not in kinds}
        for key, reading in other.readings.items():
            self.readings[key] = better(self.readings.get(key), reading)
        self.vendor = {**other.vendor, **self.vendor}
        self.role = Role.ACCELERATOR if Role.ACCELERATOR in (self.role, other.role) else self.role or other.role
        self.devices.extend(other.devices)
        self.partitions.extend(other.partitions)

    @property
    def mode(self) -> str:
        found = self.readings.get("partition.mode")
        return str(found.value).lower() if isinstance(found, Known) else ""


def fold(observations: Iterable[Observation]) -> tuple[FoldedCard, ...]:
    """Cards of one listing, in order of appearance, each row of the listing in exactly one of them."""
    rows = _fold_slots(_fold_addresses(_attach(observations)))
    for row in rows:
        if row.partitions:
            _lift(row)
        if len(row.devices) == 1:
            only = row.devices.pop()
            row.partitions = [(part, None if on is only else on) for part, on in row.partitions]
            row.absorb(only)
    serials = Counter(s for row in rows if (s := row.id(NameKind.SERIAL)))
    twice = frozenset(s for s, count in serials.items() if count > 1)
    return tuple(_card(row, twice) for row in rows)


def _card(row: _Row, twice: frozenset[str]) -> FoldedCard:
    if not row.devices and not row.partitions:
        return FoldedCard(names=frozenset(row.names), readings=checked(row.readings), vendor=row.vendor, role=row.role, board_serials=_boards(row, twice))
    devices = tuple(
        Part(level=Level.DEVICE, names=frozenset(d.names), readings=checked(d.readings), vendor=d.vendor, ordinal=i) for i, d in enumerate(row.devices)
    )
    places = {id(device): place for place, device in enumerate(row.devices)}
    partitions = tuple(
        Part(
            level=Level.PARTITION,
            names=frozenset(part.names),
            readings=checked(part.readings),
            vendor=part.vendor,
            ordinal=i,
            under=places.get(id(on)),
        )
        for i, (part, on) in enumerate(row.partitions)
    )
    return FoldedCard(
        names=frozenset(row.names),
        readings=checked(row.readings),
        vendor=row.vendor,
        role=row.role,
        devices=devices,
        partitions=partitions,
        board_serials=_boards(row, twice),
    )


def _boards(row: _Row, twice: frozenset[str]) -> frozenset[str]:
    serial = row.id(NameKind.SERIAL) if twice else None
    return frozenset({serial} & twice) if serial else frozenset()


def checked(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    """Readings of one thing without those that another reading of it contradicts."""
    if readings.keys().isdisjoint(HELD):
        return dict(readings)
    return check_memory(check_power(readings))


def _attach(observations: Iterable[Observation]) -> list[_Row]:
    """Card rows with the devices and partitions told of them; a part whose parent is not in the listing speaks of that parent all the same."""
    cards: list[_Row] = []
    things = _Things()
    owner: dict[int, _Row] = {}
    for told in observations:
        if told.subject.level not in (Level.CARD, Level.DEVICE, Level.PARTITION):
            continue
        row = _Row(told)
        parent = things.parent(told.subject.parent) if told.subject.level is not Level.CARD else None
        if told.subject.level is Level.CARD or (parent is None and not told.subject.parent and told.subject.level is Level.DEVICE):
            cards.append(row)
        elif parent is None:
            made = _Row(Observation(subject=told.subject))
            made.names = set(told.subject.parent)
            cards.append(made)
            things.add(made)
            _hang(row, told.subject.level, made, owner)
        else:
            _hang(row, told.subject.level, parent, owner)
        things.add(row)
    return cards


def _hang(row: _Row, level: Level, parent: _Row, owner: dict[int, _Row]) -> None:
    card = owner.get(id(parent), parent)
    owner[id(row)] = card
    if level is Level.DEVICE:
        card.devices.append(row)
    else:
        card.partitions.append((row, None if card is parent else parent))


class _Things:
    """Rows told so far, found by their names: a listing of thousands of partitions is read once, not once for each of them."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._places: dict[tuple[NameKind, str], set[int]] = defaultdict(set)
        self._last: dict[tuple[NameKind, str], int] = {}

    def add(self, row: _Row) -> None:
        """One more."""
        place = len(self._rows)
        self._rows.append(row)
        for each in row.ids():
            self._places[each].add(place)
            self._last[each] = place

    def parent(self, names: frozenset[Name]) -> _Row | None:
        """The newest row with all of these names, else the newest with one of the strong ones."""
        wanted = {(n.kind, form(n.kind, n.value)) for n in names}
        if not wanted or self._last.keys().isdisjoint(wanted):
            return None
        if len(wanted) == 1:
            return self._rows[self._last[wanted.pop()]]
        whole = set.intersection(*sorted((self._places.get(each, set()) for each in wanted), key=len))
        if whole:
            return self._rows[max(whole)]
        strong = [self._last[each] for each in wanted if each[0] in _STRONG and each in self._last]
        return self._rows[max(strong)] if strong else None


def _fold_addresses(cards: list[_Row]) -> list[_Row]:
    """Rows at the functions of one PCI device become one card: partitions of it, devices of it, or functions of it."""
    groups: dict[str, list[_Row]] = defaultdict(list)
    for row in cards:
        address = row.id(NameKind.PCI_ADDRESS)
        if address:
            groups[pci_device(address)].append(row)
    folded: dict[int, _Row | None] = {}
    for rows in groups.values():
        cut = any(row.mode not in WHOLE for row in rows)
        if cut and (len(rows) > 1 or "partition.profile" in rows[0].readings):
            made = _partitioned(rows)
        elif len(rows) > 1:
            made = _devices(rows) if _share_address(rows) else _functions(rows)
        else:
            continue
        folded.update({id(row): None for row in rows})
        folded[id(rows[0])] = made
    return [kept for row in cards if (kept := folded.get(id(row), row)) is not None]


def _share_address(rows: list[_Row]) -> bool:
    addresses = {row.id(NameKind.PCI_ADDRESS) for row in rows}
    uuids = [row.id(NameKind.VENDOR_UUID) for row in rows]
    same_thing = uuids[0] is not None and len(set(uuids)) == 1
    alike = rows[0].ids()
    plain = all(row.ids() == alike for row in rows)
    return len(addresses) == 1 and not same_thing and not plain


def _functions(rows: list[_Row]) -> _Row:
    first, *rest = sorted(rows, key=lambda row: row.id(NameKind.PCI_ADDRESS) or "")
    for row in rest:
        first.absorb(row)
    return first


def _devices(rows: list[_Row]) -> _Row:
    """Two rows with one whole address: chips of one board; what both say alike is the board's."""
    board = _Row(Observation(subject=_subject_of(rows[0])))
    shared = set.intersection(*(set(row.names) for row in rows)) | {n for n in rows[0].names if n.kind in (NameKind.PCI_ADDRESS, NameKind.SERIAL)}
    board.names = shared
    board.role = rows[0].role
    for row in rows:
        row.names -= {n for n in row.names if n.kind in (NameKind.PCI_ADDRESS,)}
        board.devices.append(row)
    return board


def _subject_of(row: _Row) -> Subject:
    return Subject(level=Level.CARD, names=frozenset(row.names))


def _partitioned(rows: list[_Row]) -> _Row:
    """Rows of a card in a partition mode: each is a partition; the card takes the first row's word for what is the card's."""
    rows = sorted(rows, key=lambda row: row.id(NameKind.PCI_ADDRESS) or "")
    first = rows[0]
    card = _Row(Observation(subject=_subject_of(first)))
    card.role = first.role
    card.vendor = first.vendor
    address = first.id(NameKind.PCI_ADDRESS) or ""
    base = {n for n in first.names if n.kind not in (NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS)}
    card.names = base | {Name(NameKind.PCI_ADDRESS, pci_device(address) + ".0", next(n.reach for n in first.names if n.kind is NameKind.PCI_ADDRESS))}
    own = _sliced(rows)
    for row in rows:
        for key, reading in row.readings.items():
            if key not in own:
                card.readings[key] = better(card.readings.get(key), reading)
    for row in rows:
        row.names = {n for n in row.names if n.kind is not NameKind.SERIAL}
        row.readings = {key: reading for key, reading in row.readings.items() if key in own}
        card.partitions.append((row, None))
    return card


def _sliced(rows: list[_Row]) -> frozenset[str]:
    """Keys that a row of a partitioned card says of the partition; memory that every row repeats whole is the card's."""
    repeated = {key for key in ("memory.total", "memory.used", "memory.free") if len(rows) > 1 and len({repr(row.readings.get(key)) for row in rows}) == 1}
    return PARTITION_OWN - repeated


def _fold_slots(cards: list[_Row]) -> list[_Row]:
    """Rows that give no address are one card for each pair of serial and slot, however often it is listed."""
    seen: dict[tuple[str, str], _Row] = {}
    kept: list[_Row] = []
    for row in cards:
        serial, slot = row.id(NameKind.SERIAL), row.id(NameKind.CHASSIS_SLOT)
        if serial and slot and row.id(NameKind.PCI_ADDRESS) is None:
            first = seen.setdefault((serial, slot), row)
            if first is not row:
                first.absorb(row)
                continue
        kept.append(row)
    return kept


def _lift(card: _Row) -> None:
    """A card's reading told under its partitions is the card's, once: the newest of a counter, the first of anything else."""
    for part, device in card.partitions:
        owner = device or card
        for key in [k for k in part.readings if k not in PARTITION_OWN]:
            reading = part.readings.pop(key)
            old = owner.readings.get(key)
            entry = ATTRIBUTES.get(key)
            if entry is not None and entry.kind is Kind.COUNTER and isinstance(old, Known) and isinstance(reading, Known) and entry.numeric:
                owner.readings[key] = max(old, reading, key=lambda r: r.value)
            else:
                owner.readings[key] = better(old, reading)


def ids(names: Iterable[Name]) -> dict[str, str | list[str]]:
    """Names by kind as printed, one string each, a list where a kind has several."""
    by: dict[str, list[str]] = defaultdict(list)
    for each in sorted(names, key=lambda n: (n.kind, n.value)):
        by[each.kind.value].append(canonical(each.kind, each.value) if each.kind is NameKind.PCI_ADDRESS else each.value)
    return {kind: values[0] if len(values) == 1 else values for kind, values in by.items()}
