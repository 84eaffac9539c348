# SPDX-License-Identifier: Apache-2.0
"""Between the wire and the domain: what an interpretation says as documents of a report, and observations from such documents.

Reporters use the one way, the server the other. What a newer reporter says in words that this version does not know is never read as something else:
attributes and fields of a row are kept as detail beside the vendor's own (`newer`), other words (a level, a kind of name) are passed over.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import msgspec

from muster.domain.model.attributes import ATTRIBUTES, Kind, Level
from muster.domain.model.names import Name, NameKind, name
from muster.domain.model.observation import Event, Interpretation, Observation, Role, Subject
from muster.domain.model.reading import Absent, Known, Reading, Why
from muster.domain.model.source import Source
from muster.wire.report import EventDoc, ListingDoc, ObservationDoc

DEPTH_LIMIT = 16
"""Levels of a vendor's own values that are kept; what lies deeper is told as text."""
TEXT_LIMIT = 64 * 1024
"""Characters of one text that are kept."""
NEWER = "newer"
"""Under this key of a vendor's detail stands what a newer reporter said of the subject in words that this version does not know."""
NEWER_KEYS, NEWER_TEXT = 32, 200
"""So many of them are kept of one subject, and so many characters of each."""
_INT_LIMIT = 2**63
_LARGEST = 2.0**64
"""No quantity of the dictionary comes near it; sums of such numbers stay finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeing:
    """When and on what a listing rests: wall clock (seconds since the epoch), monotonic clock and boot of the reporter, and the digest of the capture kept."""

    at: float
    mono: float = 0.0
    boot_id: str = ""
    capture: str = ""


def to_listing_doc(source: Source, told: Interpretation, seeing: Seeing, *, adapter: str = "", stuck: bool = False, standing_by: bool = False) -> ListingDoc:
    """One round of ``source`` as it goes into a report. ``adapter`` is who interpreted it, the source's own where left out."""
    return ListingDoc(
        source=str(source.id),
        channel=source.channel.value,
        witness=source.witness.value,
        cadence=source.cadence.total_seconds(),
        outcome=told.outcome.value,
        complete=told.complete,
        observed_at=seeing.at,
        observed_mono=seeing.mono,
        boot_id=seeing.boot_id,
        adapter=adapter or source.adapter,
        counts={level.value: count for level, count in told.counts.items()},
        observations=[to_observation_doc(each) for each in told.observations],
        capture=seeing.capture,
        detail=clean(told.detail),
        tool_version=clean(told.tool_version),
        unknown_shape=clean(told.unknown_shape),
        stuck=stuck,
        standing_by=standing_by,
    )


def to_observation_doc(told: Observation) -> ObservationDoc:
    """One subject with its readings; names in a fixed order, so that equal observations are equal documents."""
    return ObservationDoc(
        level=told.subject.level.value,
        ids=_ids(told.subject.names),
        parent=_ids(told.subject.parent),
        ordinal=told.subject.ordinal,
        role=told.role.value if told.role else "",
        readings={clean(key): to_reading_doc(reading) for key, reading in told.readings.items()},
        vendor=plain(told.vendor),
    )


def to_reading_doc(reading: Reading) -> dict[str, Any]:
    """``{"v": value}`` or ``{"a": reason, "d": detail}``; a number that no document can hold becomes an absence."""
    if isinstance(reading, Absent):
        return {"a": reading.why.value, "d": clean(reading.detail)} if reading.detail else {"a": reading.why.value}
    if isinstance(reading.value, int | float) and not _holds(reading.value):
        return {"a": Why.IMPLAUSIBLE.value, "d": _told(reading.value)}
    return {"v": plain(reading.value)}


def to_observations(doc: ListingDoc) -> tuple[Observation, ...]:
    """The observations of a listing. Sets and tuples come back as lists, as JSON has them."""
    made: dict[str | int, Reading] = {}
    return tuple(told for each in doc.observations if (told := _observation(each, made)) is not None)


def to_known(doc: ListingDoc) -> tuple[Observation, ...]:
    """The observations of a listing as the roll takes them: readings of attributes that this version does not know are kept as detail."""
    made: dict[str | int, Reading] = {}
    return tuple(told for each in doc.observations if (told := _observation(_with_known(each), made)) is not None)


def _with_known(doc: ObservationDoc) -> ObservationDoc:
    if doc.readings.keys() <= ATTRIBUTES.keys():
        return doc
    vendor = with_newer(doc.vendor, {key: reading for key, reading in doc.readings.items() if key not in ATTRIBUTES})
    return msgspec.structs.replace(doc, readings={key: reading for key, reading in doc.readings.items() if key in ATTRIBUTES}, vendor=vendor)


def _observation(doc: ObservationDoc, made: dict[str | int, Reading]) -> Observation | None:
    level = _LEVELS.get(doc.level)
    if level is None:
        return None
    subject = Subject(level=level, names=_names(doc.ids), parent=_names(doc.parent) if doc.parent else _NOBODY, ordinal=doc.ordinal)
    role = Role(doc.role) if doc.role in _ROLES else None
    return Observation(subject=subject, readings=_readings(doc.readings, made), vendor=plain(doc.vendor), role=role)


