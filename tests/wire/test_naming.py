# SPDX-License-Identifier: Apache-2.0
"""Names of nodes that a report may tell, and those by which it is refused."""

from __future__ import annotations

import pytest

from muster.domain.model.errors import InputError
from muster.services.enrolment_rules import sensible
from muster.services.enrolment_scope import keys_of
from muster.wire.report import NodeDoc, ReportDoc, pack
from muster.wire.sound import opened

T0 = 1_700_000_000.0


def told(node: NodeDoc) -> ReportDoc:
    return opened(pack(ReportDoc(reporter="agent@a", incarnation="i", sequence=1, node=node, sent_at=T0)))


@pytest.mark.parametrize(
    "node",
    [
        NodeDoc(name="n" * 253, machine_id="m" * 128, system="s" * 128),
        NodeDoc(name="gpu-1.example.org", system="Chassis no. 7 (left)"),
        NodeDoc(name="b\u00fccherregal-1"),
    ],
)
def test_names_of_real_nodes_are_taken(node: NodeDoc) -> None:
    assert told(node).node == node
    sensible(node, keys_of(node))


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (NodeDoc(name="n" * 254), "node.name has 254 characters; 253 are taken"),
        (NodeDoc(name="n", machine_id="m" * 129), "node.machine_id has 129 characters"),
        (NodeDoc(name="n", system="s" * 1_000_000), "node.system has 1000000 characters"),
        (NodeDoc(name="n\x1b[2J"), "node.name has signs that cannot be seen"),
        (NodeDoc(name="n\n"), "node.name has signs that cannot be seen"),
        (NodeDoc(name="n\u202eoder"), "node.name has signs that cannot be seen"),
        (NodeDoc(name="n\u200b1"), "node.name has signs that cannot be seen"),
        (NodeDoc(name="n", system="s\u2066"), "node.system has signs that cannot be seen"),
        (NodeDoc(name="n", machine_id="m\x00"), "node.machine_id has signs that cannot be seen"),
        (NodeDoc(name="gpu-1 "), "node.name is not in its plain form"),
        (NodeDoc(name="gpu  1"), "node.name is not in its plain form"),
        (NodeDoc(name="bu\u0308cher"), "node.name is not in its plain form"),
    ],
)
def test_names_that_nobody_can_read_are_refused_at_the_join_and_in_reports(node: NodeDoc, why: str) -> None:
    for take in (told, lambda node: sensible(node, keys_of(node))):
        with pytest.raises(InputError, match=why) as refused:
            take(node)
        assert refused.value.message.isprintable()
        assert len(refused.value.message) < 600
