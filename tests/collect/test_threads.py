# SPDX-License-Identifier: Apache-2.0
"""No thread of the agent ends by what is raised in it; one that ended all the same ends the agent, which is started again then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.collect.test_delivery import Server, report
from tests.collect.test_follow import LOG, Stream
from tests.collect.test_waits import CLOCK, agent, took
from tests.collect.world import Hands, Lines, source

from muster.collect.agent import Agent, deliver, run
from muster.collect.collector import Collector
from muster.collect.delivery import TRIES, Delivery
from muster.collect.edge import Edge
from muster.collect.follow import Cursors, Follower
from muster.collect.post import Posted
from muster.collect.spool import Spool
from muster.domain.model.errors import MusterError
from muster.domain.model.source import Outcome, ReaderKind
from muster.wire.report import ReportDoc


class Breaks(Server):
    """Raises what it is given before it takes reports."""

    def __init__(self, *errors: BaseException) -> None:
        super().__init__()
        self.errors = list(errors)

    def __call__(self, report: ReportDoc) -> Posted:
        if self.errors:
            raise self.errors.pop(0)
        return super().__call__(report)


def to(spool: Spool, server: Server, well: Callable[[], bool] = lambda: False) -> Delivery:
    return Delivery(spool, server, CLOCK, boot_id="", spread=lambda: 0.0, renew=lambda: None, longest=0.05, well=well)


def until(done: Callable[[], object], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(done())


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), ValueError("\x1b[2J\nINFO forged"), KeyError("x"), AssertionError()])
def test_delivery_goes_on_after_whatever_is_raised(tmp_path: Path, error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    spool, server, stop = Spool(tmp_path), Breaks(error, error), threading.Event()
    delivery = to(spool, server)
    spool.add(report(Hands(wall=time.time()), 1))
    looks = iter([OSError("the disk"), OSError("the disk")])

    def noted() -> float:
        if (failed := next(looks, None)) is not None:
            raise failed
        return 0.05

    thread = threading.Thread(target=deliver, args=(delivery, CLOCK, stop, noted))
    thread.start()
    try:
        assert until(lambda: server.bodies)
        assert thread.is_alive()
        assert until(lambda: not delivery.trouble and not len(spool))
    finally:
        stop.set()
        delivery.wake()
        thread.join(5)
    told = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert any(text.startswith(f"reports wait: the agent failed on it: {type(error).__name__} (test_threads.py:") for text in told)
    assert all(text.isprintable() for text in told)


def test_a_report_on_which_the_agent_fails_does_not_hold_up_the_others(tmp_path: Path) -> None:
    spool, server, hands = Spool(tmp_path), Breaks(*[RecursionError()] * TRIES), Hands()
    delivery = Delivery(spool, server, hands.clock(), boot_id="", spread=lambda: 0.0, renew=lambda: None, well=lambda: True)
    for sequence in (1, 2):
        spool.add(report(hands, sequence))
    for _ in range(TRIES + 1):
        hands.pass_(100)
        delivery.step()

    assert [each.sequence for each in server.bodies] == [2]
    assert len(list(tmp_path.glob("*.aside"))) == 1


def test_what_ends_a_thread_on_purpose_passes() -> None:
    with pytest.raises(SystemExit), Edge():
        raise SystemExit
    with pytest.raises(KeyboardInterrupt), Edge():
        raise KeyboardInterrupt
    with Edge() as edge:
        pass
    assert edge.broke == ""


def at_last(made: Agent) -> threading.Event:
    """Set when it took too long, so that the agent ends as if all were well."""
    stop = threading.Event()

    def end() -> None:
        stop.set()
        made.wake()

    watch = threading.Timer(15, end)
    watch.daemon = True
    watch.start()
    return stop


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_agent_whose_delivery_ended_ends_with_an_error(tmp_path: Path) -> None:
    made, spool, _ = agent(tmp_path)
    delivery = to(spool, Breaks(SystemExit()))
    waiting = len(spool)

    def ends() -> None:
        with pytest.raises(MusterError, match="the thread deliver of the agent ended") as told:
            run(made, delivery, CLOCK, at_last(made), between=lambda: 30.0)
        assert told.value.hint

    assert took(ends) < 5, "it is noticed at once"
    assert len(spool) >= waiting, "what waits is kept"


def test_an_agent_whose_stream_thread_ended_ends_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, spool, follower = agent(tmp_path, Stream())
    assert follower is not None
    monkeypatch.setattr(follower, "_run", lambda *_: None)
    follower._threads = [threading.Thread(target=follower._run, name="follow-log")]

    with pytest.raises(MusterError, match="the thread follow-log of the agent ended"):
        run(made, to(spool, Server()), CLOCK, at_last(made), follower, between=lambda: 0.05)


def test_a_stream_whose_cursor_cannot_be_had_is_opened_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    cursors, asked = Cursors(None), iter([RecursionError("odd")])

    def get(_: object) -> None:
        if (failed := next(asked, None)) is not None:
            raise failed

    monkeypatch.setattr(cursors, "get", get)
    follower = Follower([LOG], Stream(log=[b"one"]), cursors, again=0.02)
    follower.start()
    try:
        assert until(lambda: follower.followed)
        assert follower.lost() == ""
    finally:
        follower.close()
    assert "is opened again after a while: RecursionError" in caplog.text


class Quits:
    """A reader that would end its thread."""

    def read(self, *_: object) -> Iterator[object]:
        raise SystemExit(3)


def test_a_reader_that_exits_is_told_as_one_that_failed() -> None:
    readers: dict[ReaderKind, Any] = {ReaderKind.TOOL: Quits()}
    collector = Collector([Lines("acme", [source("lib")])], readers, CLOCK, {})
    (found,) = collector.once()

    assert found.told.outcome is Outcome.UNREADABLE
    assert "SystemExit" in found.told.detail
