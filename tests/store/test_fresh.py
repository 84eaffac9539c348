# SPDX-License-Identifier: Apache-2.0
"""Those who keep columns of the roll are told what was written since, and when they must begin anew."""

from __future__ import annotations

from tests.store.samples import card, finding, node, sample

from muster.spi.store import Batch, Fresh
from muster.store import Store, freshness


def told(fresh: Fresh) -> tuple[list[str], list[str], bool]:
    return sorted(each.id for each in fresh.cards), sorted(fresh.gone), fresh.regrounded


def test_an_empty_store_has_nothing_fresh(store: Store) -> None:
    assert store.reader.version() == 0
    assert told(store.reader.fresh(0)) == ([], [], False)


def test_what_was_written_since(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card("c1"), card("c2"), card("c3")]))
    first = store.reader.fresh(0)
    assert told(first) == (["c1", "c2", "c3"], [], False)
    store.writer.commit(Batch(at=2.0, cards=[card("c1", at=2.0)], vanished=["c3"]))
    second = store.reader.fresh(first.version)

    assert told(second) == (["c1"], ["c3"], False)
    assert [each.claims[0].at for each in second.cards] == [2.0]
    assert second.version == store.reader.version() > first.version
    assert told(store.reader.fresh(second.version)) == ([], [], False)


def test_a_joined_card_is_gone_and_one_that_is_back_is_not(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card("c1"), card("c2")]))
    version = store.reader.version()
    store.writer.commit(Batch(at=2.0, gone={"c1": "c2"}))
    assert told(store.reader.fresh(version)) == ([], ["c1"], False)
    store.writer.commit(Batch(at=3.0, cards=[card("c1")]))

    assert told(store.reader.fresh(version)) == (["c1"], [], False)


def test_only_a_changed_record_makes_a_version(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card("c1")]))
    before = store.reader.version()
    store.writer.commit(Batch(at=2.0, samples=[sample(1, 60.0)], due={"a": 5.0}))
    store.probe()
    assert store.reader.version() == before
    versions = [before]
    for batch in (Batch(at=3.0, nodes=[node()]), Batch(at=4.0, findings=[finding("f", 4.0)]), Batch(at=5.0, closed=["f"])):
        store.writer.commit(batch)
        versions.append(store.reader.version())

    assert versions == sorted(set(versions))


def test_who_asks_too_late_begins_anew(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card("c1"), card("c2")]))
    early = store.reader.version()
    store.writer.commit(Batch(at=2.0, vanished=["c2"]))
    late = store.reader.version()
    assert store.writer.trim(3.0 + freshness.REMEMBERED, {}) == 0

    assert told(store.reader.fresh(early)) == (["c1"], [], True)
    assert told(store.reader.fresh(late)) == ([], [], False)
    assert told(store.reader.fresh(late + 1)) == (["c1"], [], True)


def test_all_cards_are_read_some_at_a_time_and_as_often_as_asked(store: Store) -> None:
    store.writer.commit(Batch(at=1.0, cards=[card(f"c{n:04}") for n in range(2500)]))
    fresh = store.reader.fresh(0)

    assert len({each.id for each in fresh.cards}) == 2500
    assert len(list(fresh.cards)) == 2500
