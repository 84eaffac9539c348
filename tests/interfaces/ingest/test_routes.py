# SPDX-License-Identifier: Apache-2.0
"""What can be asked, and what is answered to what cannot."""

from __future__ import annotations

import gzip
import logging

import msgspec
import pytest
from tests.interfaces.ingest.door import GOOD, T0, Client, Site, problem, report, request, sequence

from muster.domain.model.errors import Conflict, InputError, MusterError, NotAllowed, Unavailable
from muster.wire.enrol import AuthorityDoc, Enrolled, Signed, Token
from muster.wire.report import AnswerDoc

SIGNED = msgspec.msgpack.encode(Signed(body=b"b", proof=b"p"))


def test_a_report_is_taken_and_acknowledged(site: Site, client: Client) -> None:
    status, headers, body = client.ask(request(report(7)))

    assert (status, headers["content-type"]) == (200, "application/msgpack")
    assert "GMT" in headers["date"]
    assert msgspec.msgpack.decode(body, type=AnswerDoc) == AnswerDoc(answer="applied")
    assert [sequence(each) for each in site.intake.taken] == [7]
    assert site.intake.batches[0][0][0].reporter == "node-a"


def test_a_connection_serves_many_requests(site: Site, client: Client) -> None:
    for number in range(20):
        assert client.ask(request(report(number)))[0] == 200

    assert [sequence(each) for each in site.intake.taken] == list(range(20))
    assert site.ingest.meters.opened == 1
    assert site.ingest.meters.answers["/v1/reports", 200] == 20
    assert site.settled(lambda: site.ingest.meters.flight == 0)


def test_the_path_of_the_api_is_a_path_of_reports_too(site: Site, client: Client) -> None:
    assert client.ask(request(report(), path="/api/v1/reports?x=1"))[0] == 200
    assert client.ask(request(report(), path="http://localhost/v1/reports"))[0] == 200
    assert len(site.intake.taken) == 2


def test_what_the_server_wants_is_told(site: Site, client: Client) -> None:
    site.intake.says = lambda _: AnswerDoc(answer="applied", wanted=["d1"])

    assert msgspec.msgpack.decode(client.ask(request(report()))[2], type=AnswerDoc).wanted == ["d1"]


def test_a_packed_report_is_unpacked(site: Site, client: Client) -> None:
    plain = report(3)

    assert client.ask(request(gzip.compress(plain), Content_Encoding="gzip"))[0] == 200
    assert site.intake.taken == [plain]


@pytest.mark.parametrize("body", [b"no gzip", gzip.compress(b"x" * 500)[:-3], gzip.compress(b"x") + b"more", b""], ids=["none", "cut", "more", "empty"])
def test_what_is_no_gzip_is_refused(site: Site, client: Client, body: bytes) -> None:
    status, _, told = client.ask(request(body, Content_Encoding="gzip"))

    assert (status, problem(told)["code"]) == (400, "invalid_input")
    assert site.intake.taken == []
    assert client.ask(request(report()))[0] == 200


@pytest.mark.parametrize(
    ("error", "status", "retry"),
    [
        (InputError("odd", hint="do this"), 400, False),
        (NotAllowed("not yours"), 403, False),
        (Conflict("used"), 409, False),
        (Unavailable("disk full"), 503, True),
    ],
)
def test_an_error_of_one_report_is_its_own(site: Site, client: Client, error: MusterError, status: int, *, retry: bool) -> None:
    site.intake.says = lambda body: error if sequence(body) == 2 else AnswerDoc(answer="applied")

    assert client.ask(request(report(1)))[0] == 200
    got, headers, body = client.ask(request(report(2)))
    assert got == status
    assert problem(body) | {"code": error.code, "detail": error.message, "status": status, "instance": "/v1/reports"} == problem(body)
    assert ("retry-after" in headers) is retry
    assert client.ask(request(report(3)))[0] == 200


def test_a_refused_report_is_a_conflict(site: Site, client: Client) -> None:
    site.intake.says = lambda _: AnswerDoc(answer="refused", detail="another under this number")

    status, _, body = client.ask(request(report()))

    assert (status, problem(body)["answer"], problem(body)["detail"]) == (409, "refused", "another under this number")


@pytest.mark.parametrize("token", ["", "wrong"])
def test_who_is_not_known_is_told_to_ask_for_a_token(site: Site, client: Client, token: str) -> None:
    status, headers, body = client.ask(request(report(), token=token))

    assert (status, headers["www-authenticate"], problem(body)["code"]) == (401, "Bearer", "not_allowed")
    assert client.ask(request(report()))[0] == 200
    assert len(site.intake.taken) == 1


def test_a_token_that_ends_is_noticed_at_once(site: Site, client: Client) -> None:
    assert client.ask(request(report(1)))[0] == 200
    site.gate.tokens.clear()
    assert client.ask(request(report(2)))[0] == 401
    assert client.ask(request(report(3)))[0] == 401
    site.gate.tokens[GOOD] = "node-a"
    assert client.ask(request(report(4)))[0] == 200
    assert [sequence(each) for each in site.intake.taken] == [1, 4]


