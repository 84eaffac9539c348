# SPDX-License-Identifier: Apache-2.0
"""How much of the minutes a server keeps is what its settings say: none where a Prometheus store has them, by age, and by bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.store.rounds import heard, layout, minutes, seal, told

from muster.interfaces.api.app import build
from muster.spi.store import Batch
from muster.store import Store
from muster.wire.lanes import part
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from muster.wiring.server import Server
from muster.wiring.settings import ServerSettings, load_settings
from muster.wiring.writing import opened

HOUR = 3600.0
READ = 12
"""Rounds that are told, half a minute apart."""


def given(folder: Path, **more: Any) -> ServerSettings:
    """Settings of a server of this test's own."""
    return load_settings(host="127.0.0.1", port=0, state=folder / "state", runtime=folder / "run", **more)


def filled(store: Store, hours: int) -> Store:
    """Rounds of so many hours, one in each minute, packed."""
    store.writer.commit(Batch(at=1.0, layouts=[layout()]))
    store.writer.commit(Batch(at=1.0, heard=[heard(60.0 * minute + 10.0, float(minute), float(minute)) for minute in range(hours * 60)]))
    seal(store, hours * HOUR)
    seal(store, hours * HOUR + 61)
    return store


def kept(settings: ServerSettings, hours: int) -> list[int]:
    """The hours of which a store of these settings has minutes; the newest number is there in any case."""
    settings.state.mkdir(parents=True, exist_ok=True)
    with closing(filled(opened(settings, alone=True), hours)) as store:
        assert told(store)["c1", "power.draw"][0] == hours * 60 - 1
        return sorted({int(row[0] // HOUR) for row in minutes(store, "c1", "errors.memory.corrected")})


def test_minutes_are_kept_if_nothing_else_is_said(tmp_path: Path) -> None:
    assert kept(given(tmp_path), 6) == [0, 1, 2, 3, 4, 5]


def test_none_are_kept_where_a_prometheus_store_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept(given(tmp_path / "told", long_ranges_elsewhere=True), 6) == []
    monkeypatch.setenv("MUSTER_LONG_RANGES_ELSEWHERE", "true")
    assert kept(given(tmp_path / "environment"), 6) == []


def test_they_are_kept_for_as_long_as_it_is_said(tmp_path: Path) -> None:
    assert kept(given(tmp_path, keep_minutes=2 * HOUR), 6) == [4, 5]


def test_no_more_bytes_of_them_are_kept_than_it_is_said(tmp_path: Path) -> None:
    few = kept(given(tmp_path / "few", minutes_bytes=30_000), 12)

    assert 0 < len(few) < 12
    assert few[-1] == 11
    settings = given(tmp_path / "none", minutes_bytes=0)
    assert len(kept(settings, 6)) <= 1
    assert [each for each in settings.state.rglob("*") if each.suffix == ".segment"] == []


def _reports(now: float) -> Iterator[ReportDoc]:
    """A card that is read every half minute until now."""
    node = NodeDoc(name="n1", machine_id="m1")
    for turn in range(READ):
        at = now - 30.0 * (READ - turn)
        card = ObservationDoc(level="card", ids=[("serial", "SN-1")], readings={"product.name": {"v": "X"}, "power.draw": {"v": 100.0 + turn}})
        said = ListingDoc(source="s", channel="in_band", witness="driver", cadence=30.0, outcome="devices", complete=True, observed_at=at, observations=[card])
        yield ReportDoc(reporter="r", incarnation="i", sequence=turn + 1, node=node, sent_at=now, schema=2, heard=[part(said)])


@contextmanager
def serving(folder: Path, **more: Any) -> Iterator[Server]:
    """A server that heard of six minutes."""
    with Server(given(folder, **more), build) as running:
        answers = [running.desk.report(each).answer for each in _reports(time.time())]
        assert answers == ["applied"] * READ
        yield running


def _asked(server: Server, path: str, **params: str) -> Any:
    answer = httpx2.get(f"{server.url}/api/v1/cards/SN-1{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("elsewhere", [False, True], ids=["kept", "elsewhere"])
def test_a_server_that_keeps_none_has_the_newest_number_and_no_series(tmp_path: Path, elsewhere: bool) -> None:
    with serving(tmp_path, long_ranges_elsewhere=elsewhere) as server:
        points = _asked(server, "/series", key="power.draw", since="-1h")["points"]

        assert _asked(server, "")["readings"]["power.draw"]["value"] == 100.0 + READ - 1
        if elsewhere:
            assert points == []
        else:
            assert sum(each["count"] for each in points) == READ
            assert points[-1]["last"] == 100.0 + READ - 1
