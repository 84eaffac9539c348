# SPDX-License-Identifier: Apache-2.0
"""Rounds of numbers: the newest, the minutes, what was so at a time, and what a starting writer finds."""

from __future__ import annotations

import math
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.store.rounds import heard, layout, minutes, seal, told
from tests.store.samples import card, sample

from muster.domain.model.errors import InputError
from muster.domain.model.reading import Why
from muster.domain.model.roll import Word
from muster.spi.store import Batch
from muster.store import Store, open_store

NAN = math.nan


def test_the_newest_number_of_each_column(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(61.0, 300.5, 7.0, capture="abc")]))
    store.writer.commit(Batch(at=2.0, heard=[heard(71.0, 310.0, 8.0), heard(66.0, 1.0, 1.0)]))

    assert told(store) == {("c1", "power.draw"): (310, 71.0), ("c1", "errors.memory.corrected"): (8, 71.0)}
    assert [type(each.word.value) for each in store.reader.current()] == [int, int]
    assert {(each.card, each.node, each.source, each.word.capture) for each in store.reader.current()} == {("c1", "n1", "s1", "abc")}
    assert told(store, cards=["c2"]) == {}
    assert told(store, cards=["c1"]) == told(store)


def test_what_is_not_told_keeps_its_number_and_time(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 300.0, NAN)]))
    assert told(store) == {("c1", "power.draw"): (300, 60.0)}

    store.writer.commit(Batch(at=2.0, heard=[heard(70.0, NAN, 5.0)]))
    store.writer.load()
    assert told(store) == {("c1", "power.draw"): (300, 60.0), ("c1", "errors.memory.corrected"): (5, 70.0)}

    store.writer.commit(Batch(at=3.0, heard=[heard(65.0, 290.0, 4.0)]))
    assert told(store) == {("c1", "power.draw"): (290, 65.0), ("c1", "errors.memory.corrected"): (5, 70.0)}
    assert minutes(store) == [(60, 2, 590.0, 290.0, 300.0, 290.0)]


def test_a_minute_that_is_past_gets_its_late_rounds(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(61.0, 300.0, 1.0), heard(130.0, 100.0, 2.0)]))
    for at, power in ((100.0, 500.0), (59.0, 50.0), (62.0, 200.0), (105.0, 250.0)):
        store.writer.commit(Batch(at=2.0, heard=[heard(at, power, 1.0)]))

    assert told(store)[("c1", "power.draw")] == (100, 130.0)
    assert minutes(store) == [(0, 1, 50.0, 50.0, 50.0, 50.0), (60, 4, 1250.0, 200.0, 500.0, 250.0), (120, 1, 100.0, 100.0, 100.0, 100.0)]


def test_sums_of_counts_are_exact_whatever_their_size(store: Store) -> None:
    great = 2.0**52 + 3
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 1.0, 5.0), heard(61.0, 1.0, great), heard(120.0, 1.0, 0.0)]))

    assert minutes(store, key="errors.memory.corrected")[0] == (60, 2, great + 5, 5.0, great, great)


def test_what_was_so_at_a_time(store: Store) -> None:
    rounds = [heard(60.0 * minute + second, minute * 10.0 + second, 0.0) for minute in range(1, 80) for second in (5, 35)]
    store.writer.commit(Batch(at=1.0, layouts=[layout(since=60.0)], heard=rounds))

    for _ in range(2):
        assert told(store, at=50.0) == {}
        assert told(store, at=64.0) == {}
        assert told(store, at=95.0)[("c1", "power.draw")] == (45, 95.0)
        assert told(store, at=130.0)[("c1", "power.draw")] == (45, 95.0)
        assert told(store, at=60.0 * 40 + 36)[("c1", "power.draw")] == (435, 60.0 * 40 + 35)
        assert told(store, at=1e9, cards=["c1"])[("c1", "power.draw")] == (825, 60.0 * 79 + 35)
        seal(store, 1e6)


