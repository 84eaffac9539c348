# SPDX-License-Identifier: Apache-2.0
"""What one who sees some nodes learns of the others: nothing, neither by a name that fits two cards nor by the history of a card that came from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from muster.domain.model.access import Grade, User
from muster.domain.model.errors import Ambiguous, NotFound
from muster.domain.model.policy import Policy
from muster.domain.model.roll import Happening
from muster.services.inventory import Inventory
from muster.services.users_sight import Limited
from muster.store import Store, open_store
from muster.wire.report import ActDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc
from muster.wiring.desk import Desk

T0 = 1_700_000_000.0
PLACE = {"pci_address": "0000:3b:00.0"}


@dataclass
class Site:
    """Two nodes, of which one is out of sight."""

    store: Store
    inventory: Inventory = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.inventory = Inventory(self.store.writer, Policy(), T0)

    def say(self, node: str, at: float, *serials: str) -> None:
        """All cards of a node, the first in our place."""
        self.number += 1
        rows = [ObservationDoc(level="card", ids=[("serial", each), ("pci_address", f"0000:{0x3B + n:02x}:00.0")]) for n, each in enumerate(serials)]
        listing = ListingDoc(
            source="driver", channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=True, observed_at=T0 + at, observations=rows
        )
        names = NodeDoc(name=node, machine_id=f"m-{node}", system=f"s-{node}")
        doc = ReportDoc(reporter=f"agent@{node}", incarnation="i", sequence=self.number, node=names, sent_at=T0 + at, listings=[listing])
        assert self.inventory.report(doc, T0 + at).answer == "applied"

    def desk(self, *nodes: str) -> Desk:
        """The desk of an operator who sees these nodes."""
        desk = Desk(reader=self.store.reader, keeper=self.inventory, policy=Policy(), clock=lambda: T0 + 1000.0)
        return desk.of(User(name="ops", grade=Grade.OPERATOR, via="token", nodes=nodes))


@pytest.fixture
def site() -> Iterator[Site]:
    store = open_store(None)
    yield Site(store)
    store.close()


def owner(site: Site, serial: str) -> list[object]:
    (card,) = (each for each in site.store.reader.cards() if serial in each.ids.get("serial", ()))
    return [voice.words["asset.owner"].value for voice in card.voices if "asset.owner" in voice.words]


def test_a_name_that_fits_two_cards_means_the_one_in_sight(site: Site) -> None:
    site.say("node-a", 0, "SN-A")
    site.say("secret", 1, "SN-S")
    act = ActDoc(what="set", card=PLACE, values={"asset.owner": "ana"})
    with pytest.raises(Ambiguous, match="2 cards fit"):
        site.desk().act(act)
    assert len(site.desk("node-a").act(act)) == 1
    assert (owner(site, "SN-A"), owner(site, "SN-S")) == (["ana"], [])
    with pytest.raises(NotFound):
        site.desk("node-c").act(act)


def test_two_in_sight_are_told_and_no_third(site: Site) -> None:
    site.say("node-a", 0, "SN-A")
    site.say("node-b", 1, "SN-B")
    site.say("secret", 2, "SN-S")
    hidden = next(card.id for card in site.store.reader.cards() if card.node_name == "secret")
    with pytest.raises(Ambiguous, match="fits 2 cards") as told:
        site.desk("node-*").act(ActDoc(what="set", card=PLACE, values={"asset.owner": "ana"}))
    assert hidden not in told.value.message + (told.value.hint or "")


def test_the_history_of_a_card_names_no_node_out_of_sight(site: Site) -> None:
    site.say("secret", 0, "SN-1")
    site.say("node-a", 100, "SN-2")
    site.say("secret", 200)
    site.say("node-a", 300, "SN-2", "SN-1")
    site.inventory.tick(T0 + 400)
    (card,) = (each for each in site.store.reader.cards() if "SN-1" in each.ids.get("serial", ()))
    hidden, seen = (next(each.id for each in site.store.reader.nodes() if each.name == name) for name in ("secret", "node-a"))
    whole = [row.change for row in site.store.reader.changes(card.id)]
    mine = [row.change for row in Limited(site.store.reader, ["node-a"]).changes(card.id)]

    assert (card.node_name, hidden in repr(whole)) == ("node-a", True)
    assert hidden not in repr(mine)
    assert [(each.kind, each.at) for each in mine] == [(each.kind, each.at) for each in whole]
    assert [each.detail["node"] for each in mine if each.kind is Happening.MOVED] == [seen]
    assert [each.detail["was"] for each in mine if each.kind is Happening.MOVED] == [""]
