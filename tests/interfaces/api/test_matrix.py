# SPDX-License-Identifier: Apache-2.0
"""Every route, every role, every verb, things in sight and out of it: what is not said here to be allowed is denied.

The routes come from the application itself, so that a new one without a row fails. The rows are written by hand and know nothing of the guard's table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from tests.interfaces.api.fleet import DIGEST, T0, report
from tests.interfaces.api.site import Site, site

from muster.interfaces.api.guard import routes
from muster.wire.report import ListingDoc

VIEWER, OPERATOR, ADMIN, PUBLIC, HERE = "viewer", "operator", "admin", "public", "here"
STRANGERS = [None, "revoked", "expired", "muster_" + "A" * 43, "bad"]
VERBS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
V1 = "/api/v1"


@dataclass(frozen=True)
class Row:
    """A route: the least who may, an address of it in sight of node-a and one out of sight, a body, and the part it reads."""

    least: str
    inside: str = ""
    outside: str = ""
    body: Any = None
    body_outside: Any = None
    part: str = "roll"
    status: int = 200
    lists: bool = False
    params: dict[str, Any] = field(default_factory=dict)


def listing(path: str, least: str = VIEWER, part: str = "roll") -> Row:
    return Row(least, f"{V1}/{path}", part=part, lists=True)


MATRIX: dict[tuple[str, str], Row] = {
    ("GET", "/healthz"): Row(PUBLIC, "/healthz"),
    ("GET", "/readyz"): Row(PUBLIC, "/readyz"),
    ("GET", "/livez"): Row(PUBLIC, "/livez"),
    ("GET", "/version"): Row(PUBLIC, "/version"),
    ("POST", f"{V1}/login/oidc"): Row(PUBLIC, f"{V1}/login/oidc", body={"id_token": "x"}, status=403),
    ("GET", "/openapi.json"): Row(VIEWER, "/openapi.json"),
    ("GET", "/metrics"): Row(VIEWER, "/metrics", part="metrics"),
    ("GET", f"{V1}/whoami"): Row(VIEWER, f"{V1}/whoami"),
    ("POST", f"{V1}/logout"): Row(VIEWER, f"{V1}/logout"),
    ("GET", f"{V1}/summary"): Row(VIEWER, f"{V1}/summary"),
    ("GET", f"{V1}/cards"): listing("cards"),
    ("GET", f"{V1}/cards/{{card:path}}"): Row(VIEWER, f"{V1}/cards/node-a/0", f"{V1}/cards/node-b/card0"),
    ("GET", f"{V1}/cards/{{card:path}}/series"): Row(
        VIEWER, f"{V1}/cards/node-a/0/series", f"{V1}/cards/node-b/card0/series", params={"key": "temperature.core"}
    ),
    ("GET", f"{V1}/cards/{{card:path}}/history"): Row(VIEWER, f"{V1}/cards/node-a/0/history", f"{V1}/cards/node-b/card0/history", part="history"),
    ("GET", f"{V1}/devices"): listing("devices"),
    ("GET", f"{V1}/devices/{{device:path}}"): Row(VIEWER, f"{V1}/devices/dead-0-beef-000000000000", f"{V1}/devices/nothing"),
    ("GET", f"{V1}/partitions"): listing("partitions"),
    ("GET", f"{V1}/partitions/{{partition:path}}"): Row(VIEWER, f"{V1}/partitions/MIG-77770000-0000-4000-8000-000000000001", f"{V1}/partitions/nothing"),
    ("GET", f"{V1}/nodes"): listing("nodes"),
    ("GET", f"{V1}/nodes/{{node:path}}"): Row(VIEWER, f"{V1}/nodes/node-a", f"{V1}/nodes/node-b"),
    ("GET", f"{V1}/sources"): listing("sources"),
    ("GET", f"{V1}/sources/{{source:path}}"): Row(VIEWER, f"{V1}/sources/node-a/acme.smi", f"{V1}/sources/node-b/acme.smi"),
    ("GET", f"{V1}/adapters"): Row(VIEWER, f"{V1}/adapters"),
    ("GET", f"{V1}/adapters/{{adapter}}"): Row(VIEWER, f"{V1}/adapters/pci"),
    ("GET", f"{V1}/changes"): listing("changes", part="history"),
    ("GET", f"{V1}/changes/stream"): Row(VIEWER, f"{V1}/changes/stream", part="history", params={"wait": "0"}),
    ("GET", f"{V1}/changes/{{number}}"): Row(VIEWER, f"{V1}/changes/{{change a}}", f"{V1}/changes/{{change b}}", part="history"),
    ("GET", f"{V1}/findings"): listing("findings", part="findings"),
    ("GET", f"{V1}/findings/{{finding:path}}"): Row(VIEWER, f"{V1}/findings/{{finding a}}", f"{V1}/findings/{{finding b}}", part="findings"),
    ("POST", f"{V1}/findings/{{finding:path}}/acknowledge"): Row(
        OPERATOR, f"{V1}/findings/{{finding a}}/acknowledge", f"{V1}/findings/{{finding b}}/acknowledge", body={"by": "x"}, part="findings"
    ),
    ("GET", f"{V1}/events"): listing("events", part="events"),
    ("GET", f"{V1}/captures/{{digest}}"): Row(VIEWER, f"{V1}/captures/{DIGEST}", f"{V1}/captures/none", part="captures"),
    ("POST", f"{V1}/acts"): Row(
        OPERATOR,
        f"{V1}/acts",
        f"{V1}/acts",
        body={"what": "set", "by": "x", "card": "node-a/0", "values": {"asset.owner": "lab"}},
        body_outside={"what": "set", "by": "x", "card": "node-b/card0", "values": {"asset.owner": "lab"}},
    ),
    ("GET", f"{V1}/acts"): listing("acts", OPERATOR, "audit"),
    ("POST", f"{V1}/reports"): Row(HERE, f"{V1}/reports", body={}),
    ("GET", f"{V1}/audit"): listing("audit", OPERATOR, "audit"),
    ("GET", f"{V1}/audit/verify"): Row(ADMIN, f"{V1}/audit/verify", part="audit"),
    ("GET", f"{V1}/tokens"): Row(ADMIN, f"{V1}/tokens", part="access"),
    ("POST", f"{V1}/tokens"): Row(ADMIN, f"{V1}/tokens", body={"name": "new", "role": "viewer"}, part="access"),
    ("DELETE", f"{V1}/tokens/{{token}}"): Row(ADMIN, f"{V1}/tokens/{{fresh token}}", part="access"),
    ("GET", f"{V1}/reporters"): Row(VIEWER, f"{V1}/reporters", part="access"),
    ("POST", f"{V1}/reporters/{{reporter:path}}/revoke"): Row(
        OPERATOR, f"{V1}/reporters/{{fresh reporter}}/revoke", f"{V1}/reporters/node-b/revoke", body={"reason": "x"}, part="access"
    ),
    ("POST", f"{V1}/reporters/{{reporter:path}}/reenrol"): Row(
        OPERATOR, f"{V1}/reporters/{{fresh reporter}}/reenrol", f"{V1}/reporters/node-b/reenrol", body={}, part="access"
    ),
    ("GET", f"{V1}/join-tokens"): Row(ADMIN, f"{V1}/join-tokens", part="access"),
    ("POST", f"{V1}/join-tokens"): Row(ADMIN, f"{V1}/join-tokens", body={"node": "new"}, part="access"),
    ("DELETE", f"{V1}/join-tokens/{{token}}"): Row(ADMIN, f"{V1}/join-tokens/{{fresh join token}}", part="access"),
}
"""What a role of the site may, by route. A route that is not here is a failure of its own."""

NUMBERS = count()
GRADES = {VIEWER: 0, OPERATOR: 1, ADMIN: 2}


@pytest.fixture(scope="module")
def place() -> Iterator[Site]:
    with site() as found:
        found.desk.report(_wrong_clock("node-b"))
        found.desk.report(_wrong_clock("node-a"))
        found.joins("node-a")
        found.joins("node-b")
        yield found


def _wrong_clock(node: str) -> Any:
    """A report after which the source of the node is failed: a finding on it."""
    failed = ListingDoc(source="other.smi", channel="in_band", witness="driver", cadence=30.0, outcome="not_permitted", complete=False, observed_at=T0)
    return report(node, failed, sequence=2)


@pytest.fixture(scope="module")
def found(place: Site) -> list[tuple[str, str]]:
    return sorted({("GET" if method == "HEAD" else method, path) for method, path in routes(place.app.routes)})


def address(place: Site, path: str) -> str:
    """The path with what only the running site knows."""
    if "{" not in path:
        return path
    if "{fresh token}" in path:
        return path.replace("{fresh token}", place.ask("admin", "POST", f"{V1}/tokens", {"name": f"t{next(NUMBERS)}", "role": "viewer"}).json()["token"]["id"])
    if "{fresh reporter}" in path:
        return path.replace("{fresh reporter}", place.joins(f"rack9-{next(NUMBERS)}"))
    if "{fresh join token}" in path:
        return path.replace("{fresh join token}", place.ask("admin", "POST", f"{V1}/join-tokens", {"node": f"n{next(NUMBERS)}"}).json()["id"])
    for side, node in (("a", "node-a"), ("b", "node-b")):
        ids = {each["name"]: each["id"] for each in place.ask("admin", "GET", f"{V1}/nodes").json()["items"]}
        cards = {each["id"] for each in place.ask("admin", "GET", f"{V1}/cards", params={"filter": f'node == "{node}"'}).json()["items"]}
        changes = place.ask("admin", "GET", f"{V1}/changes").json()["items"]
        number = next(each["number"] for each in changes if each["subject"] in {ids[node], *cards} or (each["subject"] or {}) in cards)
        findings = place.ask("admin", "GET", f"{V1}/findings").json()["items"]
        finding = next((each["id"] for each in findings if each["node"] == node), "none")
        path = path.replace(f"{{change {side}}}", str(number)).replace(f"{{finding {side}}}", finding)
    return path


def test_every_route_has_a_row_and_every_row_a_route(place: Site, found: list[tuple[str, str]]) -> None:
    assert [each for each in found if each not in MATRIX] == []
    assert [each for each in MATRIX if each not in found] == []


@pytest.mark.parametrize(("method", "path"), sorted(MATRIX))
def test_roles(place: Site, found: list[tuple[str, str]], method: str, path: str) -> None:
    row = MATRIX[method, path]
    if (method, path) not in found:
        pytest.skip("not served yet")
    for who in STRANGERS:
        place.clock.now += 61  # so that failures before do not count
        answer = place.ask(who, method, address(place, row.inside), row.body, params=row.params)
        if row.least == PUBLIC and who is None:
            assert answer.status_code == row.status
        else:
            assert answer.status_code == 401, (who, answer.text)
            assert answer.headers["www-authenticate"].startswith("Bearer ")
            assert answer.headers["content-type"] == "application/problem+json"
    for who in GRADES:
        answer = place.ask(who, method, address(place, row.inside), row.body, params=row.params)
        allowed = row.least == PUBLIC or (row.least in GRADES and GRADES[who] >= GRADES[row.least])
        if allowed:
            assert answer.status_code == row.status, (who, answer.text)
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed"), (who, answer.text)


@pytest.mark.parametrize(("method", "path"), sorted(MATRIX))
def test_parts_of_a_token_that_only_reads(place: Site, found: list[tuple[str, str]], method: str, path: str) -> None:
    row = MATRIX[method, path]
    if (method, path) not in found or row.least == PUBLIC:
        pytest.skip("not served yet, or for all")
    answer = place.ask("reads findings", method, address(place, row.inside), row.body, params=row.params)
    allowed = row.part == "findings" and method == "GET"

    assert answer.status_code == (200 if allowed else 403), answer.text


@pytest.mark.parametrize(("method", "path"), sorted(MATRIX))
def test_what_is_out_of_sight_is_not_there(place: Site, found: list[tuple[str, str]], method: str, path: str) -> None:
    row = MATRIX[method, path]
    who = "operator of a"
    if (method, path) not in found or row.least not in (VIEWER, OPERATOR):
        pytest.skip("not for one of some nodes")
    inside = place.ask(who, method, address(place, row.inside), row.body, params=row.params)
    assert inside.status_code == row.status, inside.text
    if path != "/openapi.json":
        assert "node-b" not in inside.text
        assert "node-c" not in inside.text
    if row.outside:
        outside = place.ask(who, method, address(place, row.outside), row.body_outside or row.body, params=row.params)
        assert (outside.status_code, outside.json()["code"]) == (404, "not_found"), outside.text
        if "nothing" not in row.outside and "none" not in row.outside:
            there = place.ask("operator", method, address(place, row.outside), row.body_outside or row.body, params=row.params)
            assert there.status_code == row.status, there.text


def test_lists_hold_what_is_in_sight_and_all_of_it(place: Site) -> None:
    for path in (path for (_, path), row in MATRIX.items() if row.lists and row.least == VIEWER):
        whole = place.ask("viewer", "GET", path).json()["items"]
        mine = place.ask("viewer of a", "GET", path).json()["items"]
        assert [each for each in whole if each in mine] == mine, path
        if path.endswith(("/cards", "/nodes", "/sources")):
            assert 0 < len(mine) < len(whole), path


def test_ids_of_others_are_not_there_however_they_are_named(place: Site) -> None:
    card = place.ask("admin", "GET", f"{V1}/cards/node-b/card0").json()
    names = [card["id"], card["id"][:8], "node-b/card0", "node-b/0000:03:00.0", card["name"]]
    for name in names:
        assert place.ask("viewer of a", "GET", f"{V1}/cards/{name}").status_code == 404, name
    node = card["node"]["id"] if isinstance(card["node"], dict) else place.ask("admin", "GET", f"{V1}/nodes/node-b").json()["id"]
    for path in (f"nodes/{node}", f"sources/{node}/acme.smi", "sources/NODE-B/acme.smi"):
        assert place.ask("viewer of a", "GET", f"{V1}/{path}").status_code == 404, path
    assert place.ask("viewer of a", "GET", f"{V1}/changes", params={"subject": card["id"]}).json()["items"] == []
    assert place.ask("viewer of a", "GET", f"{V1}/events", params={"node": "node-b"}).json()["items"] == []
    assert place.ask("viewer of a", "GET", f"{V1}/events", params={"card": card["id"]}).status_code == 404


@pytest.mark.parametrize(
    "said",
    [
        {"what": "set", "node": "node-b", "values": {"asset.owner": "x"}},
        {"what": "set", "card": {"serial": "SN-404"}, "values": {"asset.owner": "x"}},
        {"what": "retire", "card": "node-b/card0"},
        {"what": "same", "card": "node-a/0", "other": "node-b/card0"},
        {"what": "remove_source", "node": "node-b", "source": "acme.smi"},
        {"what": "store", "card": {"serial": "SN-77"}, "place": "shelf"},
        {"what": "retire", "card": {"id": "card-of-nobody"}},
        {"what": "store", "card": "node-c/card0", "place": "x", "dry_run": True},
    ],
)
def test_acts_on_what_is_out_of_sight(place: Site, said: dict[str, Any]) -> None:
    before = place.ask("admin", "GET", f"{V1}/acts").json()
    answer = place.ask("operator of a", "POST", f"{V1}/acts", said)

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text
    assert place.ask("admin", "GET", f"{V1}/acts").json() == before


@pytest.mark.parametrize("path", sorted({row.inside for row in MATRIX.values()}))
def test_other_verbs_do_nothing(place: Site, found: list[tuple[str, str]], path: str) -> None:
    """A verb that no row names is refused to all: to strangers before anything is looked at, to users as no method of the resource."""
    served = {method for method, template in found if MATRIX[method, template].inside == path}
    if not served:
        pytest.skip("not served yet")
    served |= {"HEAD"} if "GET" in served else set()
    for verb in sorted(set(VERBS) - served):
        place.clock.now += 61
        assert place.ask(None, verb, address(place, path)).status_code == 401
        for who in ("viewer", "admin"):
            assert place.ask(who, verb, address(place, path)).status_code in (404, 405), (who, verb)


def test_paths_that_are_none_tell_strangers_nothing(place: Site) -> None:
    for path in ("/", "/nothing", "/api/v1", "/api/v1/", "/docs", "/redoc", "/api/v2/cards", "//api/v1/cards", "/healthz/", "/HEALTHZ"):
        assert place.ask(None, "GET", path).status_code == 401, path
        assert place.ask("admin", "GET", path).status_code in (404, 405), path
