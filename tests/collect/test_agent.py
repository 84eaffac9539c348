# SPDX-License-Identifier: Apache-2.0
"""The agent as a whole, with made-up adapters, a spool on disk and a clock that is set by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.collect.test_follow import LOG, SPARE, Stream
from tests.collect.world import Hands, Lines, Told, source

from muster.collect.agent import BEAT_S, COMPANY_S, Agent
from muster.collect.collector import Collector
from muster.collect.evidence import Evidence
from muster.collect.follow import Cursors, Follower
from muster.collect.node import NodeAdapter
from muster.collect.pace import CLOSE_FACTOR
from muster.collect.reports import Identity, Reports
from muster.collect.spool import Spool
from muster.collect.tell import Teller
from muster.domain.model.source import Outcome, ReaderKind, Source, SourceId
from muster.spi.adapter import Adapter
from muster.spi.readers import Cursor
from muster.wire.lanes import older
from muster.wire.report import ListingDoc, NodeDoc, ReportDoc


class Made:
    """An agent and what it wrote."""

    def __init__(
        self,
        folder: Path,
        adapters: Sequence[Adapter],
        reader: Told,
        stream: Stream | None = None,
        streams: tuple[Source, ...] = (),
        evidence: Evidence | None = None,
    ) -> None:
        self.hands = Hands()
        clock = self.hands.clock()
        self.spool = Spool(folder / "spool")
        self.cursors = Cursors(folder / "cursors")
        readers = {ReaderKind.TOOL: reader, ReaderKind.FILES: reader}
        self.follower = Follower(streams, stream, self.cursors, again=0.02) if stream else None
        names = iter(f"i{n}" for n in range(9))
        self.agent = Agent(
            Collector(adapters, readers, clock, {}),
            Teller("boot", evidence or Evidence()),
            Reports(Identity(node=NodeDoc(name="n1")), clock, lambda: next(names)),
            self.spool,
            clock,
            follower=self.follower,
            cursors=self.cursors,
            streams=streams,
            weighed=lambda doc: doc,
        )
        if self.follower:
            self.follower.start()

    def wrote(self) -> list[ReportDoc]:
        """Reports since the last call."""
        found = []
        while (kept := self.spool.oldest(self.hands.wall)) is not None:
            self.spool.done(kept[0])
            found.append(kept[1])
        return found

    def until(self, done: Callable[[list[ReportDoc]], bool]) -> list[ReportDoc]:
        """Steps until what was written is enough, three seconds at most."""
        found: list[ReportDoc] = []
        end = time.monotonic() + 3
        while not done(found) and time.monotonic() < end:
            self.agent.step(0.01)
            found += self.wrote()
        return found


def listings(reports: Sequence[ReportDoc]) -> list[ListingDoc]:
    return [each for report in reports for each in older(report).listings]


def test_one_round_is_one_report(tmp_path: Path) -> None:
    acme = Lines("acme", [source("a"), source("b", after="a"), source("c")])
    made = Made(tmp_path, [acme], Told({"a": b"one memory.total=2048\n!acme fell", "c": b"two"}))
    made.agent.once()
    first, events = made.wrote()

    assert {(each.source, each.outcome, each.standing_by) for each in listings([first])} == {
        ("a", "devices", False),
        ("b", "no_devices", True),
        ("c", "devices", False),
    }
    assert [each.payload for each in first.captures] == [b"one memory.total=2048\n!acme fell", b"two"]
    assert listings([first])[0].capture == first.captures[0].digest
    assert [each.text for each in events.events] == ["!acme fell"]


def test_rounds_come_again_at_their_cadence_and_evidence_does_not(tmp_path: Path) -> None:
    made = Made(tmp_path, [Lines("acme", [source("a", cadence=60)])], Told({"a": b"one memory.total=2048 power.draw=5"}))
    first = made.until(lambda found: bool(found))
    assert not made.until(lambda found: True)
    made.hands.pass_(60)
    second = made.until(lambda found: bool(found))

    assert [len(each.captures) for each in (*first, *second)] == [1, 0]
    assert listings(second)[0].capture == listings(first)[0].capture
    assert listings(second)[0].observed_at - listings(first)[0].observed_at == 60
    assert [each.sequence for each in (*first, *second)] == [1, 2]


def test_a_new_incarnation_says_all_anew(tmp_path: Path) -> None:
    acme = Lines("acme", [source("a"), source("b", after="a")])
    made = Made(tmp_path, [acme], Told({"a": b"one memory.total=2048"}))
    made.until(lambda found: len(listings(found)) == 2)
    made.agent.renew()
    made.hands.pass_(60)
    found = made.until(lambda found: len(listings(found)) == 2)

    assert {(each.incarnation) for each in found} == {"i1"}
    assert any(each.standing_by for each in listings(found))
    assert any(each.captures for each in found)


def test_vendors_that_are_not_here_are_not_reported(tmp_path: Path) -> None:
    bus, gone = Lines("bus", [source("pci", "bus")]), Lines("gone", [source("g", "gone")], vendors=("bbbb",))
    made = Made(tmp_path, [bus, gone], Told({"pci": b"one pci.vendor_id=aaaa"}))
    made.agent.once()

    assert [each.source for each in listings(made.wrote())] == ["pci"]


def test_a_node_that_is_renamed(tmp_path: Path) -> None:
    reader = Told({"node.files": b"/proc/sys/kernel/hostname: n2\n"})
    made = Made(tmp_path, [NodeAdapter()], reader)
    made.agent.once()

    assert [(each.reporter, each.node.name) for each in made.wrote()] == [("agent@n2", "n2")]


LOG_ADAPTER = Lines("acme", [], formats=("log",))


def test_streams_are_told_as_they_come_and_their_cursors_follow(tmp_path: Path) -> None:
    stream = Stream(log=[b"[   11.111111] !acme one", b"[   22.222222] !acme one"])
    made = Made(tmp_path, [LOG_ADAPTER], Told(), stream, (LOG, SPARE))
    found = made.until(lambda found: sum(len(each.events) for each in found) == 2 and any(each.standing_by for each in listings(found)))
    stream.closed.set()

    events = [each for report in found for each in report.events]
    assert len({each.id for each in events}) == 2
    assert [each.source for each in listings(found) if each.standing_by] == ["spare"]
    assert Cursors(tmp_path / "cursors").get(SourceId("log")) == Cursor("2")


def test_a_quiet_stream_is_followed_still(tmp_path: Path) -> None:
    stream = Stream(log=[])
    made = Made(tmp_path, [LOG_ADAPTER], Told(), stream, (LOG,))
    found = made.until(lambda found: bool(found))
    made.hands.pass_(max(BEAT_S, 60))
    made.agent.step(0.01)
    assert not made.wrote(), "it waits for company"
    made.hands.pass_(COMPANY_S)
    found += made.until(lambda found: bool(found))
    stream.closed.set()

    assert [(each.source, each.outcome, each.complete) for each in listings(found)] == [("log", "no_devices", False)] * 2


def test_a_stream_that_cannot_be_opened_says_so_each_time(tmp_path: Path) -> None:
    made = Made(tmp_path, [LOG_ADAPTER], Told(), Stream(log=Outcome.NOT_PERMITTED), (LOG,))
    found = made.until(lambda found: len(listings(found)) >= 3)

    assert {each.outcome for each in listings(found)} == {"not_permitted"}


def test_the_same_line_read_again_is_the_same_event(tmp_path: Path) -> None:
    def ids(folder: str, *lines: bytes) -> list[str]:
        stream = Stream(log=list(lines))
        made = Made(tmp_path / folder, [LOG_ADAPTER], Told(), stream, (LOG,))
        found = made.until(lambda found: sum(len(each.events) for each in found) == 2)
        stream.closed.set()
        return [each.id for report in found for each in report.events]

    together = ids("one", b"[   11.111111] !acme one\n[   22.222222] !acme one")
    assert len(set(together)) == 2
    assert ids("two", b"[   11.111111] !acme one\n[   22.222222] !acme one") == together
    assert ids("three", b"[   11.111111] !acme one", b"[   22.222222] !acme one") == together


def test_the_agent_speaks_of_itself_once_a_minute(tmp_path: Path) -> None:
    made = Made(tmp_path, [Lines("acme", [source("a", cadence=10)])], Told({"a": b"one memory.total=2048"}))
    words = []
    for _ in range(13):
        words += [each.agent for each in made.until(lambda found: bool(found)) if each.agent is not None]
        made.hands.pass_(10)

    assert len(words) == 3
    assert words[-1].costs == {"a": 0.0}
    assert words[-1].workers == {}
    assert (words[-1].spool_reports, words[-1].dropped) == (0, 0)


def test_captures_that_the_server_wants_come_out_of_the_ring(tmp_path: Path) -> None:
    made = Made(tmp_path, [Lines("acme", [source("a", cadence=60)])], Told({"a": b"one memory.total=2048"}))
    first = made.until(lambda found: bool(found))
    made.agent.wanted([first[0].captures[0].digest, "unknown"])
    found = made.until(lambda found: bool(found))

    assert [(len(each.heard), [capture.payload for capture in each.captures]) for each in found] == [(0, [b"one memory.total=2048"])]


def test_a_capture_that_this_hour_does_not_allow_comes_in_the_next(tmp_path: Path) -> None:
    evidence = Evidence(per_hour=25)
    made = Made(tmp_path, [Lines("acme", [source("a", cadence=7000)])], Told({"a": b"one memory.total=2048"}), evidence=evidence)
    (first,) = made.until(lambda found: bool(found))
    (capture,) = first.captures
    made.agent.wanted([capture.digest])
    made.agent.step(0.01)
    assert not [each for each in made.wrote() if each.captures]

    made.hands.pass_(3700)
    found = made.until(lambda found: any(each.captures for each in found))
    assert [each.payload for report in found for each in report.captures] == [b"one memory.total=2048"]


def test_an_event_has_its_capture_and_makes_it_look_closer(tmp_path: Path) -> None:
    stream = Stream(log=[b"[   11.111111] !acme fell, name=train.py, token=CANARY4711"])
    acme = Lines("acme", [source("a", cadence=60)], formats=("log",))
    reader = Told({"a": b"one power.draw=5"})
    made = Made(tmp_path, [acme], reader, stream, (LOG,))
    found = made.until(lambda found: any(each.events for each in found) and bool(reader.reads))
    found += made.until(lambda _: len(made.spool) == 0)
    stream.closed.set()
    log = [capture for each in found for capture in each.captures if capture.source == "log"]

    assert len(log) == 1
    assert b"fell" in log[0].payload
    assert b"CANARY" not in log[0].payload
    assert b"train.py" not in log[0].payload
    assert all("CANARY" not in event.text and "train.py" not in event.text for each in found for event in each.events)
    made.hands.pass_(60 / CLOSE_FACTOR)
    made.agent.step(0.5)
    assert reader.reads == ["a", "a"]
