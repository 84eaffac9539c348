# SPDX-License-Identifier: Apache-2.0
"""The two lanes of a round: facts, which should stay the same, and numbers that move. A listing is parted into them by the reporter, and made whole again
by a server that has not heard these facts before.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import msgspec

from muster.domain.model.attributes import ATTRIBUTES, Kind
from muster.domain.model.errors import InputError
from muster.wire import bounds
from muster.wire.mapping import with_newer
from muster.wire.report import FactsDoc, HeardDoc, ListingDoc, ObservationDoc, ReportDoc

EXACT = 2**53
"""Whole numbers below it are kept exactly in a float64."""
_FACTS = tuple(field for field in FactsDoc.__struct_fields__ if field != "observations")
_ROUND = ("observed_at", "observed_mono", "boot_id", "capture")
_MOVING = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is not Kind.FACT and entry.numeric)

_pack = msgspec.msgpack.Encoder(order="sorted")
_unpack = msgspec.msgpack.Decoder(FactsDoc)
_OF_ROW = frozenset(ObservationDoc.__struct_fields__)


def part(listing: ListingDoc) -> HeardDoc:
    """The listing in two lanes. Numbers stand in the order of its observations and, within each, of their keys."""
    numbers: list[float] = []
    rows = [_parted(each, numbers) for each in listing.observations]
    facts = FactsDoc(observations=rows, **{name: getattr(listing, name) for name in _FACTS})
    packed = struct.pack(f"<{len(numbers)}d", *numbers)
    return HeardDoc(facts=_pack.encode(facts), numbers=packed, source=listing.source, **{name: getattr(listing, name) for name in _ROUND})


def _parted(row: ObservationDoc, numbers: list[float]) -> ObservationDoc:
    readings: dict[str, dict[str, Any]] = {}
    for key in sorted(row.readings):
        reading = row.readings[key]
        if key in _MOVING and _moves(reading.get("v")):
            readings[key] = {"n": len(numbers)}
            numbers.append(float(reading["v"]))
        else:
            readings[key] = reading
    return msgspec.structs.replace(row, readings=readings)


def _moves(value: Any) -> bool:
    """True for a number that a float64 holds exactly."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < EXACT if isinstance(value, int) else math.isfinite(value)


def facts(heard: HeardDoc, *, bounded: bool = True) -> FactsDoc:
    """The facts of a round; fields of its rows that only a newer version knows are kept as detail. Raises InputError when they are none, or beyond `bounds`.

    Not ``bounded`` for what is not sent yet.
    """
    try:
        told = _unpack.decode(heard.facts)
        if bounded:
            bounds.rows(heard.source, told.observations)
        return told if _pack.encode(told) == heard.facts else _with_newer(told, heard.facts)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as wrong:
        raise InputError(f"round of {heard.source}: its facts do not fit: {wrong}", hint="is the agent of a much newer version? Upgrade the server") from wrong


def _with_newer(told: FactsDoc, packed: bytes) -> FactsDoc:
    rows = list(told.observations)
    for place, raw in enumerate(msgspec.msgpack.decode(packed)["observations"] if rows else ()):
        unknown = {str(name): value for name, value in raw.items() if name not in _OF_ROW}
        if unknown:
            rows[place] = msgspec.structs.replace(rows[place], vendor=with_newer(rows[place].vendor, unknown))
    return msgspec.structs.replace(told, observations=rows)


def values(heard: HeardDoc) -> tuple[float, ...]:
    """The numbers of a round. Raises InputError for bytes that are no float64."""
    if len(heard.numbers) % 8:
        raise InputError(f"round of {heard.source}: its numbers are cut", hint="float64, little endian, eight bytes each")
    return struct.unpack(f"<{len(heard.numbers) // 8}d", heard.numbers)


def whole(heard: HeardDoc, told: FactsDoc | None = None) -> ListingDoc:
    """The listing in two lanes made one. A number that is NaN was not told; a place that is not there makes the round unreadable (InputError)."""
    told = told or facts(heard)
    numbers = values(heard)
    rows = [_made_whole(each, numbers, heard.source) for each in told.observations]
    plain = {name: getattr(told, name) for name in _FACTS if name != "source"}
    return ListingDoc(source=heard.source, observations=rows, **plain, **{name: getattr(heard, name) for name in _ROUND})


def _made_whole(row: ObservationDoc, numbers: tuple[float, ...], source: str) -> ObservationDoc:
    readings: dict[str, dict[str, Any]] = {}
    for key, reading in row.readings.items():
        place = reading.get("n")
        if place is None:
            readings[key] = reading
        elif not isinstance(place, int) or not 0 <= place < len(numbers):
            raise InputError(f"round of {source}: no number at place {place} for {key}", hint="facts and numbers of one round belong together")
        else:
            readings[key] = _number(numbers[place])
    return msgspec.structs.replace(row, readings=readings)


def _number(value: float) -> dict[str, Any]:
    if math.isnan(value):
        return {"a": "not_sampled"}
    return {"v": int(value) if value.is_integer() and abs(value) < EXACT else value}


def older(report: ReportDoc) -> ReportDoc:
    """The report as a server of schema 1 understands it."""
    return msgspec.structs.replace(report, schema=1, listings=[*report.listings, *(whole(each) for each in report.heard)], heard=[], agent=None)
