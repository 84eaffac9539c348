# SPDX-License-Identifier: Apache-2.0
"""Rounds of collection with made-up adapters and readers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest
from tests.collect.world import Hands, Lines, Told, source

from muster.collect.clock import Clock
from muster.collect.collector import Collector, Round
from muster.domain.model.source import Outcome, ReaderKind


def collector(adapters: Sequence[Lines], reader: Told, clock: Clock | None = None) -> Collector:
    return Collector(adapters, {ReaderKind.TOOL: reader}, clock or Clock(time.monotonic, time.monotonic), {"known_vendors": "0001"})


def by_source(rounds: Sequence[Round]) -> dict[str, Round]:
    return {str(each.source.id): each for each in rounds}


def test_every_source_once_and_who_stands_by() -> None:
    acme = Lines("acme", [source("a.lib"), source("a.tool", after="a.lib"), source("b.lib"), source("b.tool", after="b.lib")])
    reader = Told({"a.lib": b"one power.draw=5", "b.tool": b"two"})
    rounds = by_source(list(collector([acme], reader).once()))

    assert rounds["a.lib"].told.outcome is Outcome.DEVICES
    assert rounds["a.tool"].standing_by
    assert rounds["b.lib"].told.outcome is Outcome.TOOL_MISSING
    assert rounds["b.tool"].told.outcome is Outcome.DEVICES
    assert "a.tool" not in reader.reads


def test_an_adapter_that_raises_is_unreadable_and_the_others_go_on() -> None:
    reader = Told({"bad": b"boom", "good": b"one", "worse": RuntimeError("no")})
    adapters = [Lines("x", [source("bad", "x")]), Lines("y", [source("good", "y")]), Lines("z", [source("worse", "z")])]
    rounds = by_source(list(collector(adapters, reader).once()))

    assert rounds["bad"].told.outcome is Outcome.UNREADABLE
    assert "ZeroDivisionError" in rounds["bad"].told.detail
    assert "RuntimeError" in rounds["worse"].told.detail
    assert rounds["good"].told.outcome is Outcome.DEVICES


def test_a_read_that_hangs_is_stuck_and_nothing_is_started_beside_it() -> None:
    hands = Hands()
    free = threading.Event()
    reader = Told({"hangs": free, "fine": b"one", "other": b"two"})
    adapters = [Lines("x", [source("hangs", "x"), source("other", "x", cadence=5)]), Lines("y", [source("fine", "y")])]
    these = collector(adapters, reader, hands.clock())

    assert [str(each.source.id) for each in rounds_until(these, 1)] == ["fine"]
    hands.pass_(8)
    found = by_source(rounds_until(these, 2))
    assert found["hangs"].stuck
    assert found["hangs"].told.outcome is Outcome.TIMED_OUT
    assert found["other"].stuck
    assert found["other"].told.detail.startswith("not read: ")
    hands.pass_(60)
    assert set(by_source(rounds_until(these, 3))) == {"hangs", "other", "fine"}
    assert reader.reads.count("hangs") == 1
    assert "other" not in reader.reads

    reader.by["hangs"] = b"back"
    free.set()
    assert rounds_until(these, 1) == []
    hands.pass_(60)
    found = by_source(rounds_until(these, 3))
    assert found["hangs"].told.outcome is Outcome.DEVICES
    assert found["other"].told.outcome is Outcome.DEVICES


def rounds_until(these: Collector, count: int) -> list[Round]:
    """Steps until so many rounds were told, a second at most."""
    found: list[Round] = []
    until = time.monotonic() + 1
    while len(found) < count and time.monotonic() < until:
        found += these.step(0.02)
    return found


def test_no_worker_is_kept_for_a_library_that_is_not_there() -> None:
    gone: list[str] = []
    adapters = [Lines("x", [source("x.lib", "x", reader=ReaderKind.LIBRARY)]), Lines("y", [source("y.lib", "y", reader=ReaderKind.LIBRARY)])]
    reader = Told({"y.lib": b"one"})
    clock = Clock(time.monotonic, time.monotonic)
    list(Collector(adapters, {ReaderKind.LIBRARY: reader}, clock, {}, let_go=gone.append).once())

    assert gone == ["x"]


def test_a_shared_format_goes_to_all_who_claim_it() -> None:
    log = Lines("kernel", [source("log", "kernel", form="log")], formats=("log",))
    reader = Told({"log": b"[   12.345678] !acme fell over\n"})
    adapters = [log, Lines("acme", formats=("log",)), Lines("other", formats=("log",))]
    (found,) = collector(adapters, reader).once()

    assert [(each.adapter, each.own) for each in found.routed] == [("kernel", True), ("acme", False)]


def test_adapters_get_the_known_vendors() -> None:
    seen: list[str] = []

    class Looks(Lines):
        def interpret(self, captures):  # type: ignore[no-untyped-def]  # the test looks in and hands on
            seen.extend(each.context["known_vendors"] for each in captures)
            return super().interpret(captures)

    list(collector([Looks("acme", [source("a")])], Told({"a": b"one"})).once())

    assert seen == ["0001"]


def test_vendors_that_are_not_here() -> None:
    bus = Lines("bus", [source("pci", "bus")])
    here = Lines("here", [source("h", "here")], vendors=("aaaa",))
    gone = Lines("gone", [source("g", "gone")], vendors=("bbbb",))
    these = collector([here, gone, bus], Told({"pci": b"one pci.vendor_id=aaaa"}))
    rounds = by_source(list(these.once()))

    assert these.presence.counts(rounds["h"].source, rounds["h"].told)
    assert not these.presence.counts(rounds["g"].source, rounds["g"].told)
    assert these.presence.idle == {"gone"}
    assert these.presence.has("bus")


def test_without_a_bus_only_failures_that_say_something_count() -> None:
    these = collector([Lines("x", [source("x", "x"), source("y", "x")], vendors=("aaaa",))], Told({"y": Outcome.DRIVER_UNUSABLE}))
    rounds = by_source(list(these.once()))

    assert these.presence.has("x") is None
    assert not these.presence.counts(rounds["x"].source, rounds["x"].told)
    assert these.presence.counts(rounds["y"].source, rounds["y"].told)


CHAIN = [source("lib"), source("tool", after="lib", cadence=30), source("files", after="tool", cadence=30)]


def told(rounds: Sequence[Round], name: str) -> list[tuple[Outcome, bool, str]]:
    return [(each.told.outcome, each.standing_by, each.told.detail) for each in rounds if each.source.id == name]


def test_a_leader_that_is_not_there_is_absent_once_another_speaks_in_its_place() -> None:
    reader = Told({"files": b"one"})
    rounds = list(collector([Lines("acme", CHAIN)], reader).once())

    assert told(rounds, "lib") == [(Outcome.TOOL_MISSING, False, "told to"), (Outcome.TOOL_MISSING, True, "absent, files speaks in its place: told to")]
    assert told(rounds, "tool")[-1] == (Outcome.TOOL_MISSING, True, "absent, files speaks in its place: told to")
    assert told(rounds, "files") == [(Outcome.DEVICES, False, "")]


def until_told(these: Collector, name: str, *, standing_by: bool) -> Round:
    """The next round of a source that is told so."""
    until = time.monotonic() + 3
    while time.monotonic() < until:
        for each in these.step(0.02):
            if each.source.id == name and each.standing_by is standing_by:
                return each
    raise AssertionError(f"{name} was not told")


def test_a_leader_that_is_not_there_has_failed_where_nobody_speaks_in_its_place() -> None:
    reader = Told({"tool": Outcome.NOT_PERMITTED, "files": b""})
    rounds = list(collector([Lines("acme", CHAIN)], reader).once())

    assert told(rounds, "lib") == [(Outcome.TOOL_MISSING, False, "told to")]
    assert told(rounds, "tool") == [(Outcome.NOT_PERMITTED, False, "told to")]


def test_who_is_absent_is_told_again_when_it_turns_and_not_otherwise() -> None:
    hands = Hands()
    reader = Told({"tool": b"one"})
    these = collector([Lines("acme", CHAIN)], reader, hands.clock())
    rounds_until(these, 4)
    hands.pass_(30)
    assert told(rounds_until(these, 2), "lib") == []
    hands.pass_(30)
    assert told(rounds_until(these, 2), "lib") == [(Outcome.TOOL_MISSING, True, "absent, tool speaks in its place: told to")]

    reader.by["tool"] = Outcome.TIMED_OUT
    hands.pass_(31)
    assert until_told(these, "lib", standing_by=False).mono == hands.mono
    reader.by["tool"] = b"one"
    hands.pass_(31)
    assert until_told(these, "lib", standing_by=True).mono == hands.mono
    rounds_until(these, 9)
    these.forget()
    assert until_told(these, "lib", standing_by=True).mono == hands.mono


def test_a_library_that_was_there_once_is_never_merely_absent() -> None:
    hands = Hands()
    reader = Told({"lib": b"one"})
    these = collector([Lines("acme", CHAIN)], reader, hands.clock())
    rounds_until(these, 2)
    reader.by = {"tool": b"one"}
    hands.pass_(61)
    assert told(rounds_until(these, 3), "lib") == [(Outcome.TOOL_MISSING, False, "told to")]
    hands.pass_(61)
    assert told(rounds_until(these, 3), "lib") == [(Outcome.TOOL_MISSING, False, "told to")]


def test_a_step_that_was_woken_before_does_not_wait() -> None:
    these = collector([Lines("acme", [source("lib")])], Told({"lib": b"one"}), Hands().clock())
    rounds_until(these, 1)
    these.wake()
    began = time.monotonic()
    these.step(5)

    assert time.monotonic() - began < 1


def readers() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == "read"}


def test_one_thread_reads_on_and_none_is_left_behind() -> None:
    hands, before = Hands(), readers()
    these = collector([Lines("x", [source("one", "x")])], Told({"one": b"one"}), hands.clock())
    found = []
    for _ in range(4):
        rounds_until(these, 1)
        found.append(readers() - before)
        hands.pass_(60)
    assert len(found[0]) == 1
    assert found == [found[0]] * 4

    sources = [Lines(name, [source(name, name)]) for name in ("a", "b", "c", "d")]
    list(collector(sources, Told(dict.fromkeys("abcd", b"one")), hands.clock()).once())
    end = time.monotonic() + 3
    while readers() - before != found[0] and time.monotonic() < end:
        time.sleep(0.01)
    assert readers() - before == found[0]


def test_a_thread_that_waited_long_ends_and_the_next_read_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.collect.hands.IDLE_S", 0.05)
    hands, before = Hands(), readers()
    these = collector([Lines("x", [source("one", "x")])], Told({"one": b"one"}), hands.clock())
    for _ in range(3):
        assert len(rounds_until(these, 1)) == 1
        end = time.monotonic() + 3
        while readers() - before and time.monotonic() < end:
            time.sleep(0.01)
        assert not readers() - before
        hands.pass_(60)
