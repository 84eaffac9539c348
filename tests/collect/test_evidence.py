# SPDX-License-Identifier: Apache-2.0
"""What is sent as evidence, and that no process name leaves the node."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collect.world import source

import muster.collect.evidence
from muster.collect.evidence import PER_CAPTURE, Evidence, facts, to_capture_doc
from muster.collect.privacy import process_names, redacted, unspoken, without_names
from muster.collect.ring import Ring, Room
from muster.domain.model.attributes import Level
from muster.domain.model.names import names
from muster.domain.model.observation import Event, Interpretation, Observation, Subject
from muster.domain.model.reading import Known, Reading
from muster.domain.model.source import Capture, Outcome, SourceId
from muster.wire.mapping import Seeing, to_listing_doc
from muster.wire.report import CaptureDoc, ListingDoc


def capture(payload: bytes) -> Capture:
    return Capture(source=SourceId("a"), locator=("tool",), format="list", payload=payload)


def given(payload: bytes) -> Callable[[], list[Capture]]:
    return lambda: [capture(payload)]


def listing(**readings: Reading) -> ListingDoc:
    told = Observation(subject=Subject(level=Level.CARD, names=names(serial="77x1")), readings={key.replace("_", "."): r for key, r in readings.items()})
    return to_listing_doc(source("a"), Interpretation(outcome=Outcome.DEVICES, complete=True, observations=(told,)), Seeing(at=1.0))


def test_gauges_change_no_facts() -> None:
    one = facts(listing(power_draw=Known(5), memory_total=Known(1024)))

    assert facts(listing(power_draw=Known(9), memory_total=Known(1024))) == one
    assert facts(listing(power_draw=Known(5), memory_total=Known(2048))) != one
    assert facts(listing(power_draw=Known(5))) != one


def test_evidence_goes_with_changed_facts_only() -> None:
    evidence = Evidence()
    first, same, new = listing(memory_total=Known(1024)), listing(memory_total=Known(1024)), listing(memory_total=Known(2048))

    sent = evidence.attach(first, lambda: [capture(b"1024"), capture(b"")], 0)
    assert [each.payload for each in sent] == [b"1024"]
    assert first.capture == sent[0].digest == hashlib.sha256(b"1024").hexdigest()
    assert evidence.attach(same, lambda: [capture(b"1024 later")], 60) == []
    assert same.capture == first.capture
    assert [each.payload for each in evidence.attach(new, lambda: [capture(b"2048")], 120)] == [b"2048"]
    evidence.forget()
    assert len(evidence.attach(new, lambda: [capture(b"2048")], 180)) == 1


def test_a_listing_without_a_subject_has_no_evidence() -> None:
    empty = to_listing_doc(source("a"), Interpretation(outcome=Outcome.UNREADABLE), Seeing(at=1.0))

    assert Evidence().attach(empty, lambda: [capture(b"x")], 0) == []


def test_evidence_keeps_to_its_hour() -> None:
    evidence = Evidence(per_hour=10)

    assert evidence.attach(listing(memory_total=Known(1024)), lambda: [capture(b"12345678")], 0)
    assert not evidence.attach(listing(memory_total=Known(2048)), lambda: [capture(b"12345678")], 60)
    assert evidence.attach(listing(memory_total=Known(4096)), lambda: [capture(b"12345678")], 3700)


def test_equal_lanes_need_no_second_look() -> None:
    evidence = Evidence()
    doc = listing(memory_total=Known(1024))
    evidence.attach(doc, lambda: [capture(b"1024")], 0, lane=b"facts")

    def never() -> list[Capture]:
        raise AssertionError("asked for captures")

    again = listing(memory_total=Known(1024))
    assert evidence.attach(again, never, 10, lane=b"facts") == []
    assert evidence.attach(listing(memory_total=Known(1024), power_draw=Known(3)), never, 10, lane=b"other") == []
    assert again.capture == doc.capture


def test_what_happened_has_evidence_though_no_fact_changed() -> None:
    evidence = Evidence()
    empty = to_listing_doc(source("a"), Interpretation(outcome=Outcome.NO_DEVICES), Seeing(at=1.0))
    sent = evidence.attach(empty, lambda: [capture(b"it fell")], 0, happened=True)

    assert [each.payload for each in sent] == [b"it fell"]
    assert empty.capture == sent[0].digest
    assert evidence.ring.get(empty.capture) == sent[0]


def test_evidence_over_budget_stays_here_and_is_named() -> None:
    evidence = Evidence(per_hour=3)
    doc = listing(memory_total=Known(1024))

    assert evidence.attach(doc, lambda: [capture(b"12345")], 0) == []
    assert evidence.ring.get(doc.capture) is not None


def test_what_is_asked_for_over_the_budget_comes_in_the_next_hour() -> None:
    evidence = Evidence(per_hour=10)
    assert evidence.attach(listing(memory_total=Known(1024)), lambda: [capture(b"12345678")], 0)
    owed = [listing(memory_total=Known(2048 + n)) for n in range(2)]
    for each, payload in zip(owed, (b"abcdefgh", b"ABCDEFGH"), strict=True):
        assert evidence.attach(each, given(payload), 60) == []

    assert not evidence.owes(4000), "nobody asked"
    assert evidence.wanted([each.capture for each in owed] + ["gone"], 61) == []
    assert not evidence.owes(3599)
    assert evidence.owes(3600)
    assert [each.payload for each in evidence.wanted([], 3600)] == [b"abcdefgh"]
    assert not evidence.owes(3601)
    assert [each.payload for each in evidence.wanted([], 7200)] == [b"ABCDEFGH"]
    assert not evidence.owes(20_000), "all that was owed came, each once"


def test_what_is_owed_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(muster.collect.evidence, "OWED", 1)
    evidence = Evidence(per_hour=8)
    assert evidence.attach(listing(memory_total=Known(1024)), given(b"12345678"), 0)
    owed = [listing(memory_total=Known(2048 + n)) for n in range(3)]
    for each, payload in zip(owed, (b"abcdefgh", b"ABCDEFGH", b"stuvwxyz"), strict=True):
        assert evidence.attach(each, given(payload), 60) == []
    assert evidence.wanted([each.capture for each in owed], 61) == []
    assert [each.payload for each in evidence.wanted([], 3600)] == [b"abcdefgh"]
    assert not evidence.owes(20_000)


def test_what_is_neither_sent_nor_kept_is_not_named(tmp_path: Path) -> None:
    evidence = Evidence(Ring(room=Room(per_source=100)), per_hour=2000)
    large = [listing(memory_total=Known(n)) for n in range(2)]
    for each in large:
        sent = evidence.attach(each, lambda: [capture(os.urandom(1500))], 0)
        assert bool(sent) is bool(each.capture) is (each is large[0])

    ring = Ring(tmp_path / "ring")
    (tmp_path / "ring").rmdir()
    evidence = Evidence(ring, per_hour=0)
    unwritten = listing(memory_total=Known(5))
    assert evidence.attach(unwritten, lambda: [capture(b"x")], 0) == []
    assert unwritten.capture == "", "asked for in vain otherwise"


def test_a_large_capture_is_cut_and_says_so() -> None:
    doc: CaptureDoc = to_capture_doc(capture(b"x" * (PER_CAPTURE + 1)), 5.0)

    assert doc.cut
    assert len(doc.payload) == PER_CAPTURE
    assert doc.taken_at == 5.0


ROWS = [{"pid": 7, "name": "/opt/secret/train.py", "memory.used": 5, "command": "train --key x"}]
TOLD = Interpretation(
    outcome=Outcome.DEVICES,
    observations=(Observation(subject=Subject(level=Level.CARD), readings={"processes": Known(ROWS)}),),
    events=(Event(subject=Subject(level=Level.CARD), code="31", text="Xid (PCI:0000:1b:00): 31, pid=7, name=train.py, Ch 8"),),
)


def test_rows_and_events_lose_names() -> None:
    bare = without_names(TOLD)

    assert bare.observations[0].readings["processes"] == Known([{"pid": 7, "memory.used": 5}])
    assert bare.events[0].text == "Xid (PCI:0000:1b:00): 31, pid=7, name=[withheld], Ch 8"
    assert process_names(TOLD) == {"/opt/secret/train.py"}


def test_log_lines_lose_names() -> None:
    assert unspoken("task python3:812 blocked for more than 120 seconds") == "task [withheld]:812 blocked for more than 120 seconds"
    assert unspoken("CPU: 3 PID: 812 Comm: python3 Tainted: P") == "CPU: 3 PID: 812 Comm: [withheld] Tainted: P"
    assert unspoken("Process information: process python3 pid 8 thread cs0 pid 9") == "Process information: process [withheld] pid 8 thread [withheld] pid 9"
    assert unspoken("link down on port 3") == "link down on port 3"


def test_payloads_lose_names_and_keep_their_columns() -> None:
    xml = capture(b"<process_name>/opt/secret/train.py --key=5</process_name>\n| 7 | /opt/secret/train.py   | 5 |\n")
    found = redacted(xml, process_names(TOLD)).payload

    assert b"secret" not in found
    assert len(found) == len(xml.payload)
    assert redacted(capture(b'{"name": "a\\"b"}'), ['a"b']).payload == b'{"name": "****"}'
    assert redacted(capture(b"ab abc"), ["ab"]).payload == b"ab abc"
