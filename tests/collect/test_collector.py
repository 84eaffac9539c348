# SPDX-License-Identifier: Apache-2.0
"""Rounds of collection with made-up adapters and readers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

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
