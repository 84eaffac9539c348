# SPDX-License-Identifier: Apache-2.0
"""Reporters at the API: who may see, mint, revoke and reopen; texts of tokens are told once; what is out of sight is not found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from joserfc.jwk import OKPKey
from tests.interfaces.api.fleet import app
from tests.interfaces.api.site import Site, site
from tests.services.gate import SERVER, SIGNING, Node, doc

from muster.domain.model.errors import MusterError
from muster.interfaces.api import reporters
from muster.interfaces.api.guard import routes
from muster.services.enrolment import Enrolment
from muster.store import open_store
from muster.wiring.authority import TokenSigner

V1 = "/api/v1"


@contextmanager
def _house() -> Iterator[tuple[Site, Enrolment]]:
    store = open_store(None)
    with site() as place:
        signer = TokenSigner(OKPKey.import_key(SIGNING))
        gate = Enrolment(store.enrolment, signer, lambda: b"PEM", SERVER, place.clock(), os.urandom, address=lambda: "https://muster.example:7461")
        desk = replace(place.desk, enrolment=gate)
        served = app(desk)
        if (("GET", f"{V1}/reporters")) not in set(routes(served.routes)):
            served.include_router(reporters.router)
        api = TestClient(served, base_url="http://127.0.0.1", raise_server_exceptions=False, client=("192.0.2.7", 4711))
        yield replace(place, desk=desk, api=api, app=served), gate
    store.close()


@pytest.fixture
def house() -> Iterator[tuple[Site, Enrolment]]:
    with _house() as found:
        yield found


def joins(place: Site, gate: Enrolment, name: str) -> Node:
    """A node joins by a token that an admin made at the API."""
    made = place.ask("admin", "POST", f"{V1}/join-tokens", {"node": name}).json()
    node = Node(doc(name))
    node.joins(gate, made["token"], place.clock())
    return node


def test_a_token_is_made_told_once_and_listed_without_its_text(house: tuple[Site, Enrolment]) -> None:
    place, _ = house
    answer = place.ask("admin", "POST", f"{V1}/join-tokens", {"nodes": ["b", "a"], "uses": 5, "lasts": 600})
    made = answer.json()
    (listed,) = place.ask("admin", "GET", f"{V1}/join-tokens").json()["items"]

    assert answer.headers["cache-control"] == "no-store"
    assert (made["authority"], made["address"]) == (SERVER, "https://muster.example:7461")
    assert listed == {
        "id": made["id"], "scope": {"reach": "list", "nodes": ["a", "b"], "cluster": None}, "uses": 5, "left": 5, "created_at": listed["created_at"],
        "expires_at": made["expires_at"], "by": "admin",
    }  # fmt: skip
    assert place.ask("admin", "DELETE", f"{V1}/join-tokens/{made['id']}").json() == {"items": []}
    assert place.ask("admin", "DELETE", f"{V1}/join-tokens/{made['id']}").status_code == 404


@pytest.mark.parametrize(
    "body",
    [{"uses": 0}, {"lasts": 0}, {"lasts": 1e9}, {"node": "a", "cluster": "c"}, {"nodes": [" "]}, {"node": "x" * 300}, {"uses": "many"}, [], {"lasts": None}],
)
def test_what_makes_no_sense_is_refused(house: tuple[Site, Enrolment], body: Any) -> None:
    answer = house[0].ask("admin", "POST", f"{V1}/join-tokens", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


def test_reporters_are_listed_page_by_page(house: tuple[Site, Enrolment]) -> None:
    place, gate = house
    for name in ("n-3", "n-1", "n-2"):
        joins(place, gate, name)
    first = place.ask("viewer", "GET", f"{V1}/reporters", params={"limit": 2}).json()
    rest = place.ask("viewer", "GET", f"{V1}/reporters", params={"limit": 2, "cursor": first["next"]}).json()

    assert [each["id"] for each in (*first["items"], *rest["items"])] == ["agent@n-1", "agent@n-2", "agent@n-3"]
    assert rest["next"] is None
    assert first["items"][0]["state"] == "joined"
    assert "key" not in {*first["items"][0]}


def test_an_operator_revokes_and_reopens(house: tuple[Site, Enrolment]) -> None:
    place, gate = house
    node = joins(place, gate, "gpu-1")
    token = node.token(gate, "agent@gpu-1", place.clock()).token
    ended = place.ask("operator", "POST", f"{V1}/reporters/gpu-1/revoke", {"reason": "lost"}).json()
    assert (ended["id"], ended["state"], ended["revoked_by"], ended["reason"]) == ("agent@gpu-1", "revoked", "operator", "lost")
    with pytest.raises(MusterError):
        gate.speaker(token, place.clock())
    assert place.ask("operator", "POST", f"{V1}/reporters/gpu-1/revoke", {}).status_code == 409
    opened = place.ask("operator", "POST", f"{V1}/reporters/agent@gpu-1/reenrol", {"lasts": 600})
    assert opened.headers["cache-control"] == "no-store"
    assert opened.json()["reporter"]["state"] == "reopened"
    Node(doc("gpu-1", machine="new")).joins(gate, opened.json()["made"]["token"], place.clock())
    assert [each["state"] for each in place.ask("viewer", "GET", f"{V1}/reporters").json()["items"]] == ["joined"]


def test_who_may_what(house: tuple[Site, Enrolment]) -> None:
    place, gate = house
    joins(place, gate, "node-a")
    joins(place, gate, "node-b")
    asks = {
        ("GET", "reporters"): {"viewer", "operator", "admin", "viewer of a", "operator of a"},
        ("POST", "reporters/node-a/reenrol"): {"operator", "admin", "operator of a"},
        ("POST", "reporters/node-a/revoke"): {"operator", "admin", "operator of a"},
        ("GET", "join-tokens"): {"admin"},
        ("POST", "join-tokens"): {"admin"},
        ("DELETE", "join-tokens/none"): {"admin"},
    }
    for (method, path), may in asks.items():
        for who in (None, "revoked", "expired", "viewer", "operator", "admin", "viewer of a", "operator of a", "reads findings"):
            status = place.ask(who, method, f"{V1}/{path}", {} if method == "POST" else None).status_code
            denied = {401, 429} if who in (None, "revoked", "expired") else {403}
            assert (status in denied) is (who not in may), (method, path, who, status)


def test_what_is_out_of_sight_is_not_found(house: tuple[Site, Enrolment]) -> None:
    place, gate = house
    joins(place, gate, "node-a")
    joins(place, gate, "node-b")
    assert [each["node"] for each in place.ask("viewer of a", "GET", f"{V1}/reporters").json()["items"]] == ["node-a"]
    for word in ("node-b", "agent@node-b", "machine-node-b", "none"):
        for verb in ("revoke", "reenrol"):
            answer = place.ask("operator of a", "POST", f"{V1}/reporters/{word}/{verb}", {})
            assert answer.status_code == 404
            assert "agent@node-b" not in answer.text or word == "agent@node-b"
    assert place.ask("operator of a", "POST", f"{V1}/reporters/machine-node-a/revoke", {}).status_code == 200


def test_a_server_that_lets_nobody_in_says_so(house: tuple[Site, Enrolment]) -> None:
    place = house[0]
    bare = app(replace(place.desk, enrolment=None))
    if (("GET", f"{V1}/reporters")) not in set(routes(bare.routes)):
        bare.include_router(reporters.router)
    api = TestClient(bare, base_url="http://127.0.0.1", client=("192.0.2.7", 4711))
    answer = api.get(f"{V1}/reporters", headers={"authorization": f"Bearer {place.secrets['admin']}"})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_no_answer_has_a_secret(house: tuple[Site, Enrolment]) -> None:
    place, gate = house
    made = place.ask("admin", "POST", f"{V1}/join-tokens", {}).json()
    node = Node(doc("gpu-1"))
    node.joins(gate, made["token"], place.clock())
    access = node.token(gate, "agent@gpu-1", place.clock()).token
    paths = ("reporters", "join-tokens", "audit", "acts")
    said = "".join(place.ask("admin", "GET", f"{V1}/{path}").text for path in paths)
    for secret in (made["token"], made["token"].split("_")[2], access, node.public.hex()):
        assert secret not in said
