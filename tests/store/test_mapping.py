# SPDX-License-Identifier: Apache-2.0
"""Whatever a record holds, it comes back equal, and its essence knows news from noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.model.attributes import ATTRIBUTES, Level
from muster.domain.model.observation import Role
from muster.domain.model.reading import Why
from muster.domain.model.roll import CardRecord, Claim, NodeRecord, PartRecord, Presence, Rung, SourceRecord, Voice, Word
from muster.domain.model.source import Channel, Outcome, WitnessClass
from muster.store import essence, mapping

TIMES = st.floats(0, 4e9, allow_nan=False)
MAYBE = st.none() | TIMES
TEXT = st.text(max_size=12)
IDS = st.dictionaries(TEXT, st.lists(TEXT, max_size=3).map(tuple), max_size=3)
PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6)
KEYS = st.sampled_from(sorted(ATTRIBUTES)) | TEXT
WORDS = st.builds(Word, value=VALUES, at=MAYBE, why=st.none() | st.sampled_from(Why), why_at=MAYBE, detail=TEXT, capture=TEXT)
CHANNELS, CLASSES = st.sampled_from(Channel), st.sampled_from(WitnessClass)
VOICES = st.lists(
    st.builds(Voice, node=TEXT, source=TEXT, channel=CHANNELS, witness=CLASSES, promise=TIMES, words=st.dictionaries(KEYS, WORDS, max_size=4)), max_size=3
).map(tuple)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
CLAIMS = st.builds(
    Claim,
    node=TEXT,
    source=TEXT,
    channel=CHANNELS,
    ids=IDS,
    addresses=TEXTS,
    first_at=TIMES,
    at=TIMES,
    denied_at=MAYBE,
    confirmed_at=MAYBE,
    void=st.booleans(),
)
PARTS = st.lists(st.builds(PartRecord, id=TEXT, level=st.sampled_from(Level), ordinal=st.integers(0, 99), ids=IDS, under=TEXT, voices=VOICES), max_size=2)
CARDS = st.builds(
    CardRecord,
    id=TEXT,
    role=st.sampled_from(Role),
    created_at=TIMES,
    rung=st.sampled_from(Rung),
    presence=st.sampled_from(Presence),
    presence_at=TIMES,
    node=st.none() | TEXT,
    ids=IDS,
    former_ids=IDS,
    conflicts=TEXTS,
    claims=st.lists(CLAIMS, max_size=2).map(tuple),
    voices=VOICES,
    node_voices=VOICES,
    devices=PARTS.map(tuple),
    partitions=PARTS.map(tuple),
    increase=st.dictionaries(TEXT, TIMES, max_size=2),
    disagree=st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=2).map(tuple),
)
NODES = st.builds(NodeRecord, id=TEXT, name=TEXT, former_names=TEXTS, created_at=TIMES, last_at=TIMES, voices=VOICES)
SOURCES = st.builds(
    SourceRecord,
    node=TEXT,
    node_name=TEXT,
    source=TEXT,
    channel=CHANNELS,
    witness=CLASSES,
    cadence=TIMES,
    promise=TIMES,
    reporter=TEXT,
    first_at=TIMES,
    last_at=TIMES,
    listed_at=MAYBE,
    outcome=st.sampled_from(Outcome),
)


@given(CARDS)
def test_a_card_comes_back_equal(card: CardRecord) -> None:
    back = mapping.card(mapping.text(card))

    assert back == card
    assert essence.digest(back) == essence.digest(card)


@given(NODES, SOURCES)
def test_a_node_and_a_source_come_back_equal(node: NodeRecord, source: SourceRecord) -> None:
    assert mapping.node(mapping.text(node)) == node
    assert mapping.source(mapping.text(source)) == source


@given(WORDS)
def test_a_word_comes_back_equal(word: Word) -> None:
    assert mapping.word(mapping.said(word), word.at, word.why_at, word.capture) == word


@given(CARDS, TIMES, TIMES)
def test_no_time_of_a_past_card_is_later_than_asked(card: CardRecord, at: float, updated_at: float) -> None:
    then = essence.card_then(card, at, updated_at)

    times = [then.presence_at, *(t for c in then.claims for t in (c.first_at, c.at, c.denied_at, c.confirmed_at))]
    voices = [*then.voices, *then.node_voices, *(v for part in (*then.devices, *then.partitions) for v in part.voices)]
    times += [t for voice in voices for word in voice.words.values() for t in (word.at, word.why_at)]
    assert all(time <= at for time in times if time is not None)
    if updated_at <= at:
        assert essence.digest(then) == essence.digest(card)


def test_order_of_words_is_no_news() -> None:
    words = {"a": Word(value=1, at=1.0), "b": Word(value={"x": 1, "y": 2}, at=1.0)}
    other = {"b": Word(value={"y": 2, "x": 1}, at=2.0, capture="later"), "a": Word(value=1, at=2.0)}

    assert essence.digest(_card(words)) == essence.digest(_card(other))


@pytest.mark.parametrize(
    "news",
    [
        {"presence": Presence.MISSING},
        {"node": None},
        {"slot": "4"},
        {"address": "0000:02:00.0"},
        {"index": "7"},
        {"ids": {"serial": ("2",)}},
        {"former_ids": {"serial": ("2",)}},
        {"conflicts": ("x",)},
        {"aside": True},
        {"disagree": (("k", "a", "b"),)},
        {"place": "shelf"},
        {"rung": Rung.UUID},
        {"role": Role.DISPLAY},
        {"node_voices": (Voice(node="", source="operator", channel=Channel.OPERATOR, witness=WitnessClass.OPERATOR, promise=1.0, words={}),)},
        {"partitions": (PartRecord(id="p", level=Level.PARTITION, ordinal=0, ids={}),)},
    ],
)
def test_what_is_news(news: dict[str, Any]) -> None:
    before = _card({"a": Word(value=1, at=1.0)})

    assert essence.digest(replace(before, **news)) != essence.digest(before)


def test_captures_are_found_wherever_a_word_stands() -> None:
    one, two = Word(value=1, at=1.0, capture="b"), Word(value=1, at=1.0, capture="a")
    card = _card({"x": one, "y": two, "z": Word(value=1, at=1.0)})
    part = PartRecord(id="d", level=Level.DEVICE, ordinal=0, ids={}, voices=(_voice({"x": replace(one, capture="c")}),))

    assert essence.captures(replace(card, devices=(part,))) == ["a", "b", "c"]


def test_a_value_that_has_no_form_is_named() -> None:
    with pytest.raises(TypeError, match="no form in the store for object"):
        mapping.text({"x": object()})


def _voice(words: dict[str, Word]) -> Voice:
    return Voice(node="n", source="s", channel=Channel.IN_BAND, witness=WitnessClass.DRIVER, promise=90.0, words=words)


def _card(words: dict[str, Word]) -> CardRecord:
    return CardRecord(
        id="c",
        role=Role.ACCELERATOR,
        created_at=1.0,
        rung=Rung.NODE_INDEX,
        presence=Presence.PRESENT,
        presence_at=1.0,
        node="n",
        voices=(_voice(words),),
    )
