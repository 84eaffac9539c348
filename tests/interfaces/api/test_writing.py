# SPDX-License-Identifier: Apache-2.0
"""Reports and acts through the API, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient
from structlog.testing import capture_logs
from tests.interfaces.api import fleet
from tests.interfaces.api.fleet import get, small

from muster.domain.model.errors import Unavailable
from muster.interfaces.api.writing import REPORT_LIMIT
from muster.wire.report import pack
from muster.wiring.desk import Desk

MSGPACK = {"content-type": "application/msgpack"}
JSON = {"content-type": "application/json; charset=utf-8"}


def send(api: TestClient, body: Any, headers: dict[str, str] = MSGPACK) -> Any:
    return api.post("/api/v1/reports", content=body, headers=headers)


def test_a_report_is_applied_once(api: TestClient) -> None:
    told = small("node-d", 33)

    assert send(api, pack(told)).json()["answer"] == "applied"
    assert send(api, msgspec.json.encode(told), JSON).json()["answer"] == "duplicate"
    assert get(api, "/api/v1/cards/node-d/card0")["readings"]["temperature.core"]["value"] == 33


def test_another_report_under_a_used_key_is_refused(api: TestClient) -> None:
    send(api, pack(small("node-d", 33)))
    answer = send(api, pack(small("node-d", 34)))

    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["code"], answer.json()["answer"]) == ("refused", "refused")


def test_what_is_no_report(api: TestClient) -> None:
    assert send(api, b"\xc1").json()["code"] == "invalid_input"
    assert send(api, b"{", JSON).status_code == 400
    assert send(api, b"[" * 100_000, JSON).status_code == 400
    assert send(api, b"\x91" * 100_000).status_code == 400
    assert send(api, b'{"reporter": 5}', JSON).json()["detail"].count("$.reporter") == 1
    assert send(api, pack(small("node-d", 1)), {"content-type": "text/plain"}).json()["code"] == "unsupported_media_type"
    assert send(api, pack(small("node-d", 1)), {"content-type": ""}).status_code == 415
    assert send(api, b"").status_code == 400


@pytest.mark.parametrize(
    "change", [{"reporter": " "}, {"incarnation": ""}, {"sent_at": float("nan")}, {"sent_at": -1.0}, {"sent_at": 1e300}, {"sequence": -1}, {"schema": 0}]
)
def test_a_report_that_says_nothing_sure_is_refused(api: TestClient, change: dict[str, Any]) -> None:
    answer = send(api, pack(msgspec.structs.replace(small("node-d", 1), **change)))

    assert answer.status_code == 400
    assert answer.json()["hint"]


def test_too_large(api: TestClient) -> None:
    answer = send(api, b"x" * (REPORT_LIMIT + 1))
    told = send(api, iter([b"x" * 2**20] * 9))

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert told.status_code == 413
    assert api.post("/api/v1/acts", content=b"x" * 300_000, headers=JSON).status_code == 413


def act(api: TestClient, status: int = 200, **said: Any) -> Any:
    answer = api.post("/api/v1/acts", json={"by": "ann", **said})

    assert answer.status_code == status, answer.text
    return answer.json()


def test_set(api: TestClient) -> None:
    id_ = get(api, "/api/v1/cards/SN-1001")["id"]

    assert act(api, what="set", card="node-a/0", values={"asset.owner": "lab"}, reason="bought by them") == {
        "cards": [id_],
        "takes_effect": "now",
        "dry_run": False,
    }
    assert get(api, "/api/v1/cards/SN-1001")["readings"]["asset.owner"]["value"] == "lab"
    assert get(api, "/api/v1/cards", filter='asset.owner == "lab"')["total"] == 1
    told = get(api, "/api/v1/acts")["items"][0]
    assert (told["by"], told["what"], told["reason"]) == ("ann", "set", "bought by them")
    assert told["at"] == "2026-09-21T14:13:20Z"


def test_a_dry_run_answers_the_same_and_changes_nothing(api: TestClient) -> None:
    id_ = get(api, "/api/v1/cards/SN-1001")["id"]

    assert act(api, what="retire", card="SN-1001", dry_run=True) == {"cards": [id_], "takes_effect": "now", "dry_run": True}
    assert act(api, 404, what="retire", card="SN-404", dry_run=True)["code"] == "not_found"
    assert get(api, "/api/v1/cards/SN-1001")["presence"] == "present"
    assert get(api, "/api/v1/acts")["items"] == []
    assert act(api, what="retire", card="SN-1001")["cards"] == [id_]


def test_two_names_of_one_record_are_parted(api: TestClient, desk: Desk) -> None:
    uuid, place = "GPU-5e5e0000-0000-4000-8000-000000000001", "0000:5e:00.0"
    one = fleet.listing(fleet.card(0, {}, pci_address=place, serial="SN-5001"))
    other = fleet.listing(fleet.card(0, {}, pci_address=place, vendor_uuid=uuid), source="other.smi")
    desk.report(fleet.report("node-e", one, other))
    pair: dict[str, Any] = {"what": "not_same", "card": "SN-5001", "other": uuid}

    assert get(api, "/api/v1/cards/SN-5001")["id"] == get(api, f"/api/v1/cards/{uuid}")["id"]
    assert len(act(api, **pair, dry_run=True)["cards"]) == 2
    assert len(act(api, **pair)["cards"]) == 2
    assert get(api, "/api/v1/cards/SN-5001")["id"] != get(api, f"/api/v1/cards/{uuid}")["id"]


def test_not_same_says_when_it_finds_nothing_to_part_yet(api: TestClient) -> None:
    uuid = get(api, "/api/v1/cards/SN-1001")["ids"]["vendor_uuid"][0]

    assert act(api, what="not_same", card="SN-1001", other=uuid) == {"cards": [], "takes_effect": "from the next listing on", "dry_run": False}
    assert act(api, 400, what="not_same", card="SN-1001", other="node-a/0")["code"] == "invalid_input"


def test_stored_stays_listed_and_retired_only_when_asked_for(api: TestClient) -> None:
    act(api, what="store", card="SN-1001", place="shelf 3")
    act(api, what="retire", card="SN-1002")
    page = get(api, "/api/v1/cards")

    assert "SN-1001" in [each["ids"].get("serial", [""])[0] for each in page["items"]]
    assert page["total"] == 4
    assert get(api, "/api/v1/cards", retired=True)["total"] == 5
    assert get(api, "/api/v1/cards", filter='presence == "retired"')["total"] == 1
    stored = get(api, "/api/v1/cards/SN-1001")
    assert (stored["presence"], stored["node"], stored["place"]) == ("stored", None, "shelf 3")
    assert stored["name"].startswith("shelf 3 · ")
    assert get(api, "/api/v1/summary")["cards"] == 4


def test_a_card_that_only_the_operator_knows(api: TestClient) -> None:
    act(api, what="store", card={"serial": "SN-9999"}, place="shelf 9")

    assert get(api, "/api/v1/cards/SN-9999")["presence"] == "stored"


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        ({"what": "explode"}, 400, "invalid_input"),
        ({"what": "set", "card": "SN-1001"}, 400, "invalid_input"),
        ({"what": "set", "card": "card0", "values": {"asset.owner": "x"}}, 400, "ambiguous"),
        ({"what": "set", "card": "SN-404", "values": {"asset.owner": "x"}}, 404, "not_found"),
        ({"what": "set", "card": "SN-1001", "values": {"asset.nonsense": "x"}}, 400, "invalid_input"),
        ({"what": "same", "card": "SN-1001"}, 400, "invalid_input"),
        ({"what": "remove_source", "node": "node-a", "source": "none"}, 404, "not_found"),
        ({"what": "store", "by": "  ", "card": "SN-1001"}, 400, "invalid_input"),
        ({"what": "store", "by": "", "card": "SN-1001"}, 400, "invalid_input"),
        ({"what": 5}, 400, "invalid_input"),
    ],
)
def test_acts_that_cannot_be(api: TestClient, said: dict[str, Any], status: int, code: str) -> None:
    assert act(api, status, **said)["code"] == code
    assert get(api, "/api/v1/acts")["items"] == []


def test_removed_twice_is_a_conflict(api: TestClient) -> None:
    act(api, what="remove_source", node="node-c", source="acme.smi")

    assert act(api, 409, what="remove_source", node="node-c", source="acme.smi")["code"] == "conflict"
    assert get(api, "/api/v1/sources/node-c/acme.smi")["state"] == "removed"


def test_other_media_types_are_no_acts(api: TestClient) -> None:
    answer = api.post("/api/v1/acts", content=b'{"what":"retire","by":"page","card":"SN-1001"}', headers={"content-type": "text/plain"})

    assert answer.status_code == 415
    assert get(api, "/api/v1/cards/SN-1001")["presence"] == "present"


def test_problems_of_http_itself(api: TestClient) -> None:
    assert get(api, "/api/v1/nothing", 404)["hint"]
    wrong = api.delete("/api/v1/cards")
    assert (wrong.status_code, wrong.json()["code"], wrong.headers["allow"]) == (405, "method_not_allowed", "GET")
    assert get(api, "/api/v1/cards", 400, limit="many")["errors"][0]["in"] == "query.limit"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7460", "127.0.0.1.evil.example", "", "10.0.0.1"])
def test_other_host_names_get_nothing(api: TestClient, host: str) -> None:
    answer = api.get("/api/v1/cards", headers={"host": host})

    assert answer.status_code == 421
    assert answer.json()["code"] == "wrong_host"


@pytest.mark.parametrize("host", ["localhost:7460", "127.0.0.1:1", "[::1]:7460", "[::1]", "muster", "127.0.0.9:80", "LOCALHOST"])
def test_own_names(api: TestClient, host: str) -> None:
    assert api.get("/healthz", headers={"host": host}).status_code == 200


def test_the_unexpected_is_a_problem_without_a_traceback(api: TestClient, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(desk.reader), "sources", lambda self: 1 / 0)
    with capture_logs() as logs:
        told = get(api, "/api/v1/sources", 500)

    assert told["code"] == "unexpected"
    assert "division" not in str(told)
    assert logs[0]["path"] == "/api/v1/sources"


def test_a_store_that_does_not_answer_is_503(api: TestClient, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(self: Any) -> Any:
        raise Unavailable("the disk is full", hint="make room")

    monkeypatch.setattr(type(desk.reader), "sources", gone)

    assert get(api, "/api/v1/sources", 503)["hint"] == "make room"


def test_strings_of_devices_are_data(api: TestClient) -> None:
    nasty = "<script>\u2028\x1b[31m\u202e"
    act(api, what="set", card="SN-1001", values={"asset.owner": nasty})

    assert get(api, "/api/v1/cards/SN-1001")["readings"]["asset.owner"]["value"] == nasty
