# SPDX-License-Identifier: Apache-2.0
"""Packing behind the writer's back: in steps, at any time, through crashes between them, and dropped whole."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.store import rounds
from tests.store.rounds import heard, layout, seal, told

from muster.domain.model.errors import Unavailable
from muster.spi.store import Batch
from muster.store import Store, open_store
from muster.store.pack import BLOCK
from muster.store.segments import Block, FileSegments, Segments, TableSegments
from muster.store.segments_seal import GRACE, STEP, Kept, by_fleet
from muster.store.writer import Writer

HOUR = 3600.0


def write(store: Store, first: int, last: int, slot: int = 1) -> None:
    """A round in each minute."""
    told_ = [heard(60.0 * minute + 10.0, float(minute), float(minute), slot=slot) for minute in range(first, last)]
    store.writer.commit(Batch(at=1.0, heard=told_))


def minutes(store: Store, subject: str = "c1") -> list[tuple[Any, ...]]:
    """Of a count, which is packed without loss."""
    return rounds.minutes(store, subject, "errors.memory.corrected")


def waiting(store: Store) -> int:
    with store.connections.transaction() as session:
        return int(session.execute("SELECT count(*) FROM minute_rows").fetchone()[0])


@pytest.fixture
def segments(store: Store, tmp_path: Path) -> Segments:
    """Where the store keeps its packed minutes."""
    assert isinstance(store.writer, Writer)
    folder = tmp_path / "var" / "roll.db-minutes"
    return FileSegments(folder) if (tmp_path / "var").is_dir() else TableSegments(store.connections, store.writer.writing)


def test_a_block_is_packed_once_it_is_over_and_late_rounds_had_their_time(store: Store, segments: Segments) -> None:
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    write(store, 0, 25)
    before = minutes(store)

    assert seal(store, BLOCK + GRACE - 1) == 0
    assert seal(store, BLOCK + GRACE) == 1
    assert segments.hours() == [0]
    assert waiting(store) == 4
    assert minutes(store) == before
    assert seal(store, 1e6) == 1
    assert minutes(store) == before
    assert sum(segments.sizes().values()) > 0


def test_each_hour_has_a_segment_and_each_step_some_layouts(store: Store, segments: Segments) -> None:
    many = STEP + 5
    store.writer.commit(Batch(at=1.0, layouts=[layout(slot, (f"c{slot}",)) for slot in range(1, many)]))
    told_ = [heard(at, 1.0, float(slot), slot=slot) for at in (0.0, 3600.0, 7200.0) for slot in range(1, many)]
    store.writer.commit(Batch(at=1.0, heard=told_))

    assert seal(store, 1e6) == 4
    assert segments.hours() == [0, 1]
    assert minutes(store, f"c{STEP + 1}") == [(at, 1, *[STEP + 1.0] * 4) for at in (0, 3600, 7200)]


def test_late_rounds_are_kept_beside_and_brought_in(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    write(store, 0, 30)
    seal(store, 1e6)
    store.writer.commit(Batch(at=2.0, heard=[heard(300.0, 1.0, 100.0), heard(312.0, 50.0, 50.0), heard(305.0, 1.0, 70.0)]))

    for _ in range(3):
        assert minutes(store)[5] == (300, 4, 225.0, 5.0, 100.0, 50.0)
        assert told(store, at=330.0)[("c1", "power.draw")] == (50, 312.0)
        seal(store, 1e6)
        store.writer.load()
    assert waiting(store) == 0


def test_a_round_that_comes_while_a_block_is_packed_counts_once(store: Store) -> None:
    """More of a minute of the past that was already read for packing goes into a row of its own."""
    store.writer.commit(Batch(at=1.0, layouts=[layout()], heard=[heard(60.0, 1.0, 1.0), heard(9000.0, 1.0, 1.0), heard(100.0, 1.0, 3.0)]))
    assert isinstance(store.writer, Writer)
    with store.writer.writing() as session:
        store.writer._gauges.freeze(session)
    store.writer.commit(Batch(at=1.0, heard=[heard(101.0, 1.0, 5.0)]))
    assert waiting(store) == 3
    store.writer.commit(Batch(at=1.0, heard=[heard(102.0, 1.0, 7.0)]))
    assert waiting(store) == 3

    assert minutes(store)[0] == (60, 4, 16.0, 1.0, 7.0, 7.0)
    seal(store, 1e6)
    assert minutes(store)[0] == (60, 4, 16.0, 1.0, 7.0, 7.0)


class Crash(Exception):
    """The power goes."""


@pytest.mark.parametrize("after", ["segment", "middle"])
def test_a_crash_between_the_segment_and_the_rows_counts_nothing_twice(tmp_path: Path, after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "roll.db"
    store = open_store(path)
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    write(store, 0, 130)
    before = minutes(store)
    real = FileSegments.write

    def write_and_crash(self: FileSegments, blocks: list[Block]) -> None:
        if after == "segment":
            real(self, blocks)
        raise Crash

    monkeypatch.setattr(FileSegments, "write", write_and_crash)
    with pytest.raises(Crash):
        store.seal(1e6)
    monkeypatch.undo()
    store.close()

    store = open_store(path)
    assert minutes(store) == before
    store.writer.commit(Batch(at=2.0, heard=[heard(5.0, 1.0, 40.0)]))
    late = (0, 2, 40.0, 0.0, 40.0, 0.0)
    assert minutes(store) == [late, *before[1:]]
    seal(store, 1e6)
    assert minutes(store) == [late, *before[1:]]
    assert waiting(store) == 0
    store.close()


def test_a_block_is_never_replaced_by_one_that_holds_less(segments: Segments) -> None:
    segments.write([Block(1, 3, 10, b"new"), Block(2, 4, 5, b"x")])
    segments.write([Block(1, 3, 9, b"old")])

    assert segments.read([1], [1, 2, 9]) == [Block(1, 3, 10, b"new"), Block(2, 4, 5, b"x")]
    assert segments.read([1], [2]) == [Block(2, 4, 5, b"x")]
    assert segments.read([0, 7], [1]) == []
    segments.drop(1)
    segments.drop(1)
    assert segments.hours() == []
    assert segments.sizes() == {}
    assert segments.read([1], [1]) == []


def test_old_hours_are_dropped_whole_with_the_layouts_that_only_they_needed(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.db", minutes=Kept(age=2 * HOUR))
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    write(store, 0, 60)
    store.writer.commit(Batch(at=1.0, layouts=[layout(cards=("c2",), since=HOUR)]))
    write(store, 60, 300)
    seal(store, 5 * HOUR)
    seal(store, 5 * HOUR + 61)

    assert [row[0] for row in minutes(store, "c2")] == [60 * minute for minute in range(180, 300)]
    assert minutes(store, "c1") == []
    assert sorted(path.name for path in (tmp_path / "roll.db-minutes").iterdir()) == ["3.segment", "4.segment"]
    with store.connections.transaction() as session:
        assert [row[0] for row in session.execute("SELECT subject FROM layout_subjects")] == ["c2"]
        assert session.execute("SELECT count(*) FROM layouts").fetchone()[0] == 1
    write(store, 0, 1)
    seal(store, 5 * HOUR + 200)
    assert waiting(store) == 0
    store.close()


def test_the_oldest_hours_make_room_when_the_budget_is_full(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.db", minutes=Kept(age=1e9, budget=30_000))
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    write(store, 0, 600)
    seal(store, 10 * HOUR)
    seal(store, 11 * HOUR)
    left = [row[0] for row in minutes(store)]

    assert left[-1] == 599 * 60
    assert 0 < len(left) < 600
    assert sum(path.stat().st_size for path in (tmp_path / "roll.db-minutes").iterdir()) <= 30_000 + 8192
    store.close()


def test_a_budget_of_nothing_keeps_nothing_that_is_packed(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.db", minutes=Kept(age=1e9, budget=0))
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    write(store, 0, 100)
    seal(store, 3 * HOUR)
    seal(store, 3 * HOUR + 61)

    assert list((tmp_path / "roll.db-minutes").iterdir()) == []
    assert told(store)[("c1", "power.draw")] == (99, 99 * 60.0 + 10.0)
    store.close()


def test_the_budget_goes_with_the_site() -> None:
    assert by_fleet(0) == 1024**3
    assert by_fleet(1_600_000) == 1_600_000 * 5000 * 7


def test_who_has_not_the_lease_packs_nothing(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    write(store, 0, 30)
    assert store.lease.acquire("me", 1.0)
    with store.connections.transaction() as session:
        session.execute("UPDATE lease SET token = token + 1")

    with pytest.raises(Unavailable):
        store.seal(1e6)


def test_a_damaged_segment_hides_only_itself(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.db")
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    write(store, 0, 190)
    seal(store, 1e6)
    folder = tmp_path / "roll.db-minutes"
    (folder / "0.segment").write_bytes(b"no segment at all" * 300)
    raw = sqlite3.connect(folder / "1.segment")
    raw.execute("UPDATE blocks SET packed = x'00' WHERE block = 4")
    raw.commit()
    raw.close()

    assert [row[0] // 60 for row in minutes(store)] == [*range(60, 80), *range(100, 190)]
    assert told(store, at=90 * 60.0)[("c1", "power.draw")] == (79, 79 * 60.0 + 10.0)
    assert "cannot be read" in store.unread.told()
    store.close()


def test_segments_are_for_our_eyes_only(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.db")
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    write(store, 0, 30)
    seal(store, 1e6)
    store.close()

    for path in (tmp_path / "roll.db-minutes", tmp_path / "roll.db-minutes" / "0.segment", tmp_path / "roll.db-numbers"):
        assert not path.stat().st_mode & 0o077, path
    assert not os.access(tmp_path / "roll.db-numbers.new", os.F_OK)
