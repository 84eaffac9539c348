# SPDX-License-Identifier: Apache-2.0
"""What is printed from kept plates is byte for byte what is made anew of the store: while sources speak, repeat, differ, fall silent, and operators act."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.interfaces.api.fleet import DIGEST, RAW, T0, Clock, app, fleet, listing, report
from tests.interfaces.api.test_columns import board, renamed

from muster.domain.model.roll import CardRecord
from muster.interfaces.api import cards, tags
from muster.interfaces.api.paging import Selection
from muster.interfaces.api.roll import Then
from muster.wire import documents as d
from muster.wire.documents import encode
from muster.wire.report import ActDoc, CaptureDoc
from muster.wiring import snapshot_plates, snapshot_printing
from muster.wiring.desk import Desk
from muster.wiring.snapshots import Settings, Views

GAUGES = ("temperature.core", "power.draw")
SELECTIONS = (
    "",
    "name,presence,memory.total,temperature.core,power.draw,driver.version",
    "power.draw,temperature.core,product.name",
    "vendor,model,node,seen_by,findings",
    "claims,increase,details",
    "readings",
    "increase",
    "performance.state,throttle.reasons",
)


@pytest.fixture(params=[False, True], ids=["small", "large"])
def world(request: pytest.FixtureRequest) -> Iterator[tuple[Desk, Views, Views, Clock]]:
    clock = Clock()
    with fleet(clock) as desk:
        kept = Views(desk.reader, desk.policy, clock, desk.adapters, desk.numbers, Settings(small=0 if request.param else 5000, beat=0.0))
        anew = Views(desk.reader, desk.policy, clock, desk.adapters, None)
        yield desk, kept, anew, clock


def compare(desk: Desk, kept: Views, anew: Views, now: float) -> None:
    """Both say the same of every card, and what lasts of it is what `still` leaves."""
    one, other = (Then(desk=desk, views=views, at=None, now=now) for views in (kept, anew))
    ids = [card.id for card in desk.reader.cards()]
    for text in SELECTIONS:
        selection = Selection(text, d.Card)
        told = cards.printed(one, ids, selection)
        wanted = [encode(selection.of(each)) for each in cards.whole(other, cards.ordered(other, ids), selection)]
        assert [each.body.decode() for each in told] == [each.decode() for each in wanted], text
        assert [each.still for each in told] == [tags.still(each.body) for each in told]


class Node:
    """A node that goes on saying the same facts with other numbers, and now and then something else."""

    def __init__(self, name: str, dice: random.Random) -> None:
        self.name, self._dice = name, dice
        self._facts = dice.randrange(1000)
        self._sequence = 1

    def says(self, at: float) -> Any:
        """Its next report."""
        if self._dice.random() < 0.3:
            self._facts = self._dice.randrange(1000)
        self._sequence += 1
        facts = random.Random(self._facts)
        count = facts.randint(1, 4)
        some = [each for number in range(count) for each in board(number, facts, "acme.smi")]
        other = [each for number in range(2) if facts.random() < 0.8 for each in board(number, facts, "acme.exporter")]
        for row in (*some, *other):
            for key in GAUGES:
                if "v" in row.readings.get(key, {}):
                    row.readings[key] = {"v": self._dice.randint(20, 90)}
            row.readings["errors.memory.corrected"] = {"v": int(at - T0)}
        captured = {"capture": DIGEST} if facts.random() < 0.5 else {}
        raw = CaptureDoc(digest=DIGEST, source="acme.smi", format="acme-text", locator=["acme-smi"], taken_at=at, payload=RAW, exit_status=0)
        told = [listing(*some, at=at, **captured), listing(*other, source="acme.exporter", witness=facts.choice(["exporter", "driver"]), at=at - 0.125)]
        made = report(self.name, *told[: facts.randint(1, 2)], sequence=self._sequence, at=at, captures=[raw])
        return renamed(made, {f"SN-{number}": f"SN-{self.name}-{number}" for number in range(9)})


@pytest.mark.parametrize("seed", range(8))
def test_what_is_printed_is_what_is_made_anew(world: tuple[Desk, Views, Views, Clock], seed: int) -> None:
    desk, kept, anew, clock = world
    dice = random.Random(seed)
    nodes = [Node(name, dice) for name in ("node-x", "node-y")]
    for _ in range(16):
        clock.now += dice.choice([1, 10, 30, 100, 300])
        for node in nodes:
            clock.now += 0.25
            if dice.random() < 0.8:
                desk.report(node.says(clock.now))
        if dice.random() < 0.3:
            desk.tick()
        if dice.random() < 0.2:
            act(desk, dice)
        kept.refresh()
        anew.refresh()
        compare(desk, kept, anew, clock.now)
        compare(desk, kept, anew, clock.now + dice.choice([0.5, 95, 500]))


def act(desk: Desk, dice: random.Random) -> None:
    """An operator's word on some card."""
    card = dice.choice(desk.reader.cards())
    values: dict[str, Any] = dice.choice([{"product.name": "Acme by hand"}, {"driver.version": "9"}, {"asset.tag": f"T{dice.randrange(9)}"}])
    desk.act(ActDoc(by="ann", what="set", card={"id": card.id}, values=values))


def test_repeats_alone_do_not_make_plates_anew(world: tuple[Desk, Views, Views, Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    desk, kept, _, clock = world
    dice = random.Random(1)
    node = Node("node-z", dice)
    monkeypatch.setattr(dice, "random", lambda: 0.9)
    for _ in range(3):
        clock.now += 10
        desk.report(node.says(clock.now))
    kept.refresh()
    then = Then(desk=desk, views=kept, at=None, now=clock.now)
    ids = [card.id for card in desk.reader.cards()]
    first = cards.printed(then, ids, Selection(SELECTIONS[1], d.Card))
    made: list[str] = []
    honest = snapshot_plates.Maker.make

    def making(self: snapshot_plates.Maker, card: CardRecord, *rest: Any) -> snapshot_plates.Plate:
        plate = honest(self, card, *rest)
        made.append(card.id)
        return plate

    monkeypatch.setattr(snapshot_plates.Maker, "make", making)
    told = first
    for _ in range(4):
        clock.now += 10
        desk.report(node.says(clock.now))
        kept.refresh()
        told = cards.printed(Then(desk=desk, views=kept, at=None, now=clock.now), ids, Selection(SELECTIONS[1], d.Card))
        assert len(told) == len(ids)
    assert made == []
    assert {each.body for each in told} != {each.body for each in first}


def test_plates_take_no_more_room_than_they_may(world: tuple[Desk, Views, Views, Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    desk, kept, anew, clock = world
    monkeypatch.setattr(snapshot_printing, "ROOM", 9000)
    kept.refresh()
    anew.refresh()
    for _ in range(2):
        compare(desk, kept, anew, clock.now)
    assert kept.plates is not None
    assert 0 < kept.plates.size <= 9000


def test_the_tag_of_a_card_stays_while_its_times_move(world: tuple[Desk, Views, Views, Clock]) -> None:
    desk, _, _, clock = world
    served = TestClient(app(desk), base_url="http://127.0.0.1")
    (card,) = [each["id"] for each in served.get("/api/v1/cards", params={"filter": 'serial == "SN-1001"', "fields": "id"}).json()["items"]]
    tags_ = set()
    for path in (f"/api/v1/cards/{card}", "/api/v1/cards/SN-1001", f"/api/v1/cards/{card}"):
        clock.now += 1
        tags_.add(served.get(path).headers["etag"])
    assert len(tags_) == 1
    assert served.get(f"/api/v1/cards/{card}", headers={"if-none-match": tags_.pop()}).status_code == 304
