# SPDX-License-Identifier: Apache-2.0
"""Captures are kept packed, within a budget, and those that something rests on stay longest."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from tests.store.samples import capture, card, finding, node, sample, voice

from muster.domain.model.errors import NotFound
from muster.domain.model.roll import Word
from muster.spi.store import Batch, CaptureRow
from muster.store import Store, open_store


def kept(store: Store, *digests: str) -> set[str]:
    found = set()
    for digest in digests:
        try:
            found.add(store.reader.capture(digest).digest)
        except NotFound:
            continue
    return found


def test_a_capture_comes_back_byte_for_byte(store: Store) -> None:
    one = capture("d1", 5.0, os.urandom(1000), exit_status=None, cut=True, locator=("a", "b c"))
    store.writer.commit(Batch(at=10.0, captures=[one, capture("d2", 6.0, b"")]))
    store.writer.commit(Batch(at=20.0, captures=[capture("d1", 7.0, b"other")]))

    assert store.reader.capture("d1") == one
    assert store.reader.capture("d2").payload == b""
    with pytest.raises(NotFound, match="no capture d3"):
        store.reader.capture("d3")


def test_what_is_kept_already_or_would_not_be_is_not_asked_for(store: Store) -> None:
    store.writer.commit(Batch(at=10.0, captures=[capture("d1", 5.0)]))
    assert store.writer.lacking(["d1", "d2", "d3"]) == ["d2", "d3"]
    none = open_store(None, capture_budget=0)
    none.writer.commit(Batch(at=10.0, captures=[capture("d1", 5.0)]))
    assert kept(none, "d1") == set()
    assert none.writer.lacking(["d1", "d2"]) == []
    none.close()


def test_over_the_budget_the_oldest_that_nothing_rests_on_go_first() -> None:
    store = open_store(None, capture_budget=6000)
    bulk = {name: capture(name, at, os.urandom(1000)) for at, name in enumerate(["word", "gauge", "node", "finding", "old", "new"])}
    store.writer.commit(
        Batch(
            at=10.0,
            cards=[card("c1", capture="word")],
            nodes=[node(voices=(voice(1.0, "node", node__os="linux"),))],
            samples=[sample(1, 1.0, said=Word(value=1, at=1.0, capture="gauge"))],
            findings=[finding("f", 1.0, evidence={"captures": ["finding"]})],
            captures=[*bulk.values()],
        )
    )

    assert kept(store, *bulk) == {"word", "gauge", "node", "finding", "new"}

    store.writer.commit(Batch(at=20.0, captures=[capture("newer", 9.0, os.urandom(1900))]))
    assert kept(store, *bulk, "newer") == {"word", "gauge", "node", "finding"}
    store.close()


def test_a_budget_holds_even_against_what_is_rested_on() -> None:
    store = open_store(None, capture_budget=2500)
    store.writer.commit(
        Batch(at=9.0, cards=[card(n, capture=n) for n in "abc"], captures=[capture(n, float(at), os.urandom(1000)) for at, n in enumerate("abc")])
    )

    assert kept(store, *"abc") == {"b", "c"}
    store.close()


def test_trimming_keeps_what_is_rested_on() -> None:
    store = open_store(None)
    store.writer.commit(Batch(at=1.0, cards=[card("c1", capture="a")], captures=[capture("a", 1.0), capture("b", 1.0)]))

    assert store.writer.trim(100.0, {"captures": 10.0}) == 1
    assert kept(store, "a", "b") == {"a"}
    store.close()


def test_one_node_does_not_push_out_what_is_of_others() -> None:
    store = open_store(None, capture_budget=10_000)
    store.writer.commit(Batch(at=1.0, cards=[card("c1", capture="shown")], captures=[of("victim", "shown", 1.0), of("victim", "asked for", 2.0)]))
    for number in range(30):
        mine = f"rogue-{number}"
        store.writer.commit(Batch(at=3.0 + number, cards=[card(mine, capture=mine)], captures=[of("rogue", mine, 9e11)]))

    assert kept(store, "shown", "asked for") == {"shown", "asked for"}
    assert 2 <= len(kept(store, *(f"rogue-{number}" for number in range(30)))) <= 7
    assert store.reader.capture("rogue-29").taken_at == 32.0, "taken when it was told, at the latest"
    store.close()


def test_what_is_shown_outlasts_what_nothing_rests_on() -> None:
    store = open_store(None, capture_budget=10_000)
    shown = [f"{node}-shown" for node in "abcd"]
    store.writer.commit(Batch(at=1.0, cards=[card(each, capture=each) for each in shown], captures=[of(each[0], each, 1.0) for each in shown]))
    for number in range(20):
        store.writer.commit(Batch(at=2.0 + number, captures=[of("abcd"[number % 4], f"other-{number}", 2.0 + number)]))

    assert kept(store, *shown) == {*shown}
    assert kept(store, "other-0", "other-19") == {"other-19"}
    store.close()


def of(node: str, digest: str, at: float) -> CaptureRow:
    """A capture of 1,000 bytes that cannot be packed."""
    return replace(capture(digest, at, os.urandom(1000)), node=node)
