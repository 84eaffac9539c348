# SPDX-License-Identifier: Apache-2.0
"""Short names of cards: each form finds its card, none is a guess."""

from __future__ import annotations

from typing import Any

import pytest

from muster.domain.decide.find import AmbiguousCard, find
from muster.domain.model.errors import InputError, NotFound
from muster.domain.model.observation import Role
from muster.domain.model.roll import CardRecord, Presence, Rung


def record(id_: str, node: str, **more: Any) -> CardRecord:
    told = {"role": Role.ACCELERATOR, "created_at": 0.0, "rung": Rung.UUID, "presence": Presence.PRESENT, "presence_at": 0.0, "node": f"n-{node}", **more}
    return CardRecord(id=id_, node_name=node, **told)


UUID = "GPU-12345678-0000-4000-8000-00000000000a"
CARDS = [
    record("c-111122", "n1", slot="SXM1", address="0000:1b:00.0", index="0", ids={"serial": ("0xAB12",), "vendor_uuid": (UUID,)}),
    record("c-111133", "n1", slot="SXM2", address="0000:1c:00.0", index="1", ids={"serial": ("CD34",)}),
    record("c-222244", "n2", slot="SXM1", address="0000:1b:00.0", index="0", ids={"serial": ("EF56",), "k8s_device": ("gpu-0",)}),
    record("c-333355", "n3", index="7", ids={"serial": ("EF56",)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "id_"),
    [
        ("c-111122", "c-111122"),
        ("c-1111", None),
        ("c-2222", "c-222244"),
        ("ab12", "c-111122"),
        ("AB12", "c-111122"),
        ("12345678-0000-4000-8000-00000000000A", "c-111122"),
        ("gpu-12345678", "c-111122"),
        ("0000:1c:00.0", "c-111133"),
        ("1c:00", "c-111133"),
        ("0000:1b:00.0", None),
        ("n1/SXM1", "c-111122"),
        ("N1/sxm2", "c-111133"),
        ("n-n2/SXM1", "c-222244"),
        ("n2/0000:1b:00.0", "c-222244"),
        ("n2/1B:00.0", "c-222244"),
        ("n1/1", "c-111133"),
        ("n2/gpu-0", "c-222244"),
        ("n1 · SXM1 · Some Model", "c-111122"),
        ("n3 · index 7 · Some Model", "c-333355"),
        ("SXM2", "c-111133"),
        ("SXM1", None),
        ("0", None),
        ("gpu-0", "c-222244"),
        ("EF56", None),
    ],
)
def test_find(word: str, id_: str | None) -> None:
    if id_ is None:
        with pytest.raises(AmbiguousCard) as refused:
            find(word, CARDS)
        assert len(refused.value.candidates) > 1
        assert all(card.id in refused.value.message for card in refused.value.candidates)
    else:
        assert find(word, CARDS).id == id_


@pytest.mark.parametrize("word", ["c-9", "c-1", "n1/9", "n9/SXM1", "zzz", "n1/", "/", "ef5"])
def test_not_found(word: str) -> None:
    with pytest.raises(NotFound):
        find(word, CARDS)


def test_empty() -> None:
    with pytest.raises(InputError):
        find("  ", CARDS)


def test_many_candidates_are_cut() -> None:
    many = [record(f"c-{n:06}", f"n{n}", index="0") for n in range(15)]

    with pytest.raises(AmbiguousCard, match="and 5 more"):
        find("0", many)
