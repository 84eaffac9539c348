# SPDX-License-Identifier: Apache-2.0
"""A node that has more than one report may tell comes in several: every card and slice of it is on the roll, and each round counts once."""

from __future__ import annotations

from collections import Counter

from muster.collect.clock import Clock
from muster.collect.reports import Identity, Reports
from muster.domain.model.policy import Policy
from muster.services.inventory import Inventory
from muster.store import open_store
from muster.wire.lanes import part
from muster.wire.report import ListingDoc, NodeDoc, ObservationDoc

T0 = 1_790_000_040.0
CARDS, SLICES = 150, 100


def rows(degrees: int) -> list[ObservationDoc]:
    """The cards, the first of them cut into slices."""
    found = []
    for n in range(CARDS):
        own = [("serial", f"SN77{n:06d}")]
        mode = {"partition.mode": {"v": "mig"}} if n == 0 else {}
        found.append(ObservationDoc(level="card", ordinal=n, ids=own, readings={"temperature.core": {"v": float(degrees)}, **mode}))
        for cut in range(SLICES if n == 0 else 0):
            ids = [("gpu_instance_id", str(cut))]
            found.append(ObservationDoc(level="partition", ordinal=cut, ids=ids, parent=own, readings={"memory.used": {"v": 1000 + degrees}}))
    return found


def test_all_of_it_is_known_and_counts_once() -> None:
    store = open_store(None)
    inventory, now = Inventory(store.writer, Policy(), T0), [T0]
    identity = Identity(node=NodeDoc(name="n", machine_id="m-123987", system="s1"), boot_id="b")
    reports = Reports(identity, Clock(lambda: now[0], lambda: now[0] - T0 + 1000), lambda: "run")
    for degrees in range(50, 53):
        now[0] += 60.0
        listing = ListingDoc(
            source="t.s", channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observed_at=now[0],
            observed_mono=now[0] - T0 + 1000, boot_id="b", adapter="t", counts={"card": CARDS}, observations=rows(degrees),
        )  # fmt: skip
        made = reports.build([part(listing)], [], [])
        assert len(made) == 3
        assert [inventory.report(doc, now[0]).answer for doc in made] == ["applied"] * 3

    cards = store.reader.cards()
    assert (len(cards), {card.presence.value for card in cards}, sum(len(card.partitions) for card in cards)) == (CARDS, {"present"}, SLICES)
    told = [each for each in store.reader.current() if each.key in ("temperature.core", "memory.used")]
    assert Counter((each.key, each.word.value, each.word.at) for each in told) == {
        ("temperature.core", 52, now[0]): CARDS,
        ("memory.used", 1052, now[0]): SLICES,
    }
    counts = {row["count"] for card in cards for row in store.reader.minutes(card.id, "temperature.core", T0, now[0] + 60)}
    assert counts == {1}
    assert Counter(row.change.kind.value for row in store.reader.changes(limit=1000)) == {"installed": CARDS, "partitions_changed": 1}
    store.close()
