# SPDX-License-Identifier: Apache-2.0
"""Rounds of numbers against a plain model of dictionaries: any order, doubles, late ones, NaN, layouts that change, restarts, and packing at any time."""

from __future__ import annotations

import math
import struct
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from muster.spi.store import Batch, Heard, Layout
from muster.store import Store, open_store

NAN = math.nan
KEYS = ["power.draw", "temperature.core", "errors.memory.corrected", "memory.used"]
MIB = 2**20


@dataclass
class Model:
    """What the store should say."""

    columns: dict[int, list[tuple[str, str, str, int]]] = field(default_factory=dict)
    newest: dict[tuple[int, str, str], tuple[float, float]] = field(default_factory=dict)
    minutes: dict[tuple[str, str, str], dict[int, list[tuple[float, int, float]]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    rounds: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    """Rounds of a source in a minute."""
    left: set[tuple[int, str, str]] = field(default_factory=set)
    """What some layout left out once: its last number is a word from then on, and a column only has what came after."""
    arrived: int = 0

    def lay(self, slot: int, columns: list[tuple[str, str, str, int]]) -> None:
        now = {(slot, subject, key) for subject, _, key, _ in columns}
        self.left |= {(slot, subject, key) for subject, _, key, _ in self.columns.get(slot, [])} - now
        self.columns[slot] = columns

    def hear(self, slot: int, at: float, numbers: list[float]) -> None:
        self.rounds[(f"s{slot}", int(at // 60) * 60)] += 1
        for subject, _, key, place in self.columns[slot]:
            value = numbers[place]
            if math.isnan(value):
                continue
            self.arrived += 1
            there = self.newest.get((slot, subject, key))
            if there is None or at >= there[1]:
                self.newest[(slot, subject, key)] = (value, at)
            self.minutes[(subject, key, f"s{slot}")][int(at // 60) * 60].append((at, self.arrived, value))


def layout(slot: int, cards: int, dice: Random, since: float, before: int = 0) -> tuple[Layout, list[tuple[str, str, str, int]]]:
    pairs = [(f"c{slot}.{card}", key) for card in range(cards) for key in KEYS]
    places = list(range(len(pairs)))
    dice.shuffle(places)
    columns = [(card, card, key, place) for (card, key), place in zip(pairs, places, strict=True)]
    return Layout(slot=slot, node="n1", source=f"s{slot}", reporter="r", since=since, columns=columns, width=len(pairs), before=before), columns


def numbers(columns: list[tuple[str, str, str, int]], dice: Random) -> list[float]:
    made = [NAN] * len(columns)
    for *_, key, place in columns:
        if dice.random() < 0.85:
            made[place] = {
                "power.draw": lambda: dice.randrange(100, 7000) / 10,
                "temperature.core": lambda: float(dice.randrange(-40, 110)),
                "errors.memory.corrected": lambda: float(dice.choice([0, 3, 70_000, 2**40 + 1])),
                "memory.used": lambda: float(dice.randrange(1, 80_000) * MIB),
            }[key]()
    return made


def batch(model: Model, dice: Random, clock: float) -> Batch:
    """Rounds of some sources about ``clock``, told to the model in the same order."""
    layouts: list[Layout] = []
    heard: list[Heard] = []
    for turn in range(dice.randrange(1, 8)):
        slot = dice.randrange(1, 4)
        if slot not in model.columns or dice.random() < 0.08:
            made, columns = layout(slot, dice.randrange(1, 4), dice, clock, before=len(heard))
            layouts.append(made)
            model.lay(slot, columns)
        at = clock + dice.choice([0.0, 5.0, 10.0, 10.0, 20.5, 70.0, -3.0, -65.0, -700.0, -4000.0])
        values = numbers(model.columns[slot], dice)
        for _ in range(dice.choice([1, 1, 1, 2])):
            heard.append(Heard(slot=slot, at=at, received_at=clock, numbers=struct.pack(f"<{len(values)}d", *values), sequence=turn))
            model.hear(slot, at, values)
    return Batch(at=clock, layouts=layouts, heard=heard)


def check_now(model: Model, store: Store) -> None:
    told = {(int(each.source[1:]), each.subject, each.key): (each.word.value, each.word.at) for each in store.reader.current()}
    assert told == model.newest
    assert all(type(value) is int for value, _ in told.values() if float(value).is_integer())
    columns = {key: store.numbers.column(key) for key in KEYS}
    shown = {}
    for key, column in columns.items():
        for index, value in enumerate(column.values):
            if not math.isnan(value):
                shown[(int(column.slots[index]), column.subjects[index], key)] = (float(value), float(column.times[index]))
    held = {(slot, subject, key) for slot, columns in model.columns.items() for subject, _, key, _ in columns}
    sure = held - model.left
    assert {key: value for key, value in shown.items() if key in sure} == {key: value for key, value in model.newest.items() if key in sure}


def check_minutes(model: Model, store: Store, packed: bool) -> None:
    """Sums, extremes and last words of every minute; packed ones within half a step (0.05 of a watt or degree)."""
    near: Any = (lambda value: pytest.approx(value, abs=0.0501, rel=2**-16)) if packed else (lambda value: pytest.approx(value, rel=1e-6))
    for (subject, key, source), minutes in model.minutes.items():
        rows = store.reader.minutes(subject, key, -1e9, 1e9)
        assert [row["minute"] for row in rows] == sorted(minutes), (subject, key)
        assert {row["source"] for row in rows} <= {source}
        for row in rows:
            said = sorted(minutes[row["minute"]])
            values = [value for _, _, value in said]
            assert row["count"] == len(values)
            assert (row["low"], row["high"]) == (near(min(values)), near(max(values)))
            # of a number that was left out of some rounds, an earlier word of its minute may stand when parts of the minute came apart
            always = model.rounds[(source, row["minute"])] == len(values)
            assert row["last"] in [near(value) for at, _, value in said if not always or at == said[-1][0]]
            mean = sum(values) / len(values)  # moves by half a step each time that late rounds are brought in
            assert row["sum"] / row["count"] == (pytest.approx(mean, abs=0.15, rel=2**-14) if packed else near(mean))
            if key == "errors.memory.corrected":
                assert (row["sum"], row["low"], row["high"]) == (sum(values), min(values), max(values))


def seal(store: Store, now: float) -> None:
    while store.seal(now):
        pass


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(0, 2**32))
def test_a_file_says_what_a_plain_model_says(seed: int) -> None:
    dice = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "roll.db"
        model, store, clock = Model(), open_store(path), 100_000.0
        packed = False
        for _ in range(dice.randrange(1, 25)):
            clock += dice.choice([0.0, 10.0, 60.0, 300.0, 1300.0])
            store.writer.commit(batch(model, dice, clock))
            if dice.random() < 0.3:
                store.close()
                store = open_store(path)
                if dice.random() < 0.5:
                    store.writer.load()
            if dice.random() < 0.3:
                packed = True
                seal(store, clock + dice.choice([0.0, 400.0, 5000.0]))
        check_now(model, store)
        check_minutes(model, store, packed)
        seal(store, clock + 10_000.0)
        check_minutes(model, store, True)
        check_now(model, store)
        store.close()


@pytest.mark.parametrize("seed", range(4))
def test_each_kind_of_store_says_what_a_plain_model_says(store: Store, seed: int) -> None:
    dice, model, clock = Random(seed), Model(), 200_000.0
    for _ in range(30):
        clock += dice.choice([0.0, 10.0, 60.0, 300.0, 1300.0])
        store.writer.commit(batch(model, dice, clock))
        if dice.random() < 0.2:
            store.writer.load()
        if dice.random() < 0.3:
            seal(store, clock + 200.0)
    check_now(model, store)
    check_minutes(model, store, True)
    seal(store, clock + 10_000.0)
    check_minutes(model, store, True)
