# SPDX-License-Identifier: Apache-2.0
"""ETags, If-Match and Idempotency-Key: what was seen is not sent again, what has changed is not overwritten, what comes twice is done once."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import T0, Clock, card, client, get, listing, report, small

from muster.wiring.desk import Desk


def tag(api: TestClient, path: str, **params: Any) -> str:
    answer = api.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return str(answer.headers["etag"])


@pytest.mark.parametrize(
    "path", ["/api/v1/cards/SN-1001", "/api/v1/cards", "/api/v1/nodes", "/api/v1/sources", "/api/v1/summary", "/api/v1/changes", "/api/v1/events"]
)
def test_what_was_seen_is_not_sent_again(api: TestClient, clock: Clock, path: str) -> None:
    told = tag(api, path)
    clock.now += 5
    again = api.get(path, headers={"if-none-match": f'"other", {told}'})

    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", told)
    assert api.get(path, headers={"if-none-match": '"other"'}).status_code == 200


def warmer(desk: Desk, clock: Clock, temperature: int, power: int) -> None:
    """node-b's card tells other numbers."""
    told = card(0, {"product.name": "Beta F", "temperature.core": temperature, "power.draw": power}, pci_address="0000:03:00.0", index="card0")
    desk.report(report("node-b", listing(told, at=clock.now), sequence=2, at=clock.now))


def test_a_value_that_moved_is_sent(api: TestClient, desk: Desk, clock: Clock) -> None:
    told = tag(api, "/api/v1/cards/node-b/card0")
    clock.now += 30
    warmer(desk, clock, 56, 30)
    again = api.get("/api/v1/cards/node-b/card0", headers={"if-none-match": told})

    assert again.status_code == 200
    assert again.json()["readings"]["temperature.core"]["value"] == 56
    assert again.headers["etag"].partition("-")[0] == told.partition("-")[0], "a gauge moved, the card did not change"


def act(api: TestClient, headers: dict[str, str], **said: Any) -> Any:
    return api.post("/api/v1/acts", json={"by": "ann", **said}, headers=headers)


def test_an_act_on_a_card_that_changed_is_refused(api: TestClient, clock: Clock) -> None:
    told = tag(api, "/api/v1/cards/SN-1001")
    clock.now += 1
    first = act(api, {"if-match": told}, what="set", card="SN-1001", values={"asset.owner": "lab"})
    second = act(api, {"if-match": told}, what="retire", card="SN-1001")

    assert first.status_code == 200, first.text
    assert (second.status_code, second.json()["code"]) == (412, "changed")
    assert second.headers["content-type"] == "application/problem+json"
    assert get(api, "/api/v1/cards/SN-1001")["presence"] == "present"
    assert act(api, {"if-match": tag(api, "/api/v1/cards/SN-1001")}, what="retire", card="SN-1001").status_code == 200


def test_a_gauge_that_moved_is_no_conflict(api: TestClient, desk: Desk, clock: Clock) -> None:
    told = tag(api, "/api/v1/cards/node-b/card0")
    clock.now += 30
    warmer(desk, clock, 60, 31)

    assert act(api, {"if-match": told}, what="set", card="node-b/card0", values={"asset.owner": "lab"}).status_code == 200


def test_if_match_without_sense(api: TestClient) -> None:
    assert act(api, {"if-match": "nonsense"}, what="retire", card="SN-1001").status_code == 400
    assert act(api, {"if-match": '"x"'}, what="store", card={"serial": "SN-77"}, place="shelf").status_code == 400
    assert act(api, {"if-match": "*"}, what="retire", card="SN-1001").status_code == 200


def test_an_acknowledgement_of_a_finding_that_changed_is_refused(api: TestClient, desk: Desk, clock: Clock) -> None:
    clock.now += 1000
    desk.tick()
    finding = get(api, "/api/v1/findings")["items"][0]["id"]
    path = f"/api/v1/findings/{finding}"
    told = tag(api, path)

    assert api.post(f"{path}/acknowledge", json={"by": "ann"}, headers={"if-match": told}).status_code == 200
    assert api.post(f"{path}/acknowledge", json={"by": "bob"}, headers={"if-match": told}).status_code == 412


def test_the_same_request_is_done_once(api: TestClient, desk: Desk, clock: Clock) -> None:
    said: dict[str, Any] = {"what": "set", "card": "SN-1001", "values": {"asset.owner": "lab"}}
    first = act(api, {"idempotency-key": "k-1"}, **said)
    clock.now += 100
    again = act(client(desk), {"idempotency-key": "k-1"}, **said)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    assert len(get(api, "/api/v1/acts")["items"]) == 1
    assert act(api, {"idempotency-key": "k-1"}, what="retire", card="SN-1001").json()["code"] == "key_used"
    assert act(api, {"idempotency-key": "k-1"}, what="retire", card="SN-1001").status_code == 422
    assert act(api, {"idempotency-key": "k-2"}, **said).headers.get("idempotency-replayed") is None
    assert act(api, {"idempotency-key": "x" * 300}, **said).status_code == 400
    clock.now += 86_400
    assert act(api, {"idempotency-key": "k-1"}, what="retire", card="SN-1001").status_code == 200


def test_a_request_that_failed_is_tried_again(api: TestClient, desk: Desk) -> None:
    assert act(api, {"idempotency-key": "k-9"}, what="retire", card="node-z/0").status_code == 404
    desk.report(small("node-z", 40))

    assert act(api, {"idempotency-key": "k-9"}, what="retire", card="node-z/card0").status_code == 200


def test_the_tag_of_the_past_stands(api: TestClient, clock: Clock) -> None:
    clock.now = T0 + 100
    at = "2026-09-21T14:13:30Z"

    assert tag(api, "/api/v1/cards/SN-1001", at=at) == tag(api, "/api/v1/cards/SN-1001", at=at)
