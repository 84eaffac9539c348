# SPDX-License-Identifier: Apache-2.0
"""Who joined for a node is one node, whatever it reports; and nodes of which others tell are nobody's to take over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.domain.model.access import Reach, Scope, Speaker
from muster.domain.model.errors import Conflict, NotAllowed
from muster.services.enrolment import Enrolment
from muster.services.enrolment_access import LIFE
from muster.services.enrolment_moves import APART, DAY, RENAMES
from muster.spi.store import Batch, Heard, Layout
from muster.wire.report import NodeDoc
from tests.services.gate import NOW, Node, a_gate, audited, doc, gate_on, joined, mint

HOST = NodeDoc(name="host", machine_id="machine-host", system="system-host")


def a_collector(gate: Enrolment, *nodes: str) -> Speaker:
    """One who speaks for a list."""
    collector = Node(doc("bmc-host"))
    reporter = collector.joins(gate, mint(gate, Scope(reach=Reach.LIST, nodes=frozenset(nodes))), reach="list").reporter
    return gate.speaker(collector.token(gate, reporter).token, NOW)


def refused(gate: Enrolment, speaker: Speaker, node: NodeDoc, why: str) -> None:
    """The report is refused, and that is in the audit after a while."""
    with pytest.raises(NotAllowed, match=why):
        gate.check(speaker, speaker.reporter, node)


def test_a_node_does_not_invent_a_chassis(site: tuple[Enrolment, Any]) -> None:
    gate, _ = site
    _, reporter, speaker = joined(gate)
    for number in range(4):
        refused(gate, speaker, NodeDoc(name="gpu-1", machine_id="machine-gpu-1", system=f"FAKE-{number}"), "chassis id is another")
        refused(gate, speaker, NodeDoc(name="gpu-1", system=f"FAKE-{number}"), "chassis id is another")
    refused(gate, speaker, NodeDoc(name="gpu-1"), "neither the machine id nor the chassis id")
    gate.check(speaker, reporter, NodeDoc(name="gpu-1", system="system-gpu-1"))
    gate.tick(NOW + 60)
    denied = [row for row in audited(site) if row["result"] == "denied"]
    assert sum(row["count"] for row in denied if row["what"] == "reporter.report") == 9
    assert gate.members()[0].system == "system-gpu-1"


def test_an_id_that_was_not_there_is_told_once(site: tuple[Enrolment, Any]) -> None:
    gate, store = site
    node = Node(NodeDoc(name="vm"))
    reporter = node.joins(gate, mint(gate)).reporter
    speaker = gate.speaker(node.token(gate, reporter).token, NOW)
    gate.check(speaker, reporter, NodeDoc(name="vm"))
    gate.check(speaker, reporter, NodeDoc(name="vm", machine_id="m-1"))
    refused(gate, speaker, NodeDoc(name="vm", machine_id="m-2"), "another machine")
    gate.check(speaker, reporter, NodeDoc(name="vm", machine_id="m-1", system="s-1"))
    refused(gate, speaker, NodeDoc(name="vm", machine_id="m-1", system="s-2"), "chassis id is another")
    refused(gate_on(store, NOW + 1), speaker, NodeDoc(name="vm", machine_id="m-1", system="s-2"), "chassis id is another")
    assert [row["what"] for row in audited(site)][:2] == ["reporter.move"] * 2


def test_a_rename_is_in_the_audit_and_reports_from_before_it_are_taken(site: tuple[Enrolment, Any]) -> None:
    gate, store = site
    _, reporter, speaker = joined(gate)
    gate.check(speaker, reporter, NodeDoc(name="gpu-7", machine_id="machine-gpu-1", system="system-gpu-1"))
    assert (gate.members()[0].name, audited(site)[0]["what"], audited(site)[0]["was"], audited(site)[0]["name"]) == ("gpu-7", "reporter.move", "gpu-1", "gpu-7")
    for each in (gate, gate_on(store, NOW + 1)):
        each.check(speaker, reporter, doc("gpu-1"))
        each.check(speaker, reporter, NodeDoc(name="gpu-7", machine_id="machine-gpu-1"))
        assert each.members()[0].name == "gpu-7"


def test_a_node_is_not_renamed_again_and_again(gate: Enrolment) -> None:
    _, _, speaker = joined(gate)
    for number in range(RENAMES):
        gate.check(speaker, speaker.reporter, NodeDoc(name=f"name-{number}", machine_id="machine-gpu-1"))
    refused(gate, speaker, NodeDoc(name="one-more", machine_id="machine-gpu-1"), "renamed 4 times within a day")
    with pytest.raises(NotAllowed):
        gate.speaker("none", NOW + DAY + 1)
    gate.check(speaker, speaker.reporter, NodeDoc(name="one-more", machine_id="machine-gpu-1"))


def test_a_node_does_not_rename_itself_into_or_out_of_a_users_sight() -> None:
    with a_gate() as (_, store):
        gate = gate_on(store, sights=lambda _: [("rack1-*",)])
        node, reporter, speaker = joined(gate)
        inside, other = (NodeDoc(name=name, machine_id="machine-gpu-1", system="system-gpu-1") for name in ("rack1-n01", "gpu-2"))
        with pytest.raises(NotAllowed, match="as rack1-n01 other users would see it than do as gpu-1") as told:
            gate.check(speaker, reporter, inside)
        assert "muster agent reenrol agent@gpu-1" in told.value.hint
        Node(inside, node.key).token(gate, reporter)
        assert gate.members()[0].name == "gpu-1"
        gate.check(speaker, reporter, other)
        _, _, text = gate.reenrol(reporter, 600, "op", NOW)
        anew = Node(inside)
        assert anew.joins(gate, text).reporter == reporter
        speaker = gate.speaker(anew.token(gate, reporter).token, NOW)
        gate.check(speaker, reporter, inside)
        gate.check(speaker, reporter, other)  # waited at the agent since before
        refused(gate, speaker, NodeDoc(name="gpu-3", machine_id="machine-gpu-1"), "other users")


def test_another_chassis_comes_with_a_new_token_and_the_next_one_by_an_operators_word(gate: Enrolment) -> None:
    node, reporter, _ = joined(gate)
    later = NOW + 3 * LIFE
    moved = Node(NodeDoc(name="gpu-1", machine_id="machine-gpu-1", system="new-board"), node.key, "boot-2", "process-2")
    speaker = gate.speaker(moved.token(gate, reporter, later).token, later)
    gate.check(speaker, reporter, moved.doc)
    gate.check(speaker, reporter, doc("gpu-1"))  # waited at the agent since before
    third = replace(moved, doc=NodeDoc(name="gpu-1", machine_id="machine-gpu-1", system="third"), boot="boot-3", instance="process-3")
    with pytest.raises(Conflict, match="its chassis changed within the last 8 days") as told:
        third.token(gate, reporter, later + 3 * LIFE)
    assert "muster agent reenrol gpu-1" in told.value.hint
    late = later + APART + 3 * LIFE
    speaker = gate.speaker(third.token(gate, reporter, late).token, late)
    gate.check(speaker, reporter, third.doc)
    gate.check(speaker, reporter, moved.doc)
    refused(gate, speaker, doc("gpu-1"), "chassis id is another")


def test_a_node_that_a_collector_told_of_is_not_taken_over(gate: Enrolment) -> None:
    listed = NodeDoc(name="srv-1", machine_id="machine-srv", system="CHASSIS-1")
    by_list = a_collector(gate, "srv-1")
    gate.check(by_list, by_list.reporter, listed)
    node = Node(NodeDoc(name="rogue", machine_id="machine-rogue"))
    reporter = node.joins(gate, mint(gate)).reporter
    speaker = gate.speaker(node.token(gate, reporter).token, NOW)
    refused(gate, speaker, NodeDoc(name="rogue", machine_id="machine-rogue", system="CHASSIS-1"), "chassis id is that of srv-1, of which collector@bmc-host")
    refused(gate, speaker, NodeDoc(name="srv-1", machine_id="machine-rogue"), "name is that of srv-1, of which")
    moved = Node(NodeDoc(name="srv-1", machine_id="machine-rogue", system="CHASSIS-1"), node.key)
    moved.token(gate, reporter)
    assert [(each.name, each.system) for each in gate.members() if each.reporter == reporter] == [("rogue", "")]


def test_the_agent_of_a_node_joins_whose_controller_was_listed_first(site: tuple[Enrolment, Any]) -> None:
    gate, _ = site
    by_list = a_collector(gate, "gpu-1", "bmc-2")
    gate.check(by_list, by_list.reporter, NodeDoc(name="gpu-1", system="system-gpu-1"))
    gate.check(by_list, by_list.reporter, NodeDoc(name="bmc-2", system="system-gpu-2"))
    for name in ("gpu-1", "gpu-2"):
        _, reporter, speaker = joined(gate, name)
        gate.check(speaker, reporter, doc(name))
        assert next(row for row in audited(site) if row["what"] == "reporter.enrol")["also_told_by"] == ["collector@bmc-host"]
    gate.check(by_list, by_list.reporter, NodeDoc(name="bmc-2", system="system-gpu-2"))
    gate.check(by_list, by_list.reporter, NodeDoc(name="gpu-1", system="system-gpu-1"))


def test_a_node_that_has_its_agent_is_not_joined_by_another_under_its_controllers_name(gate: Enrolment) -> None:
    by_list = a_collector(gate, "bmc-2")
    gate.check(by_list, by_list.reporter, NodeDoc(name="bmc-2", system="system-gpu-2"))
    joined(gate, "gpu-2")
    for rogue in (NodeDoc(name="bmc-2"), NodeDoc(name="bmc-2", system="system-gpu-2"), NodeDoc(name="rogue", system="system-gpu-2")):
        with pytest.raises(Conflict, match=r"tells of gpu-2|chassis id is that of gpu-2"):
            Node(rogue).joins(gate, mint(gate))
    assert Node(doc("bmc-2")).joins(gate, mint(gate)).reporter == "agent@bmc-2", "another machine and chassis: nothing is mixed up"


def test_an_agent_that_has_not_joined_keeps_its_node_until_that_joins(gate: Enrolment) -> None:
    gate.heard("agent@host", HOST)
    for rogue in (
        NodeDoc(name="rogue", machine_id="m", system="system-host"),
        NodeDoc(name="host", machine_id="m", system="s"),
        NodeDoc(name="rogue", machine_id="machine-host", system="s"),
        NodeDoc(name="host"),
    ):
        with pytest.raises(Conflict, match="is that of host, of which agent@host tells") as told:
            Node(rogue).joins(gate, mint(gate))
        assert f"--node {rogue.name}" in told.value.hint
    assert Node(HOST).joins(gate, mint(gate)).reporter == "agent@host"


def test_an_operator_who_names_the_node_lets_it_in(gate: Enrolment) -> None:
    gate.heard("agent@host", HOST)
    new = NodeDoc(name="host", machine_id="machine-new", system="system-new")
    assert Node(new).joins(gate, mint(gate, Scope(reach=Reach.NODE, nodes=frozenset({"host"})))).reporter == "agent@host"


def test_a_host_that_was_renamed_before_it_joined(gate: Enrolment) -> None:
    gate.heard("agent@old", NodeDoc(name="old", machine_id="machine-host", system="system-host"))
    gate.heard("agent@host", HOST)
    assert Node(HOST).joins(gate, mint(gate)).reporter == "agent@host"


def test_a_former_name_is_not_a_way_to_another_node(gate: Enrolment) -> None:
    _, reporter, speaker = joined(gate)
    gate.check(speaker, reporter, NodeDoc(name="gpu-7", machine_id="machine-gpu-1"))
    with pytest.raises(Conflict, match="gpu-7, which was called so before"):
        Node(NodeDoc(name="gpu-1")).joins(gate, mint(gate))
    assert Node(doc("gpu-1", machine="m-2", system="s-2")).joins(gate, mint(gate)).reporter.startswith("agent@gpu-1-")


def test_a_revoked_node_keeps_its_names(gate: Enrolment) -> None:
    joined(gate, "gpu-2")
    gate.revoke("gpu-2", "op", "", NOW)
    _, _, speaker = joined(gate)
    refused(gate, speaker, NodeDoc(name="gpu-2", machine_id="machine-gpu-1"), "name is that of gpu-2")


def test_a_collector_does_not_speak_of_a_machine_that_is_not_on_its_list(gate: Enrolment) -> None:
    joined(gate, "gpu-2")
    by_list = a_collector(gate, "srv-1")
    refused(gate, by_list, NodeDoc(name="srv-1", machine_id="machine-gpu-2"), "machine id is that of gpu-2")
    gate.check(by_list, by_list.reporter, NodeDoc(name="srv-1", machine_id="machine-srv"))


def test_nobody_reports_from_the_servers_machine_in_a_joined_name(site: tuple[Enrolment, Any]) -> None:
    gate, _ = site
    node, reporter, _ = joined(gate)
    with pytest.raises(NotAllowed, match="it joined, and reports with its token"):
        gate.at_home(reporter)
    gate.at_home("agent@another")
    gate.tick(NOW + 60)
    assert [(row["by"], row["target"]) for row in audited(site) if row["result"] == "denied"] == [("this machine", reporter)]
    node.leaves(gate, reporter)
    gate.at_home(reporter)


def test_what_was_told_before_a_restart_is_known_after_it(site: tuple[Enrolment, Any]) -> None:
    store = site[1]
    words = (("agent@host", HOST), ("watch@host", NodeDoc(name="pdu-1", system="CHASSIS-1")))
    layouts = [
        Layout(slot=slot, node=f"n-{slot}", source="s", reporter=who, since=NOW, columns=(), width=0, node_names=(node.name, node.machine_id, node.system))
        for slot, (who, node) in enumerate(words, 1)
    ]
    heard = [Heard(slot=slot, at=NOW, received_at=NOW, numbers=b"", incarnation="i", sequence=1, facts=b"f") for slot in (1, 2)]
    store.writer.load()
    store.writer.commit(Batch(at=NOW, layouts=layouts, heard=heard))
    gate = gate_on(store, NOW + 1)
    gate.begin(NOW + 1)
    with pytest.raises(Conflict, match="agent@host tells"):
        gate.enrol(Node(NodeDoc(name="host", machine_id="m")).asks_in(mint(gate), NOW + 2), NOW + 2)
    _, reporter, speaker = joined_at(gate, NOW + 2)
    with pytest.raises(NotAllowed, match="pdu-1, of which watch@host tells"):
        gate.check(speaker, reporter, NodeDoc(name="pdu-1", machine_id="machine-gpu-1"))


def joined_at(gate: Enrolment, now: float) -> tuple[Node, str, Speaker]:
    """A node that joined then."""
    node = Node(doc("gpu-1"))
    reporter = node.joins(gate, mint(gate), now).reporter
    return node, reporter, gate.speaker(node.token(gate, reporter, now).token, now)
