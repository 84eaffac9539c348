# SPDX-License-Identifier: Apache-2.0
"""How much one report may say: above what any machine that we know needs, below what would hold the only writer for long.

What is more is refused whole, by the name of the bound, and never cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from muster.domain.model.attributes import Level
from muster.domain.model.errors import InputError
from muster.domain.model.names import NameKind, names_nothing
from muster.wire.report import HeardDoc, ListingDoc, ObservationDoc, ReportDoc

CARDS: Final = 128
"""Cards of one round; each may be cut."""
DEVICES: Final = 128
"""Devices of one round, whichever cards they are of."""
PARTITIONS: Final = 64
"""Partitions of one card or device, in one round."""
OTHERS: Final = 128
"""Rows of one round that are none of these: the node, and what a newer reporter may know."""
ROWS: Final = 20_000
"""Rows of one report, all its rounds together."""
ROUNDS: Final = 32
"""Rounds of one report."""
APART: Final = 256
"""Cards of one report, all its rounds together: those that share a name are one."""
NAMES: Final = 64
"""Names of one row, and of its parent."""
READINGS: Final = 1_024
"""Readings of one row, and entries of its vendor's detail."""
EVENTS: Final = 20_000
"""Events of one report."""
CAPTURES: Final = 4_096
"""Captures of one report."""
ENTRIES: Final = 1_024
"""Entries of any other list or mapping."""
HERE: Final = 4 * CARDS
"""Cards of one node over all its reports, but for those that are removed or put away."""
EVER: Final = 16 * CARDS
"""Cards that were ever told of one node and are of no other now, but for those that an operator put away."""
PIECES: Final = 2 * CARDS * PARTITIONS
"""Devices and partitions of one node's cards, over all its reports."""
CALLED: Final = 4 * CARDS * NAMES
"""Names that one node's cards were ever told to have."""
SOURCES: Final = 256
"""Sources of one node, but for those that were removed."""
TEXT: Final = 1_024
"""Characters of one name, id or key. The text of a reading, an event or a capture may be longer, as long as the report is not too large."""

_OF_ROW = b"level"
"""What each row has at least once: a round that has it seldom has few rows."""
_NOBODY = msgspec.Raw(b"\x90")
_KINDS = frozenset(NameKind)
_SPLIT = "a report says less: send the rest in another, numbered as the next"


class _Row(msgspec.Struct):
    """A row of a round: who it is of, unread."""

    level: str = ""
    ids: msgspec.Raw = _NOBODY
    parent: msgspec.Raw = _NOBODY


class _Rows(msgspec.Struct):
    """The rows of a round, as far as they are counted."""

    observations: list[_Row] = []


_rows = msgspec.msgpack.Decoder(_Rows)
_ids = msgspec.msgpack.Decoder(list[tuple[str, str]])
_pack = msgspec.msgpack.Encoder()


def report(told: ReportDoc) -> None:
    """Raises InputError for a report that says too much, by what can be seen before its rounds are read."""
    for what, count, most in (
        ("rounds", len(told.listings) + len(told.heard), ROUNDS),
        ("events", len(told.events), EVENTS),
        ("captures", len(told.captures), CAPTURES),
        ("adapters", len(told.adapters), ENTRIES),
    ):
        if count > most:
            _most(what, count, most, "the report", _SPLIT)
    for what, text in (
        ("reporter", told.reporter),
        ("incarnation", told.incarnation),
        ("node.name", told.node.name),
        ("node.machine_id", told.node.machine_id),
        ("node.system", told.node.system),
        ("boot_id", told.boot_id),
        ("agent_version", told.agent_version),
    ):
        if len(text) > TEXT:
            _short(what, text)
    rounds: tuple[ListingDoc | HeardDoc, ...] = (*told.listings, *told.heard)
    for each in rounds:
        if len(each.source) > TEXT or len(each.boot_id) > TEXT:
            _short("source", each.source)
            _short("boot_id", each.boot_id)
    for event in told.events:
        _most("ids", len(event.ids), NAMES, "an event")
        _texts("an event", (event.id, event.source, event.adapter, event.kind, event.code or "", *(word for pair in event.ids for word in pair)))
    for capture in told.captures:
        _most("locator", len(capture.locator), ENTRIES, "a capture")
        _texts("a capture", (capture.digest, capture.source, capture.format))
    _itself(told)
    _together(told)


def _itself(told: ReportDoc) -> None:
    """What the reporter says of itself."""
    if told.agent is None:
        return
    for what, entries in (("agent.workers", told.agent.workers), ("agent.costs", told.agent.costs)):
        _most(what, len(entries), ENTRIES, "the report")
        _texts(what, entries)
    counts = (told.agent.spool_reports, told.agent.spool_bytes, told.agent.dropped, told.agent.refused, told.agent.memory)
    if any(not 0 <= each < 2**53 for each in counts):
        raise InputError("a number of agent is out of range", hint="counts and bytes are whole numbers from 0 up")


