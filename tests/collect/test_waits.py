# SPDX-License-Identifier: Apache-2.0
"""The agent's waits: nothing wakes it while nothing happens, and what happens wakes it at once. By the real clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.collect.test_delivery import Server, report
from tests.collect.test_follow import LOG, Stream
from tests.collect.world import Hands, Lines, Told, source

from muster.collect import agent as agents
from muster.collect.agent import Agent, deliver
from muster.collect.clock import Clock
from muster.collect.collector import Collector
from muster.collect.delivery import Delivery
from muster.collect.follow import Cursors, Follower
from muster.collect.noted import EVERY_S, FILE, Noted
from muster.collect.notify import Notify
from muster.collect.post import Fate, Posted
from muster.collect.reports import Identity, Reports
from muster.collect.spool import Spool
from muster.collect.tell import Teller
from muster.domain.model.source import ReaderKind, Source
from muster.wire.report import NodeDoc

CLOCK = Clock(time.time, time.monotonic)


def agent(folder: Path, stream: Stream | None = None, log: Source = LOG) -> tuple[Agent, Spool, Follower | None]:
    """An agent with one source, read already, and perhaps a stream."""
    spool, cursors = Spool(folder / "spool"), Cursors(None)
    follower = Follower([log], stream, cursors) if stream else None
    collector = Collector([Lines("acme", [source("lib")])], {ReaderKind.TOOL: Told({"lib": b"one"})}, CLOCK, {})
    names = iter(f"i{n}" for n in range(9))
    made = Agent(
        collector,
        Teller("boot"),
        Reports(Identity(node=NodeDoc(name="n1")), CLOCK, lambda: next(names)),
        spool,
        CLOCK,
        follower=follower,
        cursors=cursors,
        streams=(log,) if stream else (),
    )
    while not len(spool):
        made.step(0.05)
    return made, spool, follower


def took(step: Callable[[], None]) -> float:
    began = time.monotonic()
    step()
    return time.monotonic() - began


def soon(done: Callable[[], object], seconds: float = 0.3) -> threading.Timer:
    timer = threading.Timer(seconds, done)
    timer.start()
    return timer


@pytest.mark.parametrize("what", ["renew", "wanted", "wake"])
def test_a_step_that_waits_long_ends_when_something_is_asked(tmp_path: Path, what: str) -> None:
    made, _, _ = agent(tmp_path)
    asked: dict[str, Callable[[], None]] = {"renew": made.renew, "wanted": lambda: made.wanted(["d"]), "wake": made.wake}
    timer = soon(asked[what])
    spent = took(lambda: made.step(20))
    timer.join()

    assert 0.2 < spent < 2


def test_a_step_that_waits_long_ends_when_a_stream_brings_something(tmp_path: Path) -> None:
    stream = Stream(log=[b"!acme one"])
    made, spool, follower = agent(tmp_path, stream)
    assert follower is not None
    before = len(spool)
    timer = soon(follower.start)
    spent = took(lambda: made.step(20))
    timer.join()
    follower.close()
    stream.closed.set()

    assert spent < 2
    assert len(spool) > before


def test_a_quiet_stream_is_waited_for_until_it_must_be_spoken_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "BEAT_S", 0.2)
    monkeypatch.setattr(agents, "COMPANY_S", 0.6)
    monkeypatch.setattr(agents, "STEP_S", 0.1)
    stream = Stream(log=[])
    quick = source("log", reader=ReaderKind.STREAM, form="log", cadence=0.2)
    made, spool, follower = agent(tmp_path, stream, quick)
    assert follower is not None
    follower.start()
    end = time.monotonic() + 3
    while len(spool) < 2 and time.monotonic() < end:
        made.step(20)
    said = len(spool)
    spent = took(lambda: made.step(20))
    follower.close()
    stream.closed.set()

    assert said == 2, "it is followed"
    assert 0.5 < spent < 2, "a pulse, and the time for company"
    assert len(spool) == 3, "what has waited for company does not wait for it again"


def test_a_read_that_hangs_is_noticed_at_its_limit_however_long_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.collect.hands.GRACE_S", 0.3)
    free = threading.Event()
    these = Collector([Lines("acme", [source("lib")])], {ReaderKind.TOOL: Told({"lib": free})}, CLOCK, {})
    began = time.monotonic()
    found = these.step(20)
    spent = time.monotonic() - began
    free.set()

    assert [each.stuck for each in found] == [True]
    assert 1.2 < spent < 3, "a deadline of one second, and the grace"


@contextmanager
def courier(delivery: Delivery, noted: Callable[[], float]) -> Iterator[None]:
    """Delivery in its thread."""
    stop = threading.Event()
    thread = threading.Thread(target=deliver, args=(delivery, CLOCK, stop, noted))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        delivery.wake()
        spent = took(lambda: thread.join(5))
        assert not thread.is_alive()
        assert spent < 1


def to(spool: Spool, server: Server) -> Delivery:
    return Delivery(spool, server, CLOCK, boot_id="", spread=lambda: 0.0, renew=lambda: None)


def test_delivery_sleeps_until_there_is_a_report(tmp_path: Path) -> None:
    spool, server = Spool(tmp_path), Server()
    looks: list[float] = []

    def noted() -> float:
        looks.append(time.monotonic())
        return float("inf")

    with courier(to(spool, server), noted):
        time.sleep(1)
        assert len(looks) == 1
        spool.add(report(Hands(wall=time.time()), 1))
        end = time.monotonic() + 2
        while len(spool) and time.monotonic() < end:
            time.sleep(0.01)
        added = len(server.bodies)
        time.sleep(0.5)

    assert added == 1
    assert len(looks) <= 5


def test_delivery_comes_back_for_the_note_also_while_it_waits_for_the_server(tmp_path: Path) -> None:
    for answers in ([], [Posted(Fate.LATER, "away", wait=60)]):
        spool = Spool(tmp_path / str(len(answers)))
        looks: list[float] = []
        if answers:
            spool.add(report(Hands(wall=time.time()), 1))

        def noted(looks: list[float] = looks) -> float:
            looks.append(time.monotonic())
            return 0.1

        with courier(to(spool, Server(*answers)), noted):
            time.sleep(1)
        assert 4 <= len(looks) <= 14


def test_a_note_says_when_to_come_again(tmp_path: Path) -> None:
    hands = Hands()
    spool = Spool(tmp_path / "spool")
    delivery = Delivery(spool, Server(), hands.clock(), boot_id="", spread=lambda: 0.0, renew=lambda: None)
    noted = Noted(tmp_path / FILE, hands.clock())

    assert noted.note(delivery, spool) == float("inf"), "all is said, and nothing can change by itself"
    spool.add(report(hands, 1))
    assert noted.note(delivery, spool) == EVERY_S, "not yet said"
    hands.pass_(EVERY_S / 2)
    assert noted.note(delivery, spool) == EVERY_S / 2
    hands.pass_(EVERY_S / 2)
    assert noted.note(delivery, spool) == EVERY_S, "said; while something waits it may change"
    delivery.step()
    hands.pass_(EVERY_S - 0.2)
    assert noted.note(delivery, spool) == float("inf"), "a note that is nearly due goes along"
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    spool.add(report(hands, 2))
    hands.pass_(EVERY_S)
    assert noted.note(delivery, spool) == EVERY_S, "it could not be written: again"
    assert not list(tmp_path.glob("*.part"))


def test_the_watchdog_is_answered_in_time() -> None:
    hands = Hands()
    notify = Notify({"WATCHDOG_USEC": "10000000"}, hands.clock().mono)
    assert notify.alive() == 5
    hands.pass_(2)
    assert notify.alive() == 3
    hands.pass_(3)
    assert notify.alive() == 5
    assert Notify({}, hands.clock().mono).alive() == float("inf")
