# SPDX-License-Identifier: Apache-2.0
"""Columns with other units, memory that could not be read, and tables of two hosts in one text."""

from __future__ import annotations

from muster.adapters.huawei.tests.test_npu_smi import MIB, SINGLE, TWO_DIES, ids, level, read, value
from muster.adapters.huawei.tests.test_other_texts import sample
from muster.domain.model.attributes import Level
from muster.domain.model.reading import Absent, Why


def test_memory_that_could_not_be_read_is_not_the_other_memory() -> None:
    for none in ("-1", "4294967295"):
        families = (("hbm_total_memory", none), ("hbm_used_memory", none), ("total_memory", "15137"), ("used_memory", "9000"))
        (card,) = level(read("".join(sample(family, number) for family, number in families)), Level.CARD)

        assert card.readings["memory.total"] == Absent(Why.ERROR, f"{none}: the exporter could not read it")
        assert card.readings["memory.used"] == Absent(Why.ERROR, f"{none}: the exporter could not read it")
        assert card.vendor["total_memory"] == 15137


def test_without_such_memory_the_other_is_the_chips() -> None:
    (card,) = level(read(sample("total_memory", "15137") + sample("used_memory", "9000")), Level.CARD)

    assert (value(card, "memory.total"), value(card, "memory.used")) == (15137 * MIB, 9000 * MIB)


def test_pages_that_could_not_be_counted_are_no_pages() -> None:
    text = sample("hbm_ecc_single_bit_isolated_pages_cnt", "4294967295") + sample("hbm_ecc_double_bit_isolated_pages_cnt", "2")
    (card,) = level(read(text), Level.CARD)

    assert isinstance(card.readings["memory.pages_retired"], Absent)


def test_columns_with_units_that_are_not_known() -> None:
    text = TWO_DIES.replace("Power(W) ", "Power(mW)").replace("Temp(C)", "Temp(F)").replace("HBM-Usage(MB)", "HBM-Usage(GB)")
    found = read(text)
    card, device = level(found, Level.CARD)[0], level(found, Level.DEVICE)[0]

    assert card.readings["power.draw"] == Absent(Why.UNREADABLE, "unit not known: Power(mW)")
    assert device.readings["temperature.core"] == Absent(Why.UNREADABLE, "unit not known: Temp(F)")
    for key in ("memory.total", "memory.used"):
        assert device.readings[key] == Absent(Why.UNREADABLE, "unit not known: HBM-Usage(GB)")
    for name in ("Power(mW)", "Temp(F)", "HBM-Usage(GB)"):
        assert name in found.unknown_shape


def test_tables_of_two_hosts() -> None:
    other = TWO_DIES.replace("0000:E", "0000:9").replace("161.4", "333.3").replace("worker one", "worker two").replace("51500", "51600")
    found, again = read(TWO_DIES + other), read(TWO_DIES + TWO_DIES)
    cards = level(found, Level.CARD)

    assert [ids(card)["index"] for card in cards] == ["2", "3", "2", "3"]
    assert [value(card, "power.draw") for card in cards] == [161.4, 158.6, 333.3, 158.6]
    assert [ids(device)["pci_address"][5:7] for device in level(found, Level.DEVICE)] == ["e1", "e3", "e5", "e7", "91", "93", "95", "97"]
    assert not found.complete
    assert "stands for several cards" in found.detail
    assert (len(level(again, Level.CARD)), again.detail) == (2, "")


def test_a_single_chip_table_twice_is_one() -> None:
    assert len(level(read(SINGLE + SINGLE), Level.CARD)) == len(level(read(SINGLE), Level.CARD))
