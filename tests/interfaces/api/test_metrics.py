# SPDX-License-Identifier: Apache-2.0
"""The server's own figures, as promtool reads them."""

from __future__ import annotations

import subprocess
from dataclasses import replace

from tests.interfaces.api.fleet import client, get
from tests.needs import program

from muster.wiring.desk import Desk


def test_requests_are_counted_by_route_and_code(desk: Desk) -> None:
    api = client(desk)
    for _ in range(3):
        get(api, "/api/v1/cards/SN-1001")
    get(api, "/api/v1/cards/none", 404)
    get(api, "/nowhere/secret-name", 404)
    told = api.get("/metrics")

    assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'muster_http_requests_total{code="200",method="GET",route="/api/v1/cards/{card:path}"} 3.0' in told.text
    assert 'muster_http_requests_total{code="404",method="GET",route="/api/v1/cards/{card:path}"} 1.0' in told.text
    assert "secret-name" not in told.text
    assert 'muster_http_request_seconds_count{route="/api/v1/cards/{card:path}"} 4.0' in told.text
    assert "muster_columns_cards 6.0" in told.text


def test_what_the_writer_says_of_itself(desk: Desk) -> None:
    api = client(replace(desk, meters=lambda: {"ingest_reports_total": 12.0, "queue-depth": 3.0}))
    get(api, "/api/v1/summary")
    text = api.get("/metrics").text

    assert "# TYPE muster_ingest_reports_total counter" in text
    assert "muster_ingest_reports_total 12.0" in text
    assert "muster_queue_depth 3.0" in text


def test_promtool_finds_nothing(desk: Desk) -> None:
    api = client(replace(desk, meters=lambda: {"ingest_reports_total": 12.0, "commit_seconds": 0.004}))
    get(api, "/api/v1/cards")
    checked = subprocess.run([program("promtool"), "check", "metrics"], input=api.get("/metrics").content, capture_output=True, check=False)

    assert (checked.returncode, checked.stdout.decode(), checked.stderr.decode()) == (0, "", "")


def test_alive_ready_version(desk: Desk) -> None:
    api = client(desk)

    assert get(api, "/livez") == get(api, "/healthz") == {"status": "ok", "checks": {}}
    assert get(api, "/readyz")["status"] == "ok"
    assert get(api, "/version")["api"] == "v1"


def test_no_series_says_when_another_came_to_be(desk: Desk) -> None:
    api = client(desk)
    get(api, "/api/v1/cards")
    told = api.get("/metrics").text

    assert "muster_http_request_seconds_bucket" in told
    assert "_created" not in told
