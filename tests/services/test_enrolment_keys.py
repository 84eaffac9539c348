# SPDX-License-Identifier: Apache-2.0
"""Keys and access tokens: proofs are used once, what is revoked is over at once, one key in two places is told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muster.domain.model.errors import Conflict, InputError, NotAllowed
from muster.services.enrolment import Enrolment
from muster.services.enrolment_access import LIFE
from muster.services.enrolment_proof import WINDOW
from muster.store import open_store
from muster.wire.enrol import EnrolRequest, Signed
from muster.wire.report import NodeDoc
from tests.services.gate import NOW, SERVER, Node, a_gate, audited, doc, gate_on, joined, mint


def test_a_key_without_its_proof_and_an_altered_request_are_refused(gate: Enrolment) -> None:
    node, thief = Node(doc("gpu-1")), Node(doc("gpu-1"))
    token = mint(gate)
    good = node.asks_in(token)
    with pytest.raises(NotAllowed, match="does not fit"):
        gate.enrol(Signed(body=good.body, proof=thief.key.sign(good.body)), NOW)
    with pytest.raises(NotAllowed, match="does not fit"):
        gate.enrol(Signed(body=good.body.replace(b"gpu-1", b"gpu-2"), proof=good.proof), NOW)
    with pytest.raises(InputError, match="does not fit"):
        gate.enrol(Signed(body=b"\xc1", proof=b""), NOW)
    elsewhere = node.prove(EnrolRequest(token=token, node=node.doc, public_key=node.public, server="sha256:" + "00" * 32, at=NOW))
    with pytest.raises(InputError, match="another server"):
        gate.enrol(elsewhere, NOW)
    assert [each.left for each in gate.tokens(NOW)] == [1]
    assert gate.members() == []


def test_revoked_is_over_at_once_and_after_a_restart(tmp_path: Path) -> None:
    with a_gate(tmp_path / "roll.sqlite") as (gate, store):
        node, reporter, speaker = joined(gate)
        text = node.token(gate, reporter).token
        gate.revoke("gpu-1", "admin", "stolen", NOW)
        with pytest.raises(NotAllowed, match="was revoked"):
            gate.speaker(text, NOW)
        with pytest.raises(NotAllowed, match="was revoked"):
            node.token(gate, reporter)
        again = gate_on(store)
        with pytest.raises(NotAllowed, match="was revoked"):
            again.speaker(text, NOW)
        with pytest.raises(Conflict, match="revoked before"):
            gate.revoke("gpu-1", "admin", "", NOW)
        with pytest.raises(NotAllowed, match="was revoked") as told:
            Node(doc("gpu-1")).joins(gate, mint(gate))
        assert "reenrol" in told.value.hint
        del speaker


def test_another_process_learns_of_it_within_a_second_and_writes_nothing(tmp_path: Path) -> None:
    with a_gate(tmp_path / "roll.sqlite") as (gate, _):
        node, reporter, _ = joined(gate)
        text = node.token(gate, reporter).token
        other = open_store(tmp_path / "roll.sqlite")
        door = gate_on(other)
        assert door.speaker(text, NOW).reporter == reporter
        gate.revoke(reporter, "admin", "", NOW)
        with pytest.raises(NotAllowed, match="was revoked"):
            door.speaker(text, NOW + 1.0)
        late, reporter, _ = joined(gate, "gpu-2")
        assert door.speaker(late.token(gate, reporter).token, NOW + 2.0).reporter == reporter
        other.close()


def test_proofs_are_for_once_for_a_while_and_for_one_purpose(gate: Enrolment) -> None:
    node, reporter, _ = joined(gate)
    asked = node.asks_token(reporter)
    gate.token(asked, NOW)
    with pytest.raises(NotAllowed, match="used already"):
        gate.token(asked, NOW + 1)
    with pytest.raises(NotAllowed, match="does not fit"):
        gate.leave(node.asks_token(reporter), NOW)
    for off in (WINDOW + 1, -WINDOW - 1):
        with pytest.raises(InputError, match="the clock of the node"):
            gate.token(node.asks_token(reporter, NOW + 1000 + off), NOW + 1000)
    with pytest.raises(InputError, match="nonce"):
        gate.token(node.asks_token(reporter, nonce=b"short"), NOW)
    with pytest.raises(NotAllowed, match="no reporter"):
        gate.token(node.asks_token("agent@other"), NOW)


def test_a_proof_from_before_a_restart_is_not_good_for_a_second_token(site: tuple[Enrolment, Any]) -> None:
    gate, store = site
    node, reporter, _ = joined(gate)
    asked = node.asks_token(reporter, NOW + 5)
    gate.token(asked, NOW + 5)
    again = gate_on(store, NOW + 10)
    with pytest.raises(InputError, match="behind the server's"):
        again.token(asked, NOW + 11)
    assert again.token(node.asks_token(reporter, NOW + 11), NOW + 11).token


def test_access_tokens_end_and_those_of_others_are_none(gate: Enrolment) -> None:
    node, reporter, speaker = joined(gate)
    text = node.token(gate, reporter).token
    assert gate.speaker(text, NOW + LIFE - 1) == speaker
    with pytest.raises(NotAllowed, match="has ended"):
        gate.speaker(text, NOW + LIFE)
    head, body, proof = text.split(".")
    for forged in ("", "x", f"{head}.{body}.{proof[:-4]}AAAA", f"{head}.{body}", f"eyJhbGciOiJub25lIn0.{body}.", "mjoin_x_y"):
        with pytest.raises(NotAllowed, match="not made by this server"):
            gate.speaker(forged, NOW)


def test_a_new_key_ends_the_old_one(gate: Enrolment) -> None:
    node, reporter, _ = joined(gate)
    text, new = node.token(gate, reporter).token, Ed25519PrivateKey.generate()
    with pytest.raises(NotAllowed, match="new key is not proven"):
        gate.renew(Signed(body=(asked := node.asks_renewal(reporter, new)).body, proof=asked.proof, also=asked.proof), NOW)
    gate.renew(node.asks_renewal(reporter, new), NOW)
    with pytest.raises(NotAllowed, match="earlier key"):
        gate.speaker(text, NOW)
    with pytest.raises(NotAllowed, match="does not fit the key"):
        node.token(gate, reporter)
    assert gate.speaker(Node(node.doc, new).token(gate, reporter).token, NOW).reporter == reporter


def test_one_key_in_two_places_is_told_apart_and_the_first_keeps_it(site: tuple[Enrolment, Any]) -> None:
    gate, _ = site
    node, reporter, _ = joined(gate)
    clone = node.restarted("process-9", "boot-9")
    stolen = clone.token(gate, reporter, NOW + 10).token
    kept = node.token(gate, reporter, NOW + 3000).token

    assert gate.speaker(kept, NOW + 3001).reporter == reporter
    with pytest.raises(NotAllowed, match="earlier key"):
        gate.speaker(stolen, NOW + 3001)
    for attempt in (clone, clone.restarted("process-10")):
        with pytest.raises(Conflict, match="two machines at once: this one is the copy"):
            attempt.token(gate, reporter, NOW + 3010)
    assert node.token(gate, reporter, NOW + 5000).token
    assert [row["target"] for row in audited(site) if row["what"] == "reporter.double"] == [reporter]


def test_a_restart_or_a_reboot_is_no_clone(site: tuple[Enrolment, Any]) -> None:
    gate, _ = site
    node, reporter, _ = joined(gate)
    for number in range(40):
        node = node.restarted(f"process-{number}", f"boot-{number // 5}")
        node.token(gate, reporter, NOW + number * 60)
    assert not [row for row in audited(site) if row["what"] == "reporter.double"]


def test_a_copied_disk_in_another_chassis_is_the_copy_even_when_it_came_first(gate: Enrolment) -> None:
    node, reporter, _ = joined(gate)
    copy = Node(NodeDoc(name="gpu-1", machine_id="machine-gpu-1", system="other"), node.key, "boot-c", "process-c")
    node.token(gate, reporter, NOW + 1)
    with pytest.raises(Conflict, match="this one is the copy"):
        copy.token(gate, reporter, NOW + 2)
    with pytest.raises(Conflict, match="joined on another machine"):
        Node(doc("gpu-1", machine="machine-other"), node.key).token(gate, reporter, NOW + 3)


def test_a_chassis_that_was_replaced_is_taken_note_of(site: tuple[Enrolment, Any]) -> None:
    gate, _ = site
    node, reporter, _ = joined(gate)
    later = NOW + 3 * LIFE
    moved = Node(NodeDoc(name="gpu-1", machine_id="machine-gpu-1", system="new-board"), node.key, "boot-2", "process-2")
    moved.token(gate, reporter, later)
    assert gate.members()[0].system == "new-board"
    assert next(row["what"] for row in audited(site)) == "reporter.move"


def test_the_fingerprint_in_a_proof_is_the_servers(gate: Enrolment) -> None:
    assert gate.where().fingerprint == SERVER


def test_a_key_that_was_copied_to_another_machine_joins_nothing(gate: Enrolment) -> None:
    token = mint(gate, uses=2)
    node = Node(doc("gpu-1"))
    node.joins(gate, token)
    with pytest.raises(Conflict, match="on another machine") as told:
        Node(doc("gpu-1", machine="copy"), node.key).joins(gate, token)
    assert "leave --keep-enrolment" in told.value.hint
    with pytest.raises(Conflict, match="joined already, as agent@gpu-1"):
        node.joins(gate, mint(gate))
