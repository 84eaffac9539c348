# SPDX-License-Identifier: Apache-2.0
"""The index of names: one card, several with one name, and beginnings; and rows that wait for the same are held once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.samples import card

from muster.wiring.snapshot_names import Index
from muster.wiring.snapshot_turns import Turns


def named(id_: str, **ids: Any) -> Any:
    return card(id_, ids={key: tuple(values) for key, values in ids.items()})


@pytest.fixture
def index() -> Index:
    made = Index()
    made.put(named("c1", serial=["0012A"], vendor_uuid=["GPU-11111111-2222-3333-4444-555555555555"], k8s_device=["acme.com/0"]))
    made.put(named("c2", serial=["12a"], vendor_uuid=["GPU-11111111-2222-3333-4444-666666666666"], k8s_device=["acme.com/0"]))
    made.put(named("c3", serial=["9"]))
    made.put(named("c3", serial=["9"]))
    return made


def test_a_name_of_one_and_a_name_of_several(index: Index) -> None:
    assert index.strong("9") == ["c3"]
    assert index.strong("12A") == ["c1", "c2"]
    assert index.local("ACME.COM/0") == ("c1", "c2")
    assert index.strong("c3") == []
    assert index.strong("GPU-11111111-2222-3333-4444-666666666666") == ["c2"]


def test_beginnings_of_uuids_alone(index: Index) -> None:
    assert index.beginning("GPU-11111111-2222") == ["c1", "c2"]
    index.put(named("c4", vendor_uuid=["GPU-11111111-2222-3333-4444-777777777777"]))
    assert index.beginning("111111112222") == ["c1", "c2", "c4"]
    assert index.beginning("12a") == []


def test_rows_that_wait_for_the_same_are_held_once() -> None:
    turns = Turns(None)
    for id_ in ("c1", "c2", "c3"):
        turns.put(id_, [], 100.0)
    assert len({id(kept) for kept in turns._kept.values()}) == 1
