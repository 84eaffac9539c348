# SPDX-License-Identifier: Apache-2.0
"""One writes; another waits, reads, and takes over when the first is gone. What the first still wants to write then is refused."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.samples import card, finding

from muster.domain.model.errors import Unavailable
from muster.spi.store import Batch
from muster.store import Store, open_store, opening, processes

ROOT = Path(__file__).resolve().parents[2]
SERVE = """
import sys, time
from pathlib import Path
from muster.domain.model.errors import Unavailable
from muster.spi.store import Batch
from muster.store import open_store, processes
from tests.store.samples import card

place, name, span, seen = sys.argv[1:]
if not int(seen):
    processes.mark = lambda: ""  # as if it ran on another machine
store = open_store(place if place.startswith("postgresql:") else Path(place), lease_span=float(span))
while not store.lease.acquire(name, time.monotonic()):
    time.sleep(0.02)
print("holds", flush=True)
n = len(store.reader.cards())
while True:
    if not store.lease.renew(time.monotonic()):
        sys.exit("lost")
    store.writer.commit(Batch(at=float(n), cards=[card(f"{name}-{n}")]))
    n += 1
    print(n, flush=True)
"""


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where two servers meet."""
    return str(tmp_path / "roll.db") if request.param == "file" else str(request.getfixturevalue("postgres_store_url"))


def opened(place: str) -> Store:
    return open_store(place if place.startswith("postgresql:") else Path(place), lease_span=10.0)


@pytest.fixture
def two(place: str) -> Iterator[tuple[Store, Store]]:
    one, other = opened(place), opened(place)
    yield one, other
    one.close()
    other.close()


def refused(store: Store) -> str:
    with pytest.raises(Unavailable) as caught:
        store.writer.commit(Batch(at=9.0, cards=[card("late")]))
    assert caught.value.hint
    assert all(each.id != "late" for each in store.reader.cards())
    return caught.value.message


def test_the_second_waits_and_reads(two: tuple[Store, Store]) -> None:
    one, other = two
    assert one.lease.acquire("one", 100.0)
    one.writer.commit(Batch(at=1.0, cards=[card("c1")]))

    assert not other.lease.acquire("other", 5000.0)
    assert [each.id for each in other.reader.cards()] == ["c1"]
    assert "is written by one" in refused(other)
    holder = other.lease.holder()
    assert holder is not None
    assert (holder.holder, holder.token) == ("one", 1)


def test_it_takes_over_when_the_first_is_silent_and_not_before(two: tuple[Store, Store]) -> None:
    one, other = two
    assert one.lease.acquire("one", 0.0)
    for now in (1000.0, 1006.0):
        assert not other.lease.acquire("other", now)
    assert one.lease.renew(7.0)
    for now in (1010.5, 1020.4):
        assert not other.lease.acquire("other", now)
    assert other.lease.acquire("other", 1020.5)

    assert "is written by other" in refused(one)
    for act in (one.probe, lambda: one.writer.trim(1.0, {"events": 1.0}), lambda: one.writer.acknowledge("f", "ann", 1.0, "")):
        with pytest.raises(Unavailable):
            act()
    assert not one.lease.renew(8.0)
    assert not one.lease.acquire("one", 9.0)
    other.writer.commit(Batch(at=2.0, cards=[card("c2")]))
    assert [each.id for each in one.reader.cards()] == ["c2"]


@pytest.mark.parametrize("jump", [-1e9, 3600.0, 3e8])
def test_the_clock_of_the_holder_does_not_matter(two: tuple[Store, Store], jump: float) -> None:
    one, other = two
    assert one.lease.acquire("one", 50.0)
    for step in range(5):
        assert not other.lease.acquire("other", 1000.0 + 4 * step)
        assert one.lease.renew(50.0 + jump + 4 * step)

    assert not other.lease.acquire("other", 10.0)
    assert not other.lease.acquire("other", 19.0)
    assert other.lease.acquire("other", 20.0)


def test_a_lease_that_was_given_back_is_free_at_once(two: tuple[Store, Store]) -> None:
    one, other = two
    assert one.lease.acquire("one", 0.0)
    one.lease.release()
    assert one.lease.holder() is None
    assert other.lease.acquire("other", 0.0)
    one.lease.release()

    assert "other" in refused(one)
    assert other.lease.renew(1.0)


def test_what_is_known_of_a_process_holds_for_what_it_took_itself(two: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder is there, and is of a kind that leaves no mark; the mark of a dead one before it says nothing."""
    one, other = two
    monkeypatch.setattr(processes, "mark", lambda: "dead")
    monkeypatch.setattr(processes, "gone", lambda marked: marked == "dead")
    assert one.lease.acquire("one", 0.0)
    with one.connections.transaction() as session:
        session.execute("UPDATE lease SET token = 2 WHERE name = 'writer'")
    assert not other.lease.acquire("other", 0.0)

    with one.connections.transaction() as session:
        session.execute("UPDATE lease SET token = 1 WHERE name = 'writer'")
    assert other.lease.acquire("other", 0.0)
    assert "is written by other" in refused(one)


def test_an_older_store_that_nobody_holds_may_be_upgraded(two: tuple[Store, Store]) -> None:
    one, other = two

    def looked() -> None:
        with other.connections.reading() as connection:
            opening._nobody(connection, {"lease"}, "the store")

    assert one.lease.acquire("one", 0.0)
    with pytest.raises(Unavailable, match="held by one"):
        looked()
    one.lease.release()
    looked()


def test_who_lost_it_may_not_write_when_nobody_has_it(two: tuple[Store, Store]) -> None:
    one, other = two
    assert one.lease.acquire("one", 0.0)
    assert other.lease.acquire("other", 0.0, certain=True)
    other.lease.release()

    assert "another server" in refused(one)
    assert one.lease.acquire("one", 1.0)
    one.writer.commit(Batch(at=3.0, findings=[finding("f", 1.0)]))


@pytest.mark.parametrize(("seen", "span", "least"), [(True, 60.0, 0.0), (False, 1.0, 0.5)], ids=["of this machine", "elsewhere"])
def test_a_killed_server_is_followed_by_the_one_that_waits(place: str, *, seen: bool, span: float, least: float) -> None:
    opened(place).close()
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}

    def serve(name: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", SERVE, place, name, str(span), str(int(seen))]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)

    def said(server: subprocess.Popen[str]) -> str:
        assert server.stdout is not None
        return server.stdout.readline().strip()

    with serve("first") as first:
        assert said(first) == "holds"
        with serve("second") as second:
            acknowledged = [said(first) for _ in range(20)][-1]
            first.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            assert said(second) == "holds"
            assert least < time.monotonic() - killed < 10
            more = [said(second) for _ in range(5)][-1]
            second.send_signal(signal.SIGKILL)

    store = opened(place)
    names = [each.id.split("-")[0] for each in store.reader.cards()]
    assert names == sorted(names)
    assert names.count("first") >= int(acknowledged)
    assert len(names) >= int(more)
    assert store.verify().broken is None
    store.close()
