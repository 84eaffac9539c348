# SPDX-License-Identifier: Apache-2.0
"""Which device or partition of a card a row speaks of: by index what is found by looking at each piece in turn, and quick where there are many."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.domain.decide.fold import FoldedCard, Part
from muster.domain.decide.merge import parts
from muster.domain.decide.merge.groups import Group
from muster.domain.decide.merge.match import Moment
from muster.domain.decide.merge.parts import part_ids, profile
from muster.domain.decide.merge.state import Card, Piece, Place, Sighting, Site, Speaker
from muster.domain.model.attributes import Level
from muster.domain.model.names import Name, NameKind, Reach
from muster.domain.model.observation import Role
from muster.domain.model.policy import Policy
from muster.domain.model.reading import Known, Reading
from muster.domain.model.source import Channel, Outcome, WitnessClass

POLICY = Policy()
ME: Place = ("n1", "driver")
OTHER: Place = ("n1", "exporter")
Ids = Mapping[str, tuple[str, ...]]
KINDS = [NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS, NameKind.SERIAL, NameKind.GPU_INSTANCE, NameKind.COMPUTE_INSTANCE, NameKind.INDEX]
PROFILES = ["1g", "2g"]


def shares(one: Ids, two: Ids, kind: NameKind) -> bool:
    return bool(set(one.get(kind.value, ())) & set(two.get(kind.value, ())))


def unlike(one: Ids, two: Ids, *kinds: NameKind) -> bool:
    return any(one.get(kind.value) and two.get(kind.value) and not shares(one, two, kind) for kind in kinds)


def plain_device(pieces: Sequence[Piece], taken: set[str], ids: Ids, ordinal: int) -> Piece | None:
    """What a device row is, looking at each piece in turn."""
    free = [each for each in pieces if each.id not in taken]
    for kind in (NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS, NameKind.SERIAL):
        for each in free:
            if shares(each.ids, ids, kind):
                return each
    return next((e for e in free if e.ordinal == ordinal and not unlike(e.ids, ids, NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS)), None)


def plain_same(pieces: Sequence[Piece], taken: set[str], ids: Ids) -> Piece | None:
    """The partition that shares a UUID, else the first with the same instances, where not both have a UUID."""
    free = [each for each in pieces if each.id not in taken]
    for each in free:
        if shares(each.ids, ids, NameKind.VENDOR_UUID):
            return each
    for each in free:
        both = bool(each.ids.get("vendor_uuid")) and bool(ids.get("vendor_uuid"))
        same = each.ids.get("gpu_instance_id") == ids.get("gpu_instance_id") and each.ids.get("compute_instance_id") == ids.get("compute_instance_id")
        if each.ids.get("gpu_instance_id") and same and not both:
            return each
    return None


def plain_partition(pieces: Sequence[Piece], taken: set[str], ids: Ids, part: Part) -> Piece | None:
    """What a partition row is, looking at each piece in turn; nothing where its profile is another."""
    free = [each for each in pieces if each.id not in taken]
    found = plain_same(pieces, taken, ids)
    if found is None and ids.get("pci_address"):
        same = [each for each in free if each.ids.get("pci_address") == ids["pci_address"]]
        found = next((each for each in same if not unlike(each.ids, ids, NameKind.VENDOR_UUID, NameKind.PCI_ADDRESS)), None)
    if found is None and not ids:
        found = next((each for each in free if each.ordinal == part.ordinal and ME in each.voices and not each.ids), None)
    told = part.readings.get("partition.profile")
    return found if found is not None and profile(found) in ("", str(told.value) if isinstance(told, Known) else "") else None


def named(told: Mapping[NameKind, Sequence[int]]) -> frozenset[Name]:
    spelt = {NameKind.PCI_ADDRESS: "0000:0{}:00.0", NameKind.VENDOR_UUID: "MIG-{}1aa77", NameKind.SERIAL: "SN{}77"}
    return frozenset(Name(kind, spelt.get(kind, "{}").format(value), Reach.WORLD) for kind, values in told.items() for value in values)


some_names = st.dictionaries(st.sampled_from(KINDS), st.lists(st.integers(1, 4), min_size=1, max_size=2, unique=True), max_size=3).map(named)
some_readings: st.SearchStrategy[dict[str, Reading]] = st.sampled_from([{}, *({"partition.profile": Known(each)} for each in PROFILES)])


def rows(level: Level) -> st.SearchStrategy[list[Part]]:
    told = st.lists(st.tuples(some_names, some_readings, st.integers(0, 9)), max_size=8, unique_by=lambda each: each[2])
    return told.map(lambda all_: [Part(level=level, names=names, readings=readings, ordinal=ordinal) for names, readings, ordinal in all_])


def group(*, devices: Sequence[Part] = (), partitions: Sequence[Part] = (), mode: str = "mig", place: Place = ME) -> Group:
    told: dict[str, Reading] = {"partition.mode": Known(mode)} if mode else {}
    folded = FoldedCard(names=frozenset(), readings=told, devices=tuple(devices), partitions=tuple(partitions))
    return Group(folded=folded, place=place, ordinal=0, role=Role.ACCELERATOR)


def moment(at: float) -> Moment:
    return Moment(at=at, n=(at, int(at)), learnt=at)


def site() -> Site:
    made = Site()
    for place in (ME, OTHER):
        made.speakers[place] = Speaker(
            channel=Channel.IN_BAND, witness=WitnessClass.DRIVER, cadence=60, promise=180, reporter="r", first_at=0, last_at=0, outcome=Outcome.DEVICES
        )
    return made


@settings(max_examples=400)
@given(before=st.lists(rows(Level.DEVICE), max_size=3), told=rows(Level.DEVICE))
def test_devices_are_found_by_index_as_by_looking_at_each(before: list[list[Part]], told: list[Part]) -> None:
    card = Card(id="c1", created_at=0, created_n=(0, 0))
    for at, words in enumerate([*before, told]):
        plain, taken = [copy.deepcopy(each) for each in card.devices], set[str]()
        expected: list[tuple[str, Ids]] = [(each.id, each.ids) for each in plain]
        for part in words:
            ids = part_ids(part, POLICY)
            found = plain_device(plain, taken, ids, part.ordinal)
            if found is None:
                name = f"c1.d{part.ordinal}"
                while any(each.id == name for each in plain):
                    name += "x"
                found = Piece(id=name, level=Level.DEVICE, ordinal=part.ordinal)
                plain.append(found)
            taken.add(found.id)
            found.ids = {**found.ids, **ids}
        expected = [(each.id, each.ids) for each in plain]
        parts.devices(card, group(devices=words), moment(at), "", POLICY)
        assert [(each.id, each.ids) for each in card.devices] == expected


@settings(max_examples=400)
@given(said=st.lists(st.tuples(rows(Level.PARTITION), st.booleans(), st.booleans()), min_size=1, max_size=4))
def test_partitions_are_found_by_index_as_by_looking_at_each(said: list[tuple[list[Part], bool, bool]]) -> None:
    card = Card(id="c1", created_at=0, created_n=(0, 0))
    for at, (words, whole, others) in enumerate(said):
        plain, taken = [copy.deepcopy(each) for each in card.partitions], set[str]()
        kept: list[tuple[str | None, int]] = []
        for part in words:
            ids = part_ids(part, POLICY)
            found = plain_partition(plain, taken, ids, part)
            kept.append((found.id if found else None, part.ordinal))
            if found is not None:
                taken.add(found.id)
                found.ids = {**found.ids, **ids}
        old = {each.id for each in plain}
        parts.partitions(site(), card, group(partitions=words), moment(at), "", POLICY, complete=whole)
        made = [(each.id if each.id in old else None, each.ordinal) for each in card.partitions]
        rest = [] if whole else [(each.id, each.ordinal) for each in plain if each.id not in taken]
        assert made == [*kept, *rest]
        for each in card.partitions if others else ():
            each.voices = {OTHER: next(iter(each.voices.values()))}


@settings(max_examples=200)
@given(before=rows(Level.PARTITION), told=rows(Level.PARTITION))
def test_what_another_source_tells_goes_to_the_same_partition(before: list[Part], told: list[Part]) -> None:
    card = Card(id="c1", created_at=0, created_n=(0, 0))
    where = site()
    parts.partitions(where, card, group(partitions=before), moment(1), "", POLICY, complete=True)
    plain = [copy.deepcopy(each) for each in card.partitions]
    for part in told if card.cut_by is not None else ():
        if (found := plain_same(plain, set(), part_ids(part, POLICY))) is not None:
            found.voices.setdefault(OTHER, {})
    overheard = [each.id for each in plain if OTHER in each.voices]
    card.cut_stated = True
    card.claims[ME] = Sighting(ids={}, first_at=1, first_n=(1, 1), at=1, n=(1, 1))
    parts.partitions(where, card, group(partitions=told, mode="", place=OTHER), moment(2), "", POLICY, complete=True)
    assert [each.id for each in card.partitions if OTHER in each.voices] == overheard


@pytest.mark.parametrize("level", [Level.DEVICE, Level.PARTITION])
def test_many_parts_cost_no_more_than_their_number(level: Level) -> None:
    card = Card(id="c1", created_at=0, created_n=(0, 0))
    began = time.process_time()
    for at, first in enumerate((0, 2000, 0)):  # new ones, others beside them, and the first again
        names = [frozenset({Name(NameKind.VENDOR_UUID, f"MIG-{n:08x}", Reach.WORLD)}) for n in range(first + 2000, first, -1)]
        many = [Part(level=level, names=each, readings={}, ordinal=first + n) for n, each in enumerate(names)]
        word = group(devices=many) if level is Level.DEVICE else group(partitions=many)
        parts.devices(card, word, moment(at), "", POLICY)
        parts.partitions(site(), card, word, moment(at), "", POLICY, complete=False)
    assert len(card.devices) + len(card.partitions) == 4000
    assert time.process_time() - began < 2, "0.2 s when this was written; looking at each piece for each part took 3 to 5 s"
