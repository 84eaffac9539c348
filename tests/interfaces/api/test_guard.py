# SPDX-License-Identifier: Apache-2.0
"""Who is let in and as whom, what is told of those who are not, and that nothing is served which nobody guards."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient
from structlog.testing import capture_logs
from tests.interfaces.api.fleet import T0, Clock, app, fleet, report
from tests.interfaces.api.site import Site, site

from muster.domain.model.access import Grade
from muster.interfaces.api.guard import NEEDS, check
from muster.interfaces.api.identity import MOST_FAILED, WINDOW_S, Attempts
from muster.wire.report import ListingDoc
from muster.wiring.desk import Desk
from muster.wiring.entrance import PEER, Entrance, account, is_loopback

V1 = "/api/v1"


@pytest.fixture
def place() -> Iterator[Site]:
    with site() as found:
        yield found


def who(place: Site, client: tuple[str, int] | None, **entrance: Any) -> TestClient:
    """A client that comes from there."""
    desk = replace(place.desk, entrance=Entrance(**entrance))
    return TestClient(app(desk), base_url="http://127.0.0.1", raise_server_exceptions=False, client=client or ("nowhere", 0))


@pytest.mark.parametrize(
    ("client", "entrance", "role"),
    [
        ((PEER, 0), {"uid": 1000}, "admin"),
        ((PEER, 1000), {"uid": 1000}, "admin"),
        ((PEER, 1001), {"uid": 1000}, None),
        (("127.0.0.1", 5), {"loopback": True}, "operator"),
        (("::1", 5), {"loopback": True}, "operator"),
        (("127.0.0.1", 5), {"loopback": False}, None),
        (("192.0.2.7", 5), {"loopback": True}, None),
        (("unix ", 0), {"loopback": True, "uid": 0}, None),
        (("localhost", 0), {"loopback": True}, None),
        (("::ffff:192.0.2.7", 0), {"loopback": True}, None),
        (("", 0), {"loopback": True}, None),
    ],
)
def test_the_way_alone_tells_who_comes(place: Site, client: tuple[str, int], entrance: dict[str, Any], role: str | None) -> None:
    answer = who(place, client, **entrance).get(f"{V1}/whoami")

    assert answer.status_code == (200 if role else 401)
    assert answer.json().get("role") == role


def test_a_token_counts_before_the_way(place: Site) -> None:
    api = who(place, (PEER, 0), uid=0)

    assert api.get(f"{V1}/whoami", headers={"authorization": f"Bearer {place.secrets['viewer']}"}).json()["name"] == "viewer"
    assert api.get(f"{V1}/whoami", headers={"authorization": "Bearer muster_wrong"}).status_code == 401
    assert api.get(f"{V1}/whoami", headers={"authorization": "Basic cm9vdDpyb290"}).status_code == 401


def test_headers_of_proxies_are_not_believed(place: Site) -> None:
    api = who(place, ("192.0.2.7", 5), loopback=True, uid=0)
    for name in ("x-forwarded-for", "x-real-ip", "forwarded", "x-forwarded-host", "x-remote-user", "remote-user"):
        for value in ("127.0.0.1", "unix", "for=127.0.0.1", "root"):
            assert api.get(f"{V1}/cards", headers={name: value}).status_code == 401


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer  ", "bearer\tx", "Token x", "Bearer " + "x" * 600, "Bearer a b", "Bearer \xff", "Negotiate x"]
)
def test_headers_that_hold_no_token(place: Site, header: str) -> None:
    answer = place.api.get(f"{V1}/cards", headers=[(b"authorization", header.encode("latin-1"))])

    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_two_headers_are_one_too_many(place: Site) -> None:
    good = f"Bearer {place.secrets['admin']}"
    headers = [("authorization", good), ("authorization", good)]

    assert place.api.get(f"{V1}/cards", headers=headers).status_code == 401


def test_a_token_in_the_address_is_none(place: Site) -> None:
    for name in ("token", "access_token", "authorization", "api_key"):
        assert place.api.get(f"{V1}/cards", params={name: place.secrets["admin"]}).status_code == 401
        assert place.api.get(f"{V1}/cards", headers={"cookie": f"{name}={place.secrets['admin']}"}).status_code == 401


def nothing() -> dict[str, str]:
    return {}


def test_a_route_without_a_need_keeps_the_api_from_starting(place: Site) -> None:
    room = APIRouter(prefix="/api/v1")
    room.add_api_route("/secrets", nothing, methods=["GET", "POST"])
    api = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    api.include_router(room)
    with pytest.raises(LookupError, match=r'\("GET", "/api/v1/secrets"\), \("POST", "/api/v1/secrets"\)'):
        check(api)
    mounted = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    mounted.mount("/static", FastAPI())
    with pytest.raises(TypeError, match="guard"):
        check(mounted)


def test_a_route_that_came_later_is_denied_to_all(place: Site) -> None:
    api = app(place.desk)
    api.add_api_route("/api/v1/late", nothing, methods=["GET"])
    client = TestClient(api, base_url="http://127.0.0.1", client=("192.0.2.7", 1))
    answer = client.get("/api/v1/late", headers={"authorization": f"Bearer {place.secrets['admin']}"})

    assert answer.status_code == 403
    assert "not declared" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("who", "method", "path", "detail", "hint"),
    [
        ("viewer", "POST", "acts", ": needs the role operator, and viewer is viewer", "--role operator"),
        ("operator", "GET", "tokens", ": needs the role admin, and operator is operator", "--role admin"),
        ("reads findings", "GET", "cards", ": reads may read findings only, not roll", "--scope read=roll"),
        ("admin", "POST", "reports", ": this is for programs on the server's own machine", "muster agent join"),
    ],
)
def test_a_refusal_is_a_sentence_and_says_what_to_do(place: Site, who: str, method: str, path: str, detail: str, hint: str) -> None:
    told = place.ask(who, method, f"{V1}/{path}", {} if method == "POST" else None).json()

    assert told["detail"] == f"{method} {V1}/{path}{detail}"
    assert hint in told["hint"]


def test_who_comes_by_loopback_is_called_something() -> None:
    with site(loopback=True, beyond=False) as place:
        near = TestClient(place.app, base_url="http://127.0.0.1", client=("127.0.0.1", 1))
        told = near.get(f"{V1}/tokens").json()
    assert told["detail"] == f"GET {V1}/tokens: needs the role admin, and who comes without a token is operator"
    assert "socket" in told["hint"]


def test_what_is_public_is_few() -> None:
    assert {path for (_, path), need in NEEDS.items() if need.public} == {"/healthz", "/readyz", "/livez", "/version", "/api/v1/login/oidc"}


def test_failed_tokens_are_limited_by_address(place: Site) -> None:
    for _ in range(MOST_FAILED):
        assert place.ask("muster_guess", "GET", f"{V1}/cards").status_code == 401
    answer = place.ask("muster_guess", "GET", f"{V1}/cards")

    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_attempts")
    assert 0 < int(answer.headers["retry-after"]) <= WINDOW_S + 1
    assert place.ask("viewer", "GET", f"{V1}/cards").status_code == 429
    assert place.ask(None, "GET", "/healthz").status_code == 200
    other = TestClient(place.app, base_url="http://127.0.0.1", client=("192.0.2.8", 1))
    assert other.get(f"{V1}/cards", headers={"authorization": f"Bearer {place.secrets['viewer']}"}).status_code == 200
    assert place.ask("viewer", "GET", f"{V1}/cards").status_code == 200, "who was let in is not locked out by a neighbour"
    assert place.ask("muster_guess", "GET", f"{V1}/cards").status_code == 429
    place.clock.now += WINDOW_S
    assert place.ask("muster_guess", "GET", f"{V1}/cards").status_code == 401


def test_requests_without_a_token_lock_nobody_out(place: Site) -> None:
    for _ in range(MOST_FAILED * 3):
        assert place.ask(None, "GET", f"{V1}/cards").status_code == 401

    assert place.ask("viewer", "GET", f"{V1}/cards").status_code == 200


def test_failed_sign_ins_are_limited_too(place: Site) -> None:
    for _ in range(MOST_FAILED):
        assert place.ask(None, "POST", f"{V1}/login/oidc", {"id_token": "x"}).status_code == 403

    assert place.ask(None, "POST", f"{V1}/login/oidc", {"id_token": "x"}).status_code == 429


def test_attempts_are_few_in_memory_and_survive_a_clock_that_jumps() -> None:
    attempts = Attempts()
    for number in range(20_000):
        attempts.failed(f"10.0.{number // 256}.{number % 256}", 1000.0)
    for _ in range(MOST_FAILED):
        attempts.failed("a", 1000.0)

    assert len(attempts._failed) <= 10_000
    assert attempts.wait("a", "t", 1000.0) == WINDOW_S
    assert attempts.wait("a", "t", 500.0) == 0.0


def test_refusals_are_logged_once_each_and_counted(place: Site) -> None:
    with capture_logs() as told:
        asked = [(None, "GET", f"{V1}/cards"), ("muster_x", "GET", f"{V1}/nodes"), ("viewer", "POST", f"{V1}/acts"), ("operator", "GET", f"{V1}/tokens")]
        for name, method, path in asked:
            place.ask(name, method, path, {} if method == "POST" else None)
        place.ask("viewer", "GET", f"{V1}/cards")
    refused = [each for each in told if each["event"] == "refused"]

    assert [(each["status"], each["method"], each["path"], each["address"]) for each in refused] == [
        (401, "GET", f"{V1}/cards", "192.0.2.7"),
        (401, "GET", f"{V1}/nodes", "192.0.2.7"),
        (403, "POST", f"{V1}/acts", "192.0.2.7"),
        (403, "GET", f"{V1}/tokens", "192.0.2.7"),
    ]
    assert refused[2]["user"] == "viewer"
    assert dict(place.app.state.refusals.counts) == {401: 2, 403: 2}


def test_a_secret_in_a_path_is_not_logged(place: Site) -> None:
    secrets = [place.secrets["viewer"], "mjoin_ab12cd_" + "Q7x" * 12, "eyJhbGciOiJFZERTQSJ9." + "Ab3." * 9, "z9-_" * 11]
    with capture_logs() as told:
        for each in secrets:
            place.ask(None, "GET", f"{V1}/cards/{each}?token={each}")
        place.ask(None, "GET", f"{V1}/captures/{'0a' * 32}")
    assert [each["path"] for each in told] == [f"{V1}/cards/(token)"] * 4 + [f"{V1}/captures/{'0a' * 32}"]


def test_a_log_cannot_be_forged(place: Site) -> None:
    with capture_logs() as told:
        place.ask(None, "GET", f"{V1}/cards/a%0a2026-01-01%20refused%1b%5b2J%e2%80%ae{'x' * 1000}")
    line = told[0]["path"]

    assert line.isascii()
    assert line.isprintable()
    assert len(line) <= 200


def test_no_token_is_in_any_log_or_answer(place: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = place.secrets["viewer"]
    texts: list[str] = []
    with capture_logs() as told:
        for token in (secret, secret + "x", "muster_canary-" + "q" * 30):
            for method, path in (("GET", f"{V1}/cards"), ("GET", f"{V1}/whoami"), ("POST", f"{V1}/acts"), ("GET", "/nothing"), ("DELETE", f"{V1}/cards")):
                answer = place.ask(token, method, path, {"what": "x"} if method == "POST" else None)
                texts += [answer.text, str(answer.headers)]
        texts += [place.ask("admin", "GET", f"{V1}/{path}").text for path in ("tokens", "tokens?ended=true", "audit", "acts", "changes")]
    texts += [json.dumps(told, default=str), caplog.text, repr(place.desk), repr(place.tokens.tokens(place.clock()))]

    for text in texts:
        assert secret.removeprefix("muster_")[:20] not in text
        assert "canary" not in text


def test_acts_are_said_by_the_user_and_not_by_the_body(place: Site) -> None:
    act = {"what": "set", "card": "node-a/0", "values": {"asset.owner": "lab"}}
    place.ask("operator", "POST", f"{V1}/acts", {**act, "by": "boss"})
    place.ask("operator", "POST", f"{V1}/acts", act)
    place.ask("admin", "POST", f"{V1}/acts", {**act, "by": "boss"})
    place.ask("admin", "POST", f"{V1}/acts", {**act, "by": "admin"})
    told = place.ask("admin", "GET", f"{V1}/audit").json()["items"]
    token = next(each["id"] for each in place.ask("admin", "GET", f"{V1}/tokens").json()["items"] if each["name"] == "operator")

    assert [each["by"] for each in told[:4]] == ["admin", "admin for boss", "operator", "operator"]
    assert told[3]["asked_by"] == f"token {token}"


def test_acknowledged_by_the_user(place: Site) -> None:
    failed = ListingDoc(source="other.smi", channel="in_band", witness="driver", cadence=30.0, outcome="not_permitted", complete=False, observed_at=T0)
    place.desk.report(report("node-b", failed, sequence=2))
    finding = place.ask("viewer", "GET", f"{V1}/findings").json()["items"][0]["id"]
    answer = place.ask("operator", "POST", f"{V1}/findings/{finding}/acknowledge", {"by": "boss"})

    assert answer.json()["acknowledged_by"] == "operator"


def test_who_speaks_from_this_machine_names_themself(place: Site) -> None:
    api = who(place, ("127.0.0.1", 5), loopback=True)
    act = {"what": "set", "card": "node-a/0", "values": {"asset.owner": "lab"}}

    assert api.post(f"{V1}/acts", json=act).status_code == 400
    assert api.post(f"{V1}/acts", json={**act, "by": "ann"}).status_code == 200
    here = who(place, (PEER, 0), uid=0)
    assert here.post(f"{V1}/acts", json=act).status_code == 200
    assert [each["by"] for each in here.get(f"{V1}/acts").json()["items"][:2]] == [account(0), "ann"]


def test_reports_come_from_this_machine_only(place: Site) -> None:
    answer = place.ask("admin", "POST", f"{V1}/reports", {})

    assert (answer.status_code, "muster agent join" in answer.json()["hint"]) == (403, True)
    assert who(place, ("127.0.0.1", 5), loopback=True).post(f"{V1}/reports", json={}).status_code == 400


def test_tokens_are_made_shown_once_and_ended(place: Site) -> None:
    made = place.ask("admin", "POST", f"{V1}/tokens", {"name": "ci", "role": "viewer", "lifetime": 3600, "nodes": ["rack1-*"], "reads": ["roll"]})
    secret = made.json()["secret"]

    assert made.headers["cache-control"] == "no-store"
    assert place.ask(secret, "GET", f"{V1}/whoami").json() == {
        "name": "ci", "role": "viewer", "via": "token", "token": made.json()["token"]["id"], "nodes": ["rack1-*"], "reads": ["roll"],
    }  # fmt: skip
    assert place.ask("admin", "POST", f"{V1}/tokens", {"name": "ci", "role": "viewer"}).status_code == 409
    ended = place.ask("admin", "DELETE", f"{V1}/tokens/ci").json()["items"]
    assert [each["state"] for each in ended] == ["revoked"]
    assert place.ask(secret, "GET", f"{V1}/whoami").status_code == 401
    for wrong in ({"role": "root"}, {"reads": ["all"]}, {"name": ""}, {"lifetime": -1}, {"nodes": ["a b"]}, {"name": "x\x1b"}):
        assert place.ask("admin", "POST", f"{V1}/tokens", {"name": "n", "role": "viewer", **wrong}).status_code == 400, wrong


def test_sign_out_ends_sessions_and_no_token(place: Site) -> None:
    assert place.ask("viewer", "POST", f"{V1}/logout").status_code == 200
    assert place.ask("viewer", "GET", f"{V1}/whoami").status_code == 200


def test_an_entry_changed_by_hand_is_found(place: Site) -> None:
    assert place.ask("admin", "GET", f"{V1}/audit/verify").json()["whole"] is True


def test_an_admin_may_not_be_made_by_an_operator_of_loopback(place: Site) -> None:
    api = who(place, ("127.0.0.1", 5), loopback=True)
    answer = api.post(f"{V1}/tokens", json={"name": "x", "role": "admin"})

    assert (answer.status_code, "socket" in answer.json()["hint"]) == (403, True)


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example", 421), ("muster.example", 200), ("MUSTER.example:7460", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("192.0.2.9", 421), ("", 421)],
)
def test_names_of_the_server(place: Site, host: str, status: int) -> None:
    api = who(place, ("192.0.2.7", 5), names=frozenset({"muster.example"}))

    assert api.get("/healthz", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://evil.example", False),
        ("null", False),
        ("http://127.0.0.1.evil.example", False),
        ("https://muster.example", True),
        ("https://muster.example:7460", True),
        ("http://127.0.0.1:7460", True),
        ("http://[::1]:7460", True),
    ],
)
def test_pages_of_other_sites_change_nothing(place: Site, origin: str, allowed: bool) -> None:
    """Every verb that is not for reading, for a browser sends it on behalf of whoever sits before it."""
    api = who(place, ("127.0.0.1", 5), loopback=True, names=frozenset({"muster.example"}))
    for verb in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        status = api.request(verb, f"{V1}/tokens/x", headers={"origin": origin}).status_code
        assert (status != 421) is allowed, verb
    assert api.get(f"{V1}/cards", headers={"origin": origin}).status_code == 200
    assert api.get(f"{V1}/cards", headers={"origin": origin}).headers.get("access-control-allow-origin") is None


def test_the_api_within_a_program_asks_nobody() -> None:
    with fleet(Clock()) as desk:
        api = TestClient(app(desk), base_url="http://127.0.0.1")
        assert api.get(f"{V1}/whoami").json()["role"] == "admin"
        assert api.get(f"{V1}/tokens").status_code == 403
        assert api.get(f"{V1}/audit/verify").status_code == 404


def test_a_desk_holds_even_where_a_door_forgot() -> None:
    """The desk itself refuses what its user may not: a route that does not ask changes nothing."""
    from muster.domain.model.access import User
    from muster.domain.model.errors import NotAllowed, NotFound
    from muster.wire.report import ActDoc

    with fleet(Clock()) as whole:
        act = ActDoc(what="set", node="node-b", values={"asset.owner": "x"})
        for user in (User(name="v", grade=Grade.VIEWER, via="token"), User(name="n", grade=Grade.VIEWER, via="nobody", nodes=("",))):
            with pytest.raises(NotAllowed):
                whole.of(user).act(act)
            with pytest.raises(NotAllowed):
                whole.of(user).acknowledge("f", "", "")
        scoped: Desk = whole.of(User(name="o", grade=Grade.OPERATOR, via="token", nodes=("node-a",)))
        with pytest.raises(NotFound):
            scoped.act(act)
        assert not scoped.whole
        assert (scoped.sees("node-a"), scoped.sees("node-b"), scoped.sees(None)) == (True, False, False)
        assert {card.node_name for card in scoped.reader.fresh(0).cards} == {"node-a"}
        hidden = next(card for card in whole.reader.cards() if card.node_name == "node-b")
        assert scoped.reader.minutes(hidden.id, "temperature.core", 0, 2e9) == []
        with pytest.raises(NotFound):
            scoped.reader.resolve(hidden.id)


def test_words_for_addresses() -> None:
    assert [is_loopback(each) for each in ("127.9.9.9", "::1", "[::1]", "192.0.2.1", "localhost", "")] == [True, True, True, False, False, False]
    assert account(2**31 - 7) == f"uid {2**31 - 7}"