def test_two_tokens_on_one_connection_are_two_speakers(site: Site, client: Client) -> None:
    site.gate.tokens["b"] = "node-b"
    for token in (GOOD, "b", GOOD, "b"):
        assert client.ask(request(report(), token=token))[0] == 200

    assert [speaker.reporter for batch in site.intake.batches for speaker, _ in batch] == ["node-a", "node-b"] * 2


def test_who_joins_asks_the_gate(site: Site, client: Client) -> None:
    status, _, body = client.ask(request(method="GET", path="/v1/authority"))
    told = msgspec.msgpack.decode(body, type=AuthorityDoc)
    assert (status, told.authority, told.version, told.newest) == (200, b"-----BEGIN CERTIFICATE-----", "1.2", 2)
    assert told.now >= T0
    assert msgspec.msgpack.decode(client.ask(request(SIGNED, path="/v1/enrol", token=""))[2], type=Enrolled).reporter == "node-a"
    assert msgspec.msgpack.decode(client.ask(request(SIGNED, path="/v1/token", token=""))[2], type=Token).token == GOOD
    assert client.ask(request(SIGNED, path="/v1/renew", token=""))[0] == 200
    assert client.ask(request(SIGNED, path="/v1/leave", token=""))[0] == 200
    assert [(kind, peer) for kind, _, peer in site.gate.asked] == [(kind, "127.0.0.1") for kind in ("enrol", "token", "renew", "leave")]


def test_the_gate_says_no_in_words(site: Site, client: Client) -> None:
    site.gate.raises = NotAllowed("the token is used up", hint="ask for another")
    status, _, body = client.ask(request(SIGNED, path="/v1/enrol", token=""))
    assert (status, problem(body)["detail"], problem(body)["hint"]) == (403, "the token is used up", "ask for another")

    assert client.ask(request(b"\xc1", path="/v1/enrol", token=""))[0] == 400


def test_a_failure_of_the_gate_shows_no_traceback(site: Site, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    site.gate.raises = ZeroDivisionError("in the depths")
    with caplog.at_level(logging.CRITICAL + 1, "muster.ingest"):
        status, _, body = client.ask(request(SIGNED, path="/v1/enrol", token=""))

    assert (status, problem(body)["code"]) == (500, "unexpected")
    assert b"Traceback" not in body
    assert b"depths" not in body


def test_versions_and_health(client: Client) -> None:
    assert msgspec.json.decode(client.ask(request(method="GET", path="/version"))[2]) == {"version": "1.2", "api": "v1", "report_schema": 2}
    for path in ("/healthz", "/readyz"):
        assert msgspec.json.decode(client.ask(request(method="GET", path=path))[2])["status"] == "ok"
    client.send(request(method="HEAD", path="/version"))
    assert client.answer(bare=True)[0] == 200
    assert client.ask(request(method="GET", path="/version"))[0] == 200


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (request(method="GET", path="/"), 404),
        (request(method="GET", path="/v1/reports/"), 404),
        (request(method="GET", path="/v1/../v1/authority"), 404),
        (request(report(), path="/v1/cards"), 404),
        (request(method="GET"), 405),
        (request(report(), method="PUT", Content_Length=str(len(report()))), 405),
        (request(method="DELETE", path="/healthz"), 405),
        (request(report(), kind="application/json"), 415),
        (request(report(), kind=""), 415),
        (request(report(), Content_Encoding="br"), 415),
        (request(SIGNED, path="/v1/token", Content_Encoding="gzip"), 415),
        (request(Content_Length=None), 411),
        (request(report(), Host=None), 400),
        (request(report(), Expect="magic"), 417),
        (request(report()).replace(b"HTTP/1.1", b"HTTP/1.1 "), 400),
    ],
)
def test_everything_else_is_turned_away(site: Site, client: Client, asked: bytes, status: int) -> None:
    got, headers, body = client.ask(asked)

    assert (got, headers["content-type"]) == (status, "application/problem+json")
    assert problem(body)["status"] == status
    assert ("allow" in headers) is (status == 405)
    assert site.intake.taken == []
    with site.client() as other:
        assert other.ask(request(report()))[0] == 200


def test_who_waits_for_a_word_gets_it(site: Site, client: Client) -> None:
    asked = request(report(), Expect="100-continue")
    head, _, body = asked.partition(b"\r\n\r\n")
    client.send(head + b"\r\n\r\n")
    assert client.answer()[0] == 100
    client.send(body)
    assert client.answer()[0] == 200
    assert site.intake.taken == [body]


def test_an_old_client_is_served_once(client: Client) -> None:
    status, headers, _ = client.ask(request(report()).replace(b"HTTP/1.1", b"HTTP/1.0"))

    assert (status, headers["connection"]) == (200, "close")
    assert client.closed


def test_who_wants_to_end_ends(client: Client) -> None:
    assert client.ask(request(report(), Connection="close"))[1]["connection"] == "close"
    assert client.closed


def test_half_closed_clients_get_their_answer(site: Site, client: Client) -> None:
    site.intake.hold.clear()
    client.send(request(report()))
    assert site.settled(lambda: bool(site.intake.batches))
    client.socket.shutdown(1)
    site.intake.hold.set()
    assert client.answer()[0] == 200
    assert client.closed
