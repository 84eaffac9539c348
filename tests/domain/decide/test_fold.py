# SPDX-License-Identifier: Apache-2.0
"""Rows of one listing become cards: partitions, devices, functions; board serials; readings told again under partitions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.decide.fold import FoldedCard, fold, ids
from muster.domain.model.attributes import Level
from muster.domain.model.names import names
from muster.domain.model.observation import Observation, Role, Subject
from muster.domain.model.reading import Absent, Known, Why


def row(level: Level = Level.CARD, parent: dict[str, Any] | None = None, role: Role | None = None, ordinal: int = 0, **told: Any) -> Observation:
    kinds = ("serial", "vendor_uuid", "pci_address", "chassis_slot", "index", "gpu_instance_id")
    named = names(**{k: v for k, v in told.items() if k in kinds})
    readings = {k.replace("__", "."): Known(v) for k, v in told.items() if k not in kinds}
    return Observation(subject=Subject(level=level, names=named, parent=names(**(parent or {})), ordinal=ordinal), readings=readings, role=role)


def test_cards_without_a_shared_place_stay_apart() -> None:
    cards = fold([row(pci_address="01:00.0", serial="a1"), row(pci_address="02:00.0", serial="b2"), row(index=2)])

    assert [ids(c.names) for c in cards] == [{"pci_address": "0000:01:00.0", "serial": "a1"}, {"pci_address": "0000:02:00.0", "serial": "b2"}, {"index": "2"}]


def test_rows_of_a_card_in_a_partition_mode_are_its_partitions() -> None:
    rows = [
        row(
            pci_address=f"0c:00.{n}",
            serial="0x32af01",
            vendor_uuid=f"9e-a{n}",
            partition__mode="cpx",
            partition__profile="cpx_nps1",
            power__draw=150 + n,
            memory__total=192,
        )
        for n in (1, 0, 2)
    ]
    (card,) = fold(rows)

    assert ids(card.names) == {"pci_address": "0000:0c:00.0", "serial": "0x32af01"}
    assert [ids(p.names)["vendor_uuid"] for p in card.partitions] == ["9e-a0", "9e-a1", "9e-a2"]
    assert card.readings["power.draw"] == Known(150)
    assert card.readings["memory.total"] == Known(192)
    assert all("memory.total" not in p.readings and "power.draw" not in p.readings for p in card.partitions)
    assert card.mode == "cpx"


def test_what_is_a_slices_own_is_not_the_cards() -> None:
    rows = [row(pci_address=f"0c:00.{n}", partition__mode="cpx", partition__profile="cpx_nps4", compute__units=38, memory__used=n + 1) for n in range(2)]
    (card,) = fold(rows)

    assert "compute.units" not in card.readings
    assert "memory.used" not in card.readings
    assert [p.readings["memory.used"] for p in card.partitions] == [Known(1), Known(2)]


def test_one_row_alone_is_a_partition_only_when_it_says_so() -> None:
    (cut,) = fold([row(pci_address="0c:00.3", partition__mode="cpx", partition__profile="cpx_nps1")])
    (whole,) = fold([row(pci_address="0c:00.0", partition__mode="mig")])

    assert (len(cut.partitions), len(whole.partitions)) == (1, 0)
    assert ids(cut.names) == {"pci_address": "0000:0c:00.0"}


def test_two_rows_with_one_whole_address_are_devices() -> None:
    (card,) = fold([row(pci_address="01:00.0", index=0, temperature__core=49), row(pci_address="01:00.0", index=1, temperature__core=45)])

    assert [d.readings["temperature.core"] for d in card.devices] == [Known(49), Known(45)]
    assert ids(card.names)["pci_address"] == "0000:01:00.0"


def test_a_row_told_twice_is_one_card() -> None:
    twice = [row(pci_address="01:00.0", vendor_uuid="GPU-7b0", power__draw=1)] * 2
    assert [len(c.devices) for c in fold(twice)] == [0]
    plain = [row(pci_address="01:00.0")] * 2
    assert [len(c.devices) for c in fold(plain)] == [0]


def test_functions_of_one_device_are_one_card() -> None:
    (card,) = fold([row(pci_address="01:00.1", role=Role.DISPLAY), row(pci_address="01:00.0", serial="a1", role=Role.ACCELERATOR, power__draw=5)])

    assert ids(card.names) == {"pci_address": "0000:01:00.0", "serial": "a1"}
    assert (card.role, card.readings["power.draw"], card.devices) == (Role.ACCELERATOR, Known(5), ())


def test_one_serial_in_one_slot_is_one_card_without_an_address() -> None:
    cards = fold([row(serial="a1", chassis_slot="5"), row(serial="A1", chassis_slot="5", power__draw=5), row(serial="a1", chassis_slot="6")])

    assert [c.readings.get("power.draw") for c in cards] == [Known(5), None]


def test_a_serial_that_stands_twice_is_the_boards() -> None:
    cards = fold([row(serial="00B1", vendor_uuid="u-1"), row(serial="b1", vendor_uuid="u-2"), row(serial="c3")])

    assert [c.board_serials for c in cards] == [frozenset({"b1"}), frozenset({"b1"}), frozenset()]


def test_the_only_device_is_the_card() -> None:
    (card,) = fold([row(serial="a1"), row(Level.DEVICE, {"serial": "a1"}, vendor_uuid="u-1", power__draw=5)])

    assert (card.devices, ids(card.names)) == ((), {"serial": "a1", "vendor_uuid": "u-1"})
    assert card.readings["power.draw"] == Known(5)


def test_parts_whose_parent_is_not_listed_speak_of_it_all_the_same() -> None:
    (card,) = fold([row(Level.PARTITION, {"vendor_uuid": "u-9"}, gpu_instance_id=3, partition__profile="1g.5gb")])

    assert ids(card.names) == {"vendor_uuid": "u-9"}
    assert [p.readings["partition.profile"] for p in card.partitions] == [Known("1g.5gb")]


def test_partitions_stand_under_their_device() -> None:
    told = [
        row(serial="a1", index=0),
        row(Level.DEVICE, {"serial": "a1", "index": 0}, index=0, vendor_uuid="d-0"),
        row(Level.DEVICE, {"serial": "a1", "index": 0}, index=1, vendor_uuid="d-1"),
        row(Level.PARTITION, {"vendor_uuid": "d-1", "index": 1}, gpu_instance_id=7, power__draw=9),
    ]
    (card,) = fold(told)

    assert [(p.under, dict(p.readings)) for p in card.partitions] == [(1, {})]
    assert card.devices[1].readings["power.draw"] == Known(9)


def test_a_cards_counter_told_by_its_slices_is_the_newest() -> None:
    parts = [row(Level.PARTITION, {"vendor_uuid": "u-1"}, gpu_instance_id=n, energy__total=v, power__draw=112.5) for n, v in ((3, 10), (4, 30), (5, 20))]
    (card,) = fold([row(vendor_uuid="u-1"), *parts])

    assert (card.readings["energy.total"], card.readings["power.draw"]) == (Known(30), Known(112.5))


def test_parts_keep_their_level_their_place_and_the_tools_own_text() -> None:
    card, one = names(pci_address="01:00.0"), names(index=0)
    told = [
        Observation(subject=Subject(level=Level.CARD, names=card), vendor={"Board": "B"}),
        Observation(subject=Subject(level=Level.DEVICE, names=one, parent=card), vendor={"Die": "a"}),
        Observation(subject=Subject(level=Level.DEVICE, names=names(index=1), parent=card), vendor={"Die": "b"}),
        Observation(subject=Subject(level=Level.PARTITION, names=names(gpu_instance_id=4), parent=one), vendor={"Slice": "s"}),
    ]
    (found,) = fold(told)

    assert found.vendor == {"Board": "B"}
    assert [(d.level, d.ordinal, d.vendor) for d in found.devices] == [(Level.DEVICE, 0, {"Die": "a"}), (Level.DEVICE, 1, {"Die": "b"})]
    assert [(p.level, p.ordinal, p.under, p.vendor) for p in found.partitions] == [(Level.PARTITION, 0, 0, {"Slice": "s"})]


def test_rows_of_one_address_and_one_uuid_are_one_thing_told_twice() -> None:
    (card,) = fold([row(pci_address="01:00.0", vendor_uuid="u-1", index=n, power__draw=n) for n in range(2)])

    assert (card.devices, card.readings["power.draw"]) == ((), Known(0))


def test_a_parent_is_found_by_one_strong_name_when_others_differ() -> None:
    whole: dict[str, Any] = {"vendor_uuid": "u-1", "pci_address": "01:00.0", "index": 0}
    (card,) = fold([row(**whole), row(Level.PARTITION, parent={"vendor_uuid": "u-1", "index": 7}, gpu_instance_id=3)])

    assert [ids(p.names) for p in card.partitions] == [{"gpu_instance_id": "3"}]


def test_a_weak_name_alone_in_common_is_no_parent() -> None:
    cards = fold([row(vendor_uuid="u-1", index=0), row(Level.PARTITION, parent={"vendor_uuid": "u-2", "index": 0}, gpu_instance_id=3)])

    assert [len(c.partitions) for c in cards] == [0, 1]


def test_the_first_function_has_the_first_word() -> None:
    (card,) = fold([row(pci_address="01:00.1", power__draw=2, memory__total=8), row(pci_address="01:00.0", power__draw=1)])

    assert card.readings == {"power.draw": Known(1), "memory.total": Known(8)}


@pytest.mark.parametrize(
    ("one", "other", "right"),
    [
        (Role.DISPLAY, Role.ACCELERATOR, Role.ACCELERATOR),
        (Role.ACCELERATOR, Role.DISPLAY, Role.ACCELERATOR),
        (None, Role.DISPLAY, Role.DISPLAY),
        (Role.DISPLAY, None, Role.DISPLAY),
    ],
)
def test_functions_of_an_accelerator_are_an_accelerator(one: Role | None, other: Role | None, right: Role) -> None:
    (card,) = fold([row(pci_address="01:00.0", role=one), row(pci_address="01:00.1", role=other)])

    assert card.role is right


def test_chips_of_one_board_share_what_both_say() -> None:
    rows = [row(pci_address="01:00.0", serial="b1", index=n, role=Role.ACCELERATOR) for n in range(2)]
    (card,) = fold(rows)

    assert (ids(card.names), card.role) == ({"pci_address": "0000:01:00.0", "serial": "b1"}, Role.ACCELERATOR)
    assert [ids(d.names) for d in card.devices] == [{"serial": "b1", "index": "0"}, {"serial": "b1", "index": "1"}]


def test_memory_that_every_slice_repeats_whole_is_the_cards() -> None:
    keys = ("memory.total", "memory.used", "memory.free")
    told: dict[str, Any] = {"partition__mode": "cpx", "partition__profile": "cpx_nps1", "memory__total": 192, "memory__used": 10, "memory__free": 182}
    (card,) = fold([row(pci_address=f"0c:00.{n}", role=Role.ACCELERATOR, **told) for n in range(2)])
    (alone,) = fold([row(pci_address="0d:00.0", **told)])

    assert [card.readings[key] for key in keys] == [Known(192), Known(10), Known(182)]
    assert card.role is Role.ACCELERATOR
    assert [key for key in keys if key in alone.readings] == []


def test_an_absence_never_hides_a_value() -> None:
    absent = Observation(subject=Subject(level=Level.CARD, names=names(pci_address="01:00.0", serial="a1")), readings={"power.draw": Absent(Why.ERROR)})
    (card,) = fold([absent, row(pci_address="01:00.1", power__draw=5)])

    assert card.readings["power.draw"] == Known(5)


ROWS = st.builds(
    lambda bus, function, serial, mode: row(pci_address=f"{bus:02x}:00.{function}", serial=serial, **({"partition__mode": mode} if mode else {})),
    st.integers(1, 3),
    st.integers(0, 3),
    st.sampled_from(["s1", "s2", "s3", None]),
    st.sampled_from(["cpx", "spx", "none", None]),
)


@pytest.mark.hypothesis
@given(st.lists(ROWS, max_size=8))
def test_one_card_per_bus_device_whatever_the_rows(told: list[Observation]) -> None:
    cards = fold(told)
    devices = {n.canonical.rpartition(".")[0] for o in told for n in o.subject.names if n.kind == "pci_address"}

    assert len(cards) == len(devices)
    assert sorted(_device(c) for c in cards) == sorted(devices)


def _device(card: FoldedCard) -> str:
    return next(n.canonical for n in card.names if n.kind == "pci_address").rpartition(".")[0]


def test_a_part_stands_on_the_newest_row_with_all_names_of_its_parent_else_on_the_newest_with_a_strong_one() -> None:
    cards = [row(serial="a", index=0), row(serial="b", index=1), row(serial="b", index=0)]
    parts = [
        row(Level.PARTITION, parent={"serial": "b", "index": 1}, vendor_uuid="on-the-second"),
        row(Level.PARTITION, parent={"serial": "b"}, vendor_uuid="on-the-third"),
        row(Level.PARTITION, parent={"serial": "a", "index": 7}, vendor_uuid="on-the-first"),
        row(Level.PARTITION, parent={"index": 7}, vendor_uuid="on-a-fourth"),
    ]
    told = {
        f"{ids(card.names).get('serial', '')}{ids(card.names)['index']}": [ids(p.names)["vendor_uuid"] for p in card.partitions] for card in fold(cards + parts)
    }

    assert told == {"a0": ["on-the-first"], "b1": ["on-the-second"], "b0": ["on-the-third"], "7": ["on-a-fourth"]}
