# SPDX-License-Identifier: Apache-2.0
"""Newest numbers as columns: in the writer's process, in another on the same machine, and in one that has only the rows."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.store.rounds import heard, layout, told
from tests.store.samples import card

from muster.spi.numbers import Numbers
from muster.spi.store import Batch
from muster.store import Store, open_store
from muster.store.gauges import Gauges
from muster.store.gauges_map import opened
from muster.store.gauges_shared import PAUSE, SharedNumbers, View
from muster.store.opening import Place

NAN = math.nan


class Clock:
    """Seconds that go on when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    match request.param:
        case "memory":
            return None
        case "file":
            return tmp_path / "roll.db"
        case _:
            return str(request.getfixturevalue("postgres_store_url"))


def seen(door: Store, mirror: Path | None, clock: Clock) -> Numbers:
    """What a process that does not write sees."""
    return SharedNumbers(View(Gauges(None, door.unread), mirror, door.connections, clock), door.connections, door.unread)


@pytest.fixture
def both(place: Place, clock: Clock) -> Iterator[tuple[Store, Numbers]]:
    """A store that writes, and what another process sees of its numbers; in memory there is no other."""
    store = open_store(place)
    if place is None:
        yield store, store.numbers
        store.close()
        return
    door = open_store(place)
    mirror = place.with_name("roll.db-numbers") if isinstance(place, Path) else None
    yield store, seen(door, mirror, clock)
    door.close()
    store.close()


def shown(numbers: Numbers, key: str = "power.draw") -> dict[tuple[str, int], tuple[float, float]]:
    column = numbers.column(key)
    rows = zip(column.subjects, column.slots.tolist(), column.values.tolist(), column.times.tolist(), strict=True)
    return {(subject, slot): (value, at) for subject, slot, value, at in rows if not math.isnan(value)}


def test_a_column_has_the_newest_number_of_each_subject_and_source(both: tuple[Store, Numbers], clock: Clock) -> None:
    store, numbers = both
    store.writer.commit(Batch(at=1.0, layouts=[layout(cards=("c1", "c2")), layout(2, ("c1",))]))
    store.writer.commit(Batch(at=1.0, heard=[heard(60.0, 1.0, 10.0, 2.0, NAN), heard(61.0, 3.0, 4.0, slot=2)]))

    assert shown(numbers) == {("c1", 1): (1.0, 60.0), ("c2", 1): (2.0, 60.0), ("c1", 2): (3.0, 61.0)}
    assert shown(numbers, "errors.memory.corrected") == {("c1", 1): (10.0, 60.0), ("c1", 2): (4.0, 61.0)}
    assert list(numbers.keys()) == ["errors.memory.corrected", "power.draw"]
    assert shown(numbers, "fan.speed") == {}

    clock.now += PAUSE
    store.writer.commit(Batch(at=2.0, heard=[heard(70.0, NAN, 1.0, 5.0, 1.0)]))
    assert shown(numbers) == {("c1", 1): (1.0, 60.0), ("c2", 1): (5.0, 70.0), ("c1", 2): (3.0, 61.0)}


def test_entries_are_only_added_and_those_of_a_layout_before_say_nothing(both: tuple[Store, Numbers], clock: Clock) -> None:
    store, numbers = both
    store.writer.commit(Batch(at=1.0, layouts=[layout(cards=("c1", "c2"))], heard=[heard(60.0, 1.0, 1.0, 2.0, 2.0)]))
    before = numbers.column("power.draw")
    store.writer.commit(Batch(at=2.0, layouts=[layout(cards=("c2", "c3"), since=70.0)], heard=[heard(70.0, 3.0, 3.0, 4.0, 4.0)]))
    clock.now += PAUSE
    after = numbers.column("power.draw")

    assert after.epoch == before.epoch
    assert list(after.subjects) == ["c1", "c2", "c2", "c3"]
    np.testing.assert_array_equal(after.values, [NAN, NAN, 3.0, 4.0])
    np.testing.assert_array_equal(after.times, [NAN, NAN, 70.0, 70.0])


def test_joined_cards_begin_a_new_epoch(both: tuple[Store, Numbers], clock: Clock) -> None:
    store, numbers = both
    store.writer.commit(Batch(at=1.0, cards=[card("c1"), card("c2")], layouts=[layout(cards=("c1", "c2"))], heard=[heard(60.0, 1.0, 1.0, 2.0, 2.0)]))
    before = numbers.column("power.draw")
    store.writer.commit(Batch(at=2.0, gone={"c2": "c1"}))
    clock.now += PAUSE
    after = numbers.column("power.draw")

    assert after.epoch > before.epoch
    assert list(after.cards) == ["c1", "c1"]
    assert list(before.cards) == ["c1", "c2"]


def test_many_layouts_begin_a_new_epoch_and_not_more_memory(both: tuple[Store, Numbers], clock: Clock) -> None:
    store, numbers = both
    cards = tuple(f"c{number}" for number in range(100))
    for turn in range(15):
        store.writer.commit(Batch(at=1.0, layouts=[layout(cards=cards, since=float(turn))], heard=[heard(60.0 + turn, *map(float, range(200)))]))
        clock.now += PAUSE
        column = numbers.column("power.draw")
        assert int((~np.isnan(column.values)).sum()) == 100
        assert len(column.values) < 1000
    assert numbers.column("power.draw").epoch > 2


