# SPDX-License-Identifier: Apache-2.0
"""A batch is there whole or not at all: under a killed writer, and for readers beside a busy one."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.store.samples import card, change, file_writer

from muster.spi.store import Batch
from muster.store import Store, open_store

ROOT = Path(__file__).resolve().parents[2]
WRITE_FOREVER = """
import sys
from itertools import count
from pathlib import Path
from muster.spi.store import Batch
from muster.store import open_store
from tests.store.samples import card, change, sample

store = open_store(Path(sys.argv[1]))
for n in count(len(store.reader.cards()) // 5):
    store.writer.commit(Batch(
        at=float(n),
        cards=[card(f"c{n}-{i}") for i in range(5)],
        changes=[change(f"h{n}-{i}", float(n)) for i in range(3)],
        samples=[sample(i, float(n), subject=f"c{n}-{i}") for i in range(5)],
        base={"n": str(n).encode()},
    ))
    print(n, flush=True)
"""


def test_a_killed_writer_leaves_whole_batches_and_loses_none_that_was_answered(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "roll.db", -1
    for more in (3, 7, 12):
        command = [sys.executable, "-c", WRITE_FOREVER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}) as writer:
            assert writer.stdout is not None
            for _ in range(more):
                acknowledged = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)

        store = open_store(path)
        last = int(store.writer.load().base["n"])
        assert last >= acknowledged
        assert len(store.reader.cards()) == 5 * (last + 1)
        assert len(store.reader.changes(limit=10_000)) == 3 * (last + 1)
        assert len(store.reader.current()) == 5 * (last + 1)
        assert file_writer(store).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        store.close()


def test_an_error_in_the_middle_undoes_the_batch(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card("c1")]))
    with pytest.raises(TypeError):
        store.writer.commit(Batch(at=2.0, cards=[card("c2")], gone={"c1": "c2"}, audit=[{"by": object()}]))

    assert store.reader.cards() == [card("c1")]
    assert [each.id for each in store.reader.cards(at=1e9)] == ["c1"]
    assert store.writer.load().ids == {}


def test_readers_see_whole_batches_while_the_writer_is_at_work(store: Store) -> None:
    done, odd = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            slots = {each.slot for each in store.reader.cards()}
            past = {each.slot for each in store.reader.cards(at=1e9)}
            if len(slots) > 1 or len(past) > 1:
                odd.append((slots, past))
            store.reader.changes(limit=5)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for n in range(60):
        store.writer.commit(Batch(at=float(n), cards=[card(f"c{i}", slot=str(n)) for i in range(8)], changes=[change(f"h{n}", float(n))]))
    done.set()
    for reader in readers:
        reader.join()

    assert odd == []
    assert len(store.reader.changes()) == 60


def test_the_store_is_durable_when_commit_returns(tmp_path: Path) -> None:
    store = open_store(tmp_path / "roll.db")
    settings = {name: file_writer(store).execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "foreign_keys")}

    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    store.close()


def test_only_its_user_may_read_the_file(tmp_path: Path) -> None:
    store = open_store(tmp_path / "new" / "roll.db")
    store.writer.commit(Batch(at=1.0, cards=[card("c1")]))

    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "new").iterdir()} == {0}
    store.close()


def test_two_stores_in_memory_know_nothing_of_each_other() -> None:
    one, other = open_store(None), open_store(None)
    one.writer.commit(Batch(at=1.0, cards=[card("c1")]))

    assert other.reader.cards() == []
    one.close()
    other.close()
