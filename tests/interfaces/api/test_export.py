# SPDX-License-Identifier: Apache-2.0
"""Lists as lines of JSON and as CSV: whole, in order, safe in a spreadsheet, and only as much work as is read."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import app, card, client, get, listing, report

from muster.interfaces.api import telling
from muster.wiring.desk import Desk

LISTS = ["cards", "devices", "partitions", "nodes", "sources", "adapters", "findings", "changes", "events"]


@pytest.mark.parametrize("what", LISTS)
def test_every_list_in_every_form(api: TestClient, what: str) -> None:
    page = get(api, f"/api/v1/{what}", limit=1000)
    lines = api.get(f"/api/v1/{what}", headers={"accept": "application/x-ndjson"})
    table = api.get(f"/api/v1/{what}", params={"format": "csv"})
    rows = list(csv.reader(io.StringIO(table.text)))

    assert lines.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line)["id"] for line in lines.text.splitlines()] == [each["id"] for each in page["items"]]
    assert table.headers["content-type"].startswith("text/csv")
    assert [row[rows[0].index("id")] for row in rows[1:]] == [each["id"] for each in page["items"]]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert f'filename="{what}.csv"' in table.headers["content-disposition"]


def test_filter_order_fields_and_limit_hold(api: TestClient) -> None:
    query = {"format": "csv", "filter": 'node == "node-a"', "sort": "-temperature.core", "fields": "name,temperature.core"}
    rows = list(csv.reader(io.StringIO(api.get("/api/v1/cards", params=query).text)))

    assert rows[0] == ["id", "name", "temperature.core"]
    assert [row[2] for row in rows[1:]] == ["51", "", ""]
    assert len(api.get("/api/v1/cards", params={"format": "ndjson", "limit": 2}).text.splitlines()) == 2
    assert api.get("/api/v1/cards", params={"format": "ndjson"}).headers["x-total-count"] == "5"


def test_the_past_is_exported_too(api: TestClient) -> None:
    assert len(api.get("/api/v1/cards", params={"format": "ndjson", "at": "2026-09-21T14:13:20Z"}).text.splitlines()) == 5


def test_other_forms_are_refused(api: TestClient) -> None:
    assert get(api, "/api/v1/cards", 400, format="xml")["code"] == "invalid_input"
    refused = api.get("/api/v1/cards", headers={"accept": "image/png"})
    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")
    assert api.get("/api/v1/cards", headers={"accept": "image/png, */*;q=0.1"}).status_code == 200


@pytest.mark.parametrize("evil", ["=HYPERLINK(1)", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", " =1", "\x00=1"])
def test_a_spreadsheet_runs_nothing(api: TestClient, desk: Desk, evil: str) -> None:
    desk.report(report("node-e", listing(card(0, {"product.name": evil}, serial="SN-E"))))
    rows = list(csv.DictReader(io.StringIO(api.get("/api/v1/cards", params={"format": "csv", "filter": 'serial == "SN-E"'}).text)))

    assert rows[0]["product.name"].startswith("'")
    assert not any(value.lstrip().startswith(("=", "+", "-", "@")) and not value.lstrip("-").replace(".", "").isdigit() for value in rows[0].values())


def test_who_stops_reading_stops_the_work(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    honest = telling._part
    monkeypatch.setattr(telling, "PART", 1)

    def counted(*args: Any) -> bytes:
        made.append(len(args[1]))
        return honest(*args)

    monkeypatch.setattr(telling, "_part", counted)
    sent: list[Any] = []
    gone = asyncio.Event()

    async def receive() -> Any:
        if len(sent) < 3:
            await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) >= 3:
            gone.set()
            await asyncio.sleep(0.2)

    scope = {
        "type": "http", "method": "GET", "path": "/api/v1/cards", "raw_path": b"/api/v1/cards", "query_string": b"format=ndjson", "http_version": "1.1",
        "headers": [(b"host", b"127.0.0.1")], "scheme": "http", "root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        "asgi": {"version": "3.0"},
    }  # fmt: skip
    asyncio.run(app(desk)(scope, receive, send))

    assert 0 < len(made) < 5


def test_documents_are_made_part_by_part(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "PART", 2)
    lines = client(desk).get("/api/v1/cards", params={"format": "ndjson"}).text.splitlines()

    assert len({json.loads(line)["id"] for line in lines}) == 5
