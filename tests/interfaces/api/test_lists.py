# SPDX-License-Identifier: Apache-2.0
"""Everything that is not a card: parts, places, findings, events, captures, numbers, state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import GIB, Clock, client, get, listing, report

from muster.wire.report import SCHEMA
from muster.wiring.desk import Desk


def test_devices(api: TestClient) -> None:
    page = get(api, "/api/v1/devices", sort="-temperature.core")

    assert [each["readings"]["temperature.core"]["value"] for each in page["items"]] == [41, 40]
    device = page["items"][0]
    assert device["card"] == get(api, "/api/v1/cards/SN-2001")["id"]
    assert device["name"] == "node-a · 0000:2b:00.0 · Acme Duo · device 1"
    assert get(api, f"/api/v1/devices/{device['id']}") == device
    assert get(api, "/api/v1/devices/DEAD-1-beef-000000000001") == device
    assert get(api, "/api/v1/devices", filter='ordinal == 0 && node == "node-a" && card.startsWith("c-") && !has(under)')["total"] == 1
    assert get(api, "/api/v1/devices", filter='role == "display"')["total"] == 0
    get(api, "/api/v1/devices/none", 404)


def test_partitions(api: TestClient) -> None:
    page = get(api, "/api/v1/partitions", fields="card,partition.profile")

    assert page["total"] == 1
    assert page["items"][0]["readings"]["partition.profile"]["value"] == "1g.10gb"
    assert get(api, f"/api/v1/partitions/{page['items'][0]['id']}")["card"] == page["items"][0]["card"]
    get(api, "/api/v1/partitions/none", 404)


def test_nodes(api: TestClient) -> None:
    page = get(api, "/api/v1/nodes", sort="name")

    assert [each["name"] for each in page["items"]] == ["node-a", "node-b", "node-c"]
    assert page["items"][0]["cards"] == {"present": 3}
    assert get(api, "/api/v1/nodes/NODE-A")["id"] == page["items"][0]["id"]
    assert get(api, f"/api/v1/nodes/{page['items'][1]['id']}")["name"] == "node-b"
    assert get(api, "/api/v1/nodes", filter="cards > 1")["total"] == 1
    get(api, "/api/v1/nodes/none", 404)


def test_sources(api: TestClient, desk: Desk, clock: Clock) -> None:
    clock.now += 30
    desk.report(report("node-b", listing(outcome="tool_missing", complete=False, detail="acme-smi: not found", at=clock.now), sequence=2, at=clock.now))
    page = get(api, "/api/v1/sources", filter='state == "failed"')

    assert [(each["node"], each["source"], each["detail"]) for each in page["items"]] == [("node-b", "acme.smi", "acme-smi: not found")]
    assert get(api, "/api/v1/sources/node-b/acme.smi") == page["items"][0]
    assert get(api, f"/api/v1/sources/{page['items'][0]['id']}") == page["items"][0]
    get(api, "/api/v1/sources/node-b/none", 404)


def test_sources_are_not_told_as_they_were(api: TestClient) -> None:
    for form in ({}, {"format": "ndjson"}):
        refused = get(api, "/api/v1/sources", 400, at="-10m", **form)
        assert "as they are now" in refused["detail"]
        assert "leave it out" in refused["hint"]


def test_adapters(api: TestClient) -> None:
    page = get(api, "/api/v1/adapters", limit=1000)

    assert "pci" in [each["id"] for each in page["items"]]
    assert get(api, "/api/v1/adapters/pci")["sources"]
    get(api, "/api/v1/adapters/none", 404)


def test_silence_is_a_finding_and_can_be_acknowledged(api: TestClient, desk: Desk, clock: Clock) -> None:
    clock.now += 1000
    desk.tick()
    page = get(api, "/api/v1/findings", filter='kind == "source_silent" && node == "node-b"')

    assert page["total"] == 1
    finding = page["items"][0]
    assert finding["closed_at"] is None
    assert "node-b" in finding["names"].values()
    assert get(api, f"/api/v1/findings/{finding['id']}") == finding
    told = api.post(f"/api/v1/findings/{finding['id']}/acknowledge", json={"by": "ann", "reason": "node is being moved"})
    assert told.status_code == 200, told.text
    assert told.json()["acknowledged_by"] == "ann"
    assert get(api, "/api/v1/acts")["items"][0]["by"] == "ann"
    assert get(api, "/api/v1/findings", filter="has(acknowledged_at)")["total"] == 1
    assert get(api, "/api/v1/findings", at="-999s")["total"] == 0
    assert api.post("/api/v1/findings/none/acknowledge", json={"by": "ann"}).status_code == 404
    assert api.post(f"/api/v1/findings/{finding['id']}/acknowledge", json={"by": ""}).json()["code"] == "invalid_input"
    get(api, "/api/v1/findings/none", 404)


def test_a_card_tells_its_findings(api: TestClient, desk: Desk, clock: Clock) -> None:
    clock.now += 1000
    desk.tick()
    found = get(api, "/api/v1/cards/node-b/card0")

    assert found["presence"] == "unknown"
    for each in found["findings"]:
        assert get(api, f"/api/v1/findings/{each['id']}")["kind"] == each["kind"]


def test_events(api: TestClient) -> None:
    page = get(api, "/api/v1/events")

    assert [(each["node"], each["kind"], each["code"], each["text"]) for each in page["items"]] == [("node-a", "xid", "79", "Xid 79 <script>")]
    assert get(api, "/api/v1/events", card="SN-1001")["total"] == 1
    assert get(api, "/api/v1/events", card="SN-1002")["total"] == 0
    assert get(api, "/api/v1/events", node="Node-A", filter='code == "79" && last_at > "-1h"')["total"] == 1
    assert get(api, "/api/v1/events", node="node-b")["total"] == 0
    assert get(api, "/api/v1/events", at="-2m")["total"] == 0
    get(api, "/api/v1/events", 404, card="none")


def test_captures(api: TestClient) -> None:
    digest = get(api, "/api/v1/cards/SN-1001")["readings"]["memory.total"]["capture"]
    told = get(api, f"/api/v1/captures/{digest}")
    raw = api.get(f"/api/v1/captures/{digest}", params={"raw": True})

    assert (told["locator"], told["size"], told["exit_status"], told["node"]) == (["acme-smi", "-q"], 11, 0, "node-a")
    assert raw.content == b"<b>raw</b>\n"
    assert raw.headers["content-type"].startswith("text/plain")
    assert raw.headers["content-disposition"].startswith("attachment")
    assert raw.headers["x-content-type-options"] == "nosniff"
    get(api, "/api/v1/captures/00", 404)
    get(api, "/api/v1/captures/a b", 400)


def test_summary(api: TestClient) -> None:
    told = get(api, "/api/v1/summary")

    assert (told["cards"], told["displays"], told["nodes"], told["by_presence"]) == (5, 1, 3, {"present": 5})
    assert told["totals"]["memory.total"] == {"value": 144 * GIB, "unit": "bytes", "cards": 3, "lacking": 2}
    assert told["totals"]["power.draw"]["value"] == 360.5
    assert {"vendor": None, "model": "Acme X1", "cards": 2, "present": 2} in told["models"]
    assert told["sources"] == {"total": 3, "by_state": {"ok": 3}}
    assert get(api, "/api/v1/summary", totals="temperature.core")["totals"].keys() == {"temperature.core"}
    assert get(api, "/api/v1/summary", 400, totals="product.name")["code"] == "invalid_input"
    assert get(api, "/api/v1/summary", at="2026-09-21T14:00:00Z")["cards"] == 0


def test_state(api: TestClient, desk: Desk) -> None:
    assert get(api, "/healthz")["status"] == "ok"
    assert get(api, "/readyz")["status"] == "ok"
    assert get(api, "/version") == {"version": "1.2.3", "api": "v1", "report_schema": SCHEMA}
    ill = client(replace(desk, well=lambda: {"store": "the disk is full"}))
    assert "the disk is full" in get(ill, "/readyz", 503)["detail"]


@pytest.mark.parametrize("what", ["cards", "devices", "partitions", "nodes", "sources", "adapters", "findings", "events"])
def test_every_list_filters_sorts_and_pages(api: TestClient, what: str) -> None:
    page = get(api, f"/api/v1/{what}", limit=1, sort="-id", filter="has(id)", fields="id")

    assert all(each.keys() == {"id"} for each in page["items"])
    get(api, f"/api/v1/{what}", 400, sort="nonsense")
    get(api, f"/api/v1/{what}", 400, filter="nonsense == 1")
    get(api, f"/api/v1/{what}", 400, at="soon")
    get(api, f"/api/v1/{what}", 400, limit=0)