def _readings(told: Mapping[str, Mapping[str, Any]], made: dict[str | int, Reading]) -> dict[str, Reading]:
    """Readings as `to_reading` and `fit` make them. ``made`` are those of this listing: equal texts and whole numbers that are facts share one.

    A number that moves never does, so that each has its place in the lane of numbers.
    """
    found: dict[str, Reading] = {}
    for key, each in told.items():
        value: Any = each.get("v")
        kind = value.__class__
        if (kind is str and key not in _NUMERIC and len(value) <= TEXT_LIMIT and value.isascii()) or (
            kind is int and key in _FACTS and -_INT_LIMIT <= value < _INT_LIMIT
        ):
            reading = made.get(value)
            if reading is None:
                reading = made[value] = Known(value)
            found[key] = reading
        elif (kind is float and 0 <= value < _LARGEST) or (kind is int and 0 <= value < _INT_LIMIT):
            found[key] = Known(value)
        elif (slow := to_reading(each)) is not None:
            found[key] = fit(key, slow)
    return found


def to_reading(doc: Mapping[str, Any]) -> Reading | None:
    """The reading in ``{"v": value}`` or ``{"a": reason, "d": detail}``; None for a form that is neither."""
    if "v" in doc and doc["v"] is not None:
        return Known(plain(doc["v"]))
    if "a" not in doc:
        return None
    why, detail = str(doc["a"]), str(doc.get("d", ""))
    if why in _WHYS:
        return Absent(Why(why), detail)
    return Absent(Why.UNREADABLE, f"{why}: {detail}" if detail else why)


def fit(key: str, reading: Reading) -> Reading:
    """The reading, or an absence when its value is not of the attribute's kind, no document can hold it, or a counter is negative."""
    entry = ATTRIBUTES.get(key)
    if entry is None or not entry.numeric or isinstance(reading, Absent):
        return reading
    value = reading.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Absent(Why.UNREADABLE, str(value)[:80])
    if not abs(value) < _LARGEST or (entry.kind is Kind.COUNTER and value < 0):
        return Absent(Why.IMPLAUSIBLE, str(value)[:80])
    return reading


def to_event_docs(events: Iterable[Event], *, source: str, adapter: str, boot_id: str, place: Callable[[Event], str], seen_at: float) -> list[EventDoc]:
    """Events with ids that stay the same when the same lines are read again.

    ``place`` gives where in its stream an event stood; it parts equal lines that carry no time of their own. ``seen_at`` dates those.
    """
    before: Counter[tuple[str, ...]] = Counter()
    docs = []
    for each in events:
        at = each.at.timestamp() if each.at else None
        key = (source, adapter, boot_id, each.text, each.code or "", f"{at:.6f}" if at is not None else place(each))
        docs.append(_event(each, source, adapter, at if at is not None else seen_at, _digest(*key, str(before[key]))))
        before[key] += 1
    return docs


def _event(told: Event, source: str, adapter: str, at: float, id_: str) -> EventDoc:
    return EventDoc(
        id=id_,
        source=source,
        adapter=adapter,
        text=clean(told.text),
        level=told.subject.level.value,
        ids=_ids(told.subject.names),
        kind=clean(told.kind),
        code=clean(told.code) if told.code is not None else None,
        first_at=at,
        last_at=at,
        repeats=told.repeats,
    )


def plain(value: Any, depth: int = 0) -> Any:
    """``value`` in the shapes of JSON: sets sorted, numbers that no document can hold and unknown types as text."""
    if isinstance(value, Enum):
        return plain(value.value, depth)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int | float):
        return value if _holds(value) else _told(value)
    if depth >= DEPTH_LIMIT:
        return clean(repr(value)[:TEXT_LIMIT])
    if isinstance(value, Mapping):
        return {clean(str(key)): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(each, depth + 1) for each in value), key=str)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(each, depth + 1) for each in value]
    return clean(value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value))


def with_newer(vendor: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """A vendor's detail with what a newer reporter told in words of its own: readings and fields, bounded in number and length."""
    before = vendor.get(NEWER)
    known = dict(before) if isinstance(before, Mapping) else {}
    for key in sorted(told)[: max(0, NEWER_KEYS - len(known))]:
        value = told[key]
        known[clean(key)[:NEWER_TEXT]] = _short(value["v"] if isinstance(value, Mapping) and value.keys() == {"v"} else value)
    return {**vendor, NEWER: known}


def _short(value: Any) -> Any:
    made = plain(value)
    if isinstance(made, str):
        return made[:NEWER_TEXT]
    return made if isinstance(made, int | float | None) or len(text := repr(made)) <= NEWER_TEXT else text[:NEWER_TEXT]


def clean(text: str) -> str:
    """Text that UTF-8 can hold, at most `TEXT_LIMIT` characters of it."""
    return text[:TEXT_LIMIT].encode("utf-8", "backslashreplace").decode("utf-8")


def _holds(value: float) -> bool:
    return math.isfinite(value) if isinstance(value, float) else -_INT_LIMIT <= value < _INT_LIMIT


def _told(value: float) -> str:
    return f"{value:#x}"[:80] if isinstance(value, int) else repr(value)


def _ids(names: Iterable[Name]) -> list[tuple[str, str]]:
    return sorted((each.kind.value, clean(each.value)) for each in names)


def _names(ids: Iterable[tuple[str, str]]) -> frozenset[Name]:
    return frozenset(_name(kind, value) for kind, value in ids if kind in _KINDS)


@lru_cache(maxsize=1 << 16)
def _name(kind: str, value: str) -> Name:
    """`name`, remembered: the same names come in every word."""
    return name(NameKind(kind), value)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


LEVELS = frozenset(Level)
_LEVELS: dict[str, Level] = {level.value: level for level in Level}
_NUMERIC = frozenset(key for key, entry in ATTRIBUTES.items() if entry.numeric)
_FACTS = frozenset(key for key, entry in ATTRIBUTES.items() if entry.kind is Kind.FACT)
_NOBODY: frozenset[Name] = frozenset()
_ROLES = frozenset(Role)
_WHYS = frozenset(Why)
_KINDS = frozenset(NameKind)
