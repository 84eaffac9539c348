# SPDX-License-Identifier: Apache-2.0
"""What is known of one node has an end, however many reports its reporter makes up; what is known stays, and goes on being told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from muster.domain.model.errors import InputError
from muster.domain.model.policy import Policy
from muster.domain.model.roll import NodeNames
from muster.services import room
from muster.services.inventory import Inventory
from muster.services.room import MOST, Size
from muster.store import open_store
from muster.wire import bounds
from muster.wire.lanes import part
from muster.wire.report import ActDoc, ListingDoc, NodeDoc, ObservationDoc, ReportDoc

T0 = 1_800_000_000.0
POLICY = Policy()
Rows = list[ObservationDoc]


def cards(first: int, count: int, at_address: bool = False, turn: int = 0) -> Rows:
    """Cards by serial; with ``at_address`` each in a place of its own, so that others took it before."""
    return [
        ObservationDoc(
            level="card",
            ids=[("serial", f"SN{number:06d}"), *([("pci_address", f"0000:{number % count:02x}:00.0")] if at_address else [])],
            readings={"firmware.version": {"v": f"{turn}.0"}},
        )
        for number in range(first, first + count)
    ]


class Side:
    """A roll that one node tells of its cards."""

    def __init__(self) -> None:
        self.store = open_store(None)
        self.inventory = Inventory(self.store.writer, POLICY, T0)
        self.sequence = 0
        self.now = T0

    def say(self, *told: tuple[str, Rows], node: str = "n1", complete: bool = True) -> str:
        self.sequence += 1
        self.now += 60
        rounds = [
            ListingDoc(
                source=source, channel="in_band", witness="driver", cadence=60.0, outcome="devices", complete=complete, observed_at=self.now, observations=rows
            )
            for source, rows in told
        ]
        doc = ReportDoc(
            reporter=f"agent@{node}",
            incarnation="i",
            sequence=self.sequence,
            node=NodeDoc(name=node),
            sent_at=self.now,
            heard=[part(each) for each in rounds],
        )
        return self.inventory.report(doc, self.now).answer

    def refused(self, *told: tuple[str, Rows], complete: bool = True) -> str:
        before = self.size()
        with pytest.raises(InputError) as wrong:
            self.say(*told, complete=complete)
        assert self.size() == before, "nothing of it is taken"
        assert wrong.value.hint
        return wrong.value.message

    def size(self, node: str = "n1") -> Size:
        fold = self.inventory._fold
        return room.size([each.site for each in fold.everything().regions.values()], NodeNames(name=node), POLICY)


@pytest.fixture
def side() -> Iterable[Side]:
    made = Side()
    yield made
    made.store.close()


@pytest.mark.parametrize("complete", [True, False])
def test_new_cards_in_each_report_come_to_an_end_and_those_known_go_on(side: Side, complete: bool) -> None:
    for turn in range(4):
        assert side.say(("a.smi", cards(turn * 128, 128)), complete=complete) == "applied"
    assert side.size().here == bounds.HERE == 512
    told = side.refused(("a.smi", cards(9_000, 1)), complete=complete)
    assert told == "n1 would have 513 cards on the roll; 512 are taken of one node, and nothing of this report is"
    assert side.say(("a.smi", cards(0, 128, turn=7)), complete=complete) == "applied", "what is known is told on"
    assert side.say(("b.smi", cards(128, 64)), complete=complete) == "applied"
    assert side.say(("a.smi", cards(9_000, 128)), node="n2") == "applied", "another node has room of its own"
    for number in range(3):
        side.inventory.act(ActDoc(what="retire", by="ana", card={"serial": f"SN{number + 300:06d}"}), side.now)
    assert side.say(("a.smi", cards(20_000, 3)), complete=complete) == "applied", "an operator put three away"
    side.refused(("a.smi", cards(21_000, 1)), complete=complete)


def test_a_node_that_has_more_than_there_is_room_for_is_heard_of_what_is_known(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    assert side.say(("a.smi", cards(0, 12))) == "applied"
    monkeypatch.setattr(room, "MOST", replace(MOST, here=10))
    assert side.say(("a.smi", cards(0, 12, turn=2))) == "applied"
    assert "13 cards" in side.refused(("a.smi", cards(0, 13)))


def test_cards_that_others_take_the_place_of_come_to_an_end_too(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST", replace(MOST, ever=640))
    for turn in range(5):
        assert side.say(("a.smi", cards(turn * 128, 128, at_address=True))) == "applied"
    assert "641 cards, with those that were removed," in side.refused(("a.smi", cards(640, 1, at_address=True)))
    assert (side.size().here < bounds.HERE, side.size().ever) == (True, 640)
    assert side.say(("a.smi", cards(512, 128, at_address=True, turn=3))) == "applied"


def pieces(level: str, turn: int, count: int) -> Callable[[int], Rows]:
    def rows(card: int) -> Rows:
        parent = [("serial", f"SN{card:06d}")]
        made = [ObservationDoc(level=level, ids=[("vendor_uuid", f"GPU-{turn:04x}{card:04x}{n:04x}")], parent=parent) for n in range(count)]
        return [*cards(card, 1), *made]

    return rows


def test_parts_names_and_sources_come_to_an_end(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST", Size(here=512, ever=512, pieces=100, names=200, sources=8))
    assert side.say(("a.smi", pieces("partition", 1, 60)(1)), complete=False) == "applied"
    assert "devices and partitions" in side.refused(("a.smi", pieces("partition", 2, 60)(1)), complete=False)
    assert side.say(("a.smi", pieces("partition", 2, 60)(1))) == "applied", "a whole listing takes the place of the one before"
    assert "devices and partitions" in side.refused(("a.smi", pieces("device", 3, 60)(2)))

    named = [ObservationDoc(level="card", ids=[("serial", "SN000001"), *(("vendor_uuid", f"GPU-77{turn}{n:04d}") for n in range(63))]) for turn in range(4)]
    for each in named[:3]:
        assert side.say(("b.smi", [each])) == "applied"
    assert "names of cards" in side.refused(("b.smi", [named[3]]))

    for number in range(6):
        assert side.say((f"s{number}.smi", cards(1, 1))) == "applied"
    assert "9 sources on the roll; 8 are taken" in side.refused(("s9.smi", cards(1, 1)))
    side.inventory.act(ActDoc(what="remove_source", by="ana", node="n1", source="s1.smi"), side.now)
    assert side.say(("s9.smi", cards(1, 1))) == "applied"


def test_a_word_within_is_not_tried_first() -> None:
    few = Size(here=8, ever=9, pieces=56, names=64, sources=4)
    assert not room.close(few, 200)
    for near in ({"here": 400}, {"ever": 1900}, {"pieces": MOST.pieces - 9}, {"names": MOST.names - 9}, {"sources": MOST.sources}):
        assert room.close(Size(**{"here": 8, "ever": 9, "pieces": 56, "names": 64, "sources": 4, **near}), 200)
