# SPDX-License-Identifier: Apache-2.0
"""What an agent is told by its environment, and how a node's own pace and folders reach its sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.collect.pace import tells_who
from muster.domain.model.errors import InputError
from muster.domain.model.source import ReaderKind
from muster.wiring.agent import SELDOM_S, Settings, eyes


def test_settings_of_the_environment() -> None:
    told = {
        "MUSTER_SERVER": "http://127.0.0.1:7",
        "MUSTER_SEARCH": "/opt/a:/opt/b:",
        "MUSTER_CADENCE": "10",
        "MUSTER_SPOOL_MIB": "8",
        "MUSTER_SPOOL_HOURS": "2",
        "MUSTER_SPOOL_EVENT_HOURS": "48",
        "MUSTER_RING_MIB": "16",
        "MUSTER_RING_HOURS": "24",
        "MUSTER_PROCESS_NAMES": "1",
        "MUSTER_ADAPTERS": "one two",
    }
    found = Settings.of(told, state=Path("/s"))

    assert (found.server, found.search, found.cadence, found.outside) == ("http://127.0.0.1:7", ("/opt/a", "/opt/b"), 10.0, ("one", "two"))
    assert (found.limits.size, found.limits.listing_age, found.limits.event_age) == (8 * 2**20, 7200.0, 48 * 3600.0)
    assert (found.room.size, found.room.per_source, found.room.age) == (16 * 2**20, 4 * 2**20, 24 * 3600.0)
    assert found.process_names
    plain = Settings.of({})
    assert not plain.process_names
    assert (plain.cadence, plain.limits.size) == (None, 64 * 2**20)


@pytest.mark.parametrize("told", [{"MUSTER_CADENCE": "fast"}, {"MUSTER_CADENCE": "0"}, {"MUSTER_SPOOL_MIB": "-1"}, {"MUSTER_RING_MIB": "nan"}])
def test_numbers_that_are_none_are_refused_by_name(told: dict[str, str]) -> None:
    with pytest.raises(InputError, match=next(iter(told))):
        Settings.of(told)


def test_a_pace_of_this_node_is_for_what_moves(tmp_path: Path) -> None:
    plain, tuned = eyes(root=str(tmp_path)), eyes(root=str(tmp_path), search=["/opt/x"], cadence=10)
    try:
        before = {source.id: source for each in plain.adapters for source in each.sources}
        for source in (source for each in tuned.adapters for source in each.sources):
            slow = source.reader is ReaderKind.STREAM or tells_who(source) or before[source.id].cadence.total_seconds() > SELDOM_S
            assert source.cadence.total_seconds() == (before[source.id].cadence.total_seconds() if slow else 10)
            assert source.search == ("/opt/x", *before[source.id].search)
        assert {source.cadence.total_seconds() for each in tuned.adapters for source in each.sources} >= {10, 600}
    finally:
        plain.close()
        tuned.close()
