# SPDX-License-Identifier: Apache-2.0
"""What a listing says survives the way over the wire, and what no document can hold becomes something a document can."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.model.attributes import Level
from muster.domain.model.names import NameKind, name
from muster.domain.model.observation import Event, Interpretation, Observation, Role, Subject
from muster.domain.model.reading import Absent, Known, Why
from muster.domain.model.source import Outcome, ReaderKind, Source, SourceId
from muster.wire.mapping import Seeing, plain, to_event_docs, to_listing_doc, to_observations
from muster.wire.report import ListingDoc

SOURCE = Source(id=SourceId("acme.tool"), adapter="acme", reader=ReaderKind.TOOL, reads=(), cadence=timedelta(seconds=30))
SEEING = Seeing(at=1000.0, mono=50.0, boot_id="boot-1", capture="ab")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.one_of(texts, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
trees = st.recursive(values, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)), max_leaves=6)
readings = st.dictionaries(texts, st.one_of(trees.map(Known), st.builds(Absent, st.sampled_from(Why), texts)), max_size=4)
names = st.frozensets(st.builds(name, st.sampled_from(NameKind), texts), max_size=3)
subjects = st.builds(Subject, level=st.sampled_from(Level), names=names, parent=names, ordinal=st.integers(0, 99))
observations = st.builds(
    Observation, subject=subjects, readings=readings, vendor=st.dictionaries(texts, trees, max_size=3), role=st.sampled_from([None, *Role])
)


@given(st.lists(observations, max_size=3).map(tuple), st.sampled_from(Outcome), st.booleans())
def test_observations_come_back_as_they_were(told: tuple[Observation, ...], outcome: Outcome, complete: bool) -> None:
    """Through msgpack, as the server reads it."""
    doc = to_listing_doc(SOURCE, Interpretation(outcome=outcome, complete=complete, observations=told), SEEING)
    read = msgspec.msgpack.decode(msgspec.msgpack.encode(doc), type=ListingDoc)

    assert to_observations(read) == told
    assert (read.outcome, read.complete, read.source, read.cadence) == (outcome.value, complete, "acme.tool", 30.0)


def test_what_no_document_holds_is_told_otherwise() -> None:
    """Huge numbers are no values, sets are sorted lists, lone surrogates are spelt out."""
    odd = Observation(
        subject=Subject(level=Level.CARD),
        readings={"a": Known(2**70), "b": Known(float("nan")), "c": Known(frozenset({"y", "x"})), "d": Known((1, 2))},
        vendor={"text": "\udc80", "huge": 2**80, "when": datetime(2024, 1, 2, tzinfo=UTC), "raw": b"\xff"},
    )
    doc = to_listing_doc(SOURCE, Interpretation(outcome=Outcome.DEVICES, observations=(odd,)), SEEING)
    (back,) = to_observations(msgspec.json.decode(msgspec.json.encode(doc), type=ListingDoc))

    assert back.readings["a"] == Absent(Why.IMPLAUSIBLE, hex(2**70))
    assert back.readings["b"] == Absent(Why.IMPLAUSIBLE, "nan")
    assert back.readings["c"] == Known(["x", "y"])
    assert back.readings["d"] == Known([1, 2])
    assert back.vendor["text"] == "\\udc80"


def test_deep_values_end_as_text() -> None:
    """A vendor's nesting has an end."""
    deep: object = "leaf"
    for _ in range(500):
        deep = [deep]

    msgspec.json.encode(plain(deep))


def test_words_of_a_newer_version_are_passed_over() -> None:
    """A level, a kind of name and a role that this version does not know."""
    doc = msgspec.convert(
        {
            "source": "s",
            "channel": "in_band",
            "witness": "driver",
            "cadence": 1,
            "outcome": "devices",
            "complete": True,
            "observed_at": 1,
            "observations": [{"level": "rack"}, {"level": "card", "role": "oven", "ids": [["smell", "x"], ["serial", "7"]], "readings": {"k": {"a": "shy"}}}],
        },
        ListingDoc,
    )
    (card,) = to_observations(doc)

    assert {(n.kind, n.value) for n in card.subject.names} == {(NameKind.SERIAL, "7")}
    assert card.role is None
    assert card.readings == {"k": Absent(Why.UNREADABLE, "shy")}


def test_event_ids_are_stable_and_part_equal_lines() -> None:
    """Read again: the same ids. Two equal lines in one capture: two events."""
    line = Event(subject=Subject(level=Level.CARD), code="7", text="card fell over")
    dated = Event(subject=Subject(level=Level.CARD), code="7", text="card fell over", at=datetime(2024, 1, 2, tzinfo=UTC))

    def ids(position: str) -> list[str]:
        docs = to_event_docs([line, line, dated], source="log", adapter="acme", boot_id="b", place=lambda _: position, seen_at=5.0)
        return [doc.id for doc in docs]

    assert ids("p1") == ids("p1")
    assert len(set(ids("p1"))) == 3
    assert ids("p1")[0] != ids("p2")[0]
    assert ids("p1")[2] == ids("p2")[2]