def test_a_round_that_fits_no_layout_is_refused_and_changes_nothing(store: Store) -> None:
    with pytest.raises(InputError, match="no layout"):
        store.writer.commit(Batch(at=1.0, heard=[heard(1.0, 1.0)]))
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 1.0, 1.0)]))
    with pytest.raises(InputError, match="whose layout has 2 numbers"):
        store.writer.commit(Batch(at=2.0, heard=[heard(70.0, 9.0, 9.0), heard(80.0, 9.0)]))
    store.writer.commit(Batch(at=3.0, heard=[heard(90.0, 2.0, 2.0)]))

    assert told(store)[("c1", "power.draw")] == (2, 90.0)
    assert minutes(store) == [(60, 2, 3.0, 1.0, 2.0, 2.0)]


def test_a_new_layout_holds_from_where_it_stands_in_the_batch(store: Store) -> None:
    first, second = layout(), layout(cards=("c2", "c1"), keys=("power.draw",), since=70.0, before=1)
    store.writer.commit(Batch(at=1.0, layouts=[first, second], heard=[heard(60.0, 300.0, 7.0), heard(70.0, 1.0, 2.0)]))

    left = {("c1", "errors.memory.corrected"): (7, 60.0)}
    assert told(store) == {("c2", "power.draw"): (1, 70.0), ("c1", "power.draw"): (2, 70.0), **left}
    assert minutes(store) == [(60, 2, 302.0, 2.0, 300.0, 2.0)]
    assert minutes(store, key="errors.memory.corrected") == [(60, 1, 7.0, 7.0, 7.0, 7.0)]
    assert told(store, at=65.0) == {("c1", "power.draw"): (300, 60.0), **left}
    assert told(store, at=75.0) == told(store)


def test_a_new_layout_goes_on_with_the_numbers_it_knows(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 300.0, 7.0), heard(130.0, 310.0, 8.0)]))
    store.writer.load()
    store.writer.commit(Batch(at=2.0, layouts=[layout(keys=("errors.memory.corrected", "power.draw"), since=140.0)]))
    assert told(store) == {("c1", "power.draw"): (310, 130.0), ("c1", "errors.memory.corrected"): (8, 130.0)}

    store.writer.commit(Batch(at=3.0, heard=[heard(125.0, 6.0, 250.0), heard(140.0, NAN, 320.0), heard(65.0, 1.0, 200.0)]))
    assert told(store) == {("c1", "power.draw"): (320, 140.0), ("c1", "errors.memory.corrected"): (8, 130.0)}
    assert minutes(store) == [(60, 2, 500.0, 200.0, 300.0, 200.0), (120, 3, 880.0, 250.0, 320.0, 320.0)]
    seal(store, 1e6)
    store.writer.commit(Batch(at=4.0, heard=[heard(200.0, 9.0, 330.0)]))
    seal(store, 1e6)
    assert minutes(store, key="errors.memory.corrected") == [(60, 2, 8.0, 1.0, 7.0, 1.0), (120, 2, 14.0, 6.0, 8.0, 8.0), (180, 1, 9.0, 9.0, 9.0, 9.0)]


def test_a_number_that_a_layout_leaves_out_stands_with_its_age_until_a_newer_word(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card("c1"), card("c2")], layouts=[layout(cards=("c1", "c2"))], heard=[heard(60.0, 1.0, 2.0, 3.0, 4.0)]))
    store.writer.commit(Batch(at=2.0, gone={"c2": "c1"}))
    store.writer.commit(Batch(at=3.0, layouts=[layout(keys=("fan.speed",), since=70.0)], heard=[heard(70.0, 0.5)]))
    assert told(store, cards=["c1"]) == {("c1", "power.draw"): (3, 60.0), ("c1", "errors.memory.corrected"): (4, 60.0), ("c1", "fan.speed"): (0.5, 70.0)}

    store.writer.commit(Batch(at=4.0, layouts=[layout(since=80.0)], heard=[heard(80.0, 5.0, NAN)]))
    assert told(store) == {("c1", "power.draw"): (5, 80.0), ("c1", "errors.memory.corrected"): (4, 60.0), ("c1", "fan.speed"): (0.5, 70.0)}
    assert minutes(store) == [(60, 3, 9.0, 1.0, 5.0, 5.0)]


