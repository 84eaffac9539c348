# SPDX-License-Identifier: Apache-2.0
"""The routes of those who join, given anything at all: an answer with a status, never a failure of ours, and nobody comes in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.domain.model.errors import InputError
from muster.services.enrolment import Enrolment
from muster.services.enrolment_routes import AUTHORITY, ENROL, LEAVE, PATHS, RENEW, TOKEN, answered
from muster.wire.enrol import AuthorityDoc, Enrolled, EnrolRequest, LeaveRequest, RenewRequest, Signed, TokenRequest, to_prove
from muster.wire.enrol import Token as AccessToken
from muster.wire.report import NodeDoc
from tests.services.gate import NOW, SERVER, Node, a_gate, audited, doc, joined, mint

pack = msgspec.msgpack.encode
ODD = st.one_of(st.text(max_size=30), st.binary(max_size=40), st.floats(), st.integers(-(2**63), 2**64 - 1), st.none(), st.lists(st.booleans(), max_size=2))
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


House = tuple[Enrolment, Any, str, str]


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """A gate with a member and a token that is good, its store, that token, and the member."""
    with a_gate() as (gate, store):
        _, reporter, _ = joined(gate)
        yield gate, store, mint(gate, uses=100_000), reporter


@QUICK
@given(path=st.sampled_from(sorted(PATHS)), body=st.binary(max_size=300))
def test_bytes_that_are_no_request(house: House, path: str, body: bytes) -> None:
    found = answered(house[0], "POST", path, body, NOW)
    assert found.status in (400, 404)
    assert json.loads(found.body)["detail"]


@QUICK
@given(
    kind=st.sampled_from([EnrolRequest, TokenRequest, RenewRequest, LeaveRequest]),
    fields=st.dictionaries(st.sampled_from(["token", "node", "public_key", "server", "at", "reach", "reporter", "nonce", "boot_id", "instance"]), ODD),
    names=st.tuples(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300)),
)
def test_requests_of_odd_parts(house: House, kind: Any, fields: dict[str, Any], names: tuple[str, str, str]) -> None:
    gate, _, token, reporter = house
    node = Node(doc("stranger"))
    whole = {
        "token": token, "node": dict(zip(("name", "machine_id", "system"), names, strict=True)), "public_key": node.public, "server": SERVER,
        "at": NOW, "reporter": reporter, "nonce": os.urandom(16),
    } | fields  # fmt: skip
    body = pack(whole)
    path = {EnrolRequest: ENROL, TokenRequest: TOKEN, RenewRequest: RENEW, LeaveRequest: LEAVE}[kind]
    found = answered(gate, "POST", path, pack(Signed(body=body, proof=node.key.sign(to_prove(kind, body)))), NOW)
    assert found.status in (400, 403, 409) or (found.status == 200 and kind is EnrolRequest)
    assert all(each.name_key and each.name.isprintable() and each.machine_id.isprintable() and len(each.name) <= 256 for each in gate.members())
    (first,) = (each for each in gate.members() if each.reporter == reporter)
    assert (first.revoked_at, first.generation) == (None, 1)


def test_the_audit_of_all_that_holds(house: House) -> None:
    house[0].tick(NOW + 3600)
    assert house[1].verify().broken is None


def test_the_way_in_as_bytes() -> None:
    with a_gate() as (gate, _):
        node = Node(doc("gpu-1"))
        told = answered(gate, "GET", AUTHORITY, b"", NOW, version="1.2")
        assert msgspec.msgpack.decode(told.body, type=AuthorityDoc) == AuthorityDoc(authority=b"PEM", version="1.2", newest=2, oldest=1, now=NOW)
        came = answered(gate, "POST", ENROL, pack(node.asks_in(mint(gate))), NOW)
        reporter = msgspec.msgpack.decode(came.body, type=Enrolled).reporter
        token = answered(gate, "POST", TOKEN, pack(node.asks_token(reporter)), NOW)
        assert gate.speaker(msgspec.msgpack.decode(token.body, type=AccessToken).token, NOW).reporter == reporter
        left = answered(gate, "POST", LEAVE, pack(node.prove(LeaveRequest(reporter=reporter, server=SERVER, at=NOW, nonce=os.urandom(16)))), NOW)
        assert left.status == 200


@pytest.mark.parametrize(("method", "path"), [("GET", ENROL), ("POST", AUTHORITY), ("POST", "/v1/other"), ("PUT", TOKEN)])
def test_other_ways_are_none(gate: Enrolment, method: str, path: str) -> None:
    assert answered(gate, method, path, b"", NOW).status == 404


def test_a_newer_agent_may_say_more_than_the_server_reads(gate: Enrolment) -> None:
    node = Node(doc("gpu-1"))
    asked = {"token": mint(gate), "node": {"name": "gpu-1", "rack": "r1"}, "public_key": node.public, "server": SERVER, "at": NOW, "later": [1, 2]}
    body = pack(asked)
    assert gate.enrol(Signed(body=body, proof=node.key.sign(b"muster EnrolRequest\0" + body)), NOW).reporter == "agent@gpu-1"


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "x" * 257, "\u202eevil", ""])
def test_names_that_are_out_to_harm_are_none(gate: Enrolment, name: str) -> None:
    with pytest.raises(InputError, match="name"):
        Node(NodeDoc(name=name, machine_id="m")).joins(gate, mint(gate))
    node, reporter, _ = joined(gate)
    with pytest.raises(InputError, match="name"):
        Node(NodeDoc(name=name, machine_id=node.doc.machine_id, system=node.doc.system), node.key).token(gate, reporter)
    assert [each.name for each in gate.members()] == ["gpu-1"]


def test_a_server_that_takes_over_believes_no_proof_of_before(site: tuple[Enrolment, Any]) -> None:
    gate, _ = site
    node, reporter, _ = joined(gate)
    asked = node.asks_token(reporter, NOW + 5)
    gate.begin(NOW + 10)
    with pytest.raises(InputError, match="clock of the node"):
        gate.token(asked, NOW + 11)
    assert node.token(gate, reporter, NOW + 12).token
    assert not [row for row in audited(site) if row["result"] == "done" and row["what"] == "reporter.token"]