def _together(told: ReportDoc) -> None:
    """What its rounds say together. One that cannot be read is told of when it is read."""
    if not told.listings and sum(each.facts.count(_OF_ROW) for each in told.heard) <= APART:
        return
    rows = [*(row for each in told.heard for row in _counted(each)), *(_unread(row) for each in told.listings for row in each.observations)]
    _most("rows", len(rows), ROWS, "the report", _SPLIT)
    if len(rows) > APART:
        _most("cards that share no name", _apart(Counter(about for row in rows if (about := _about(row)))), APART, "the report", _SPLIT)


def _unread(row: ObservationDoc) -> _Row:
    return _Row(row.level, msgspec.Raw(_pack.encode(row.ids)), msgspec.Raw(_pack.encode(row.parent)))


def _about(row: _Row) -> tuple[bytes, ...]:
    """Names of the card that a row is of, or speaks of, packed; nothing for a row that speaks of none."""
    if row.level == Level.CARD:
        return (bytes(row.ids),)
    if row.level == Level.DEVICE:
        return bytes(row.ids), bytes(row.parent)
    return (bytes(row.parent),) if row.level == Level.PARTITION else ()


def _counted(heard: HeardDoc) -> list[_Row]:
    try:
        return _rows.decode(heard.facts).observations
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return []


def _apart(told: Counter[tuple[bytes, ...]]) -> int:
    """How many cards these are, where those that share a name are one, and those without a name are as many as are told."""
    above: dict[tuple[str, str], tuple[str, str]] = {}
    count = 0
    for packed, often in told.items():
        names = [name for each in packed for name in _usable(each)]
        if not names:
            count += often
            continue
        roots = {_root(above, name) for name in names if name in above}
        first = min(roots, default=names[0])
        count += 1 - len(roots)
        for name in (*roots, *(name for name in names if name not in above)):
            above[name] = first
    return count


def _usable(packed: bytes) -> list[tuple[str, str]]:
    try:
        return [(kind, value) for kind, value in _ids.decode(packed) if kind in _KINDS and not names_nothing(NameKind(kind), value)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _root(above: dict[tuple[str, str], tuple[str, str]], name: tuple[str, str]) -> tuple[str, str]:
    while (higher := above[name]) != name:
        above[name] = above[higher]
        name = higher
    return name


def rows(source: str, told: Sequence[ObservationDoc]) -> None:
    """Raises InputError for rows of one round that are too many, or of which one says too much."""
    about = f"round of {source}"
    levels: Counter[str] = Counter()
    parents: Counter[tuple[tuple[str, str], ...]] = Counter()
    spoken: set[tuple[tuple[str, str], ...]] = set()
    for row in told:
        levels[row.level] += 1
        if row.parent:
            parent = tuple(row.parent)
            spoken.add(parent)
            parents[parent] += row.level == Level.PARTITION
        elif row.level == Level.PARTITION:
            parents[()] += 1
        _row(about, row)
    cards, devices, cuts = (levels.pop(level, 0) for level in (Level.CARD.value, Level.DEVICE.value, Level.PARTITION.value))
    _most("cards", cards, CARDS, about)
    _most("devices", devices, DEVICES, about)
    _most("partitions of one card", max(parents.values(), default=0), PARTITIONS, about)
    _most("cards and devices that are spoken of", len(spoken), CARDS + DEVICES, about)
    _most("other rows", sum(levels.values()), OTHERS, about)
    _most("rows", cards + devices + cuts, ROWS, about)


def _row(about: str, row: ObservationDoc) -> None:
    if len(row.ids) > NAMES or len(row.parent) > NAMES:
        _most("names of one row", max(len(row.ids), len(row.parent)), NAMES, about)
    if len(row.readings) > READINGS or len(row.vendor) > READINGS:
        _most("readings of one row", max(len(row.readings), len(row.vendor)), READINGS, about)
    _texts(about, (word for pair in row.ids for word in pair))
    if row.parent:
        _texts(about, (word for pair in row.parent for word in pair))
    _texts(about, row.readings)


def _texts(about: str, words: Iterable[str]) -> None:
    for word in words:
        if len(word) > TEXT:
            raise InputError(f"{about}: a name of {len(word)} characters; {TEXT} are taken", hint=f"it begins with {word[:40]!r}")


def _short(what: str, text: str) -> None:
    if len(text) > TEXT:
        raise InputError(f"{what} has {len(text)} characters; {TEXT} are taken", hint=f"it begins with {text[:40]!r}")


def _most(what: str, count: int, most: int, about: str, hint: str = "") -> None:
    if count > most:
        raise InputError(f"{about}: {count} {what}; {most} are taken", hint=hint or "tell less of it in one report; what is more than that is taken nowhere")
