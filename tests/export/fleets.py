# SPDX-License-Identifier: Apache-2.0
"""Invented fleets for the tests of exports: one by hand, any by hypothesis, a large one for speed."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from muster.export.families import FINDING_KINDS, PRESENCES, READINGS, SOURCE_STATES
from muster.export.fleet import Card, Fleet, Node, Part, Readings, Sight, Source, Told

T0 = 1_790_000_000.0
SEEN = "2026-09-21T14:13:20Z"
"""T0 as the API writes it."""


def told(value: Any, **more: Any) -> Told:
    """A reading of T0."""
    return Told(value=value, observed_at=SEEN, **more)


ABSENT = Told(observed_at=SEEN)


def fleet(*cards: Card, at: float = T0, **more: Any) -> Fleet:
    """A fleet of these cards alone."""
    return Fleet(at=at, cards=list(cards), nodes=more.get("nodes", []), sources=more.get("sources", []), findings=more.get("findings"))


def card(number: int = 1, readings: Readings | None = None, **more: Any) -> Card:
    """A card that is there."""
    place = {
        "name": f"n1 · {number} · Acme X1",
        "vendor": "Acme",
        "model": "Acme X1",
        "node": "n1",
        "node_id": "n-1",
        "slot": str(number),
        "role": "accelerator",
    }
    ids = {"serial": [f"SN-{number}"], "vendor_uuid": [f"UUID-{number}"]}
    return Card(**{"id": f"c-{number:016x}", "presence": "present", "rung": "uuid", "ids": ids, "readings": readings or {}, **place, **more})


def large(cards: int, gauges: int = 12) -> Fleet:
    """Cards with that many gauges each, eight on a node with two sources."""
    keys = [key for key, family in READINGS.items() if not family.states and not family.counts][:gauges]
    nodes = [Node(id=f"n-{n}", name=f"node-{n}", last_at=SEEN) for n in range((cards + 7) // 8)]
    sources = [
        Source(id=f"s-{n}-{s}", node=f"node-{n}", node_id=f"n-{n}", source=f"acme.{s}", state="ok", last_at=SEEN) for n in range(len(nodes)) for s in (0, 1)
    ]
    many = [
        card(
            number, {key: told(number * 0.25 + at) for at, key in enumerate(keys)}, node=f"node-{number // 8}", node_id=f"n-{number // 8}", claims=[Sight(SEEN)]
        )
        for number in range(cards)
    ]
    return Fleet(at=T0, cards=many, nodes=nodes, sources=sources, findings=dict.fromkeys(FINDING_KINDS, 0))


texts = st.one_of(
    st.text(max_size=12), st.sampled_from(['a"b', "a\\b", "a\nb", "\x1b[2J", "}", '",x="', "\u202eB", "\ud800", "e\u0301", "é" * 300, "\x00", "#", " "])
)
values = st.one_of(
    st.integers(),
    st.sampled_from([0, 10**400, -(10**400), 2**1023, 2**1024]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.booleans(),
    texts,
    st.lists(texts, max_size=3),
    st.none(),
    st.dictionaries(texts, st.integers(), max_size=2),
    st.sampled_from(["ok", "warning", "critical", "unknown", "none", "reset"]),
)
readings = st.dictionaries(
    st.sampled_from(sorted([*READINGS, "product.name", "driver.version", "firmware.version", "partition.profile", "processes", "no.such"])),
    st.one_of(st.just(ABSENT), st.builds(Told, value=values, stale=st.booleans(), observed_at=st.sampled_from([SEEN, "", "never", "2026-09-21T14:10:00Z"]))),
    max_size=8,
)
names = st.dictionaries(st.sampled_from(["serial", "vendor_uuid", "pci_address"]), st.lists(texts, max_size=2), max_size=3)
maybe = st.one_of(st.none(), texts)


def _part(id_: str, under: str | None) -> st.SearchStrategy[Part]:
    return st.builds(Part, id=st.just(id_), ordinal=st.integers(0, 99), ids=names, under=st.just(under), readings=readings)


@st.composite
def cards(draw: st.DrawFn, number: int) -> Card:
    """Any card of this number."""
    id_ = f"c-{number}"
    devices = [draw(_part(f"{id_}.d{n}", None)) for n in range(draw(st.integers(0, 2)))]
    under = draw(st.sampled_from([None, id_, *(each.id for each in devices)]))
    words: dict[str, Any] = {name: draw(maybe) for name in ("vendor", "model", "node", "node_id", "slot", "address", "index")}
    return Card(
        id=id_,
        name=draw(texts),
        presence=draw(st.sampled_from([*PRESENCES, "retired", "of a later version"])),
        rung=draw(texts),
        role=draw(texts),
        ids=draw(names),
        readings=draw(readings),
        devices=devices,
        partitions=[draw(_part(f"{id_}.p{n}", under)) for n in range(draw(st.integers(0, 2)))],
        claims=[Sight(draw(st.sampled_from([SEEN, "", "never"]))) for _ in range(draw(st.integers(0, 2)))],
        **words,
    )


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Any fleet."""
    nodes = [
        Node(id=f"n-{n}", name=draw(texts), machine_id=draw(maybe), last_at=draw(st.sampled_from([SEEN, "never"])), readings=draw(readings)) for n in range(2)
    ]
    states = st.sampled_from([*SOURCE_STATES, "of a later version"])
    sources = [Source(id=f"s-{n}", node=draw(texts), node_id=draw(texts), source=draw(texts), state=draw(states), last_at=SEEN) for n in range(3)]
    findings = draw(st.one_of(st.none(), st.dictionaries(st.sampled_from([*FINDING_KINDS, "of a later version"]), st.integers(0, 5))))
    return Fleet(at=T0, cards=[draw(cards(n)) for n in range(draw(st.integers(0, 3)))], nodes=nodes, sources=sources, findings=findings)
