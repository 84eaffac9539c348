# SPDX-License-Identifier: Apache-2.0
"""Every change is in the audit or not done, refusals are counted, and no secret lies in the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muster.domain.model.errors import MusterError, NotAllowed, Unavailable
from muster.services.enrolment import Enrolment
from muster.services.enrolment_tokens import digest, named
from muster.store import open_store
from muster.wire.report import NodeDoc
from tests.services.gate import ANY, NOW, Node, a_gate, audited, doc, gate_on, joined, mint


def test_everything_is_in_the_audit_and_the_chain_holds(site: tuple[Enrolment, Any]) -> None:
    gate, store = site
    node, reporter, _ = joined(gate)
    gate.reenrol("gpu-1", 600, "op", NOW)
    gate.renew(node.asks_renewal(reporter, Ed25519PrivateKey.generate()), NOW)
    gate.revoke("gpu-1", "boss", "stolen", NOW)
    token = gate.mint(ANY, 1, 60, "admin", NOW)[0]
    gate.drop(token.id, "admin", NOW)
    told = [(row["by"], row["what"], row["target"], row["result"]) for row in reversed(audited(site))]

    assert [(by, what) for by, what, _, result in told if result == "done"] == [
        ("admin", "join_token.create"), (reporter, "reporter.enrol"), ("op", "reporter.reenrol"), ("op", "join_token.create"),
        (reporter, "reporter.renew"), ("boss", "reporter.revoke"), ("admin", "join_token.create"), ("admin", "join_token.delete"),
    ]  # fmt: skip
    assert store.verify().broken is None


def test_refusals_are_counted_exactly_and_written_seldom(site: tuple[Enrolment, Any]) -> None:
    gate, _ = site
    for number in range(500):
        with pytest.raises(NotAllowed):
            Node(doc(f"n-{number % 300}")).joins(gate, "mjoin_wrong_x")
        with pytest.raises(NotAllowed):
            gate.speaker(f"forged-{number}", NOW)
    gate.tick(NOW + 60)
    denied = [row for row in audited(site) if row["result"] == "denied"]

    assert sum(row["count"] for row in denied) == 1000
    assert len(denied) < 80
    assert {row["what"] for row in denied} == {"reporter.enrol", "reporter.speak"}


def test_texts_of_strangers_are_one_plain_line_in_the_audit(site: tuple[Enrolment, Any]) -> None:
    gate, _ = site
    with pytest.raises(MusterError):
        Node(NodeDoc(name="x\n\x1b[31mforged entry" + "y" * 200)).joins(gate, "mjoin_wrong_x")
    (row,) = audited(site)
    assert row["target"].isprintable()
    assert len(row["target"]) <= 160


def test_nothing_is_done_that_the_audit_does_not_take(site: tuple[Enrolment, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    gate, store = site
    node, reporter, _ = joined(gate)
    token = mint(gate)

    def full(*_: Any) -> None:
        raise Unavailable("no room")

    monkeypatch.setattr("muster.store.access.audit.record", full)
    deeds: list[Callable[[], Any]] = [
        lambda: gate.revoke(reporter, "op", "", NOW),
        lambda: gate.reenrol(reporter, 600, "op", NOW),
        lambda: mint(gate),
        lambda: gate.drop(named(token), "op", NOW),
        lambda: Node(doc("gpu-2")).joins(gate, token),
        lambda: gate.renew(node.asks_renewal(reporter, Ed25519PrivateKey.generate()), NOW),
    ]
    for deed in deeds:
        with pytest.raises(Unavailable, match="no room"):
            deed()
    monkeypatch.undo()

    assert [each.reporter for each in gate_on(store).members()] == [reporter]
    assert (gate.members()[0].revoked_at, gate.members()[0].reenrol_until, gate.members()[0].public_key) == (None, None, node.public)
    assert [each.left for each in gate.tokens(NOW)] == [1]


def test_a_store_that_does_not_answer_is_no_refusal_and_no_way_in(tmp_path: Path) -> None:
    with a_gate(tmp_path / "roll.sqlite") as (gate, store):
        node, reporter, speaker = joined(gate)
        text = node.token(gate, reporter).token
        assert store.lease.acquire("another", NOW)
        other = open_store(tmp_path / "roll.sqlite")
        refusing = gate_on(other)
        with pytest.raises(Unavailable, match="is written by another"):
            Node(doc("gpu-2")).joins(refusing, mint(gate))
        assert refusing.speaker(text, NOW) == speaker
        other.close()


def test_no_secret_is_in_the_store(tmp_path: Path) -> None:
    path = tmp_path / "roll.sqlite"
    with a_gate(path) as (gate, _):
        node, reporter, _ = joined(gate)
        text = node.token(gate, reporter).token
        join = mint(gate)
        with pytest.raises(MusterError):
            Node(doc("gpu-2")).joins(gate, join[:-4] + "aaaa")
        gate.tick(NOW + 60)
        secrets: list[Any] = [join, join.split("_")[2], join.split("_")[2][:20], text, text.split(".")[2], node.key.private_bytes_raw()]
        kept = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert digest(join).encode() in kept
    for secret in secrets:
        assert (secret.encode() if isinstance(secret, str) else secret) not in kept
