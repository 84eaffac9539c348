# SPDX-License-Identifier: Apache-2.0
"""The spool against what really happens: killed in the middle of writing, a disk that is full, clocks that jump, a server that is away for long."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collect.test_delivery import Server, listing, report
from tests.collect.world import Hands
from tests.needs import lacks

from muster.collect.delivery import Delivery
from muster.collect.post import Fate, Posted
from muster.collect.reports import Identity, Reports
from muster.collect.spool import HELD, Limits, Spool
from muster.wire.lanes import part
from muster.wire.report import CaptureDoc, NodeDoc, pack

WRITER = """
import sys
from pathlib import Path
from muster.collect.spool import Spool
from muster.wire.report import EventDoc, NodeDoc, ReportDoc
spool, sequence = Spool(Path(sys.argv[1])), int(sys.argv[2])
while True:
    sequence += 1
    events = [EventDoc(id=f"e{sequence}", source="log", adapter="acme", text="x" * 40_000)]
    if spool.add(ReportDoc(reporter="agent@n1", incarnation="i0", sequence=sequence, node=NodeDoc(name="n1"), sent_at=1e6, events=events)):
        sys.stdout.write(f"{sequence}\\n")
        sys.stdout.flush()
"""


@pytest.fixture
def hands() -> Hands:
    return Hands()


def drained(folder: Path, now: float) -> list[int]:
    """Numbers of the reports that are left, in order; the spool is empty afterwards."""
    spool, found = Spool(folder), []
    while (next_ := spool.oldest(now)) is not None:
        found.append(next_[1].sequence)
        spool.done(next_[0])
    return found


def test_killed_while_writing_it_has_no_halves_and_loses_nothing_it_said_it_has(tmp_path: Path, hands: Hands) -> None:
    dice, sequence = random.Random(4711), 0
    for _ in range(12):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(sequence)], stdout=subprocess.PIPE, start_new_session=True)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(dice.random() * 0.05)
        os.killpg(writer.pid, signal.SIGKILL)
        said = [int(each) for each in (first + writer.stdout.read()).split()]
        writer.stdout.close()
        writer.wait()
        found = drained(tmp_path, hands.wall)
        assert found == sorted(set(found))
        assert set(said) <= set(found)
        assert len(found) <= len(said) + 1
        sequence = max(found)

    assert not list(tmp_path.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB; only root may make one."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True)
    if made.returncode:
        lacks(f"no small disk can be made here: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_costs_listings_before_events_and_no_crash(small_disk: Path, hands: Hands, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(small_disk / "spool")
    with caplog.at_level(logging.WARNING):
        for sequence in range(1, 30):
            spool.add(report(hands, sequence, size=60_000))
        assert spool.held > 0
        for sequence in range(30, 34):
            assert spool.add(report(hands, sequence, events=True, size=60_000))

    assert caplog.text.count("cannot be written") <= 2
    found = []
    while (next_ := spool.oldest(hands.wall)) is not None:
        found.append((next_[1].sequence, bool(next_[1].events)))
        spool.done(next_[0])
    assert [number for number, events in found if events] == [30, 31, 32, 33]
    assert 29 in [number for number, _ in found]
    assert spool.dropped == 33 - len(found) > 0
    assert (spool.size, spool.held) == (0, 0)
    assert spool.add(report(hands, 40, size=60_000))


def test_what_is_held_in_memory_is_delivered_and_bounded(small_disk: Path, hands: Hands) -> None:
    spool = Spool(small_disk / "spool")
    (small_disk / "others").write_bytes(os.urandom(512 * 1024))
    with pytest.raises(OSError, match="No space"), (small_disk / "more").open("wb") as file:
        file.write(os.urandom(2 * 1024 * 1024))
    for sequence in range(1, 12):
        assert not spool.add(report(hands, sequence, size=700_000))

    assert 0 < spool.held <= HELD
    server = Server()
    to = Delivery(spool, server, hands.clock(), boot_id="b1", spread=lambda: 0, renew=lambda: None)
    while to.step():
        pass
    assert [each.sequence for each in server.bodies] == [7, 8, 9, 10, 11]
    assert spool.dropped == 6


@pytest.mark.parametrize("jump", [3600.0, 10 * 365 * 86_400.0, -999_000.0])
def test_a_clock_that_jumps_costs_nothing(tmp_path: Path, hands: Hands, jump: float) -> None:
    spool, server = Spool(tmp_path, Limits(listing_age=600, event_age=600)), Server()
    these = Reports(Identity(node=NodeDoc(name="n1"), boot_id="b1"), hands.clock(), lambda: "i0")
    for made in these.build([part(listing())], [], []):
        spool.add(made)
    hands.wall += jump
    hands.mono += 60
    to = Delivery(spool, server, hands.clock(), boot_id="b1", spread=lambda: 0, renew=lambda: None)

    assert to.step()
    assert [each.sequence for each in server.bodies] == [1]
    for made in these.build([part(listing())], [], []):
        spool.add(made)
    hands.mono += 601
    assert not to.step()
    assert spool.dropped == 1


def test_a_day_without_a_server_keeps_the_newest_and_every_event(tmp_path: Path, hands: Hands) -> None:
    one = len(pack(report(hands, 1, size=2000)))
    spool = Spool(tmp_path, Limits(size=one * 50))
    away = Server(*[Posted(Fate.LATER, "no route")] * 100_000)
    to = Delivery(spool, away, hands.clock(), boot_id="b2", spread=lambda: 0.5, renew=lambda: None)
    for sequence in range(1, 24 * 60):
        spool.add(report(hands, sequence, events=sequence % 100 == 0, size=2000))
        to.step()
        hands.pass_(60)

    assert len(away.bodies) < 24 * 60 * 2
    back = Server()
    to = Delivery(spool, back, hands.clock(), boot_id="b2", spread=lambda: 0.5, renew=lambda: None)
    while to.step():
        pass
    numbers = [each.sequence for each in back.bodies]
    assert numbers == sorted(numbers)
    assert [number for number in numbers if number % 100 == 0] == list(range(100, 24 * 60, 100))
    assert set(range(24 * 60 - 20, 24 * 60)) <= set(numbers)


def test_a_report_that_is_too_large_goes_in_pieces(tmp_path: Path, hands: Hands) -> None:
    names = iter(f"i{n}" for n in range(9))
    these = Reports(Identity(node=NodeDoc(name="n1"), boot_id="b1"), hands.clock(), lambda: next(names))
    spool, server = Spool(tmp_path), Server(Posted(Fate.TOO_LARGE, "HTTP 413"))
    to = Delivery(spool, server, hands.clock(), boot_id="b1", spread=lambda: 0, renew=lambda: None, smaller=these.smaller)
    captures = [CaptureDoc(digest="d", source="a", format="list", locator=[], taken_at=1.0, payload=b"x")]
    for made in these.build([part(listing("a")), part(listing("b"))], [], captures):
        spool.add(made)
    while to.step():
        pass

    told = [([each.source for each in body.heard], len(body.captures), body.sequence) for body in server.bodies]
    assert told[0] == (["a", "b"], 1, 1)
    assert sorted(source for sources, _, _ in told[1:] for source in sources) == ["a", "b"]
    assert sum(count for _, count, _ in told[1:]) == 1
    assert len({number for _, _, number in told}) == len(told)
    assert len(spool) == 0


def test_one_that_cannot_be_parted_is_refused(tmp_path: Path, hands: Hands) -> None:
    these = Reports(Identity(node=NodeDoc(name="n1")), hands.clock(), lambda: "i0")
    spool, server = Spool(tmp_path), Server(Posted(Fate.TOO_LARGE, "HTTP 413"))
    to = Delivery(spool, server, hands.clock(), boot_id="", spread=lambda: 0, renew=lambda: None, smaller=these.smaller)
    for made in these.build([part(listing("a"))], [], []):
        spool.add(made)

    assert to.step()
    assert (to.refused, len(spool), len(server.bodies)) == (1, 0, 1)
