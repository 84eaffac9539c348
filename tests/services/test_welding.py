# SPDX-License-Identifier: Apache-2.0
"""One listing that names the cards of a whole site does not make one part of it: it is refused, and nothing of it is kept."""

from __future__ import annotations

import pytest

from muster.domain.model.errors import InputError
from muster.domain.model.policy import Policy
from muster.services.folding import MOST_AT_ONCE
from muster.services.inventory import Inventory
from muster.store import open_store
from muster.wire.lanes import part
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc, ReportDoc

T0 = 1_750_000_000.0


def report(node: int, serials: list[str], sequence: int, at: float) -> ReportDoc:
    rows = [ObservationDoc(level="card", ids=[("serial", each), ("pci_address", f"0000:{n + 1:02x}:00.0")]) for n, each in enumerate(serials)]
    told = ListingDoc(
        source="one.library", channel="in_band", witness="driver", cadence=10.0, outcome="devices", complete=True, observed_at=at, observations=rows
    )
    names = NodeDoc(name=f"n{node}", machine_id=f"machine-{node}")
    return ReportDoc(reporter=f"agent@n{node}", incarnation="i", sequence=sequence, node=names, sent_at=at, heard=[part(told)])


def test_a_listing_of_many_nodes_cards_is_refused_whole() -> None:
    store = open_store(None)
    inventory = Inventory(store.writer, Policy(), T0)
    for node in range(MOST_AT_ONCE + 8):
        inventory.report(report(node, [f"S{node}"], 1, T0 + 1), T0 + 1)
    parts = inventory.figures()["roll_parts"]
    with pytest.raises(InputError, match="other groups of nodes") as found:
        inventory.report(report(900, [f"S{node}" for node in range(MOST_AT_ONCE + 8)], 1, T0 + 10), T0 + 10)
    assert "lists its own cards" in (found.value.hint or "")
    assert inventory.figures()["roll_parts"] == parts
    assert "n900" not in {node.name for node in store.reader.nodes()}
    inventory.report(report(901, [f"S{node}" for node in range(8)], 1, T0 + 20), T0 + 20)
    assert inventory.figures()["roll_parts"] < parts
    store.close()
