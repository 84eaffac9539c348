# SPDX-License-Identifier: Apache-2.0
"""The fleet as OTLP metrics: a resource for each host, its cards by the table of conventions."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from muster.export.conventions import HEALTH, MAPPING, SCHEMA_URL, SCOPE, STATES, STATUS, TYPE, UNKNOWN, Instrument, Metric
from muster.export.fleet import Card, Fleet, Node, Part, Readings, Told, seconds
from muster.export.labels import clean
from muster.export.protobuf import block, double, fixed, read, text, whole
from muster.export.series import Number, number

HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
_CARDS = 64
"""Cards of one resource message; those of a host with more come in several."""
_CUMULATIVE = 2
"""Sums are told from their beginning, whenever that was."""
_Words: TypeAlias = dict[str, str]
_Found: TypeAlias = "defaultdict[Metric, list[bytes]]"


def sealed(resources: Sequence[bytes]) -> bytes:
    """A request of these resources, packed."""
    return gzip.compress(b"".join(block(1, each) for each in resources), 1, mtime=0)


def rejected(answer: bytes) -> int:
    """Points that the receiver says it did not take, although it took the request."""
    partial = read(answer).get(1)
    count = read(partial).get(1) if isinstance(partial, bytes) else None
    return count if isinstance(count, int) else 0


def resources(fleet: Fleet, version: str) -> Iterator[bytes]:
    """Messages of the fleet, host by host; cards that stand nowhere have a resource without one."""
    nodes = {node.id: node for node in fleet.nodes}
    by_host: dict[tuple[str, str], list[Card]] = defaultdict(list)
    for card in fleet.cards:
        by_host[card.node_id or "", card.node or ""].append(card)
    scope = block(1, text(1, SCOPE) + text(2, version))
    for (node_id, name), cards in by_host.items():
        host = block(1, _attributes(1, _host(nodes.get(node_id), node_id, name)))
        rest = iter(cards)
        while some := list(islice(rest, _CARDS)):
            told = scope + b"".join(block(2, each) for each in _metrics(some, fleet.at)) + text(3, SCHEMA_URL)
            yield host + block(2, told) + text(3, SCHEMA_URL)


def _host(node: Node | None, node_id: str, name: str) -> _Words:
    machine = node.machine_id if node is not None else None
    return {"service.name": "muster", "host.name": name, "host.id": machine or node_id}


def _metrics(cards: Sequence[Card], at: float) -> list[bytes]:
    found: _Found = defaultdict(list)
    for card in cards:
        about = _about(card)
        _subject(found, card.readings, about, at)
        own = HEALTH in card.readings or not any(HEALTH in device.readings for device in card.devices)
        if own:
            _status(found, card.readings.get(HEALTH), about, card.presence, at)
        for device in card.devices:
            words = {**about, "hw.id": device.id, "hw.parent": card.id, "hw.name": f"{card.name} · device {device.ordinal}", **_serial(device)}
            _subject(found, device.readings, words, at)
            if HEALTH in device.readings:
                _status(found, device.readings[HEALTH], words, card.presence, at)
    return [_message(metric, points) for metric, points in found.items()]


def _about(card: Card) -> _Words:
    facts = {"hw.driver_version": "driver.version", "hw.firmware_version": "firmware.version"}
    return {
        "hw.id": card.id,
        "hw.type": TYPE,
        "hw.name": card.name,
        "hw.vendor": card.vendor or "",
        "hw.model": card.model or "",
        "muster.role": card.role,
        "hw.serial_number": next(iter(card.ids.get("serial", ())), ""),
        **{name: told.value for name, key in facts.items() if (told := card.readings.get(key)) is not None and isinstance(told.value, str)},
    }


def _serial(device: Part) -> _Words:
    return {"hw.serial_number": next(iter(device.ids.get("serial", ())), "")}


def _subject(found: _Found, readings: Readings, words: _Words, at: float) -> None:
    for row in MAPPING:
        told = readings.get(row.key)
        value = number(told.value) if told is not None and told.fresh else None
        if told is None or value is None:
            continue
        mine = {**words, **row.attributes}
        if row.sensor:
            mine |= {"hw.id": f"{words['hw.id']}/{row.sensor}", "hw.parent": words["hw.id"], "hw.type": "temperature", "hw.sensor_location": row.sensor}
        found[row.metric].append(_point(value, mine, seconds(told.observed_at) or at))


def _status(found: _Found, told: Told | None, words: _Words, presence: str, at: float) -> None:
    """The state of a component. Of one that is not seen now, or of which nothing fresh is said, nothing holds but that it is unknown."""
    said = told.value if told is not None and told.fresh and presence == "present" else None
    known = said in STATES.values() and said is not None
    moment = at if told is None or not known else seconds(told.observed_at) or at
    for state, word in STATES.items():
        found[STATUS].append(_point(int(known and said == word), {**words, "hw.state": state}, moment))
    found[UNKNOWN].append(_point(int(not known), words, moment))


def _point(value: Number, words: Mapping[str, str], at: float) -> bytes:
    told = fixed(6, value) if isinstance(value, int) and -(2**63) <= value < 2**63 else double(4, float(value))
    return fixed(3, round(at * 1000) * 1_000_000) + told + _attributes(7, words)


def _attributes(field: int, words: Mapping[str, str]) -> bytes:
    return b"".join(block(field, text(1, name) + block(2, text(1, clean(value)))) for name, value in words.items() if value)


def _message(metric: Metric, points: Sequence[bytes]) -> bytes:
    data = b"".join(block(1, each) for each in points)
    head = text(1, metric.name) + text(2, metric.about) + text(3, metric.unit)
    if metric.instrument is Instrument.GAUGE:
        return head + block(5, data)
    return head + block(7, data + whole(2, _CUMULATIVE) + whole(3, int(metric.instrument is Instrument.COUNTER)))
