# SPDX-License-Identifier: Apache-2.0
"""The server asks for the evidence of what is new, once, and not for what it has or would not keep."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from muster.domain.model.policy import Policy
from muster.services.inventory import Inventory
from muster.store import open_store
from muster.wire.lanes import part
from muster.wire.report import CaptureDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc

NOW = 1_800_000_000.0
PAYLOAD = b"what the tool said"
DIGEST = hashlib.sha256(PAYLOAD).hexdigest()


def word(sequence: int, version: str) -> ReportDoc:
    row = ObservationDoc(level="card", ids=[("serial", "SN1")], readings={"firmware.version": {"v": version}})
    at = NOW + 60 * sequence
    told = ListingDoc(source="a", channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observed_at=at, observations=[row])
    told.capture = DIGEST
    return ReportDoc(reporter="r", incarnation="i", sequence=sequence, node=NodeDoc(name="n"), sent_at=at, heard=[part(told)])


@pytest.mark.parametrize("budget", [10_000, 0])
def test_evidence_is_asked_for_where_it_is_lacking_and_would_be_kept(budget: int) -> None:
    store = open_store(None, capture_budget=budget)
    inventory = Inventory(store.writer, Policy(), NOW)
    capture = CaptureDoc(digest=DIGEST, source="a", format="list", locator=["tool"], payload=PAYLOAD, taken_at=NOW)

    assert inventory.report(word(1, "1.0"), NOW + 60).wanted == ([DIGEST] if budget else [])
    assert inventory.report(word(2, "1.0"), NOW + 120).wanted == [], "nothing is new"
    brought = msgspec.structs.replace(word(3, "2.0"), captures=[capture])
    assert inventory.report(brought, NOW + 180).wanted == [], "it came by itself"
    assert inventory.report(word(4, "3.0"), NOW + 240).wanted == [], "it is here"
    store.close()