def test_how_far_each_source_has_come(both: tuple[Store, Numbers], clock: Clock) -> None:
    store, numbers = both
    store.writer.commit(Batch(at=1.0, layouts=[layout(), layout(3, ("c3",))], heard=[heard(60.0, 1.0, 1.0), heard(70.0, 1.0, 1.0, again=True)]))
    rounds = numbers.rounds()

    assert (list(rounds.nodes), list(rounds.sources)) == (["", "n1", "", "n1"], ["", "s1", "", "s3"])
    np.testing.assert_array_equal(rounds.at, [NAN, 70.0, NAN, NAN])
    np.testing.assert_array_equal(rounds.since, [NAN, 60.0, NAN, NAN])
    np.testing.assert_array_equal(rounds.again_at, [NAN, 70.0, NAN, NAN])


def test_a_site_that_grows(both: tuple[Store, Numbers], clock: Clock) -> None:
    store, numbers = both
    begun = numbers.column("power.draw").epoch
    for first in range(1, 2001, 400):
        some = range(first, first + 400)
        store.writer.commit(Batch(at=1.0, layouts=[layout(slot, tuple(f"c{slot}.{n}" for n in range(20))) for slot in some]))
        store.writer.commit(Batch(at=1.0, heard=[heard(60.0, *[float(slot)] * 40, slot=slot) for slot in some]))
        clock.now += PAUSE
        column = numbers.column("power.draw")
        np.testing.assert_array_equal(column.values, column.slots)
        assert len(column.values) == 20 * (first + 399)
        assert column.epoch == begun


def test_rows_are_not_read_at_every_question(place: Place, clock: Clock) -> None:
    if not isinstance(place, str):
        pytest.skip("only where there is no file")
    store, door = open_store(place), open_store(place)
    numbers = seen(door, None, clock)
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 1.0, 1.0)]))
    assert shown(numbers) == {("c1", 1): (1.0, 60.0)}
    store.writer.commit(Batch(at=1.0, heard=[heard(61.0, 2.0, 1.0)]))
    assert shown(numbers) == {("c1", 1): (1.0, 60.0)}
    clock.now += PAUSE
    assert shown(numbers) == {("c1", 1): (2.0, 61.0)}
    door.close()
    store.close()


def test_a_writer_that_starts_anew_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "roll.db"
    store, door = open_store(path), open_store(path)
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 1.0, 1.0)]))
    assert shown(door.numbers) == {("c1", 1): (1.0, 60.0)}
    store.close()
    assert shown(door.numbers) == {("c1", 1): (1.0, 60.0)}

    store = open_store(path)
    store.writer.load()
    assert shown(door.numbers) == {("c1", 1): (1.0, 60.0)}
    store.writer.commit(Batch(at=2.0, layouts=[layout(2, ("c2",))], heard=[heard(61.0, 2.0, 2.0), heard(62.0, 3.0, 3.0, slot=2)]))
    assert shown(door.numbers) == {("c1", 1): (2.0, 61.0), ("c2", 2): (3.0, 62.0)}
    assert shown(store.numbers) == shown(door.numbers)
    door.close()
    store.close()


def test_who_only_reads_makes_no_file(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.db")
    store.writer.load()
    assert shown(store.numbers) == {}
    assert not (tmp_path / "roll.db-numbers").exists()
    store.close()


@pytest.mark.parametrize("damage", [b"", b"short", bytes(8192), b"MUSTERN1" + bytes(5000)])
def test_a_file_that_is_none_of_ours_is_passed_over(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "roll.db"
    store = open_store(path)
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 1.0, 1.0)]))
    store.close()
    mirror = tmp_path / "roll.db-numbers"
    mirror.unlink()
    mirror.write_bytes(damage)

    assert opened(mirror) is None
    door = open_store(path)
    assert shown(door.numbers) == {("c1", 1): (1.0, 60.0)}
    door.close()


_FULL = """
import resource, sys
from pathlib import Path
from tests.store.rounds import heard, layout, told
from muster.spi.store import Batch
from muster.store import open_store
path = Path(sys.argv[1])
store, door = open_store(path), open_store(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 1.0, 1.0)]))
store.writer.commit(Batch(at=2.0, heard=[heard(61.0, 2.0, 2.0)]))
print(told(store)[("c1", "power.draw")], store.numbers.column("power.draw").values.tolist(), door.numbers.column("power.draw").values.tolist())
"""


def test_a_disk_without_room_for_the_mirror_stops_nobody(tmp_path: Path) -> None:
    path = tmp_path / "roll.db"
    open_store(path).close()
    done = subprocess.run([sys.executable, "-c", _FULL, str(path)], capture_output=True, text=True, check=False)

    assert done.stdout == "(2, 61.0) [2.0] [2.0]\n", done.stderr
    assert [each.name for each in tmp_path.iterdir() if "numbers" in each.name] == []
    store = open_store(path)
    assert told(store)[("c1", "power.draw")] == (2, 61.0)
    store.close()
