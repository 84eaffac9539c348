# SPDX-License-Identifier: Apache-2.0
"""Shards: each card in one of them, the same whatever else there is, and about as many in each."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.model.errors import InputError
from muster.export.shards import Shard, shard


@given(st.text(), st.integers(1, 64))
def test_every_id_belongs_to_one_shard(id_: str, of: int) -> None:
    assert sum(Shard(number=number, of=of).has(id_) for number in range(1, of + 1)) == 1


def test_shards_are_about_equal() -> None:
    counts = Counter(number for card in range(10_000) for number in range(1, 9) if Shard(number=number, of=8).has(f"c-{card * 2654435761 % 2**64:016x}"))

    assert len(counts) == 8
    assert min(counts.values()) > 1000
    assert max(counts.values()) < 1500


def test_where_a_card_belongs_does_not_change() -> None:
    assert [Shard(number=1, of=4).has(f"c-{n}") for n in range(8)] == [True, False, True, False, False, False, False, False]


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "1/1025", " 1/4", "1/4 ", "１/4"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no shard"):
        shard(text)


def test_a_shard_is_read_and_written_the_same() -> None:
    assert str(shard("3/16")) == "3/16"
    assert shard("1/2").first
    assert not shard("2/2").first
