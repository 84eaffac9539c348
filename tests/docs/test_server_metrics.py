# SPDX-License-Identifier: Apache-2.0
"""What a running server shows at /metrics stands in the reference, each series with its kind."""

from __future__ import annotations

import http.client
import re
from importlib import import_module
from pathlib import Path

import pytest
from tests.house.tree import ROOT, nothing
from tests.interfaces.api.fleet import small

from muster.interfaces.api.app import build
from muster.interfaces.ingest.opened import reporters
from muster.wire.report import pack
from muster.wiring.server import Server
from muster.wiring.settings import load_settings
from muster.wiring.writing import wall_clock

PAGE = ROOT / "docs" / "reference" / "server-metrics.md"
ROW = re.compile(r"^\| `(muster_\w+)` \| (\w+) \|", re.MULTILINE)
SERIES = re.compile(r"^# TYPE (muster_\w+) (\w+)$", re.MULTILINE)


def asked(server: Server, path: str, body: bytes | None = None) -> str:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    try:
        connection.request("POST" if body else "GET", path, body, {"content-type": "application/msgpack"} if body else {})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def test_what_a_server_shows_is_in_the_reference(tmp_path: Path) -> None:
    settings = load_settings(port=0, ingest_port=0, state=tmp_path / "state", runtime=tmp_path / "run", tick=0.02)
    told = small("node-b", 55)
    told.sent_at = told.listings[0].observed_at = wall_clock()
    with Server(settings, build, reporters) as server:
        for _ in range(2):
            asked(server, "/api/v1/reports", pack(told))
        asked(server, "/api/v1/acts", b"{}")
        shown = dict(SERIES.findall(asked(server, "/metrics")))
    page = dict(ROW.findall(PAGE.read_text(encoding="utf-8")))

    assert len(shown) > 35
    assert "muster_reports_same_total" in shown
    assert "muster_certificate_ends_timestamp_seconds" in shown
    nothing(f"{name} {kind}" for name, kind in shown.items() if page.get(name) != kind)


def test_a_series_without_a_sentence_is_seen_and_a_sentence_without_a_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    told = import_module("reference_server")

    assert told.wrong(told.counted()) == []
    assert told.wrong({*told.said(), "muster_new_total"}) == ["no sentence for muster_new_total"]
    assert told.wrong(set(told.said()) - {"muster_reporters"}) == ["nothing tells muster_reporters"]
