# SPDX-License-Identifier: Apache-2.0
"""Open findings for one who may not see the whole roll: as the reader behind their patterns tells them, without reading the roll for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.interfaces.api.site import site
from tests.store.samples import card, finding, node

from muster.domain.model.access import Grade, User
from muster.domain.model.roll import FindingKind
from muster.interfaces.api.roll import Then
from muster.interfaces.api.rooms import open_rooms
from muster.interfaces.api.summary import _present
from muster.spi.store import Batch
from muster.store import open_store
from muster.wiring.desk import Desk

PATTERNS = [("host-n1",), ("host-n2",), ("HOST-*",), ("nothing",), ()]


@pytest.fixture
def desk() -> Iterator[Desk]:
    with site() as there:
        store = open_store(None)
        cards = [card("c1"), card("c2", node="n2", node_name="host-n2"), card("c3", node=None), card("c4")]
        cards = [replace(each, node_name="host-n1") if each.node == "n1" else each for each in cards]
        found = [
            finding("f1", 110.0, node="n1"),
            finding("f2", 111.0, subject="c2", node="n2"),
            finding("f3", 112.0, subject="c3"),
            finding("f4", 113.0, subject="n2", kind=FindingKind.SOURCE_SILENT, node="n2"),
            finding("f5", 114.0, subject="c2", cards=("c2", "c1")),
            finding("f6", 115.0, subject="c4", cards=("c1", "c4"), node="n1"),
            finding("f7", 116.0, subject="n1", kind=FindingKind.SOURCE_SILENT),
            finding("f8", 117.0, subject="c1", node="n9"),
        ]
        store.writer.commit(Batch(at=120.0, cards=cards, nodes=[node("n1"), node("n2")], findings=found))
        yield replace(there.desk, reader=store.reader, numbers=store.numbers, answers=store.answers)
        store.close()


@pytest.mark.parametrize("patterns", PATTERNS)
def test_they_are_those_in_sight(desk: Desk, patterns: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = open_rooms(desk)
    rooms.views.settle()
    user = User(name="mine", grade=Grade.VIEWER, via="token", nodes=patterns)
    wanted = [row.finding for row in desk.of(user).reader.findings()]
    then = Then(desk=desk.of(user), views=rooms.views, at=None, now=desk.clock())
    rooms.views.lists.renew()
    whole = type(desk.reader).cards

    def some(self: Any, at: float | None = None, ids: Any = None) -> Any:
        assert ids is not None, "the whole roll is read for a few findings"
        return whole(self, at, ids)

    monkeypatch.setattr(type(desk.reader), "cards", some)
    told = then.findings()
    for id_ in ("c1", "c2", "c3", "c4", "n1", "n2"):
        assert list(told.get(id_, ())) == [each for each in wanted if id_ in (each.subject, *each.cards)], id_
    assert _present(then, ()).findings == Counter(each.kind.value for each in wanted)