def test_one_number_may_be_of_several_columns(store: Store) -> None:
    both = layout(columns=[("c1", "c1", "power.draw", 0), ("d1", "c1", "power.draw", 0)], width=1)
    store.writer.commit(Batch(at=1.0, layouts=[both], heard=[heard(60.0, 5.0)]))

    assert told(store) == {("c1", "power.draw"): (5, 60.0), ("d1", "power.draw"): (5, 60.0)}


def test_joined_cards_are_read_under_the_card_they_are_now(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card("c1"), card("c2")], layouts=[layout(), layout(2, ("c2",))]))
    store.writer.commit(Batch(at=2.0, heard=[heard(60.0, 1.0, 1.0), heard(70.0, 2.0, 2.0, slot=2)]))
    store.writer.commit(Batch(at=3.0, gone={"c2": "c1"}))

    assert {(each.subject, each.card, each.source, each.word.value) for each in store.reader.current(["c1"]) if each.key == "power.draw"} == {
        ("c1", "c1", "s1", 1),
        ("c1", "c1", "s2", 2),
    }
    assert [(row["source"], row["last"]) for row in store.reader.minutes("c1", "power.draw", 0, 1e9)] == [("s1", 1.0), ("s2", 2.0)]
    assert set(store.numbers.column("power.draw").cards) == {"c1"}


def test_nothing_stands_for_a_card_that_never_was(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card("c1"), card("c2")], layouts=[layout(cards=("c1", "c2"), keys=("power.draw",))]))
    store.writer.commit(Batch(at=2.0, heard=[heard(60.0, 1.0, 2.0)]))
    store.writer.commit(Batch(at=3.0, vanished=["c2"]))

    assert told(store) == {("c1", "power.draw"): (1, 60.0)}
    assert minutes(store, "c2") == []
    assert list(store.numbers.column("power.draw").subjects) == ["c1"]


def test_of_a_word_and_a_number_the_newer_one_is_told(store: Store) -> None:
    absent = sample(None, 80.0, source="s1", said=Word(value=300, at=60.0, why=Why.ERROR, why_at=80.0))
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 300.0, 1.0)], samples=[absent, sample("P0", 60.0, key="performance.state")]))
    assert {(each.key, each.word.why) for each in store.reader.current()} == {
        ("power.draw", Why.ERROR),
        ("performance.state", None),
        ("errors.memory.corrected", None),
    }

    store.writer.commit(Batch(at=2.0, heard=[heard(90.0, 310.0, 1.0)]))
    assert told(store)[("c1", "power.draw")] == (310, 90.0)
    assert {each.key for each in store.reader.current(numbers=False)} == {"power.draw", "performance.state"}


def test_minutes_of_words_and_of_rounds_are_one_answer(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, samples=[sample(10.0, 0.0, source="s1"), sample(20.0, 60.0, source="s1")]))
    store.writer.commit(Batch(at=2.0, layouts=[layout()], heard=[heard(70.0, 30.0, 1.0), heard(130.0, 40.0, 1.0)]))

    assert minutes(store) == [(0, 1, 10.0, 10.0, 10.0, 10.0), (60, 2, 50.0, 20.0, 30.0, 30.0), (120, 1, 40.0, 40.0, 40.0, 40.0)]


