# SPDX-License-Identifier: Apache-2.0
"""Enrolment on a real store: who gets in, who does not and why, and that what ended is over at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from muster.domain.model.access import Reach, Scope
from muster.domain.model.errors import Ambiguous, Conflict, InputError, NotAllowed, NotFound
from muster.services.enrolment import Enrolment
from muster.services.enrolment_access import LIFE
from muster.services.enrolment_tokens import named
from muster.wire.report import NodeDoc
from tests.services.gate import NOW, Node, a_gate, doc, joined, mint


def test_a_node_joins_and_speaks_for_itself_alone(gate: Enrolment) -> None:
    _, reporter, speaker = joined(gate)

    assert (reporter, speaker.reporter, speaker.until) == ("agent@gpu-1", "agent@gpu-1", NOW + LIFE)
    gate.check(speaker, reporter, doc("gpu-1"))
    with pytest.raises(NotAllowed, match="another machine"):
        gate.check(speaker, reporter, doc("gpu-1", machine="other"))
    with pytest.raises(NotAllowed, match="not among the nodes"):
        gate.check(speaker, reporter, doc("gpu-2"))
    with pytest.raises(NotAllowed, match="in the name of"):
        gate.check(speaker, "agent@gpu-2", doc("gpu-1"))


def test_a_renamed_node_is_the_same_machine_but_may_take_nobodys_name(gate: Enrolment) -> None:
    _, reporter, speaker = joined(gate)
    joined(gate, "gpu-2")

    gate.check(speaker, reporter, NodeDoc(name="gpu-1-renamed", machine_id="machine-gpu-1"))
    with pytest.raises(NotAllowed, match="its name is that of gpu-2"):
        gate.check(speaker, reporter, NodeDoc(name="gpu-2", machine_id="machine-gpu-1"))
    with pytest.raises(NotAllowed, match="its chassis id is that of gpu-2"):
        gate.check(speaker, reporter, NodeDoc(name="gpu-1", machine_id="machine-gpu-1", system="system-gpu-2"))


def test_what_was_fine_once_is_looked_at_again_when_the_site_changed(gate: Enrolment) -> None:
    _, reporter, speaker = joined(gate)
    later = NodeDoc(name="gpu-9", machine_id="machine-gpu-1")
    gate.check(speaker, reporter, later)
    gate.check(speaker, reporter, NodeDoc(name="gpu-10", machine_id="machine-gpu-1"))
    gate.check(speaker, reporter, later)
    joined(gate, "gpu-9")

    with pytest.raises(NotAllowed, match="its name is that of gpu-9"):
        gate.check(speaker, reporter, later)


def test_a_list_and_a_cluster(gate: Enrolment) -> None:
    collector = Node(doc("bmc-host"))
    listed = collector.joins(gate, mint(gate, Scope(reach=Reach.LIST, nodes=frozenset({"Srv-1", "srv-2"}))), reach="list")
    by_list = gate.speaker(collector.token(gate, listed.reporter).token, NOW)
    controller = Node(doc("ctl"))
    clustered = controller.joins(gate, mint(gate, Scope(reach=Reach.CLUSTER, cluster="uid-1")), reach="cluster")
    by_cluster = gate.speaker(controller.token(gate, clustered.reporter).token, NOW)

    assert (listed.reporter, clustered.reporter) == ("collector@bmc-host", "controller@ctl")
    gate.check(by_list, listed.reporter, doc("srv-1"))
    gate.check(by_list, listed.reporter, doc("SRV-2"))
    with pytest.raises(NotAllowed, match="not among"):
        gate.check(by_list, listed.reporter, doc("bmc-host"))
    gate.check(by_cluster, clustered.reporter, doc("any"), "uid-1")
    for cluster in ("uid-2", ""):
        with pytest.raises(NotAllowed, match="cluster uid-1"):
            gate.check(by_cluster, clustered.reporter, doc("any"), cluster)


def test_a_token_bounds_who_joins_by_it(gate: Enrolment) -> None:
    for_one = mint(gate, Scope(reach=Reach.NODE, nodes=frozenset({"gpu-1"})))
    with pytest.raises(NotAllowed, match="not for this node"):
        Node(doc("gpu-2")).joins(gate, for_one)
    with pytest.raises(NotAllowed, match="speak for a list"):
        Node(doc("gpu-1")).joins(gate, for_one, reach="list")
    assert Node(doc("GPU-1")).joins(gate, for_one).reporter == "agent@GPU-1"

    of_list = mint(gate, Scope(reach=Reach.LIST, nodes=frozenset({"a", "machine-b"})), uses=2)
    assert Node(doc("a")).joins(gate, of_list).scope["nodes"] == ["a", "machine-a"]
    assert Node(doc("b")).joins(gate, of_list).scope["nodes"] == ["b", "machine-b"]


def test_a_token_ends_by_time_by_use_and_by_deleting(gate: Enrolment) -> None:
    short, once = mint(gate, lasts=10), mint(gate)
    with pytest.raises(NotAllowed, match="has expired"):
        gate.enrol(Node(doc("late")).asks_in(short, NOW + 10), NOW + 10)
    Node(doc("first")).joins(gate, once)
    with pytest.raises(NotAllowed, match="is used up"):
        Node(doc("second")).joins(gate, once)
    gone = mint(gate)
    gate.drop(named(gone), "admin", NOW)
    with pytest.raises(NotAllowed, match="not known"):
        Node(doc("third")).joins(gate, gone)
    with pytest.raises(NotFound):
        gate.drop(named(gone), "admin", NOW)
    assert gate.tokens(NOW + 20) == []


def test_an_answer_that_was_lost_is_given_again_and_spends_nothing(gate: Enrolment) -> None:
    token = mint(gate, uses=2)
    node = Node(doc("gpu-1"))
    assert [node.joins(gate, token).reporter for _ in range(5)] == ["agent@gpu-1"] * 5
    assert [each.left for each in gate.tokens(NOW)] == [1]


def test_names_that_are_anothers(gate: Enrolment) -> None:
    joined(gate, "gpu-1")
    token = mint(gate, uses=10)
    with pytest.raises(Conflict, match="joined already, with another key") as again:
        Node(doc("gpu-1")).joins(gate, token)
    assert "muster agent reenrol gpu-1" in again.value.hint
    with pytest.raises(Conflict, match="looks like a clone") as clone:
        Node(doc("gpu-2", machine="machine-gpu-1")).joins(gate, token)
    assert "systemd-machine-id-setup" in clone.value.hint
    with pytest.raises(Conflict, match="the name GPU-1 is taken"):
        Node(doc("GPU-1", machine="m-2", system="s-2")).joins(gate, token)
    with pytest.raises(Conflict, match="its chassis id is that of gpu-1"):
        Node(doc("gpu-3", system="system-gpu-1")).joins(gate, token)
    assert [each.left for each in gate.tokens(NOW)] == [10], "who is refused spends nothing"


@pytest.mark.parametrize("ended", [True, False])
def test_a_place_that_is_open_is_open_for_a_token_that_names_the_node(gate: Enrolment, ended: bool) -> None:
    joined(gate, "gpu-1")
    many = mint(gate, uses=10)
    if ended:
        gate.revoke("gpu-1", "ana", "its disk was stolen", NOW)
    _, _, text = gate.reenrol("gpu-1", 3600.0, "ana", NOW)
    for names in (doc("gpu-1"), doc("gpu-1", machine="m-2", system="s-2")):
        with pytest.raises(NotAllowed, match="not for a token that is for any node") as refused:
            Node(names).joins(gate, many)
        assert "the token that `muster agent reenrol gpu-1` printed" in refused.value.hint
    assert sorted(each.left for each in gate.tokens(NOW)) == [1, 10], "who is refused spends nothing"
    assert Node(doc("gpu-1", machine="m-3")).joins(gate, text).reporter == "agent@gpu-1"


def test_a_chassis_id_that_a_maker_repeats_is_no_bar_to_a_node_that_an_operator_named(gate: Enrolment) -> None:
    Node(doc("gpu-1", system="MAKER-1")).joins(gate, mint(gate))
    second = Node(doc("gpu-2", system="MAKER-1"))
    reporter = second.joins(gate, mint(gate, Scope(reach=Reach.NODE, nodes=frozenset({"gpu-2"})))).reporter
    speaker = gate.speaker(second.token(gate, reporter).token, NOW)
    gate.check(speaker, reporter, second.doc)


def test_a_name_that_names_nothing_binds_nothing(gate: Enrolment) -> None:
    token = mint(gate, uses=2)
    assert Node(NodeDoc(name="a", system="To be filled by O.E.M.")).joins(gate, token).scope["nodes"] == ["a"]
    assert Node(NodeDoc(name="b", system="To be filled by O.E.M.")).joins(gate, token).scope["nodes"] == ["b"]
    with pytest.raises(InputError, match="no name"):
        Node(NodeDoc(name=" ")).joins(gate, token)


def test_a_hundred_with_one_name_are_one(gate: Enrolment) -> None:
    token = mint(gate, uses=100)
    nodes = [Node(doc("localhost", machine=f"m-{number}", system=f"s-{number}")) for number in range(100)]
    told: list[str] = []

    def come(node: Node) -> None:
        try:
            told.append(node.joins(gate, token).reporter)
        except Conflict as error:
            told.append(error.message)

    threads = [threading.Thread(target=come, args=(node,)) for node in nodes]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(told)[0] == "agent@localhost"
    assert told.count("agent@localhost") == 1
    assert len([each for each in told if "taken" in each]) == 99
    assert [each.left for each in gate.tokens(NOW)] == [99]


def test_of_two_at_once_on_one_token_one_wins(tmp_path: Path) -> None:
    with a_gate(tmp_path / "roll.sqlite") as (gate, _):
        for turn in range(10):
            token = mint(gate)
            start = threading.Barrier(2)
            told: list[bool] = []

            def come(node: Node, start: threading.Barrier = start, token: str = token, told: list[bool] = told) -> None:
                start.wait()
                try:
                    node.joins(gate, token)
                except NotAllowed:
                    told.append(False)
                else:
                    told.append(True)

            threads = [threading.Thread(target=come, args=(Node(doc(f"n-{turn}-{side}")),)) for side in "ab"]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert sorted(told) == [False, True]


def test_a_node_with_a_new_system_comes_again_by_an_operators_word(gate: Enrolment) -> None:
    old, reporter, _ = joined(gate)
    before = old.token(gate, reporter).token
    member, token, text = gate.reenrol("machine-gpu-1", 600, "op", NOW)
    assert (member.reporter, token.scope.nodes) == (reporter, frozenset({"gpu-1", "machine-gpu-1", "system-gpu-1"}))
    assert gate.speaker(before, NOW).reporter == reporter, "the old key holds until the new one is there"
    new = Node(doc("gpu-1", machine="machine-new"))
    assert new.joins(gate, text).reporter == reporter
    with pytest.raises(NotAllowed, match="earlier key"):
        gate.speaker(before, NOW)
    with pytest.raises(NotAllowed, match="does not fit the key"):
        old.token(gate, reporter)
    speaker = gate.speaker(new.token(gate, reporter).token, NOW)
    gate.check(speaker, reporter, doc("gpu-1", machine="machine-new"))
    with pytest.raises(Conflict, match="joined already"):
        Node(doc("gpu-1", machine="machine-new")).joins(gate, mint(gate))


def test_a_re_enrolment_is_open_for_a_while_and_closes_when_used(gate: Enrolment) -> None:
    joined(gate)
    gate.reenrol("gpu-1", 600, "op", NOW)
    many = mint(gate, uses=5)
    with pytest.raises(Conflict):
        gate.enrol(Node(doc("gpu-1", machine="new")).asks_in(many, NOW + 601), NOW + 601)
    with pytest.raises(InputError):
        gate.reenrol("gpu-1", 1, "op", NOW)
    for word in ("nobody", "agent@nobody"):
        with pytest.raises(NotFound):
            gate.reenrol(word, 600, "op", NOW)


def test_a_revoked_node_comes_back_only_so(gate: Enrolment) -> None:
    node, reporter, _ = joined(gate)
    gate.revoke(reporter, "op", "lost", NOW)
    _, _, text = gate.reenrol(reporter, 600, "op", NOW)
    with pytest.raises(NotAllowed, match="was revoked"):
        node.token(gate, reporter)
    assert node.joins(gate, text).reporter == reporter, "the same key, let in again"
    assert gate.speaker(node.token(gate, reporter).token, NOW).reporter == reporter


def test_who_left_by_itself_may_come_again(gate: Enrolment) -> None:
    node, reporter, _ = joined(gate)
    text = node.token(gate, reporter).token
    node.leaves(gate, reporter)
    with pytest.raises(NotAllowed):
        gate.speaker(text, NOW)
    assert Node(doc("gpu-1")).joins(gate, mint(gate)).reporter == reporter


def test_several_reporters_of_one_node_are_told_apart(gate: Enrolment) -> None:
    joined(gate, "gpu-1")
    Node(doc("gpu-1")).joins(gate, mint(gate, Scope(reach=Reach.LIST, nodes=frozenset({"x"}))), reach="list")
    with pytest.raises(Ambiguous, match="agent@gpu-1, collector@gpu-1"):
        gate.revoke("gpu-1", "op", "", NOW)
    assert gate.revoke("collector@gpu-1", "op", "", NOW).reporter == "collector@gpu-1"


def test_a_name_that_was_left_by_a_rename_is_free_and_the_reporters_stay_two(gate: Enrolment) -> None:
    node, reporter, _ = joined(gate, "gpu-1")
    renamed = Node(NodeDoc(name="gpu-7", machine_id="machine-gpu-1", system="system-gpu-1"), node.key)
    renamed.token(gate, reporter)
    newcomer = Node(doc("gpu-1", machine="m-new", system="s-new"))
    second = newcomer.joins(gate, mint(gate)).reporter
    assert second.startswith("agent@gpu-1-")
    assert {each.reporter: each.name for each in gate.members()} == {reporter: "gpu-7", second: "gpu-1"}
    with pytest.raises(NotAllowed, match=r"its name is that of gpu-1"):
        gate.check(gate.speaker(renamed.token(gate, reporter).token, NOW), reporter, NodeDoc(name="gpu-1", machine_id="machine-gpu-1"))
