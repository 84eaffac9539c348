# SPDX-License-Identifier: Apache-2.0
"""Records come back as they went in, and versions tell what was believed when."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.store.samples import card, node, source, voice

from muster.domain.model.errors import NotFound
from muster.domain.model.reading import Why
from muster.domain.model.roll import Claim, Presence, Word
from muster.domain.model.source import Channel
from muster.spi.store import Batch
from muster.store import Store


def test_records_come_back_as_they_went_in(store: Store) -> None:
    cards = [card("c2"), card("c1", created_at=50.0, ids=MappingProxyType({"serial": ("1", "2")}))]
    store.writer.commit(Batch(at=100.0, cards=cards, nodes=[node("n2"), node("n1")], sources=[source("b"), source("a", "other")]))

    assert store.reader.cards() == [replace(cards[1], ids={"serial": ("1", "2")}), cards[0]]
    assert store.reader.nodes() == [node("n2"), node("n1")]
    assert store.reader.sources() == [source("a", "other"), source("b")]


def test_only_the_cards_asked_for(store: Store) -> None:
    store.writer.commit(Batch(at=100.0, cards=[card(f"c{n}") for n in range(5)]))

    assert [c.id for c in store.reader.cards(ids=["c3", "c1", "no such"])] == ["c1", "c3"]
    assert store.reader.cards(ids=[]) == []
    assert [c.id for c in store.reader.cards(at=100.0, ids=["c4"])] == ["c4"]


def test_a_new_word_of_the_same_makes_no_version(store: Store) -> None:
    store.writer.commit(Batch(at=100.0, cards=[card("c1", at=100.0, capture="one")]))
    store.writer.commit(Batch(at=160.0, cards=[card("c1", at=160.0, capture="two")]))

    (now,) = store.reader.cards()
    assert now.voices[0].words["identity.product"].at == 160.0

    (then,) = store.reader.cards(at=130.0)
    assert then.voices[0].words["identity.product"].at == 130.0
    assert then.claims[0].at == 130.0


def test_what_was_believed_before_is_told_as_it_was(store: Store) -> None:
    store.writer.commit(Batch(at=100.0, cards=[card("c1", product="Anvil 40")]))
    store.writer.commit(Batch(at=200.0, cards=[card("c1", at=200.0, product="Anvil 80")]))
    store.writer.commit(Batch(at=300.0, cards=[card("c1", at=300.0, product="Anvil 80", presence=Presence.MISSING, presence_at=290.0)]))

    products = {at: [c.voices[0].words["identity.product"].value for c in store.reader.cards(at=at)] for at in (99.0, 100.0, 199.0, 200.0, 1e9)}
    assert products == {99.0: [], 100.0: ["Anvil 40"], 199.0: ["Anvil 40"], 200.0: ["Anvil 80"], 1e9: ["Anvil 80"]}
    assert [c.presence for at in (299.0, 300.0) for c in store.reader.cards(at=at)] == [Presence.PRESENT, Presence.MISSING]
    assert store.reader.cards(at=300.0) == store.reader.cards()


def test_two_beliefs_of_one_moment_leave_the_second(store: Store) -> None:
    store.writer.commit(Batch(at=100.0, cards=[card("c1", product="A")]))
    store.writer.commit(Batch(at=100.0, cards=[card("c1", product="B")]))
    store.writer.commit(Batch(at=100.0, cards=[card("c1", product="C"), card("c1", product="D")]))

    assert [c.voices[0].words["identity.product"].value for c in store.reader.cards(at=100.0)] == ["D"]


def test_a_clock_that_steps_back_loses_no_belief(store: Store) -> None:
    store.writer.commit(Batch(at=200.0, cards=[card("c1", product="A")]))
    store.writer.commit(Batch(at=150.0, cards=[card("c1", product="B")]))

    assert [c.voices[0].words["identity.product"].value for c in store.reader.cards(at=200.0)] == ["B"]
    assert store.reader.cards(at=199.0) == []


def test_a_number_that_moved_since_is_not_told_of_the_past(store: Store) -> None:
    before = card("c1", voices=(voice(100.0, temperature__core=40, ecc__enabled=True),), increase={"energy.total": 1.0})
    after = card("c1", voices=(voice(160.0, temperature__core=50, ecc__enabled=True),), increase={"energy.total": 9.0})
    store.writer.commit(Batch(at=100.0, cards=[before]))
    store.writer.commit(Batch(at=160.0, cards=[after]))

    (then,) = store.reader.cards(at=130.0)
    assert set(then.voices[0].words) == {"ecc.enabled"}
    assert then.increase == {}
    (now,) = store.reader.cards(at=160.0)
    assert now.voices[0].words["temperature.core"].value == 50
    assert now.increase == {"energy.total": 9.0}


def test_a_mode_that_changed_is_a_new_version(store: Store) -> None:
    for at, mode in ((100.0, True), (160.0, False)):
        store.writer.commit(Batch(at=at, cards=[card("c1", voices=(voice(at, ecc__enabled=mode),))]))

    assert [c.voices[0].words["ecc.enabled"].value for c in store.reader.cards(at=130.0)] == [True]


@pytest.mark.parametrize(
    "second",
    [
        Word(value="Anvil 40", at=100.0, why=Why.ERROR, why_at=160.0),
        Word(why=Why.NOT_SUPPORTED, why_at=160.0),
        Word(value="Anvil 40", at=160.0, detail="[x]"),
    ],
)
def test_an_absence_is_a_new_version(store: Store, second: Word) -> None:
    store.writer.commit(Batch(at=100.0, cards=[card("c1")]))
    store.writer.commit(Batch(at=160.0, cards=[card("c1", voices=(replace(voice(0.0), words={"identity.product": second}),))]))

    (then,) = store.reader.cards(at=130.0)
    assert then.voices == card("c1").voices


def test_a_denial_is_a_new_version_and_its_time_is_not(store: Store) -> None:
    def denied(at: float, denied_at: float | None) -> Batch:
        claim = Claim(node="n1", source="s", channel=Channel.IN_BAND, ids={}, at=at, denied_at=denied_at)
        return Batch(at=at, cards=[card("c1", claims=(claim,))])

    for batch in (denied(100.0, None), denied(160.0, 160.0), denied(220.0, 220.0)):
        store.writer.commit(batch)

    assert [c.claims[0].denied_at for at in (150.0, 200.0, 220.0) for c in store.reader.cards(at=at)] == [None, 200.0, 220.0]


def test_a_card_that_was_joined_is_found_by_its_old_id(store: Store) -> None:
    store.writer.commit(Batch(at=100.0, cards=[card("c1"), card("c2"), card("c3")]))
    store.writer.commit(Batch(at=200.0, cards=[card("c2", ids={"serial": ("9",)})], gone={"c1": "c2"}))
    store.writer.commit(Batch(at=300.0, gone={"c2": "c3"}))

    assert [store.reader.resolve(c) for c in ("c1", "c2", "c3")] == ["c3", "c3", "c3"]
    assert [c.id for c in store.reader.cards()] == ["c3"]
    assert [[c.id for c in store.reader.cards(at=at)] for at in (150.0, 250.0, 300.0)] == [["c1", "c2", "c3"], ["c2", "c3"], ["c3"]]
    assert store.writer.load().ids == {"c1": "c3", "c2": "c3"}
    with pytest.raises(NotFound, match="no card c4"):
        store.reader.resolve("c4")


def test_joins_of_one_batch_are_followed_to_their_end(store: Store) -> None:
    store.writer.commit(Batch(at=100.0, cards=[card("c1"), card("c2"), card("c3")]))
    store.writer.commit(Batch(at=200.0, gone={"c1": "c2", "c2": "c3"}))

    assert [store.reader.resolve(c) for c in ("c1", "c2")] == ["c3", "c3"]


def test_a_join_that_is_taken_back_gives_the_card_its_id_again(store: Store) -> None:
    store.writer.commit(Batch(at=100.0, cards=[card("c1"), card("c2")]))
    store.writer.commit(Batch(at=200.0, gone={"c1": "c2"}))
    store.writer.commit(Batch(at=300.0, cards=[card("c1")]))

    assert store.reader.resolve("c1") == "c1"
    assert store.writer.load().ids == {}
    assert [sorted(c.id for c in store.reader.cards(at=at)) for at in (100.0, 200.0, 300.0)] == [["c1", "c2"], ["c2"], ["c1", "c2"]]


def test_a_card_that_never_was_is_believed_no_more_and_nothing_stands_for_it(store: Store) -> None:
    store.writer.commit(Batch(at=100.0, cards=[card("c0"), card("c1"), card("c2")], gone={}))
    store.writer.commit(Batch(at=150.0, gone={"c0": "c1"}))
    store.writer.commit(Batch(at=200.0, vanished=["c1"]))

    assert [[c.id for c in store.reader.cards(at=at)] for at in (199.0, 200.0)] == [["c1", "c2"], ["c2"]]
    for card_id in ("c0", "c1"):
        with pytest.raises(NotFound):
            store.reader.resolve(card_id)


def test_nodes_have_versions_too(store: Store) -> None:
    store.writer.commit(Batch(at=100.0, nodes=[node(at=100.0)]))
    store.writer.commit(Batch(at=160.0, nodes=[node(at=160.0)]))
    store.writer.commit(Batch(at=220.0, nodes=[node(at=220.0, name="renamed", former_names=("host-n1",))]))

    assert [(n.name, n.last_at) for at in (130.0, 219.0, 220.0) for n in store.reader.nodes(at=at)] == [
        ("host-n1", 130.0),
        ("host-n1", 160.0),
        ("renamed", 220.0),
    ]


def test_a_source_is_replaced_and_removed(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, sources=[source(), source(name="other")]))
    store.writer.commit(Batch(at=2.0, sources=[source(silent=True)], sources_gone=[("n1", "other")]))

    assert store.reader.sources() == [source(silent=True)]
