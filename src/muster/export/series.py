# SPDX-License-Identifier: Apache-2.0
"""From the fleet to points of series. What is not known has no point: an absent value, a stale one, and a number that is none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from muster.export import families as f
from muster.export.families import Family
from muster.export.fleet import Card, Fleet, Node, Part, Readings, Source, Told, seconds
from muster.export.labels import Labels, Pairs, labels

Number: TypeAlias = "int | float"
_ENDLESS = 2**1023
"""Whole numbers from here on may be more than a float can hold."""


class Point(NamedTuple):
    """One value of one series. ``told`` is the reading it comes from; None where it holds at the time of the fleet."""

    family: Family
    labels: Labels
    value: Number
    told: Told | None = None


class Names:
    """Label strings that are kept from round to round: those of a thing are made again only when it changes."""

    def __init__(self) -> None:
        self._kept: dict[Pairs, Labels] = {}
        self._states: dict[tuple[str, tuple[str, ...]], tuple[Labels, ...]] = {}

    def of(self, *pairs: tuple[str, str]) -> Labels:
        """Labels of these pairs."""
        found = self._kept.get(pairs)
        if found is None:
            found = self._kept[pairs] = labels(pairs)
        return found

    def states(self, these: Labels, words: tuple[str, ...]) -> tuple[Labels, ...]:
        """These labels with each word as their state."""
        found = self._states.get((these.text, words))
        if found is None:
            found = self._states[these.text, words] = tuple(these.more("state", word) for word in words)
        return found

    def trim(self, most: int) -> None:
        """Begins anew when far more is kept than a round needs: cards come and go."""
        if len(self._kept) + len(self._states) > most:
            self._kept.clear()
            self._states.clear()


def points(fleet: Fleet, keys: frozenset[str], names: Names) -> Iterator[Point]:
    """Every point of the fleet, with readings of ``keys`` alone; no series twice."""
    wanted = {key: family for key, family in f.READINGS.items() if key in keys}
    tally: Counter[tuple[str, str]] = Counter()
    here = [card for card in fleet.cards if card.presence in f.PRESENCES]
    for card in here:
        yield from _card(card, wanted, names, tally)
    yield from _nodes(fleet.nodes, wanted, names)
    yield from _sources(fleet.sources, names)
    yield from _counted(here, names)
    for (key, state), count in sorted(tally.items()):
        yield Point(f.KNOWN, names.of(("attribute", key), ("state", state)), count)
    if fleet.ready is not None:
        yield Point(f.READY, names.of(), int(fleet.ready))
    if fleet.findings is not None:
        for kind in dict.fromkeys((*f.FINDING_KINDS, *sorted(fleet.findings))):
            yield Point(f.FINDINGS, names.of(("kind", kind)), fleet.findings.get(kind, 0))


def _card(card: Card, wanted: Mapping[str, Family], names: Names, tally: Counter[tuple[str, str]]) -> Iterator[Point]:
    mine = names.of(("card", card.id))
    yield Point(f.CARD_INFO, names.of(*_about(card)), 1)
    yield from _states(f.CARD_PRESENCE, mine, card.presence, names, None)
    seen = max((at for claim in card.claims if (at := seconds(claim.last_at)) is not None), default=None)
    if seen is not None:
        yield Point(f.CARD_SEEN, mine, seen)
    yield from _readings(card.readings, mine, wanted, names, tally)
    devices = {each.id for each in card.devices}
    for part in card.devices:
        labels_ = names.of(("card", card.id), ("device", part.id))
        yield Point(f.DEVICE_INFO, names.of(("card", card.id), ("device", part.id), *_named(part)), 1)
        yield from _readings(part.readings, labels_, wanted, names, tally)
    for part in card.partitions:
        under = part.under if part.under in devices else ""
        pairs = (("card", card.id), ("device", under or ""), ("partition", part.id))
        profile = part.readings.get("partition.profile")
        yield Point(f.PARTITION_INFO, names.of(*pairs, *_named(part), ("profile", _text(profile))), 1)
        yield from _readings(part.readings, names.of(*pairs), wanted, names, tally)


def _about(card: Card) -> tuple[tuple[str, str], ...]:
    return (
        ("card", card.id),
        ("name", card.name),
        ("node", card.node or ""),
        ("node_id", card.node_id or ""),
        ("vendor", card.vendor or ""),
        ("model", card.model or ""),
        ("serial", _first(card.ids, "serial")),
        ("uuid", _first(card.ids, "vendor_uuid")),
        ("slot", card.slot or ""),
        ("address", card.address or ""),
        ("index", card.index or ""),
        ("driver", _text(card.readings.get("driver.version"))),
        ("firmware", _text(card.readings.get("firmware.version"))),
        ("rung", card.rung),
        ("role", card.role),
    )


def _named(part: Part) -> tuple[tuple[str, str], ...]:
    return ("ordinal", str(part.ordinal)), ("uuid", _first(part.ids, "vendor_uuid")), ("address", _first(part.ids, "pci_address"))


def _first(ids: Mapping[str, Sequence[str]], kind: str) -> str:
    return next(iter(ids.get(kind, ())), "")


def _text(told: Told | None) -> str:
    """The words of a fact. An old one still says what the thing is."""
    return told.value if told is not None and isinstance(told.value, str) else ""


def _readings(readings: Readings, mine: Labels, wanted: Mapping[str, Family], names: Names, tally: Counter[tuple[str, str]]) -> Iterator[Point]:
    for key, told in readings.items():
        family = wanted.get(key)
        if family is None:
            continue
        found = list(_drawn(family, mine, told, names)) if told.fresh else []
        tally[key, "known" if found else "stale" if told.stale else "absent"] += 1
        yield from found


def _drawn(family: Family, mine: Labels, told: Told, names: Names) -> Iterator[Point]:
    """Points of a fresh value."""
    if family.states:
        yield from _states(family, mine, told.value, names, told)
        return
    value = len(told.value) if family.counts and isinstance(told.value, list) else None if family.counts else number(told.value)
    if value is not None:
        yield Point(family, mine, value, told)


def _states(family: Family, mine: Labels, holds: Any, names: Names, told: Told | None) -> Iterator[Point]:
    """One point for each state. A word that is none of them says nothing of any."""
    if holds in family.states:
        for state, each in zip(family.states, names.states(mine, family.states), strict=True):
            yield Point(family, each, int(state == holds), told)


def number(value: Any) -> Number | None:
    """A value as a number; None for what is no finite one."""
    if isinstance(value, int):
        return int(value) if -_ENDLESS < value < _ENDLESS else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def _nodes(nodes: Sequence[Node], wanted: Mapping[str, Family], names: Names) -> Iterator[Point]:
    for node in nodes:
        mine = names.of(("node", node.name), ("node_id", node.id))
        told = {name: _text(node.readings.get(f"node.{key}")) for name, key in (("agent", "agent.version"), ("kernel", "kernel"), ("os", "os"))}
        yield Point(f.NODE_INFO, names.of(*mine.pairs, ("machine_id", node.machine_id or ""), *told.items()), 1)
        seen = seconds(node.last_at)
        if seen is not None:
            yield Point(f.NODE_SEEN, mine, seen)
        yield from _readings(node.readings, mine, wanted, names, Counter())


def _sources(sources: Sequence[Source], names: Names) -> Iterator[Point]:
    told: set[str] = set()
    for source in sources:
        mine = names.of(("source", source.source), ("node", source.node), ("node_id", source.node_id))
        if mine.text in told:
            continue
        told.add(mine.text)
        seen = seconds(source.last_at)
        if seen is not None:
            yield Point(f.SOURCE_SEEN, mine, seen)
        yield from _states(f.SOURCE_STATE, mine, source.state, names, None)


def _counted(cards: Sequence[Card], names: Names) -> Iterator[Point]:
    """How many cards of each make there are in each presence, nothing included, so that a make's last missing card ends at 0."""
    counts = Counter((names.of(("vendor", card.vendor or ""), ("model", card.model or "")), card.presence) for card in cards)
    for make in dict.fromkeys(make for make, _ in counts):
        for presence in f.PRESENCES:
            yield Point(f.CARDS, names.of(*make.pairs, ("presence", presence)), counts[make, presence])