def test_a_starting_writer_finds_its_sources(store: Store) -> None:
    assert store.writer.load().next_slot == 1
    first = layout(promise=180.0, bounds=b"bounds", node_names=("host", "machine", ""))
    store.writer.commit(Batch(at=1.0, layouts=[first, layout(7, ("c2",))], regions={"1": "east", "7": "west", "c1": "east"}))
    full = heard(60.0, 1.5, 2.0, incarnation="i1", sequence=4, facts=b"digest")
    store.writer.commit(Batch(at=2.0, heard=[full, replace(full, at=70.0, received_at=71.0, again=True, sequence=5, facts=b"")]))
    loaded = store.writer.load()
    one, seven = loaded.slots

    assert loaded.next_slot == 8
    assert (one.slot, one.node, one.source, one.reporter, one.region) == (1, "n1", "s1", "r1", "east")
    assert (one.at, one.received_at, one.incarnation, one.sequence, one.again_at, one.facts) == (60.0, 71.0, "i1", 5, 70.0, b"digest")
    assert (one.promise, one.bounds, one.node_names, one.width) == (180.0, b"bounds", ("host", "machine", ""), 2)
    assert one.numbers == full.numbers
    assert (seven.slot, seven.at, seven.again_at, seven.region) == (7, -math.inf, None, "west")
    assert store.gauges.again() == {("n1", "s1"): (60.0, 70.0)}

    store.writer.commit(Batch(at=2.0, folded_to={1: 65.0, 99: 1.0}))
    assert [(slot.at, slot.again_at) for slot in store.writer.load().slots] == [(65.0, 70.0), (-math.inf, None)]
    assert store.gauges.again() == {("n1", "s1"): (65.0, 70.0)}

    store.writer.commit(Batch(at=3.0, heard=[heard(80.0, 1.0, 1.0)], united={"east": "west"}))
    assert [(slot.again_at, slot.region) for slot in store.writer.load().slots] == [(None, "west"), (None, "west")]
    assert store.gauges.again() == {}


def test_without_minutes_only_the_newest_is_kept(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.db", minutes=None)
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 1.0, 1.0), heard(120.0, 2.0, 2.0), heard(60.0, 3.0, 3.0)]))

    assert told(store)[("c1", "power.draw")] == (2, 120.0)
    assert minutes(store) == []
    store.close()


_WRITES = """
import struct, sys
from pathlib import Path
from muster.spi.store import Batch, Heard
from muster.store import open_store
store = open_store(Path(sys.argv[1]))
slots = {slot.slot: slot for slot in store.writer.load().slots}
begin = int(slots[1].sequence) + 1
for number in range(begin, begin + 100000):
    at = 1000.0 + number * 7
    store.writer.commit(Batch(at=at, heard=[Heard(slot=1, at=at, received_at=at, numbers=struct.pack("<2d", number, number), sequence=number)]))
    print(number, flush=True)
    if number % 5 == 0:
        store.seal(at)
"""


def test_what_was_acknowledged_outlives_a_writer_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "roll.db"
    store = open_store(path)
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    store.close()
    last = -1
    for turn in range(4):
        with subprocess.Popen([sys.executable, "-c", _WRITES, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(150 + turn):
                last = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            last = max([last, *(int(line) for line in writer.stdout.read().split())])

    store = open_store(path)
    written = int(told(store)[("c1", "errors.memory.corrected")][0])
    assert written >= last > 600
    rows = minutes(store, key="errors.memory.corrected")
    assert sum(row[1] for row in rows) == written + 1
    assert sum(row[2] for row in rows) == sum(range(written + 1))
    store.close()


def test_damaged_rows_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "roll.db"
    store = open_store(path)
    store.writer.commit(Batch(at=1.0, layouts=[layout(), layout(2, ("c2",))], heard=[heard(60.0, 1.0, 1.0), heard(60.0, 2.0, 2.0, slot=2)]))
    store.writer.commit(Batch(at=2.0, heard=[heard(120.0, 1.0, 1.0), heard(120.0, 2.0, 2.0, slot=2), heard(180.0, 3.0, 3.0)]))
    store.close()
    raw = sqlite3.connect(path)
    raw.execute("UPDATE layouts SET columns = x'00' WHERE slot = 2")
    raw.execute("UPDATE minute_rows SET packed = x'0102' WHERE minute = 60 AND layout = 1")
    raw.commit()
    raw.close()

    store = open_store(path)
    assert set(told(store)) == {("c1", "power.draw"), ("c1", "errors.memory.corrected")}
    assert [row[0] for row in minutes(store)] == [120, 180]
    assert told(store, at=130.0)[("c1", "power.draw")] == (1, 120.0)
    assert list(store.numbers.column("power.draw").subjects) == ["c1"]
    assert [slot.slot for slot in store.writer.load().slots] == [1]
    assert "cannot be read" in store.unread.told()
    seal(store, 1e6)
    assert [row[0] for row in minutes(store)] == [120, 180]
    store.close()
